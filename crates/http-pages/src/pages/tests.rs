//! `/p/{id}/tests`: every test of the engine's window.

use std::collections::BTreeSet;

use assay_answers::test_list::{self, OwnerCounts, TestFilters, TestList, TestQuery};
use assay_domain::{
    observation::History,
    owners::OwnerFilter,
    page::PerPage,
    store::in_snapshot,
    verdict::{ENGINE_WINDOW_DAYS, TestSort, VerdictStatus},
};
use assay_markup::{figures, reading, strip, words};
use maud::{Markup, html};

use super::{
    parts::{branch_field, choice, count, pager},
    rows,
};
use crate::{
    error::FrontError,
    layout::{Answer, Tab},
    links,
    view::View,
};

/// The orders of the list.
const SORTS: [(TestSort, &str); 6] = [
    (TestSort::Verdict, "verdict"),
    (TestSort::TimeLost, "time lost"),
    (TestSort::Score, "flake score"),
    (TestSort::Rate, "failure rate"),
    (TestSort::Impact, "impact"),
    (TestSort::Name, "name"),
];

/// Most variants in the select list.
const VARIANTS: usize = 100;

/// The filters of the page's address.
fn filters_of(view: &View<'_>) -> Result<TestFilters, FrontError> {
    Ok(TestFilters {
        search: view.text("search")?,
        file: view.text("file")?,
        branch: view.text("branch")?,
        variant: view.query.variant()?,
        error: view.text("error")?,
        is_red: view.query.flag("red")?,
        is_new: view.query.flag("new")?,
        owner: view.text("owner")?.map(|owner| OwnerFilter::of(&owner)),
    })
}

/// The order of the list, unless it is the default.
fn chosen_sort(query: &TestQuery) -> Option<&'static str> {
    (query.sort != TestSort::Verdict).then(|| query.sort.as_str())
}

/// The parameters of an address of the page, and of its route.
fn parameters<'a>(
    query: &'a TestQuery,
    status: Option<&'a str>,
    page: Option<&'a str>,
) -> [(&'static str, Option<&'a str>); 12] {
    let filters = &query.filters;
    [
        ("status", status),
        ("sort", chosen_sort(query)),
        ("search", filters.search.as_deref()),
        ("file", filters.file.as_deref()),
        ("branch", filters.branch.as_deref()),
        ("variant", filters.variant.as_deref()),
        ("error", filters.error.as_deref()),
        ("red", filters.is_red.then_some("true")),
        ("new", filters.is_new.then_some("true")),
        ("owner", filters.owner.as_ref().map(OwnerFilter::as_str)),
        ("group", query.by_owner.then_some("owner")),
        ("page", page),
    ]
}

pub(super) fn render(view: &View<'_>) -> Result<Answer, FrontError> {
    let project = view.project()?;
    let status: Option<VerdictStatus> = view.query.word("status")?;
    let sort: Option<TestSort> = view.query.word("sort")?;
    let query = TestQuery {
        filters: filters_of(view)?,
        status,
        sort: sort.unwrap_or(TestSort::Verdict),
        by_owner: view.query.is_word("group", "owner")?,
        page: view.query.page()?,
        per_page: PerPage::Fifty,
    };
    let (judged, list) = in_snapshot(view.store, &project, |snapshot| {
        let judged = view.judged(snapshot)?;
        let list = TestList::in_snapshot(snapshot, &project, &judged, &query, view.now)?;
        Ok((judged, list))
    })?;
    let (filters, sorted) = (&query.filters, chosen_sort(&query));
    let history = &judged.history;
    let path = links::project(project.id, "/tests");
    let address = |status: Option<&str>, page: Option<&str>| {
        links::with_query(&path, &parameters(&query, status, page))
    };
    let chosen = status.map(VerdictStatus::as_str);
    let runs = history.runs.iter();
    let branches: BTreeSet<&str> = runs.filter_map(|run| run.run.branch.as_deref()).collect();
    let body = html! {
        h1 { "Tests" }
        p.sub { (list.stable.explanation) "." }
        form.controls role="search" action=(path) method="get" data-live {
            @if let Some(status) = chosen { input type="hidden" name="status" value=(status); }
            @if let Some(error) = &filters.error { input type="hidden" name="error" value=(error); }
            label.search { span.unseen { "Search tests" } input name="search" type="search" value=[filters.search.as_deref()] maxlength="200" placeholder="Search tests" autocomplete="off"; }
            label { span { "File" } input name="file" value=[filters.file.as_deref()] maxlength="200" placeholder="any" autocomplete="off"; }
            (branch_field("Fails on", "any branch", filters.branch.as_deref(), branches.into_iter()))
            (variants(history, filters.variant.as_deref()))
            label { span { "Sort by" } select name="sort" { @for (word, label) in SORTS { (choice(if word == TestSort::Verdict { "" } else { word.as_str() }, Some(sorted.unwrap_or_default()), label)) } } }
            label.check { input name="red" type="checkbox" value="true" checked[filters.is_red]; span { "fail on the stable branch" } }
            @if !judged.owners.is_empty() {
                label { span { "Owner" } input name="owner" value=[filters.owner.as_ref().map(OwnerFilter::as_str)] maxlength="200" placeholder="any" autocomplete="off"; }
                label.check { input name="group" type="checkbox" value="owner" checked[query.by_owner]; span { "by owner" } }
            }
            label.check { input name="new" type="checkbox" value="true" checked[filters.is_new]; span { "new this week" } }
            button type="submit" { "Apply" }
        }
        div #results {
            @if let Some(error) = &filters.error {
                p.facts {
                    span { "Only tests with the error " a href=(links::signature(project.id, error)) { bdi { (list.error_title.as_ref().unwrap_or(error)) } } }
                }
            }
            nav.controls aria-label="Verdict" {
                div.chips {
                    a href=(address(None, None)) aria-current=[status.is_none().then_some("true")] { "All " span { (words::grouped(list.counts.total)) } }
                    @for each in VerdictStatus::LISTED {
                        @let tests = list.counts.of(each);
                        @if tests > 0 || status == Some(each) {
                            a href=(address(Some(each.as_str()), None)) aria-current=[(status == Some(each)).then_some("true")] { (figures::status(each)) " " span { (words::grouped(tests)) } }
                        }
                    }
                }
            }
            @if let Some(owners) = &list.owners { (owners_table(&path, owners, list.other_owners)) }
            @if list.tests.is_empty() {
                @if judged.counts().total == 0 { p.empty { "No test ran in the last " (ENGINE_WINDOW_DAYS) " days. " code { "assay upload" } " or " code { "assay-admin import" } " adds a run." } }
                @else { p.empty {
                    "No test matches."
                    @if *filters != TestFilters::default() { " " a href=(links::with_query(&path, &[("sort", sorted)])) { "Show all tests" } }
                } }
            } @else {
                (rows::rows(project.id, &list, view.now))
            }
            (pager(&list.page, |page| address(chosen, Some(&page.to_string()))))
        }
        (strip::legend(strip::RUN_OUTCOMES))
        (reading::folded(&[&reading::VERDICTS, &reading::STRIP, &reading::NEW, &reading::FIGURES]))
    };
    let number = list.page.page.to_string();
    let place = Some(number.as_str()).filter(|_| list.page.page > 1);
    let per_page = [("perPage", Some("50"))];
    let api = links::with_query(
        "/tests",
        &[&parameters(&query, chosen, place)[..], &per_page].concat(),
    );
    Ok(Answer::of_project(Tab::Tests, "Tests", &[api], body, project))
}

/// The owners, each with a link to its tests.
fn owners_table(path: &str, owners: &[OwnerCounts], others: Option<u64>) -> Markup {
    html! {
        div.panel.wide tabindex="0" role="group" aria-label="Owners" {
            table.owners {
                thead { tr { th scope="col" { "Owner" } th.number scope="col" { "Broken" } th.number scope="col" { "Failing now" } th.number scope="col" { "Flaky" } th.number scope="col" { "Tests" } } }
                tbody {
                    @for OwnerCounts { owner, counts } in owners {
                        tr {
                            td { a href=(links::with_query(path, &[("owner", Some(owner))])) { bdi { (owner) } } }
                            @for tests in [counts.broken, counts.failing, counts.flaky, counts.total] { td.number { (words::grouped(tests)) } }
                        }
                    }
                }
            }
            @if let Some(others @ 1..) = others { p.sub { "And " (count(others, "other owner")) } }
        }
    }
}

/// The choice of a variant, if there are several.
fn variants(history: &History, chosen: Option<&str>) -> Markup {
    let all = test_list::variants(history);
    let are_several = all.len() > 1 || chosen.is_some();
    let others = all.into_iter().filter(|variant| Some(*variant) != chosen);
    html! {
        @if are_several {
            label { span { "Fails in" } select name="variant" {
                (choice("", chosen, "any variant"))
                @for variant in chosen.into_iter().chain(others.take(VARIANTS)) { (choice(variant, chosen, variant)) }
            } }
        }
    }
}

//! `/p/{id}/tests`: every test of the engine's window.

use std::{
    cell::RefCell,
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use assay_domain::{
    folding::fold,
    observation::{Bitmap, History},
    owners::OwnerFilter,
    page::{Page as PagePlace, PerPage},
    signature::SignatureHits,
    store::{StoreError, in_snapshot},
    test_names::{TestNameRef, TestNames},
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, Verdict, VerdictStatus},
};
use assay_markup::{figures, history, reading, strip, words};
use maud::{Markup, html};

use super::{
    parts::{branch_field, choice, pager},
    rows,
};
use crate::{
    error::FrontError,
    layout::{Answer, Page, Tab},
    links,
    view::{NamedVerdict, Verdicts, View, sorted_part},
};

/// The verdicts in the order of the page.
const STATUSES: [VerdictStatus; 5] = [
    VerdictStatus::Broken,
    VerdictStatus::Failing,
    VerdictStatus::Flaky,
    VerdictStatus::Healthy,
    VerdictStatus::InsufficientData,
];

/// The orders of the list.
const SORTS: [(&str, &str); 6] = [
    ("", "verdict"),
    ("timeLost", "time lost"),
    ("score", "flake score"),
    ("rate", "failure rate"),
    ("impact", "impact"),
    ("name", "name"),
];

/// Most variants in the select list.
const VARIANTS: usize = 100;

/// Most owners in the table.
const OWNERS: usize = 100;

/// Longest name of a variant, as imports cut it.
const VARIANT_CHARS: usize = 500;

/// Filters of the list beside the verdict.
struct Filters {
    search: Option<String>,
    file: Option<String>,
    branch: Option<String>,
    variant: Option<String>,
    /// The fingerprint of an error.
    error: Option<String>,
    /// Only tests whose newest result on the stable branch failed.
    is_red: bool,
    /// Only tests that first failed this week.
    is_new: bool,
    owner: Option<OwnerFilter>,
}

impl Filters {
    fn of(view: &View<'_>) -> Result<Self, FrontError> {
        Ok(Self {
            search: view.text("search")?,
            file: view.text("file")?,
            branch: view.text("branch")?,
            variant: view.parse("variant", "must be 1 to 500 characters long", |variant| {
                (variant.chars().count() <= VARIANT_CHARS).then(|| variant.to_owned())
            })?,
            error: view.text("error")?,
            is_red: view
                .parse("red", "must be 1", |red| (red == "1").then_some(()))?
                .is_some(),
            is_new: view
                .parse("new", "must be 1", |new| (new == "1").then_some(()))?
                .is_some(),
            owner: view.text("owner")?.map(|owner| OwnerFilter::of(&owner)),
        })
    }

    /// The filters as parameters of the page's address.
    fn parameters(&self) -> [(&'static str, Option<&str>); 8] {
        [
            ("search", self.search.as_deref()),
            ("file", self.file.as_deref()),
            ("branch", self.branch.as_deref()),
            ("variant", self.variant.as_deref()),
            ("error", self.error.as_deref()),
            ("red", self.is_red.then_some("1")),
            ("new", self.is_new.then_some("1")),
            ("owner", self.owner.as_ref().map(OwnerFilter::as_str)),
        ]
    }

    fn is_any(&self) -> bool {
        self.parameters().iter().any(|(_, value)| value.is_some())
    }

    /// The tests that match. `hits` are the tests with the error.
    fn matching<'a>(
        &self,
        verdicts: &'a Verdicts,
        names: &'a TestNames,
        hits: Option<&SignatureHits>,
        now: Timestamp,
    ) -> Result<Vec<NamedVerdict<'a>>, StoreError> {
        let history = &verdicts.history;
        let on_branch = self
            .branch
            .as_deref()
            .map(|branch| history::failing(history, |run| run.run.branch.as_deref() == Some(branch)));
        let in_variant = self.variant.as_deref().map(|variant| {
            history::failing(history, |run| history::variant_name(&run.run.variant) == variant)
        });
        let with_error = self
            .error
            .is_some()
            .then(|| hits.iter().flat_map(|hits| &hits.tests).copied().collect());
        let new = self
            .is_new
            .then(|| history::newly_failing(history, now.plus_days(-history::NEW_DAYS)));
        let filter_bitmaps: Vec<Bitmap> = [on_branch, in_variant, with_error, new]
            .into_iter()
            .flatten()
            .collect();
        let (search, file) = (self.search.as_deref().map(fold), self.file.as_deref().map(fold));
        let lookup = RefCell::new(verdicts.owners.lookup());
        let has_owner = |test: &TestNameRef<'_>| match &self.owner {
            Some(owner) => owner.selects(lookup.borrow_mut().of(test.file_path)),
            None => true,
        };
        verdicts.entries(names, |(test, verdict)| {
            filter_bitmaps.iter().all(|tests| tests.contains(verdict.test))
                && (!self.is_red || verdicts.stable.fails(verdict.test))
                && file.as_deref().is_none_or(|file| test.file_contains_folded(file))
                && search
                    .as_deref()
                    .is_none_or(|search| test.contains_folded(search))
                && has_owner(test)
        })
    }
}

pub(super) fn render(view: &View<'_>) -> Result<Answer, FrontError> {
    let project = view.project()?;
    let status: Option<VerdictStatus> = view.word("status")?;
    let sort = view
        .parse(
            "sort",
            "must be one of timeLost, score, rate, impact, name",
            |sort| SORTS.into_iter().map(|(word, _)| word).find(|word| *word == sort),
        )?
        .unwrap_or_default();
    let filters = Filters::of(view)?;
    let is_grouped = view
        .parse("group", "must be owner", |group| (group == "owner").then_some(()))?
        .is_some();
    let page = view.page()?;
    let (verdicts, names) = view.named_verdicts(&project)?;
    let from = view.now.plus_days(-ENGINE_WINDOW_DAYS);
    let hits = match &filters.error {
        Some(error) => in_snapshot(view.store, &project, |snapshot| {
            snapshot.tests_with_signature(error, from, view.now)
        })?,
        None => None,
    };
    let mut matching = filters.matching(&verdicts, &names, hits.as_ref(), view.now)?;
    let count_with = |status: VerdictStatus| {
        matching
            .iter()
            .filter(|(_, verdict)| verdict.status == status)
            .count()
    };
    let counts = STATUSES.map(|status| (status, count_with(status)));
    let total = matching.len();
    let groups = is_grouped.then(|| by_owner(&verdicts, &matching));
    matching.retain(|(_, verdict)| status.is_none_or(|status| verdict.status == status));
    let place = PagePlace::of(
        page,
        PerPage::Fifty,
        u64::try_from(matching.len()).unwrap_or(u64::MAX),
    );
    let part = [place.offset(), u64::from(place.per_page)];
    let [first, most] = part.map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    let page_tests = sorted_part(matching, (first, most), |left, right| compare(sort, left, right));
    let path = links::project(project.id, "/tests");
    let sorted = Some(sort).filter(|sort| !sort.is_empty());
    let address = |status: Option<&str>, page: Option<&str>| {
        let mut parameters = vec![("status", status), ("sort", sorted)];
        parameters.extend(filters.parameters());
        parameters.push(("group", is_grouped.then_some("owner")));
        parameters.push(("page", page));
        links::with_query(&path, &parameters)
    };
    let chosen = status.map(VerdictStatus::as_str);
    let runs = verdicts.history.runs.iter();
    let branches: BTreeSet<&str> = runs.filter_map(|run| run.run.branch.as_deref()).collect();
    let body = html! {
        h1 { "Tests" }
        p.sub { (verdicts.stable.sentence(&verdicts.history)) "." }
        form.controls role="search" action=(path) method="get" data-live {
            @if let Some(status) = chosen { input type="hidden" name="status" value=(status); }
            @if let Some(error) = &filters.error { input type="hidden" name="error" value=(error); }
            label.search { span.unseen { "Search tests" } input name="search" type="search" value=[filters.search.as_deref()] maxlength="200" placeholder="Search tests" autocomplete="off"; }
            label { span { "File" } input name="file" value=[filters.file.as_deref()] maxlength="200" placeholder="any" autocomplete="off"; }
            (branch_field("Fails on", "any branch", filters.branch.as_deref(), branches.into_iter()))
            (variants(&verdicts.history, filters.variant.as_deref()))
            label { span { "Sort by" } select name="sort" { @for (word, label) in SORTS { (choice(word, Some(sort), label)) } } }
            label.check { input name="red" type="checkbox" value="1" checked[filters.is_red]; span { "fail on the stable branch" } }
            @if !verdicts.owners.is_empty() {
                label { span { "Owner" } input name="owner" value=[filters.owner.as_ref().map(OwnerFilter::as_str)] maxlength="200" placeholder="any" autocomplete="off"; }
                label.check { input name="group" type="checkbox" value="owner" checked[is_grouped]; span { "by owner" } }
            }
            label.check { input name="new" type="checkbox" value="1" checked[filters.is_new]; span { "new this week" } }
            button type="submit" { "Apply" }
        }
        div #results {
            @if let Some(error) = &filters.error {
                p.facts {
                    span { "Only tests with the error " a href=(links::signature(project.id, error)) { bdi { (hits.as_ref().map_or(error, |hits| &hits.title)) } } }
                }
            }
            nav.controls aria-label="Verdict" {
                div.chips {
                    a href=(address(None, None)) aria-current=[status.is_none().then_some("true")] { "All " span { (words::grouped(total)) } }
                    @for (each, tests) in counts {
                        @if tests > 0 || status == Some(each) {
                            a href=(address(Some(each.as_str()), None)) aria-current=[(status == Some(each)).then_some("true")] { (figures::status(each)) " " span { (words::grouped(tests)) } }
                        }
                    }
                }
            }
            @if let Some(groups) = &groups { (groups_table(&path, groups)) }
            @if page_tests.is_empty() {
                @if verdicts.total() == 0 { p.empty { "No test ran in the last " (ENGINE_WINDOW_DAYS) " days. " code { "assay upload" } " or " code { "assay-admin import" } " adds a run." } }
                @else { p.empty {
                    "No test matches."
                    @if filters.is_any() { " " a href=(links::with_query(&path, &[("sort", sorted)])) { "Show all tests" } }
                } }
            } @else {
                (rows::rows(project.id, &verdicts.history, (&verdicts.stable, &verdicts.owners), &page_tests, view.now))
            }
            (pager(&place, |page| address(chosen, Some(&page.to_string()))))
        }
        (strip::legend(strip::RUN_OUTCOMES))
        (reading::folded(&[&reading::VERDICTS, &reading::STRIP, &reading::NEW, &reading::FIGURES]))
    };
    // The read API lists only flaky and broken tests.
    let word = chosen.filter(|word| ["flaky", "broken"].contains(word));
    let api = links::with_query(
        &format!("/projects/{}/flaky", project.id),
        &[
            ("status", word),
            ("search", filters.search.as_deref()),
            ("perPage", Some("50")),
        ],
    );
    Ok(Page {
        title: format!("Tests, {}", project.name),
        project: Some(project),
        tab: Tab::Tests,
        body,
        api: vec![api],
    }
    .into())
}

/// The number of tests of each status, in the order of [`STATUSES`].
type StatusCounts = [usize; STATUSES.len()];

/// The tests of each owner by status. A test with several owners counts for each.
fn by_owner(verdicts: &Verdicts, tests: &[NamedVerdict<'_>]) -> BTreeMap<String, StatusCounts> {
    let mut lookup = verdicts.owners.lookup();
    let mut groups: BTreeMap<String, StatusCounts> = BTreeMap::new();
    let mut count = |owner: &str, status: VerdictStatus| {
        let counts = groups.entry(owner.to_owned()).or_default();
        for (count, _) in counts
            .iter_mut()
            .zip(STATUSES)
            .filter(|(_, each)| *each == status)
        {
            *count += 1;
        }
    };
    for (test, verdict) in tests {
        let owners = &lookup.of(test.file_path).owners;
        for owner in owners {
            count(owner, verdict.status);
        }
        if owners.is_empty() {
            count(OwnerFilter::UNOWNED, verdict.status);
        }
    }
    groups
}

/// The owners with the most tests that need work first, each with a link to its tests.
fn groups_table(path: &str, groups: &BTreeMap<String, StatusCounts>) -> Markup {
    let [broken, failing, flaky, ..] = STATUSES;
    let of = |counts: &StatusCounts, status: VerdictStatus| {
        let mut each = counts.iter().zip(STATUSES);
        each.find(|(_, each)| *each == status)
            .map_or(0, |(count, _)| *count)
    };
    let mut rows: Vec<(&String, &StatusCounts)> = groups.iter().collect();
    rows.sort_by_key(|(_, counts)| {
        std::cmp::Reverse([broken, failing, flaky].map(|status| of(counts, status)))
    });
    let omitted = rows.len().saturating_sub(OWNERS);
    html! {
        div.panel.wide tabindex="0" role="group" aria-label="Owners" {
            table.owners {
                thead { tr { th scope="col" { "Owner" } th.number scope="col" { "Broken" } th.number scope="col" { "Failing now" } th.number scope="col" { "Flaky" } th.number scope="col" { "Tests" } } }
                tbody {
                    @for (owner, counts) in rows.into_iter().take(OWNERS) {
                        tr {
                            td { a href=(links::with_query(path, &[("owner", Some(owner))])) { bdi { (owner) } } }
                            @for status in [broken, failing, flaky] { td.number { (words::grouped(of(counts, status))) } }
                            td.number { (words::grouped(counts.iter().sum())) }
                        }
                    }
                }
            }
            @if omitted > 0 { p.sub { "And " (words::count(omitted, "other owner")) } }
        }
    }
}

/// The choice of a variant, if there are several.
fn variants(history: &History, chosen: Option<&str>) -> Markup {
    let runs = history.runs.iter();
    let all: BTreeSet<&str> = runs.map(|run| history::variant_name(&run.run.variant)).collect();
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

/// Compares by the chosen figure, the largest first and unknown last. Without a choice, compares by verdict, the worst
/// first, then by lost time. The order is total, so that pages do not overlap.
fn compare(
    sort: &str,
    (left_name, left): &NamedVerdict<'_>,
    (right_name, right): &NamedVerdict<'_>,
) -> Ordering {
    let rank = |verdict: &Verdict| STATUSES.iter().position(|status| *status == verdict.status);
    let (left_figures, right_figures) = (&left.figures, &right.figures);
    let by_figure = match sort {
        "timeLost" => right_figures.time_lost_ms.cmp(&left_figures.time_lost_ms),
        "score" => right_figures.flake_score.total_cmp(&left_figures.flake_score),
        "rate" => right_figures
            .failure_rate
            .unwrap_or(-1.0)
            .total_cmp(&left_figures.failure_rate.unwrap_or(-1.0)),
        "impact" => right_figures.impact.total_cmp(&left_figures.impact),
        "name" => return left_name.cmp(right_name),
        _ => rank(left)
            .cmp(&rank(right))
            .then_with(|| right_figures.time_lost_ms.cmp(&left_figures.time_lost_ms)),
    };
    // Tests with equal figures have the order of the API's flaky list.
    by_figure
        .then_with(|| right_figures.flake_score.total_cmp(&left_figures.flake_score))
        .then_with(|| left_name.cmp(right_name))
}

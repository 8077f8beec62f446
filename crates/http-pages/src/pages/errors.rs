//! `/p/{id}/errors`: the error signatures of a period.

use assay_domain::{
    id::ProjectId,
    period::Days,
    signature::{Category, Signature, SignatureQuery, SignatureSort},
    timestamp::Timestamp,
};
use maud::{Markup, html};

use super::parts::{branch_field, choice, count, grouped, new_within, pager, when};
use crate::{
    error::FrontError,
    layout::{Answer, Tab},
    links,
    view::{PER_PAGE, View},
};

const SORTS: [(SignatureSort, &str); 4] = [
    (SignatureSort::Occurrences, "occurrences"),
    (SignatureSort::Tests, "tests"),
    (SignatureSort::LastSeen, "last seen"),
    (SignatureSort::FirstSeen, "first seen"),
];

pub(super) fn render(view: &View<'_>) -> Result<Answer, FrontError> {
    let project = view.project()?;
    let query = SignatureQuery {
        period: view.period()?,
        branch: view.text("branch")?,
        category: view.query.word("category")?,
        search: view.text("search")?,
        sort: view.query.word("sort")?.unwrap_or(SignatureSort::Occurrences),
        page: view.query.page()?,
        per_page: PER_PAGE,
    };
    let list = view.store.signatures(&project, &query)?;
    let branches = view.store.branches(&project)?;
    let days = query.period.days.count().to_string();
    let path = links::project(project.id, "/errors");
    let filters = [
        ("days", Some(days.as_str())),
        ("branch", query.branch.as_deref()),
        ("category", query.category.map(Category::as_str)),
        ("search", query.search.as_deref()),
        ("sort", Some(query.sort.as_str())),
    ];
    let address = |path: &str, page: u64, per_page: Option<&str>| {
        let page = page.to_string();
        let page_parameters = [("page", Some(page.as_str())), ("perPage", per_page)];
        links::with_query(path, &[&filters[..], &page_parameters].concat())
    };
    let body = html! {
        h1 { "Errors" }
        p.sub { "Failed attempts with the same error text, apart from its changing parts, are one error." }
        (controls(view, &path, &query, &branches.names))
        div #results {
            p.sub { (count(list.page.total, "error signature")) @if list.unfingerprinted_count > 0 { ", and " (count(list.unfingerprinted_count, "failed attempt")) " without any text" } "." }
            @if list.signatures.is_empty() { p.empty {
                @if query.search.is_some() || query.branch.is_some() || query.category.is_some() { "No error matches. " a href=(path) { "Show all errors" } }
                @else { "No test failed with an error text in the last " (days) " days." }
            } } @else {
                ol.rows {
                    @for signature in &list.signatures { (row(project.id, signature, query.period.days, view.now)) }
                }
            }
            (pager(&list.page, |page| address(&path, page, None)))
        }
    };
    let api = address("/errors", list.page.page, Some("50"));
    Ok(Answer::of_project(Tab::Errors, "Errors", &[api], body, project))
}

/// The search and the filters of the list.
fn controls(view: &View<'_>, path: &str, query: &SignatureQuery, branches: &[String]) -> Markup {
    let days = query.period.days.count().to_string();
    let category = query.category.map(Category::as_str);
    html! {
        form.controls role="search" action=(path) method="get" data-live {
            label.search { span.unseen { "Search errors" } input name="search" type="search" value=[query.search.as_deref()] maxlength="200" placeholder="Search errors" autocomplete="off"; }
            (branch_field("Branch", "any", query.branch.as_deref(), branches.iter().map(String::as_str)))
            label { span { "Kind" } select name="category" { (choice("", category, "any")) @for each in Category::ALL { (choice(each.as_str(), category, each.as_str())) } } }
            label { span { "Sort by" } select name="sort" { @for (sort, label) in SORTS { (choice(sort.as_str(), Some(query.sort.as_str()), label)) } } }
            label { span { "Days" } select name="days" { @for each in view.periods() { (choice(&each.to_string(), Some(&days), &each.to_string())) } } }
            button type="submit" { "Apply" }
        }
    }
}

fn row(project: ProjectId, signature: &Signature, days: Days, now: Timestamp) -> Markup {
    html! {
        li.row {
            div.card {
                p {
                    a.leaf href=(links::signature(project, &signature.fingerprint)) { bdi { (signature.title) } }
                    @if signature.is_new { " " (new_within(days.count())) }
                }
                p.facts {
                    span.category { (signature.category) }
                    span { b { (grouped(signature.occurrence_count)) } " ×" }
                    span { (count(signature.test_count, "test")) }
                    span { (count(signature.run_count, "run")) }
                    @if let Some(file) = &signature.file_path { span { bdi { (file) } } }
                    span { "last seen " (when(signature.last_seen, now)) }
                }
            }
        }
    }
}

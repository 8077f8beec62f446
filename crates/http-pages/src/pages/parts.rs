//! Parts that several pages have: times, numbers, links, fields.

use std::collections::HashMap;

use actix_web::HttpRequest;
use assay_answers::commit::joined;
use assay_domain::{
    id::{ProjectId, RunId},
    merge_queue::is_queue_branch,
    owners::Ownership,
    page::Page as PagePlace,
    run::{Counts, Outcome, RunRow},
    test::CandidateFiles,
    timestamp::Timestamp,
    verdict::FailingSince,
};
use assay_http::Pairs;
use assay_markup::{chart, words};
use maud::{Markup, html};

use crate::links;

/// Most branches that a field suggests.
const BRANCHES: usize = 100;

/// Links to the same page for each file that has a test of this name.
pub(crate) fn candidates(request: &HttpRequest, files: &CandidateFiles) -> Markup {
    let query = Pairs::of(request.query_string());
    let name = query.first("name");
    html! {
        ul {
            @for file in &files.named {
                @let file_path = file.as_deref().unwrap_or_default();
                li { a href=(links::with_query(request.path(), &[("name", name), ("file", Some(file_path))])) { bdi { (if file_path.is_empty() { "(no file)" } else { file_path }) } } }
            }
        }
        @if files.others > 0 { p.sub { "And " (files.others) " more files." } }
    }
}

/// A list of cards.
pub(super) fn cards(cards: impl Iterator<Item = Markup>) -> Markup {
    html! { ol.rows { @for card in cards { li.row { div.card { (card) } } } } }
}

/// A section of a page with its heading, which `id` names.
pub(super) fn section(id: &str, heading: &str, content: &Markup) -> Markup {
    html! { section aria-labelledby=(id) { h2 id=(id) { (heading) } (content) } }
}

/// A run by its number, with a link if its id is one.
pub(super) fn run_link(project: ProjectId, id: &str, number: i32) -> Markup {
    html! {
        @match id.parse::<RunId>() {
            Ok(id) => a href=(links::run(project, &id)) { "run " (number) },
            Err(_) => { "run " (number) },
        }
    }
}

/// The shares of a run's tests by outcome.
pub(super) fn shares(counts: &Counts) -> Markup {
    let plain = counts.passed.saturating_sub(counts.recovered);
    let summary = format!(
        "{} failed, {} passed on retry, {plain} passed at the first attempt, {} skipped",
        counts.failed, counts.recovered, counts.skipped
    );
    let parts = [
        ("failed", counts.failed),
        ("recovered", counts.recovered),
        ("passed", plain),
        ("skipped", counts.skipped),
    ];
    chart::shares(
        &parts.map(|(outcome, tests)| (outcome, u64::from(tests))),
        &summary,
    )
}

/// A time with its age.
pub(super) fn when(at: Timestamp, now: Timestamp) -> Markup {
    html! { (words::time(at)) ", " span.age { (words::age(at, now)) } }
}

/// The run of the stable branch since which a test fails, with its commit and age.
pub(super) fn failing_since(
    project: ProjectId,
    since: &FailingSince,
    subject: Option<&str>,
    author: Option<&str>,
    now: Timestamp,
) -> Markup {
    html! {
        p.facts {
            span {
                "since "
                (run_link(project, &since.run_id, since.run_number))
                ", " (when(since.started_at, now))
            }
            @if let Some(revision) = &since.revision {
                span { "commit " (commit(revision)) @if let Some(subject) = subject { ", " bdi { (subject) } } }
            }
            @if let Some(author) = author { span { "by " bdi { (author) } } }
        }
    }
}

/// The run since which a test fails, in short: with its commit, author and day.
pub(super) fn since_run(project: ProjectId, since: &FailingSince, authors: &HashMap<i32, String>) -> Markup {
    html! {
        (run_link(project, &since.run_id, since.run_number))
        @if let Some(revision) = &since.revision { " (" (commit(revision)) ")" }
        @if let Some(author) = authors.get(&since.run_number) { " by " bdi { (author) } }
        ", " (words::day(since.started_at))
    }
}

/// A number of the database as text.
pub(super) fn count(number: u64, noun: &str) -> String {
    words::count(usize::try_from(number).unwrap_or(usize::MAX), noun)
}

pub(super) fn grouped(number: impl Into<u64>) -> String {
    words::grouped(usize::try_from(number.into()).unwrap_or(usize::MAX))
}

/// Links to the previous and the next page. `address` returns the address of a page.
pub(super) fn pager(place: &PagePlace, address: impl Fn(u64) -> String) -> Markup {
    html! {
        @if place.page_count > 1 {
            nav.pages aria-label="Pages" {
                @if place.page > 1 { a.button rel="prev" href=(address(place.page - 1)) { "Previous" } }
                span { "Page " (grouped(place.page)) " of " (grouped(place.page_count)) }
                @if place.page < place.page_count { a.button rel="next" href=(address(place.page + 1)) { "Next" } }
            }
        }
    }
}

/// How a run ended, in a word that is also the class of its chip.
pub(super) fn ended(run: &RunRow) -> &'static str {
    match run.status {
        Some(Outcome::Passed) => "passed",
        Some(Outcome::Failed) => "failed",
        None => "incomplete",
    }
}

/// The newest commit of these runs with the outcome of all its suites, such as `commit 3fa9c1d2, failed in 1 of 2 suites`.
/// A run without a commit stands for itself.
pub(super) fn newest_commit(project: ProjectId, newest_first: &[&RunRow], now: Timestamp) -> Option<Markup> {
    let newest_first = newest_first.iter().copied().cloned().collect();
    let suites = joined(newest_first)?.runs;
    let newest = suites.first()?;
    let number = |status| suites.iter().filter(|run| run.status == status).count();
    let (failed, open) = (number(Some(Outcome::Failed)), number(None));
    let of = |number: usize, word: &str| match suites.len() {
        1 => word.to_owned(),
        all => format!("{word} in {number} of {all} suites"),
    };
    let outcome = match (failed, open) {
        (1.., _) => of(failed, "failed"),
        (0, 1..) => of(open, "incomplete"),
        (0, 0) => "passed".to_owned(),
    };
    Some(html! {
        @match newest.revision() {
            Some(revision) => { "commit " a href=(links::commit(project, revision)) { (commit(revision)) } },
            None => a href=(links::run(project, &newest.id)) { "run " (newest.run_number) },
        }
        @if let Some(branch) = &newest.branch { " of " bdi { (branch) } }
        ", " b { (outcome) } ", " (when(newest.started_at, now))
    })
}

/// The mark of an error that was first seen in these days.
pub(super) fn new_within(days: i64) -> Markup {
    html! { span.chip.flaky { "new in " (days) " days" } }
}

/// A branch with a link to its runs.
pub(super) fn branch_link(project: ProjectId, branch: &str) -> Markup {
    let runs = links::project(project, "/runs");
    html! { a href=(links::with_query(&runs, &[("branch", Some(branch))])) { bdi { (branch) } } }
}

/// A field for the exact name of a branch, which suggests some names.
pub(super) fn branch_field<'a>(
    label: &str,
    any: &str,
    chosen: Option<&str>,
    names: impl Iterator<Item = &'a str>,
) -> Markup {
    html! {
        label { span { (label) } input name="branch" list="branches" value=[chosen] maxlength="200" placeholder=(any) autocomplete="off"; }
        datalist #branches { @for name in names.filter(|name| !is_queue_branch(name)).take(BRANCHES) { option value=(name) {} } }
    }
}

/// The form that selects the failures of an owner. `kept` are the page's other parameters.
pub(super) fn owner_form(path: &str, owner: Option<&str>, kept: &[(&str, Option<&str>)]) -> Markup {
    html! {
        form.controls action=(path) method="get" {
            @for (name, value) in kept {
                @if let Some(value) = value { input type="hidden" name=(name) value=(value); }
            }
            label { span { "Owner" } input name="owner" value=[owner] maxlength="200" placeholder="any" autocomplete="off"; }
            button type="submit" { "Apply" }
        }
    }
}

/// The owners of a test as a phrase; none without an owner.
pub(super) fn owners_in_words(ownership: &Ownership) -> Option<String> {
    let Ownership {
        owners,
        owners_ambiguous,
    } = ownership;
    match (owners.as_slice(), owners_ambiguous) {
        (_, true) => Some("Owner unclear: several files of this name have different owners".to_owned()),
        ([], false) => None,
        (owners, false) => Some(format!("Owned by {}", owners.join(", "))),
    }
}

/// An option of a select list.
pub(super) fn choice(value: &str, chosen: Option<&str>, label: &str) -> Markup {
    html! { option value=(value) selected[chosen.unwrap_or_default() == value] { (label) } }
}

/// An abbreviated commit.
pub(super) fn commit(sha: &str) -> Markup {
    html! { code title=(sha) { (sha.chars().take(8).collect::<String>()) } }
}

//! `/p/{id}/runs`: the runs, newest first.

use assay_answers::cursor;
use assay_domain::{
    id::ProjectId,
    merge_queue::RunKind,
    page::{Direction, RunPosition},
    run::{Outcome, RunQuery, RunRow},
    timestamp::Timestamp,
};
use assay_markup::words;
use maud::{Markup, html};

use super::parts::{branch_field, branch_link, choice, commit, count, ended, grouped, shares, when};
use crate::{
    error::FrontError,
    layout::{Answer, Tab},
    links,
    view::{PER_PAGE, View},
};

pub(super) fn render(view: &View<'_>) -> Result<Answer, FrontError> {
    let project = view.project()?;
    let query = query(view)?;
    let page = view.store.runs(&project, &query)?;
    let branches = view.store.branches(&project)?;
    let days = query.period.days.count().to_string();
    let filters = [
        ("days", Some(days.as_str())),
        ("branch", query.branch.as_deref()),
        ("sha", query.sha.as_deref()),
        ("status", query.status.map(Outcome::as_str)),
        ("kind", query.kind.map(RunKind::as_str)),
        ("trusted", query.trusted.map(word_of)),
    ];
    let address = |run: &RunRow, direction: &'static str| {
        let cursor = cursor::encode(RunPosition {
            started_at: run.started_at,
            number: run.run_number,
        });
        let cursor_parameters = [("cursor", Some(cursor.as_str())), ("direction", Some(direction))];
        links::with_query(
            &links::project(project.id, "/runs"),
            &[&filters[..], &cursor_parameters].concat(),
        )
    };
    let body = html! {
        h1 { "Runs" }
        p.sub { "Stable branch " code { bdi { (page.stable_branch) } } "." }
        @if let Some(branch) = &query.branch { p { a href=(links::release(project.id, branch)) { "May a release be cut from " bdi { (branch) } "?" } } }
        (controls(view, project.id, &query, &branches.names))
        div #results {
            p.sub { (count(page.total, "run")) " in " (query.period.days.count()) " days" @if is_filtered(&query) { " with these filters" } "." }
            @if page.runs.is_empty() { (empty_list(project.id, &query)) } @else { (table(project.id, &page.runs, view.now)) }
            nav.pages aria-label="Pages" {
                @if let (true, Some(first)) = (page.has_newer, page.runs.first()) { a.button rel="prev" href=(address(first, "prev")) { "Newer" } }
                @if let (true, Some(last)) = (page.has_older, page.runs.last()) { a.button rel="next" href=(address(last, "next")) { "Older" } }
            }
        }
    };
    let cursor = query.position.map(cursor::encode);
    let direction = match (query.position, query.direction) {
        (Some(_), Direction::Prev) => Some("prev"),
        _ => None,
    };
    let cursor_parameters = [
        ("cursor", cursor.as_deref()),
        ("direction", direction),
        ("perPage", Some("50")),
    ];
    let api = links::with_query("/runs", &[&filters[..], &cursor_parameters].concat());
    Ok(Answer::of_project(Tab::Runs, "Runs", &[api], body, project))
}

/// The runs that the address asks for.
fn query(view: &View<'_>) -> Result<RunQuery, FrontError> {
    let period = view.period()?;
    let (branch, status): (_, Option<Outcome>) = (view.text("branch")?, view.query.word("status")?);
    let kind: Option<RunKind> = view.query.word("kind")?;
    let trusted: Option<bool> = view
        .query
        .parse("trusted", "must be true or false", |word| word.parse().ok())?;
    let position = view
        .query
        .parse("cursor", "must come from a link of the list", cursor::decode)?;
    let direction = view
        .query
        .parse("direction", "must be one of next, prev", |word| match word {
            "next" => Some(Direction::Next),
            "prev" => Some(Direction::Prev),
            _ => None,
        })?;
    Ok(RunQuery {
        period,
        branch,
        sha: view.query.sha()?,
        pull_request: None,
        kind,
        trusted,
        number: None,
        status,
        per_page: PER_PAGE,
        position,
        direction: direction
            .filter(|_| position.is_some())
            .unwrap_or(Direction::Next),
    })
}

/// The filters of the list.
fn controls(view: &View<'_>, project: ProjectId, query: &RunQuery, branches: &[String]) -> Markup {
    let status = query.status.map(Outcome::as_str);
    let kind = query.kind.map(RunKind::as_str);
    let trusted = query.trusted.map(word_of);
    let days = query.period.days.count().to_string();
    html! {
        form.controls role="search" action=(links::project(project, "/runs")) method="get" data-live {
            (branch_field("Branch", "any", query.branch.as_deref(), branches.iter().map(String::as_str)))
            label { span { "Commit" } input name="sha" value=[query.sha.as_deref()] maxlength="40" placeholder="any" autocomplete="off"; }
            label { span { "Ended" } select name="status" {
                (choice("", status, "any way"))
                (choice("failed", status, "failed"))
                (choice("passed", status, "passed"))
            } }
            label { span { "Tested" } select name="kind" {
                (choice("", kind, "anything"))
                (choice("branch", kind, "a branch"))
                (choice("queue", kind, "by a merge queue"))
            } }
            label { span { "Sent with" } select name="trusted" {
                (choice("", trusted, "any key"))
                (choice("true", trusted, "a trusted key"))
                (choice("false", trusted, "a public key"))
            } }
            label { span { "Days" } select name="days" { @for each in view.periods() { (choice(&each.to_string(), Some(&days), &each.to_string())) } } }
            button type="submit" { "Apply" }
        }
    }
}

/// The word of a filter in the address.
const fn word_of(trusted: bool) -> &'static str {
    if trusted { "true" } else { "false" }
}

const fn is_filtered(query: &RunQuery) -> bool {
    query.branch.is_some()
        || query.sha.is_some()
        || query.status.is_some()
        || query.kind.is_some()
        || query.trusted.is_some()
}

/// Explains why the list is empty, and what to do.
fn empty_list(project: ProjectId, query: &RunQuery) -> Markup {
    html! {
        @if is_filtered(query) || query.position.is_some() {
            p.empty { "No run matches. " a href=(links::project(project, "/runs")) { "Show all runs" } }
        } @else {
            p.empty { "No run in the last " (query.period.days.count()) " days. " code { "assay upload" } " or " code { "assay-admin import" } " adds one." }
        }
    }
}

fn table(project: ProjectId, runs: &[RunRow], now: Timestamp) -> Markup {
    html! {
        ol.rows {
            @for run in runs {
                @let counts = run.counts;
                @let ended = ended(run);
                li.row.(ended) {
                    div.card {
                        p {
                            span class={ "chip " (ended) } { (ended) } " "
                            a.leaf href=(links::run(project, &run.id)) { "Run " (run.run_number) }
                            @if let Some(queue) = &run.queue { " " span.chip { "merge queue" } @if let Some(base) = &queue.base { " into " (branch_link(project, base)) } }
                            @else if let Some(branch) = &run.branch { " on " (branch_link(project, branch)) }
                            @for number in run.pull_requests() { ", " a href=(links::pull_request(project, number)) { "pull request " (number) } }
                            @if let Some(revision) = run.revision() { ", " a href=(links::commit(project, revision)) { (commit(revision)) } }
                            @if !run.trusted { " " span.chip { "public key" } }
                        }
                        @if let Some(subject) = run.subject() { p.sub { bdi { (subject) } @if let Some(author) = &run.author_name { ", by " bdi { (author) } } } }
                        p.facts {
                            (shares(&counts))
                            span { b { (grouped(counts.failed)) } " failed" }
                            @if counts.recovered > 0 { span { b { (grouped(counts.recovered)) } " on retry" } }
                            span { "of " b { (grouped(counts.total)) } " tests" }
                            span { (when(run.started_at, now)) }
                            @if let Some(duration) = run.duration_ms.and_then(|ms| u64::try_from(ms).ok()) { span { (words::duration(duration)) } }
                            @if let Some(suite) = &run.suite { span { "suite " b { bdi { (suite) } } } }
                            @if let Some(shards) = run.shards {
                                span { (shards.received) @if let Some(expected) = shards.expected { " of " (expected) } " shards" }
                            }
                        }
                    }
                }
            }
        }
    }
}

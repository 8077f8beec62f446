//! `/p/{id}/errors/{fingerprint}`: one error signature, with its tests and runs.

use std::collections::{BTreeMap, BTreeSet};

use assay_domain::{
    attempt::AttemptStatus, id::ProjectId, period::Period, signature::SignatureDetail, timestamp::Timestamp,
};
use assay_http::Unanswerable;
use assay_markup::{
    chart::{self, PeriodBar},
    figures, name, words,
};
use maud::{Markup, html};

use super::parts::{branch_link, choice, count, grouped, new_within, when};
use crate::{
    error::FrontError,
    layout::{Answer, Tab},
    links,
    view::View,
};

/// Most tests and runs on the page.
const MOST_ROWS: usize = 50;

pub(super) fn render(view: &View<'_>) -> Result<Answer, FrontError> {
    let project = view.project()?;
    let period = view.period()?;
    let fingerprint = view.part("fingerprint");
    let is_fingerprint = (1..=128).contains(&fingerprint.len())
        && fingerprint
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if !is_fingerprint {
        return Err(Unanswerable::SignatureNotFound.into());
    }
    let detail = view
        .store
        .signature(&project, fingerprint, &period)?
        .ok_or(Unanswerable::SignatureNotFound)?;
    let signature = &detail.signature;
    let days = period.days.count().to_string();
    let branches: BTreeSet<&str> = detail
        .runs
        .iter()
        .filter_map(|run| run.branch.as_deref())
        .collect();
    let path = links::signature(project.id, fingerprint);
    let body = html! {
        h1 { bdi { (signature.title) } }
        p.facts {
            span.category { (signature.category) }
            span { b { (grouped(signature.occurrence_count)) } " ×" }
            span { (count(signature.test_count, "test")) }
            span { (count(signature.run_count, "run")) }
            span { "first seen " (when(signature.first_seen, view.now)) }
            span { "last seen " (when(signature.last_seen, view.now)) }
            @if signature.is_new { (new_within(period.days.count())) }
        }
        @if detail.window_empty { p.why { "It did not occur in these " (days) " days; the figures cover all visible results." } }
        form.controls action=(path) method="get" {
            label { span { "Days" } select name="days" { @for each in view.periods() { (choice(&each.to_string(), Some(&days), &each.to_string())) } } }
            button type="submit" { "Apply" }
        }
        @if let Some(message) = &signature.message { pre tabindex="0" { (message) } }
        @if !detail.window_empty { (by_day(&detail, &period, view.now)) }
        @if !branches.is_empty() {
            p.facts { span { "Branches" } @for branch in branches.iter().take(MOST_ROWS) { span { (branch_link(project.id, branch)) } } }
        }
        (tests(project.id, &detail))
        (runs(project.id, &detail, view.now))
        p.fingerprint { "Fingerprint " code { (signature.fingerprint) } }
    };
    let route = format!("/errors/{}", links::escaped(fingerprint));
    let api = links::with_query(&route, &[("days", Some(days.as_str()))]);
    let title = name::in_title(&signature.title);
    Ok(Answer::of_project(Tab::Errors, &title, &[api], body, project))
}

/// Occurrences on each day of the period, in the listed runs.
fn by_day(detail: &SignatureDetail, period: &Period, now: Timestamp) -> Markup {
    let mut days: BTreeMap<i64, u64> = (period.from.day()..=period.to.day())
        .map(|day| (day, 0))
        .collect();
    for run in &detail.runs {
        *days.entry(run.started_at.day()).or_default() += run.occurrences;
    }
    let bars: Vec<PeriodBar> = days
        .iter()
        .map(|(day, occurrences)| PeriodBar {
            about: format!(
                "{}: {}",
                words::day(now.plus_days(day - now.day())),
                count(*occurrences, "occurrence")
            ),
            value: f64::from(u32::try_from(*occurrences).unwrap_or(u32::MAX)),
            class: "failed",
        })
        .collect();
    let first = i64::try_from(bars.len()).unwrap_or(1);
    html! {
        figure.panel {
            figcaption { b { "Occurrences a day" } @if detail.truncated { span { "in the " (words::count(detail.runs.len(), "listed result")) } } }
            (chart::periods(&bars, "Occurrences day by day", [&words::day(now.plus_days(1 - first)), "today"]))
        }
    }
}

fn tests(project: ProjectId, detail: &SignatureDetail) -> Markup {
    html! {
        h2 { "Tests" }
        div.panel.wide tabindex="0" role="group" aria-label="Tests" {
            table.hit-tests {
                thead { tr { th scope="col" { "Test" } th.number scope="col" { "Occurrences" } } }
                tbody {
                    @for test in detail.tests.iter().take(MOST_ROWS) {
                        tr {
                            td { a href=(links::test(project, &test.test_name, test.file_path.as_deref())) { bdi { (test.test_name) } } @if let Some(file) = &test.file_path { span.path { bdi { (file) } } } }
                            td.number { (grouped(test.occurrence_count)) }
                        }
                    }
                }
            }
            (more(detail.signature.test_count))
            p.pages { a href=(links::with_query(&links::project(project, "/tests"), &[("error", Some(&detail.signature.fingerprint))])) { "These tests with their verdicts" } }
        }
    }
}

fn runs(project: ProjectId, detail: &SignatureDetail, now: Timestamp) -> Markup {
    html! {
        h2 { "Runs" }
        div.panel.wide tabindex="0" role="group" aria-label="Runs" {
            table.hit-runs {
                thead { tr { th scope="col" { "Run" } th scope="col" { "Test" } th scope="col" { "Ended" } th scope="col" { "Started" } } }
                tbody {
                    @for run in detail.runs.iter().take(MOST_ROWS) {
                        tr {
                            td { a href=(links::run(project, &run.run_id)) { (run.run_number) } @if let Some(branch) = &run.branch { " " bdi { (branch) } } }
                            td { a href=(links::attempts(project, &run.run_id, &run.test_name, run.file_path.as_deref())) { bdi { (run.test_name) } } }
                            td.word { (ended(run.final_status)) }
                            td { (when(run.started_at, now)) }
                        }
                    }
                }
            }
            (more(u64::try_from(detail.runs.len()).unwrap_or(u64::MAX)))
        }
    }
}

/// How a test ended in a run in which it showed the error: a test that passed needed a retry.
const fn ended(status: AttemptStatus) -> &'static str {
    match status {
        AttemptStatus::Passed => "passed on retry",
        AttemptStatus::Failed
        | AttemptStatus::TimedOut
        | AttemptStatus::Skipped
        | AttemptStatus::Interrupted => figures::ended(status),
    }
}

fn more(all: u64) -> Markup {
    let more = all.saturating_sub(u64::try_from(MOST_ROWS).unwrap_or(u64::MAX));
    html! { @if more > 0 { p.sub { "And " (grouped(more)) " more." } } }
}

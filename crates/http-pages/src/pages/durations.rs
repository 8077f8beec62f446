//! `/p/{id}/durations`: where the time of the stable branch's runs goes.

use assay_answers::durations::{SlowTest, SlowerSince, SuiteChange, SuiteDurations, durations};
use assay_domain::{id::ProjectId, test::TestName, timestamp::Timestamp};
use assay_markup::words;
use maud::{Markup, html};

use super::parts::{count, failing_since};
use crate::{
    error::FrontError,
    layout::{Answer, Page, Tab},
    links,
    view::View,
};

pub(super) fn render(view: &View<'_>) -> Result<Answer, FrontError> {
    let project = view.project()?;
    let answer = durations(view.store, &project, view.now)?;
    let has_suites = answer.suites.iter().any(|suite| !suite.suite.is_empty());
    let body = html! {
        h1 { "Durations" }
        p.sub { "Of the newest " (count(answer.runs, "complete run")) " of " bdi { (answer.stable_branch) } " in the last 14 days. A test's usual duration is the median of its passes at the first attempt." }
        @if answer.suites.is_empty() {
            p.empty { "There is no complete run." }
        } @else {
            section aria-labelledby="suites" {
                h2 #suites { "Time of a run" }
                (suites(&answer.suites, has_suites))
            }
            section aria-labelledby="slower" {
                h2 #slower { "Became slower" }
                @if answer.slower.tests.is_empty() {
                    p.empty { "No test became slower and stayed so. A test needs five runs before and three since then." }
                } @else {
                    p.sub { (count(answer.slower.total, "test")) ", whatever the speed of the machines. Those that take the most additional time come first." }
                    ol.rows { @for test in &answer.slower.tests { (slower(project.id, test, view.now)) } }
                }
            }
            section aria-labelledby="slowest" {
                h2 #slowest { "Slowest tests" }
                @if answer.slowest.is_empty() { p.empty { "No test with a duration passed at its first attempt." } }
                ol.rows { @for test in &answer.slowest { (slow(project.id, test)) } }
            }
        }
    };
    Ok(Page {
        title: format!("Durations, {}", project.name),
        api: vec![format!("/projects/{}/durations", project.id)],
        project: Some(project),
        tab: Tab::Durations,
        body,
    }
    .into())
}

fn suites(suites: &[SuiteDurations], has_suites: bool) -> Markup {
    html! {
        ol.rows {
            @for suite in suites {
                li.row {
                    div.card {
                        @if has_suites { p { b { @if suite.suite.is_empty() { "no suite" } @else { bdi { (suite.suite) } } } } }
                        p.facts {
                            span { "tests " b { (words::duration(suite.tests_ms)) } }
                            span { "failed attempts " b { (words::duration(suite.failed_attempts_ms)) } }
                            @if let Some(run) = suite.run_ms { span { "from start to end " b { (words::duration(run)) } } }
                            span { (count(suite.runs, "run")) }
                        }
                        @match &suite.change {
                            Some(change) => (changed(change)),
                            None => p.sub { "The change is shown from ten runs on." },
                        }
                    }
                }
            }
        }
    }
}

/// The change since the oldest runs as a sum.
fn changed(change: &SuiteChange) -> Markup {
    let parts = [
        ("new tests", change.new_tests_ms),
        ("removed tests", change.removed_tests_ms),
        ("slower tests", change.slower_tests_ms),
        (
            "everything else, such as other machines and tests that now fail",
            change.other_ms,
        ),
    ];
    html! {
        p.facts {
            span { "before: tests " b { (words::duration(change.earlier_tests_ms)) } }
            @for (of, ms) in parts { @if ms != 0 { span { (of) " " b { (difference(ms)) } } } }
            span { "failed attempts " b { (words::duration(change.earlier_failed_attempts_ms)) } }
            @if let Some(run) = change.earlier_run_ms { span { "from start to end " b { (words::duration(run)) } } }
        }
    }
}

/// A duration with its sign.
fn difference(ms: i64) -> String {
    let sign = if ms < 0 { "−" } else { "+" };
    format!("{sign}{}", words::duration(ms.unsigned_abs()))
}

fn slower(project: ProjectId, of: &SlowerSince, now: Timestamp) -> Markup {
    html! {
        li.row {
            div.card {
                p { (named(project, &of.test)) }
                p.facts {
                    span { b { (format!("{:.1}", of.factor)) } " times as long" }
                    span { b { (difference(of.extra_ms)) } " a run" }
                    span { "probability " (format!("{:.2}", of.probability)) }
                    span { "in " (count(of.runs.into(), "run")) }
                    @if !of.suite.is_empty() { span { bdi { (of.suite) } } }
                }
                (failing_since(project, &of.since, None, None, now))
            }
        }
    }
}

fn slow(project: ProjectId, of: &SlowTest) -> Markup {
    html! {
        li.row {
            div.card {
                p { (named(project, &of.test)) }
                p.facts {
                    span { b { (words::duration(of.usual_ms)) } }
                    @if !of.suite.is_empty() { span { bdi { (of.suite) } } }
                    @if let Some(file) = &of.test.file_path { span { bdi { (file) } } }
                }
            }
        }
    }
}

fn named(project: ProjectId, test: &TestName) -> Markup {
    html! { a.leaf href=(links::test(project, &test.name, test.file_path.as_deref())) { bdi { (test.name) } } }
}

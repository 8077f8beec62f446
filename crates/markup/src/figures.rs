//! Figures of a verdict, and its status in words.

use assay_domain::{
    attempt::AttemptStatus,
    timestamp::Timestamp,
    verdict::{Evidence, FailingOn, Figures, VerdictStatus},
};
use maud::{Markup, html};

use crate::words;

/// A verdict's status in words.
pub const fn status(status: VerdictStatus) -> &'static str {
    match status {
        VerdictStatus::Broken => "Broken",
        VerdictStatus::Flaky => "Flaky",
        VerdictStatus::Failing => "Failing now",
        VerdictStatus::Healthy => "Healthy",
        VerdictStatus::InsufficientData => "Gathering data",
    }
}

/// A verdict's status as a chip.
pub fn chip(verdict: VerdictStatus) -> Markup {
    html! { span class={ "chip " (verdict.as_str()) } { (status(verdict)) } }
}

/// A verdict as a chip beside the run since which the test fails on the stable branch. A run that is not complete yet fails
/// tests whose verdicts do not count it.
pub fn chip_before(verdict: VerdictStatus, fails_since: Option<i32>) -> Markup {
    match (verdict, fails_since) {
        (VerdictStatus::Healthy | VerdictStatus::InsufficientData, Some(run)) => {
            html! { span class={ "chip " (verdict.as_str()) } { (status(verdict)) " before run " (run) } }
        }
        _ => chip(verdict),
    }
}

/// A verdict as a chip. A healthy test that fails on other branches has a chip for each side.
pub fn chip_on(verdict: VerdictStatus, stable_branch: &str, failing_on: &[FailingOn]) -> Markup {
    let Some(first) = failing_on.first().filter(|_| verdict == VerdictStatus::Healthy) else {
        return chip(verdict);
    };
    let others = failing_on.len() - 1;
    html! {
        span class={ "chip " (verdict.as_str()) } { (status(verdict)) " on " bdi { (stable_branch) } }
        " "
        span class={ "chip " (VerdictStatus::Failing.as_str()) } {
            "Failing on " bdi { (first.branch.as_deref().unwrap_or("runs without a branch")) }
            @if others > 0 { " and " (words::count(others, "other branch")) }
        }
    }
}

/// The status of an attempt in words.
pub const fn ended(status: AttemptStatus) -> &'static str {
    match status {
        AttemptStatus::Passed => "passed",
        AttemptStatus::Failed => "failed",
        AttemptStatus::TimedOut => "timed out",
        AttemptStatus::Skipped => "skipped",
        AttemptStatus::Interrupted => "interrupted",
    }
}

/// The status of an attempt as a chip.
pub fn ended_chip(status: AttemptStatus) -> Markup {
    html! { span class={ "chip " (status.as_str()) } { (ended(status)) } }
}

/// The headings of the columns of a list of tests.
pub fn columns() -> Markup {
    html! {
        p.columns aria-hidden="true" {
            span { "Verdict" } span { "Test" } span { "Newest runs" } span.figure { "Fails" } span.figure { "Time lost" }
        }
    }
}

/// The figures of a verdict. `last` is the outcome and the start of the newest run.
pub fn metrics(figures: &Figures, last: Option<(AttemptStatus, Timestamp)>) -> Markup {
    let lost_hint = if figures.time_lost_ms.is_some() {
        "in failed attempts"
    } else {
        "no durations reported"
    };
    let considered = usize::try_from(figures.runs_considered).unwrap_or(usize::MAX);
    html! {
        dl.metrics {
            (score(figures))
            (metric("Failure rate", &figures.failure_rate.map_or("–".to_owned(), words::percent), &format!("of {}", words::count(considered, "run"))))
            (metric("Flip rate", &words::percent(figures.flip_rate), "of neighbouring runs"))
            (metric("Time lost", &figures.time_lost_ms.map_or("–".to_owned(), words::duration), lost_hint))
            (metric("Impact", &format!("{:.1}", figures.impact), "failed stable runs"))
            @if let Some((status, started_at)) = last {
                div.metric {
                    dt { "Last run" }
                    dd { b class={ "last " (status.as_str()) } { (ended(status)) } span { (words::time(started_at)) } }
                }
            }
        }
    }
}

fn score(figures: &Figures) -> Markup {
    let share = (figures.flake_score.clamp(0.0, 1.0) * 180.0).round();
    html! {
        div.metric.score {
            dt { "Flake score" }
            dd {
                b { (format!("{:.2}", figures.flake_score)) }
                span { (words::band(figures.flake_score)) }
                svg.meter viewBox="0 0 180 5" width="180" height="5" preserveAspectRatio="none" aria-hidden="true" {
                    rect.rest width="180" height="5" rx="2.5" {}
                    rect.recovered width=(share) height="5" rx="2.5" {}
                }
            }
        }
    }
}

fn metric(label: &str, value: &str, hint: &str) -> Markup {
    html! { div.metric { dt { (label) } dd { b { (value) } span { (hint) } } } }
}

/// The signals of a verdict as a table. `run` renders one of the runs behind a signal.
pub fn evidence(evidence: &Evidence, run: &dyn Fn(&str) -> Markup) -> Markup {
    html! {
        div.wide tabindex="0" role="group" aria-label="Signals" {
            table.signals {
                thead { tr { th scope="col" { "Signal" } th.number scope="col" { "Value" } th.number scope="col" { "Active from" } th scope="col" { "Rests on" } } }
                tbody {
                    @for signal in &evidence.signals {
                        tr {
                            th scope="row" { (signal.label) span.detail { (signal.detail) } }
                            td.number { (figure(signal.value)) }
                            td.number { (figure(signal.threshold)) }
                            td.rests {
                                @for (place, id) in signal.runs.iter().take(6).enumerate() {
                                    @if place > 0 { ", " } (run(id))
                                }
                                @let listed_runs = u32::try_from(signal.runs.len().min(6)).unwrap_or(u32::MAX);
                                @if signal.runs_total > listed_runs { " and " (signal.runs_total - listed_runs) " more" }
                            }
                        }
                    }
                }
            }
        }
        p.sub {
            (evidence.runs_seen) " runs seen, " (evidence.runs_skipped) " skipped, "
            (evidence.runs_dropped) " left out because many tests failed together."
        }
    }
}

/// An integer as it is, any other number with three digits.
fn figure(value: f64) -> String {
    if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}")
    }
}

//! One test of the ranking, and one line of the others.

use assay_domain::{
    attempt::AttemptStatus,
    verdict::{Evidence, Figures, VerdictEntry, VerdictStatus},
};
use maud::{Markup, html};

use super::{
    chart::{self, Columns, Told},
    time, words,
};
use crate::{
    analysis::{Analysis, ErrorCount, Judged},
    strip::Strip,
};

/// How many branches a card shows.
const MOST_STRIPS: usize = 5;
/// How many error signatures a card shows.
const MOST_ERRORS: usize = 5;

/// A test of the ranking.
pub(super) fn card(analysis: &Analysis, judged: &Judged, rank: usize, folder: &str) -> Markup {
    let entry = &judged.entry;
    let figures = &entry.figures;
    let told = told(entry, folder);
    html! {
        li.card.(entry.status.as_str()) data-status=(entry.status.as_str())
            data-lost=(figures.time_lost_ms.map_or(-1, |ms| i64::try_from(ms).unwrap_or(i64::MAX)))
            data-score=(figures.flake_score) data-rate=(figures.failure_rate.unwrap_or(-1.0)) data-impact=(figures.impact)
            data-name=(searched(entry)) {
            article {
                header {
                    span.rank aria-label={ "Rank " (rank) } { (rank) }
                    (name(entry))
                    span.chip { (status(entry.status)) }
                }
                p.why { (entry.explanation) "." }
                (strips(&analysis.strips(judged), &told))
                (metrics(entry))
                div.behind { (details(entry, &judged.errors, &told)) }
            }
        }
    }
}

/// One line of the tests that are neither broken nor flaky.
pub(super) fn line(analysis: &Analysis, judged: &Judged, folder: &str) -> Markup {
    let strips = analysis.strips(judged);
    html! {
        li {
            (name(&judged.entry))
            p.why { (judged.entry.explanation) "." }
            (self::strips(strips.get(..1).unwrap_or_default(), &told(&judged.entry, folder)))
        }
    }
}

/// The name, its last part in front of the others, and the file.
fn name(entry: &VerdictEntry) -> Markup {
    let (path, leaf) = entry
        .test_name
        .rsplit_once(" > ")
        .unwrap_or(("", &entry.test_name));
    let file = entry
        .file_path
        .as_deref()
        .filter(|file| !entry.test_name.split(" > ").any(|part| part == *file));
    html! {
        div.name {
            h3 { (if leaf.trim().is_empty() { "(no name)" } else { leaf }) }
            @if !path.is_empty() || file.is_some() {
                p.path {
                    @if !path.is_empty() { span { (path.replace(" > ", " › ")) } }
                    @if let Some(file) = file { span.file { (file) } }
                }
            }
        }
    }
}

fn strips(strips: &[Strip], told: &Told<'_>) -> Markup {
    let columns = Columns::of(strips);
    let hidden = strips.get(MOST_STRIPS..).unwrap_or_default();
    html! {
        div.strips {
            @for strip in strips.iter().take(MOST_STRIPS) {
                div.branch {
                    p.label {
                        @match &strip.branch {
                            Some(branch) => { span.on title=(branch) { (branch) } },
                            None => { span.on { @if strip.stable { "all runs" } @else { "no branch" } } },
                        }
                        @if strip.stable && strip.branch.is_some() { span.stable { "stable" } }
                        @if !strip.variant.is_empty() { span.variant title=(strip.variant) { (strip.variant) } }
                    }
                    div.scroll tabindex="0" role="group" aria-label="Outcomes over time" {
                        (chart::strip(strip, &columns, told))
                    }
                }
            }
            div.branch.times {
                p.label {
                    @if !hidden.is_empty() {
                        @let failing = hidden.iter().filter(|strip| strip.has_failure()).count();
                        span.stable { (hidden.len()) " more, " (failing) " failing" }
                    }
                }
                (columns.axis())
            }
        }
    }
}

/// What is told of the runs of a test.
fn told<'a>(entry: &'a VerdictEntry, folder: &'a str) -> Told<'a> {
    let dropped = entry
        .evidence
        .iter()
        .flat_map(|evidence| &evidence.dropped)
        .map(|run| run.run_id.as_str())
        .collect();
    Told { dropped, folder }
}

fn metrics(entry: &VerdictEntry) -> Markup {
    let figures = &entry.figures;
    html! {
        dl.metrics {
            (score(figures))
            (metric("Failure rate", &figures.failure_rate.map_or("–".to_owned(), words::percent), &format!("of {}", words::count(usize::try_from(figures.runs_considered).unwrap_or(usize::MAX), "run"))))
            (metric("Flip rate", &words::percent(figures.flip_rate), "of neighbouring runs"))
            (metric("Time lost", &figures.time_lost_ms.map_or("–".to_owned(), words::duration), if figures.time_lost_ms.is_some() { "in failed attempts" } else { "no durations reported" }))
            (metric("Impact", &format!("{:.1}", figures.impact), "red stable runs"))
            @if let Some(last) = &entry.last_run {
                div.metric {
                    dt { "Last run" }
                    dd { b class={ "last " (last.status.as_str()) } { (ended(last.status)) } span { (time(last.started_at)) } }
                }
            }
        }
    }
}

fn score(figures: &Figures) -> Markup {
    let share = figures.flake_score.clamp(0.0, 1.0) * 100.0;
    html! {
        div.metric.score {
            dt { "Flake score" }
            dd {
                b { (format!("{:.2}", figures.flake_score)) }
                span { (words::band(figures.flake_score)) }
                div.meter aria-hidden="true" { div style={ "width:" (format!("{share:.0}")) "%" } {} }
            }
        }
    }
}

fn metric(label: &str, value: &str, hint: &str) -> Markup {
    html! { div.metric { dt { (label) } dd { b { (value) } span { (hint) } } } }
}

fn details(entry: &VerdictEntry, errors: &[ErrorCount], told: &Told<'_>) -> Markup {
    html! {
        @if !errors.is_empty() {
            details.errors {
                summary { (words::count(errors.len(), "error signature")) ": " span.first { (errors.first().map_or("", |error| &error.title)) } }
                ul {
                    @for error in errors.iter().take(MOST_ERRORS) {
                        li {
                            p { span.category { (error.category) } b { (error.title) } span.times { (error.occurrences) " ×" } }
                            @if let Some(sample) = &error.sample { pre tabindex="0" { (sample) } }
                            p.fingerprint { code { (error.fingerprint) } }
                        }
                    }
                    @if errors.len() > MOST_ERRORS { li { "and " (errors.len() - MOST_ERRORS) " more" } }
                }
            }
        }
        @if let Some(evidence) = &entry.evidence { (self::evidence(evidence, told)) }
    }
}

fn evidence(evidence: &Evidence, told: &Told<'_>) -> Markup {
    html! {
        details.evidence {
            summary { "Evidence: " (words::count(evidence.signals.len(), "signal")) " over " (words::count(usize::try_from(evidence.runs_seen).unwrap_or(usize::MAX), "run")) }
            div.wide tabindex="0" role="group" aria-label="Signals" {
                table {
                    thead { tr { th scope="col" { "Signal" } th.number scope="col" { "Value" } th.number scope="col" { "Active from" } th scope="col" { "Rests on" } } }
                    tbody {
                        @for signal in &evidence.signals {
                            tr {
                                th scope="row" { (signal.label) span.detail { (signal.detail) } }
                                td.number { (figure(signal.value)) }
                                td.number { (figure(signal.threshold)) }
                                td.rests {
                                    (signal.runs.iter().take(6).map(|run| told.short(run)).collect::<Vec<_>>().join(", "))
                                    @let named = u32::try_from(signal.runs.len().min(6)).unwrap_or(u32::MAX);
                                    @if signal.runs_total > named { " and " (signal.runs_total - named) " more" }
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
}

/// A count as it is, anything else with three digits.
fn figure(value: f64) -> String {
    if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}")
    }
}

const fn status(status: VerdictStatus) -> &'static str {
    match status {
        VerdictStatus::Broken => "Broken",
        VerdictStatus::Flaky => "Flaky",
        VerdictStatus::Failing => "Failing now",
        VerdictStatus::Healthy => "Healthy",
        VerdictStatus::InsufficientData => "Gathering data",
    }
}

const fn ended(status: AttemptStatus) -> &'static str {
    match status {
        AttemptStatus::Passed => "passed",
        AttemptStatus::Failed => "failed",
        AttemptStatus::TimedOut => "timed out",
        AttemptStatus::Skipped => "skipped",
        AttemptStatus::Interrupted => "interrupted",
    }
}

fn searched(entry: &VerdictEntry) -> String {
    format!(
        "{} {}",
        entry.test_name,
        entry.file_path.as_deref().unwrap_or_default()
    )
    .to_lowercase()
}

//! The analysis as one self-contained page: no request to anywhere, readable in light and dark, on a phone and
//! without scripts.

mod card;
mod chart;
mod words;

use assay_domain::{timestamp::Timestamp, verdict::VerdictStatus};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use crate::analysis::{Analysis, Judged, RunBar};

const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/script.js");

/// How many broken and flaky tests the page shows; the JSON has them all.
const MOST_CARDS: usize = 300;
/// How many other tests with a signal it lists.
const MOST_OTHERS: usize = 200;

/// The page.
pub fn page(analysis: &Analysis) -> String {
    let reported = analysis.reported();
    let bars = analysis.bars();
    let folder = chart::folder(&bars);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content="Assay";
                // Nothing is loaded from anywhere, even if a report's text found a way into the page.
                meta http-equiv="Content-Security-Policy" content=(policy());
                title { (title(analysis)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    (head(analysis))
                    (overview(analysis, &bars, folder))
                    (ranking(analysis, reported, folder))
                    (failing(analysis, folder))
                    (others(analysis, folder))
                    (reading())
                }
                footer { "Assay, flakiness engine " (analysis.engine) ". The same results and the same time give the same verdicts as the service." }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string()
}

/// The page's content security policy. Its own script is the only one that runs, known by its hash.
fn policy() -> String {
    let script = BASE64_STANDARD.encode(Sha256::digest(SCRIPT));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'"
    )
}

fn title(analysis: &Analysis) -> String {
    let (broken, flaky) = (
        analysis.count(VerdictStatus::Broken),
        analysis.count(VerdictStatus::Flaky),
    );
    format!("{broken} broken, {flaky} flaky: test report by Assay")
}

fn head(analysis: &Analysis) -> Markup {
    let from = analysis.now.plus_days(-analysis.window_days);
    html! {
        header.page {
            p.brand { (chart::mark()) "Assay" }
            h1 { (headline(analysis)) }
            p.sub {
                (words::count(analysis.runs, "run")) ", " (words::count(analysis.tests.len(), "test"))
                ", " (words::date(from)) " to " (time(analysis.now)) " UTC. Stable branch "
                code { (analysis.stable_branch) } "."
                @if analysis.runs_assumed_stable > 0 {
                    " " (words::count(analysis.runs_assumed_stable, "run")) " without a branch judged as on it."
                }
                @if analysis.runs_read > analysis.runs {
                    " " (words::count(analysis.runs_read - analysis.runs, "run")) " outside of these " (analysis.window_days) " days left aside."
                }
            }
        }
    }
}

fn headline(analysis: &Analysis) -> String {
    match (
        analysis.count(VerdictStatus::Broken),
        analysis.count(VerdictStatus::Flaky),
    ) {
        (0, 0) => "No test is broken or flaky".to_owned(),
        (broken, 0) => format!("{} broken", words::tests_are(broken)),
        (0, flaky) => format!("{} flaky", words::tests_are(flaky)),
        (broken, flaky) => format!("{} broken, {flaky} flaky", words::tests_are(broken)),
    }
}

fn overview(analysis: &Analysis, bars: &[RunBar], folder: &str) -> Markup {
    let timed = || {
        analysis
            .tests
            .iter()
            .filter_map(|judged| judged.entry.figures.time_lost_ms)
    };
    let lost = timed()
        .next()
        .map(|_| words::duration(timed().fold(0, u64::saturating_add)));
    let lost_hint = if lost.is_some() {
        "in failed attempts of all tests"
    } else {
        "no durations were reported"
    };
    html! {
        section.tiles aria-label="Summary" {
            (tile("broken", &analysis.count(VerdictStatus::Broken).to_string(), "broken", "their code fails, run after run"))
            (tile("flaky", &analysis.count(VerdictStatus::Flaky).to_string(), "flaky", "fail although the code is good"))
            @if !analysis.failing().is_empty() {
                (tile("failing", &analysis.failing().len().to_string(), "failing now", "red in their newest runs, the cause not known yet"))
            }
            (tile("healthy", &analysis.count(VerdictStatus::Healthy).to_string(), "healthy", "nothing wrong, or no longer"))
            (tile("few", &analysis.count(VerdictStatus::InsufficientData).to_string(), "gathering data", "too few runs to say"))
            (tile("lost", lost.as_deref().unwrap_or("–"), "lost", lost_hint))
        }
        (chart::runs(bars, folder))
    }
}

fn tile(class: &str, figure: &str, label: &str, hint: &str) -> Markup {
    html! {
        div class={ "tile " (class) } {
            span.figure { (figure) }
            span.label { (label) }
            span.hint { (hint) }
        }
    }
}

fn ranking(analysis: &Analysis, reported: &[Judged], folder: &str) -> Markup {
    html! {
        section.ranking aria-labelledby="ranking" {
            div.bar {
                h2 #ranking { "Ranking" }
                div.controls hidden {
                    div.chips role="group" aria-label="Show" {
                        button type="button" data-show="all" aria-pressed="true" { "All " span { (reported.len()) } }
                        button type="button" data-show="broken" aria-pressed="false" { "Broken " span { (analysis.count(VerdictStatus::Broken)) } }
                        button type="button" data-show="flaky" aria-pressed="false" { "Flaky " span { (analysis.count(VerdictStatus::Flaky)) } }
                    }
                    label.sort {
                        span { "Sort by" }
                        select {
                            option value="lost" { "time lost" }
                            option value="score" { "flake score" }
                            option value="rate" { "failure rate" }
                            option value="impact" { "impact" }
                            option value="name" { "name" }
                        }
                    }
                    label.search {
                        span.unseen { "Search tests" }
                        input type="search" placeholder="Search tests";
                    }
                }
            }
            @if reported.is_empty() {
                p.empty { "Every test with enough runs is healthy." }
            }
            ol.cards {
                @for (rank, judged) in (1..).zip(reported.iter().take(MOST_CARDS)) {
                    (card::card(analysis, judged, rank, folder))
                }
            }
            p.none hidden { "No test matches." }
            @if reported.len() > MOST_CARDS {
                p.empty { "And " (reported.len() - MOST_CARDS) " more; " code { "--output json" } " has them all." }
            }
        }
    }
}

/// The tests whose newest runs failed and that are neither broken nor flaky.
fn failing(analysis: &Analysis, folder: &str) -> Markup {
    let failing = analysis.failing();
    html! {
        @if !failing.is_empty() {
            section.failing aria-labelledby="failing" {
                h2 #failing { "Failing now" }
                p.sub { "Their newest runs failed. Further runs decide whether they are broken or flaky." }
                ul.noted {
                    @for judged in failing.iter().take(MOST_OTHERS) { (card::line(analysis, judged, folder)) }
                }
                @if failing.len() > MOST_OTHERS {
                    p.empty { "And " (failing.len() - MOST_OTHERS) " more." }
                }
            }
        }
    }
}

fn others(analysis: &Analysis, folder: &str) -> Markup {
    let others = analysis.others();
    let noted: Vec<&Judged> = others
        .iter()
        .filter(|judged| {
            judged.entry.figures.failure_rate.is_some_and(|rate| rate > 0.0)
                || !judged.entry.also_active.is_empty()
                || judged.entry.status_reason.is_some()
        })
        .collect();
    html! {
        section.others aria-labelledby="others" {
            h2 #others { "And " (words::count(others.len(), "other test")) }
            p.sub {
                (analysis.count(VerdictStatus::Healthy)) " healthy, "
                (analysis.count(VerdictStatus::InsufficientData)) " with too few runs to say."
            }
            @if !noted.is_empty() {
                details {
                    summary { (words::count(noted.len(), "test")) " of them failed before, without being broken or flaky" }
                    ul.noted {
                        @for judged in noted.iter().take(MOST_OTHERS) { (card::line(analysis, judged, folder)) }
                    }
                    @if noted.len() > MOST_OTHERS {
                        p.empty { "And " (noted.len() - MOST_OTHERS) " more." }
                    }
                }
            }
        }
    }
}

fn reading() -> Markup {
    html! {
        section.reading aria-labelledby="reading" {
            h2 #reading { "How to read this" }
            (chart::legend())
            dl {
                dt { "Broken" }
                dd { "The code that the test checks is very probably bad: it fails run after run on the stable branch. Broken goes before flaky." }
                dt { "Flaky" }
                dd { "The test fails although the code is good: it passed on retry, or both passed and failed on one revision, or fails in episodes that a break and its fix do not explain." }
                dt { "Failing now" }
                dd { "The newest runs failed, and they do not show yet whether the code or the test is at fault." }
                dt { "Flake score" }
                dd { "From 0 to 1, a score rather than a percentage: low below 0.5, likely below 0.9, near certain above." }
                dt { "Failure rate, flip rate" }
                dd { "The share of runs with a failed attempt, and of neighbouring runs of a branch that ended differently. Runs in which many tests failed together are left out." }
                dt { "Time lost" }
                dd { "The measured duration of every failed attempt." }
                dt { "Impact" }
                dd { "Red runs of the stable branch that the test is to blame for, each shared among the tests that failed in it." }
            }
        }
    }
}

fn time(at: Timestamp) -> Markup {
    html! { time datetime=(at) { (words::date_time(at)) } }
}

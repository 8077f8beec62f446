//! Drawings: the runs of the window, and a test's strip of outcomes.

use std::collections::HashSet;

use maud::{Markup, html};

use super::words;
use crate::{
    analysis::RunBar,
    strip::{Cell, Outcome, Strip},
};

/// How many runs the overview draws.
const MOST_BARS: usize = 240;
/// How many runs a strip draws.
const MOST_CELLS: usize = 160;
/// Width of a run in a strip, its gap included.
const STEP: usize = 9;
const HEIGHT: usize = 26;

/// The mark of the product: a scale's beam between a full and a half bar.
pub(super) fn mark() -> Markup {
    html! {
        svg.mark viewBox="0 0 20 20" aria-hidden="true" {
            rect x="1" y="3" width="4" height="14" rx="1" {}
            rect x="8" y="10" width="4" height="7" rx="1" {}
            rect x="15" y="6" width="4" height="11" rx="1" {}
        }
    }
}

/// The runs of the window: how many tests failed, and how many only at first.
pub(super) fn runs(bars: &[RunBar]) -> Markup {
    let shown = bars
        .get(bars.len().saturating_sub(MOST_BARS)..)
        .unwrap_or_default();
    let (Some(first), Some(last)) = (shown.first(), shown.last()) else {
        return html! {};
    };
    let most = shown
        .iter()
        .map(|bar| bar.failed + bar.recovered)
        .max()
        .unwrap_or(0);
    let red = shown.iter().filter(|bar| bar.failed > 0).count();
    let height = |tests: u32| {
        let share = f64::from(tests) / f64::from(most.max(1));
        // By the root, so that one failing test still shows beside an outage.
        if tests == 0 {
            0.0
        } else {
            (share.sqrt() * 60.0).max(5.0)
        }
    };
    let label = format!(
        "The newest {}: {red} with failed tests, at most {most} failing in one",
        words::count(shown.len(), "run")
    );
    let width = format!("max-width:{}px", shown.len() * 40);
    html! {
        figure.runs {
            figcaption {
                span { b { (words::count(red, "red run")) } " of " (shown.len()) @if bars.len() > shown.len() { " newest" } }
                span { "failing tests a run, at most " (most) }
            }
            svg viewBox={ "0 0 " (shown.len() * 10) " 66" } preserveAspectRatio="none" role="img" aria-label=(label) style=(width) {
                @for (place, bar) in shown.iter().enumerate() {
                    g {
                        title { (about(bar)) }
                        rect.hit x=(place * 10) y="0" width="10" height="66" {}
                        @let failed = height(bar.failed);
                        @let both = height(bar.failed + bar.recovered).max(failed);
                        @if both > failed {
                            rect.recovered x=(place * 10 + 1) y=(format!("{:.1}", 66.0 - both)) width="8" height=(format!("{:.1}", both - failed)) {}
                        }
                        @if failed > 0.0 {
                            rect.failed x=(place * 10 + 1) y=(format!("{:.1}", 66.0 - failed)) width="8" height=(format!("{failed:.1}")) {}
                        }
                        @if both == 0.0 {
                            rect.passed x=(place * 10 + 1) y="63" width="8" height="3" {}
                        }
                    }
                }
            }
            p.axis style=(width) { span { (words::day(first.started_at)) } span { (words::day(last.started_at)) } }
        }
    }
}

fn about(bar: &RunBar) -> String {
    let on = bar
        .branch
        .as_ref()
        .map(|branch| format!(" on {branch}"))
        .unwrap_or_default();
    format!(
        "{}{on}\n{}\n{} tests: {} failed, {} passed on retry",
        bar.run,
        words::date_time(bar.started_at),
        bar.tests,
        bar.failed,
        bar.recovered
    )
}

/// How a test ended in the newest runs of one branch. `dropped` names the runs that were mass failures.
pub(super) fn strip(strip: &Strip, dropped: &HashSet<&str>) -> Markup {
    let cells = strip
        .cells
        .get(strip.cells.len().saturating_sub(MOST_CELLS)..)
        .unwrap_or_default();
    let width = cells.len() * STEP;
    html! {
        svg.strip width=(width) height=(HEIGHT) viewBox={ "0 0 " (width) " " (HEIGHT) } role="img" aria-label=(in_words(strip, cells)) {
            @for (start, length) in passes(cells) {
                path.passed d={ "M" (start * STEP) " 22h" (length * STEP) } {}
            }
            @for (place, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.outcome != Outcome::Passed) {
                @let (class, height) = shape(cell.outcome);
                rect class=(if dropped.contains(&*cell.run) { format!("{class} mass") } else { class.to_owned() })
                    x=(place * STEP) y=(HEIGHT - height) width="7" height=(height) rx="1.5" {
                    title { (of_cell(cell, dropped.contains(&*cell.run))) }
                }
            }
        }
    }
}

/// Stretches of passes, each as its start and length.
fn passes(cells: &[Cell]) -> Vec<(usize, usize)> {
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    for (place, _) in cells
        .iter()
        .enumerate()
        .filter(|(_, cell)| cell.outcome == Outcome::Passed)
    {
        match stretches.last_mut() {
            Some((start, length)) if *start + *length == place => *length += 1,
            Some(_) | None => stretches.push((place, 1)),
        }
    }
    stretches
}

const fn shape(outcome: Outcome) -> (&'static str, usize) {
    match outcome {
        Outcome::Failed => ("failed", HEIGHT),
        Outcome::Recovered => ("recovered", 17),
        Outcome::Passed => ("passed", 8),
        Outcome::Skipped => ("skipped", 3),
    }
}

fn of_cell(cell: &Cell, mass: bool) -> String {
    let ended = match cell.outcome {
        Outcome::Failed => "failed",
        Outcome::Recovered => "passed on retry",
        Outcome::Passed => "passed",
        Outcome::Skipped => "skipped",
    };
    let failed = match cell.failed_attempts {
        0 | 1 => String::new(),
        attempts => format!(", {attempts} failed attempts"),
    };
    let mass = if mass {
        "\nmany tests failed together: not counted"
    } else {
        ""
    };
    let revision = cell
        .revision
        .as_ref()
        .map(|revision| format!("\nrevision {revision}"))
        .unwrap_or_default();
    format!(
        "{ended}{failed}\n{}\n{}{revision}{mass}",
        cell.run,
        words::date_time(cell.started_at)
    )
}

/// What a strip shows, for those who cannot see it.
fn in_words(strip: &Strip, cells: &[Cell]) -> String {
    let count = |outcome| cells.iter().filter(|cell| cell.outcome == outcome).count();
    format!(
        "Newest {}{}: {} passed, {} passed on retry, {} failed, {} skipped",
        words::count(cells.len(), "run"),
        strip
            .branch
            .as_ref()
            .map(|branch| format!(" on {branch}"))
            .unwrap_or_default(),
        count(Outcome::Passed),
        count(Outcome::Recovered),
        count(Outcome::Failed),
        count(Outcome::Skipped),
    )
}

/// How many runs of a strip are not drawn.
pub(super) fn undrawn(strip: &Strip) -> usize {
    strip.cells.len().saturating_sub(MOST_CELLS)
}

/// What the bars of a strip mean.
pub(super) fn legend() -> Markup {
    let entry = |outcome: Outcome, mass: bool, words: &str| {
        let (class, height) = shape(outcome);
        html! {
            li {
                svg width="9" height=(HEIGHT) viewBox={ "0 0 9 " (HEIGHT) } aria-hidden="true" {
                    rect class=(if mass { format!("{class} mass") } else { format!("{class} solid") }) x="1" y=(HEIGHT - height) width="7" height=(height) rx="1.5" {}
                }
                (words)
            }
        }
    };
    html! {
        ul.legend {
            (entry(Outcome::Passed, false, "passed"))
            (entry(Outcome::Recovered, false, "passed on retry"))
            (entry(Outcome::Failed, false, "failed"))
            (entry(Outcome::Failed, true, "failed with many others, not counted"))
            (entry(Outcome::Skipped, false, "skipped"))
        }
        p.sub { "A bar is a run, the newest on the right; pointing at one tells which." }
    }
}

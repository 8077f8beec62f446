//! Drawings: the runs of the window, and a test's strip of outcomes.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use assay_domain::timestamp::Timestamp;
use maud::{Markup, html};

use super::words;
use crate::{
    analysis::RunBar,
    strip::{Cell, Outcome, Strip},
};

/// How many runs the overview draws.
const MOST_BARS: usize = 240;
/// How many runs the strips of a test draw.
const MOST_COLUMNS: usize = 160;
/// How wide the strips of a test get where a run needs no more, in pixels.
const WIDTH: usize = 780;
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
pub(super) fn runs(bars: &[RunBar], folder: &str) -> Markup {
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
                        title { (about(bar, folder)) }
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

fn about(bar: &RunBar, folder: &str) -> String {
    let on = bar
        .branch
        .as_ref()
        .map(|branch| format!(" on {branch}"))
        .unwrap_or_default();
    format!(
        "{}{on}\n{}\n{} tests: {} failed, {} passed on retry",
        bar.run.strip_prefix(folder).unwrap_or(&bar.run),
        words::date_time(bar.started_at),
        bar.tests,
        bar.failed,
        bar.recovered
    )
}

/// The runs of a test, which all of its strips have in common: what stands above each other happened together.
pub(super) struct Columns {
    places: HashMap<(Timestamp, Arc<str>), usize>,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    /// Runs that are too old to be drawn.
    pub(super) earlier: usize,
    step: usize,
}

impl Columns {
    pub(super) fn of(strips: &[Strip]) -> Self {
        let cells = strips.iter().flat_map(|strip| &strip.cells);
        let runs: BTreeSet<(Timestamp, Arc<str>)> = cells
            .map(|cell| (cell.started_at, Arc::clone(&cell.run)))
            .collect();
        let earlier = runs.len().saturating_sub(MOST_COLUMNS);
        let drawn = runs.len() - earlier;
        let mut columns = Self {
            places: HashMap::new(),
            first: None,
            last: None,
            earlier,
            step: (WIDTH / drawn.max(1)).clamp(4, 14),
        };
        for (place, run) in runs.into_iter().skip(earlier).enumerate() {
            columns.first = columns.first.or(Some(run.0));
            columns.last = Some(run.0);
            columns.places.insert(run, place);
        }
        columns
    }

    /// How wide the strips are, in pixels.
    fn width(&self) -> usize {
        self.places.len() * self.step
    }

    /// The cells that are drawn, each with its column.
    fn place<'a>(&self, strip: &'a Strip) -> Vec<(usize, &'a Cell)> {
        let place =
            |cell: &'a Cell| Some((*self.places.get(&(cell.started_at, Arc::clone(&cell.run)))?, cell));
        strip.cells.iter().filter_map(place).collect()
    }

    /// From when to when the strips go.
    pub(super) fn axis(&self) -> Markup {
        html! {
            @if let (Some(first), Some(last)) = (self.first, self.last) {
                p.axis style={ "max-width:" (self.width().max(120)) "px" } {
                    span { (words::day(first)) @if self.earlier > 0 { " (" (self.earlier) " earlier)" } }
                    @if words::day(first) != words::day(last) { span { (words::day(last)) } }
                }
            }
        }
    }
}

/// How a test ended in the runs of one branch.
pub(super) fn strip(strip: &Strip, columns: &Columns, told: &Told<'_>) -> Markup {
    let cells = columns.place(strip);
    let (width, step) = (columns.width(), columns.step);
    let bar = step - if step > 5 { 2 } else { 1 };
    html! {
        svg.strip width=(width) height=(HEIGHT) viewBox={ "0 0 " (width) " " (HEIGHT) } role="img" aria-label=(in_words(strip, &cells)) {
            path.base d={ "M0 " (HEIGHT) "h" (width) } {}
            @for (start, length) in passes(&cells) {
                path.passed d={ "M" (start * step) " 22h" (length * step) } stroke-dasharray={ (bar) " " (step - bar) } {}
            }
            @for (place, cell) in cells.iter().filter(|(_, cell)| cell.outcome != Outcome::Passed) {
                @let (class, height) = shape(cell.outcome);
                @let mass = told.dropped.contains(&*cell.run);
                rect class=(if mass { format!("{class} mass") } else { class.to_owned() })
                    x=(place * step) y=(HEIGHT - height) width=(bar) height=(height) rx="1" {
                    title { (of_cell(cell, told.short(&cell.run), mass)) }
                }
            }
        }
    }
}

/// What is told of runs.
pub(super) struct Told<'a> {
    /// Those that were mass failures.
    pub(super) dropped: HashSet<&'a str>,
    /// The folder that all of their names begin with, which says nothing.
    pub(super) folder: &'a str,
}

impl Told<'_> {
    /// A run's name without the folder.
    pub(super) fn short<'r>(&self, run: &'r str) -> &'r str {
        run.strip_prefix(self.folder).unwrap_or(run)
    }
}

/// The folder in which all runs' files lie, with its slash; empty where there is none.
pub(super) fn folder(bars: &[RunBar]) -> &str {
    let Some(first) = bars.first() else { return "" };
    let mut folder = first.run.rsplit_once('/').map_or("", |(folder, _)| {
        first.run.get(..=folder.len()).unwrap_or_default()
    });
    while !folder.is_empty() && !bars.iter().all(|bar| bar.run.starts_with(folder)) {
        let parent = folder
            .trim_end_matches('/')
            .rsplit_once('/')
            .map_or(0, |(parent, _)| parent.len() + 1);
        folder = folder.get(..parent).unwrap_or_default();
    }
    folder
}

/// Stretches of passes, each as its first column and length.
fn passes(cells: &[(usize, &Cell)]) -> Vec<(usize, usize)> {
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    for (place, _) in cells.iter().filter(|(_, cell)| cell.outcome == Outcome::Passed) {
        match stretches.last_mut() {
            Some((start, length)) if *start + *length == *place => *length += 1,
            Some(_) | None => stretches.push((*place, 1)),
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

fn of_cell(cell: &Cell, run: &str, mass: bool) -> String {
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
        "{ended}{failed}\n{run}\n{}{revision}{mass}",
        words::date_time(cell.started_at)
    )
}

/// What a strip shows, for those who cannot see it.
fn in_words(strip: &Strip, cells: &[(usize, &Cell)]) -> String {
    let count = |outcome| cells.iter().filter(|(_, cell)| cell.outcome == outcome).count();
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

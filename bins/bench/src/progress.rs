//! What goes on, on standard error.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Says what begins now.
pub(crate) fn step(what: &str) {
    eprintln!("assay-bench: {what}");
}

/// A bar over this number of steps; shown only on a terminal.
pub(crate) fn bar(steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {human_pos}/{human_len} runs, {eta} to go") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// One more step of a bar; where no bar is shown, each tenth part is said.
pub(crate) fn advance(bar: &ProgressBar) {
    bar.inc(1);
    let (done, of) = (bar.position(), bar.length().unwrap_or(0));
    if bar.is_hidden() && of >= 100 && done.is_multiple_of(of / 10) {
        step(&format!("{done} of {of} runs"));
    }
}

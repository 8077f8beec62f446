//! How far long work has come: a bar with rate and time left, for somebody who watches.

use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::{cli::Global, terminal};

/// How often a bar moves.
const TICK: Duration = Duration::from_millis(100);

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Files, runs and the like, in the plural.
    Things(&'static str),
    /// Bytes.
    Bytes,
}

/// A bar over so much work; invisible with `--json` and where standard error is no terminal.
pub(crate) fn bar(global: &Global, doing: &'static str, length: u64, unit: Unit) -> ProgressBar {
    if !is_shown(global) {
        return ProgressBar::hidden();
    }
    let template = match unit {
        Unit::Things(_) => "{prefix} {wide_bar} {human_pos}/{human_len} {msg}, {rate}/s, {eta} left",
        Unit::Bytes => "{prefix} {wide_bar} {bytes}/{total_bytes}, {binary_bytes_per_sec}, {eta} left",
    };
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    let bar = styled(bar, template).with_prefix(doing);
    match unit {
        Unit::Things(name) => bar.set_message(name),
        Unit::Bytes => {}
    }
    bar.enable_steady_tick(TICK);
    bar
}

/// Something that moves while work of unknown length goes on.
pub(crate) fn spinner(global: &Global, doing: impl Into<String>) -> ProgressBar {
    if !is_shown(global) {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let bar = styled(bar, "{spinner} {msg}, {elapsed}").with_message(doing.into());
    bar.enable_steady_tick(TICK);
    bar
}

/// Says how fast so many files were parsed, for somebody who watches: where there were enough to wait for.
pub(crate) fn rate(global: &Global, files: usize, tests: usize, took: Duration) {
    if !is_shown(global) || files < ENOUGH {
        return;
    }
    let per_second = |things: usize| {
        let things = u128::try_from(things).unwrap_or(u128::MAX);
        let rate = things.saturating_mul(1_000) / took.as_millis().max(1);
        HumanCount(u64::try_from(rate).unwrap_or(u64::MAX))
    };
    let count = |things: usize| HumanCount(u64::try_from(things).unwrap_or(u64::MAX));
    eprintln!(
        "assay: parsed {} files with {} tests in {} ms: {} files and {} tests a second",
        count(files),
        count(tests),
        took.as_millis(),
        per_second(files),
        per_second(tests)
    );
}

/// How many files are worth telling the rate of.
const ENOUGH: usize = 20;

fn is_shown(global: &Global) -> bool {
    !global.json && terminal::is_watched()
}

/// Things a second without a fraction, which nobody reads.
fn whole_rate(state: &ProgressState, text: &mut dyn std::fmt::Write) {
    // What is written here cannot be refused: it is a string.
    let _ = write!(text, "{:.0}", state.per_sec());
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.with_key("rate", whole_rate)),
        // Unreachable: the templates are the ones above. Indicatif's own style would do.
        Err(_) => bar,
    }
}

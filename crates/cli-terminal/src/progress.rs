//! The progress of long work: what a library reports while it works, and the bars of a terminal.

use std::{io, time::Duration};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::terminal;

/// The interval between two updates of a bar.
const TICK: Duration = Duration::from_millis(100);

/// Receives what a library does while it works. `()` ignores it.
pub trait Progress: Sync {
    /// Takes a sentence for people, such as why something is left out.
    fn note(&self, sentence: &str);

    /// Takes the beginning of long work, which ends when the counter is dropped.
    fn begin(&self, work: Work) -> Box<dyn Counter>;
}

/// Work of some length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Reads this many files.
    ReadFiles(u64),
    /// Reads this many bytes.
    ReadBytes(u64),
    /// Sends this many bytes to a server.
    Send(u64),
    /// Waits until the next attempt.
    Wait,
}

/// Counts the part of some work that is done.
pub trait Counter: Sync {
    /// Adds this many files or bytes.
    fn add(&self, units: u64);
}

/// A reader whose bytes are counted.
pub struct CountedRead<'a, R> {
    /// Where the bytes come from.
    pub inner: R,
    /// Where they are counted.
    pub counter: &'a dyn Counter,
}

impl<R: io::Read> io::Read for CountedRead<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.counter.add(u64::try_from(read).unwrap_or(u64::MAX));
        Ok(read)
    }
}

impl Progress for () {
    fn note(&self, _: &str) {}

    fn begin(&self, _: Work) -> Box<dyn Counter> {
        Box::new(())
    }
}

impl Counter for () {
    fn add(&self, _: u64) {}
}

/// Prints sentences on standard error, and shows work as bars there unless the output is JSON.
struct Terminal {
    json: bool,
}

/// The progress on the terminal of a command.
pub fn terminal(json: bool) -> &'static dyn Progress {
    match json {
        true => &Terminal { json: true },
        false => &Terminal { json: false },
    }
}

impl Progress for Terminal {
    fn note(&self, sentence: &str) {
        message!("{sentence}");
    }

    fn begin(&self, work: Work) -> Box<dyn Counter> {
        Box::new(match work {
            Work::ReadFiles(files) => bar(self.json, "reading", files, Unit::Items("files")),
            Work::ReadBytes(bytes) => bar(self.json, "reading", bytes, Unit::Bytes),
            Work::Send(bytes) => bar(self.json, "sending", bytes, Unit::SentBytes),
            Work::Wait => spinner(self.json, "waiting"),
        })
    }
}

impl Counter for ProgressBar {
    fn add(&self, units: u64) {
        self.inc(units);
    }
}

/// The unit of a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Files, runs and the like, in the plural.
    Items(&'static str),
    /// Bytes.
    Bytes,
    /// Bytes that a server handles once it has all of them.
    SentBytes,
}

/// A bar for a known amount of work. Invisible with `--json` and if standard error is not a terminal.
pub fn bar(json: bool, doing: &'static str, length: u64, unit: Unit) -> ProgressBar {
    if !is_shown(json) {
        return ProgressBar::hidden();
    }
    let template = match unit {
        Unit::Items(_) => "{prefix} {wide_bar} {human_pos}/{human_len} {msg}, {rate}/s, {eta} left",
        Unit::Bytes => "{prefix} {wide_bar} {bytes}/{total_bytes}, {binary_bytes_per_sec}, {eta} left",
        Unit::SentBytes => "{prefix} {wide_bar} {bytes}/{total_bytes}, {until_sent}",
    };
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    let bar = styled(bar, template).with_prefix(doing);
    match unit {
        Unit::Items(name) => bar.set_message(name),
        Unit::Bytes | Unit::SentBytes => {}
    }
    bar.enable_steady_tick(TICK);
    bar
}

/// A spinner for work of unknown length.
pub fn spinner(json: bool, doing: impl Into<String>) -> ProgressBar {
    if !is_shown(json) {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let bar = styled(bar, "{spinner} {msg}, {elapsed}").with_message(doing.into());
    bar.enable_steady_tick(TICK);
    bar
}

fn is_shown(json: bool) -> bool {
    !json && terminal::stderr_is_terminal()
}

/// Items a second, without a fraction.
fn whole_rate(state: &ProgressState, text: &mut dyn std::fmt::Write) {
    // Writing to a string cannot fail.
    let _ = write!(text, "{:.0}", state.per_sec());
}

/// The remaining time until everything is sent, then the reason for the wait.
fn until_sent(state: &ProgressState, text: &mut dyn std::fmt::Write) {
    // Writing to a string cannot fail.
    let _ = match state.len().is_some_and(|length| state.pos() >= length) {
        true => write!(text, "the server is reading and storing it"),
        false => write!(text, "{:#} left", HumanDuration(state.eta())),
    };
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(
            style
                .with_key("rate", whole_rate)
                .with_key("until_sent", until_sent),
        ),
        // Unreachable: the templates above are valid. Indicatif's default style would do.
        Err(_) => bar,
    }
}

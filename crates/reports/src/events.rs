//! Reports with one JSON event per line, among other output.

use serde::Deserialize;

use crate::{
    input::Input,
    json, memory,
    report::{Format, ReadError, Report},
};

/// A reader of a format with one JSON event per line.
pub(crate) trait Events: Default {
    /// An event.
    type Event<'e>: Deserialize<'e>;

    /// The format.
    const FORMAT: Format;
    /// Its name in messages.
    const NAME: &'static str;

    /// Reads an event. Returns whether the event belongs to the format.
    fn event(&mut self, input: &Input<'_>, report: &mut Report, event: Self::Event<'_>) -> bool;

    /// Reads a line that is not an event.
    fn other_line(&mut self, _report: &mut Report, _line: &str) {}

    /// The number of tests that were read so far.
    fn results(&self) -> usize;

    /// Adds what was read of all events to the report.
    fn finish(self, input: &Input<'_>, report: &mut Report);
}

/// What a reader holds of an event at most, beside its texts: of a test that began, the test.
const EVENT: usize = 256;

/// Reads a file. Lines that are not events are other output. Fails if no line is an event.
pub(crate) fn read<E: Events>(input: &Input<'_>) -> Result<Report, ReadError> {
    let (mut reader, mut report) = (E::default(), Report::empty(E::FORMAT));
    let mut events = 0_usize;
    let mut cut_at = None;
    let mut lines = input.text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        // Flutter writes some events as a list of one.
        let object = line.trim().trim_start_matches('[');
        if !object.starts_with('{') {
            reader.other_line(&mut report, line);
            continue;
        }
        memory::hold(EVENT.saturating_add(line.len()));
        match json::first_value::<E::Event<'_>>(object) {
            Ok(event) => events += usize::from(reader.event(input, &mut report, event)),
            // Only the last line can be cut off.
            Err(error) if error.is_eof() && lines.peek().is_none() => cut_at = Some(number + 1),
            Err(_) => reader.other_line(&mut report, line),
        }
        memory::check(input.name)?;
        input.check_tests(reader.results(), || number + 1)?;
    }
    if events == 0 {
        return Err(input.broken(1, E::NAME, "expected an event on each line, found none"));
    }
    reader.finish(input, &mut report);
    report.mark_cut_off(input.name, cut_at);
    Ok(report)
}

//! Reports with one JSON event per line, among other output.

use serde::de::DeserializeOwned;

use crate::{
    input::Input,
    json, memory,
    report::{ReadError, Report},
};

/// A reader of a format with one JSON event per line.
pub(crate) trait Events: Default {
    /// An event.
    type Event: DeserializeOwned;

    /// The format's name in messages.
    const FORMAT: &'static str;

    /// Reads an event. Returns whether the event belongs to the format.
    fn event(&mut self, input: &Input<'_>, event: Self::Event) -> bool;

    /// The number of tests that were read so far.
    fn results(&self) -> usize;

    /// The report of all events that were read.
    fn finish(self, input: &Input<'_>) -> Report;
}

/// What a reader holds of an event at most, beside its texts: of a test that began, the test.
const EVENT: usize = 256;

/// Reads a file. Lines that are not events are other output. Fails if no line is an event.
pub(crate) fn read<E: Events>(input: &Input<'_>) -> Result<Report, ReadError> {
    let mut reader = E::default();
    let mut events = 0_usize;
    let mut cut_at = None;
    for (number, line) in input.text.lines().enumerate() {
        // Flutter writes some events as a list of one.
        let line = line.trim().trim_start_matches('[');
        if !line.starts_with('{') {
            continue;
        }
        memory::hold(EVENT.saturating_add(line.len()));
        match json::first_value::<E::Event>(line) {
            Ok(event) => events += usize::from(reader.event(input, event)),
            Err(error) if error.is_eof() => cut_at = Some(number + 1),
            Err(_) => {}
        }
        memory::check(input.name)?;
        input.check_tests(reader.results(), || number + 1)?;
    }
    if events == 0 {
        return Err(input.broken(1, E::FORMAT, "expected an event on each line, found none"));
    }
    let mut report = reader.finish(input);
    // Only the last line can be cut off. Any other invalid line is other output.
    report.mark_cut_off(cut_at.filter(|line| *line == input.text.lines().count()));
    Ok(report)
}

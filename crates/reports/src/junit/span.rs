//! The start and the end of a run, if a file has them.

use assay_domain::timestamp::Timestamp;

use super::{case::Case, suite::Suite};
use crate::input::Input;

/// The earliest start and the latest end that were read.
#[derive(Debug, Default)]
pub(super) struct Span {
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    /// The whole duration, an attribute of the root.
    whole_ms: Option<u64>,
}

impl Span {
    pub(super) fn suite(&mut self, input: &Input<'_>, suite: &Suite<'_>) {
        let duration = suite.time.and_then(|time| suite.milliseconds(input, time));
        if suite.is_group {
            self.whole_ms = self.whole_ms.max(duration);
        }
        if suite.is_utc && suite.timestamp.is_some() {
            input.notes.times_are_utc();
        }
        self.span(input, suite.timestamp, duration);
    }

    pub(super) fn case(&mut self, input: &Input<'_>, case: &Case<'_>) {
        if case.timestamp.is_some() {
            let duration = case.time.and_then(|time| input.seconds_to_ms(time));
            self.span(input, case.timestamp, duration);
        }
    }

    pub(super) fn started_at(&self) -> Option<Timestamp> {
        self.started_at
    }

    pub(super) fn finished_at(&self) -> Option<Timestamp> {
        let whole = self
            .started_at
            .zip(self.whole_ms)
            .map(|(start, whole)| later(start, whole));
        self.finished_at.max(whole)
    }

    fn span(&mut self, input: &Input<'_>, timestamp: Option<&str>, duration: Option<u64>) {
        let Some(start) = timestamp.and_then(|timestamp| input.time(timestamp)) else {
            return;
        };
        self.started_at = Some(self.started_at.map_or(start, |earliest| earliest.min(start)));
        self.finished_at = self.finished_at.max(Some(later(start, duration.unwrap_or(0))));
    }
}

fn later(start: Timestamp, ms: u64) -> Timestamp {
    start.plus_ms(i64::try_from(ms).unwrap_or(i64::MAX))
}

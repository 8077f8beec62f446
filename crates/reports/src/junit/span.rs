//! The start and the end of a run, if a file has them.

use assay_domain::timestamp::Timestamp;

use super::{case::Case, suite::Suite};
use crate::time;

/// The earliest start and the latest end that were read.
#[derive(Debug, Default)]
pub(super) struct Span {
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    /// The whole duration, an attribute of the root.
    whole_ms: Option<u64>,
}

impl Span {
    pub(super) fn suite(&mut self, suite: &Suite<'_>) {
        let duration = suite.time.and_then(|time| suite.milliseconds(time));
        if suite.is_group {
            self.whole_ms = self.whole_ms.max(duration);
        }
        self.span(suite.timestamp, duration);
    }

    pub(super) fn case(&mut self, case: &Case<'_>) {
        if case.timestamp.is_some() {
            self.span(case.timestamp, case.time.and_then(time::seconds_to_ms));
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

    fn span(&mut self, timestamp: Option<&str>, duration: Option<u64>) {
        let Some(start) = timestamp.and_then(time::lenient) else {
            return;
        };
        self.started_at = Some(self.started_at.map_or(start, |earliest| earliest.min(start)));
        self.finished_at = self.finished_at.max(Some(later(start, duration.unwrap_or(0))));
    }
}

fn later(start: Timestamp, ms: u64) -> Timestamp {
    start.plus_ms(i64::try_from(ms).unwrap_or(i64::MAX))
}

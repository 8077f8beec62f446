//! What every step of an import shares: its beginning, and its errors.

use std::time::Instant;

use assay_domain::{store::RecordError, timestamp::Timestamp};

use crate::db::pool::WorkError;

/// The outcome of a step.
pub(super) type Work<T> = Result<T, WorkError<RecordError>>;

/// The beginning of an import.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImportStart {
    pub(super) now: Timestamp,
    at: Instant,
}

impl ImportStart {
    /// The import begins now.
    pub(super) fn at(now: Timestamp) -> Self {
        Self {
            now,
            at: Instant::now(),
        }
    }

    /// The time of the judgement: when the import began, or now if other imports stored reports meanwhile. Their runs
    /// may have started later.
    pub(super) fn as_of(self, others_stored: bool) -> Timestamp {
        let waited_ms = i64::try_from(self.at.elapsed().as_millis()).unwrap_or(0);
        self.now.plus_ms(if others_stored { waited_ms } else { 0 })
    }
}

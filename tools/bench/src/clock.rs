//! Reads the clock for the whole program.

use assay_domain::timestamp::Timestamp;

/// The current time.
#[expect(clippy::disallowed_methods, reason = "a program reads the clock, here only")]
pub(crate) fn now() -> Timestamp {
    Timestamp::from(time::OffsetDateTime::now_utc())
}

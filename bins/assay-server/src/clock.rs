//! The one place that reads the clock.

use assay_domain::timestamp::Timestamp;

/// The time now.
#[expect(clippy::disallowed_methods, reason = "a program reads the clock, here only")]
pub(crate) fn now() -> Timestamp {
    Timestamp::from(time::OffsetDateTime::now_utc())
}

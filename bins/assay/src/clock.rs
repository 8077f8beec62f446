//! The one place that reads the clock, and how far it is from a database's.

use assay_domain::timestamp::Timestamp;

/// How far two clocks may differ before periods, expiries and verdicts are wrong, in milliseconds.
pub(crate) const SKEW_WRONG_MS: i64 = 60_000;

/// The time now.
#[expect(clippy::disallowed_methods, reason = "a program reads the clock, here only")]
pub(crate) fn now() -> Timestamp {
    Timestamp::from(time::OffsetDateTime::now_utc())
}

/// By how much a database's clock is ahead of this machine's at least, in milliseconds; negative where it is behind.
/// `before` and `after` are this machine's times around the question.
pub(crate) fn skew_ms(before: Timestamp, database: Timestamp, after: Timestamp) -> i64 {
    let round_trip = after.since_ms(before).max(0);
    // The database read its clock at an unknown moment between the two.
    let skew = database.since_ms(before.plus_ms(round_trip / 2));
    skew.signum() * (skew.abs() - round_trip / 2).max(0)
}

//! The difference between this machine's clock and a database's.

use assay_domain::timestamp::Timestamp;

/// How far two clocks may differ before periods, expiries and verdicts are wrong, in milliseconds.
pub(crate) const SKEW_WRONG_MS: i64 = 60_000;

/// The minimum difference between a database's clock and this machine's, in milliseconds; negative if the database is
/// behind. `before` and `after` are this machine's times around the query.
pub(crate) fn skew_ms(before: Timestamp, database: Timestamp, after: Timestamp) -> i64 {
    let round_trip = after.since_ms(before).max(0);
    // The database read its clock at an unknown moment between the two.
    let skew = database.since_ms(before.plus_ms(round_trip / 2));
    skew.signum() * (skew.abs() - round_trip / 2).max(0)
}

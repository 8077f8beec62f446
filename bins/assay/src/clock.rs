//! Reads the clock and compares it with a database's. No other module reads the clock.

use std::sync::OnceLock;

use assay_domain::timestamp::Timestamp;
use assay_reports::Clocks;

/// How far two clocks may differ before periods, expiries and verdicts are wrong, in milliseconds.
pub(crate) const SKEW_WRONG_MS: i64 = 60_000;

/// The time now.
#[expect(clippy::disallowed_methods, reason = "a program reads the clock, here only")]
pub(crate) fn now() -> Timestamp {
    Timestamp::from(time::OffsetDateTime::now_utc())
}

/// This machine's offset from UTC in minutes, as it was at the start of the program.
static UTC_OFFSET: OnceLock<Option<i32>> = OnceLock::new();

/// Reads this machine's offset from UTC. The system tells it only to a program with a single thread.
pub(crate) fn read_utc_offset() {
    let _ = utc_offset_minutes();
}

/// This machine's offset from UTC in minutes; none if it is unknown.
pub(crate) fn utc_offset_minutes() -> Option<i32> {
    *UTC_OFFSET.get_or_init(|| {
        let offset = time::UtcOffset::current_local_offset().ok()?;
        Some(offset.whole_seconds() / 60)
    })
}

/// The clocks for reports of this machine.
pub(crate) fn clocks(now: Timestamp) -> Clocks {
    Clocks {
        utc_offset_minutes: utc_offset_minutes(),
        now: Some(now),
    }
}

/// The minimum difference between a database's clock and this machine's, in milliseconds; negative if the database is
/// behind. `before` and `after` are this machine's times around the query.
pub(crate) fn skew_ms(before: Timestamp, database: Timestamp, after: Timestamp) -> i64 {
    let round_trip = after.since_ms(before).max(0);
    // The database read its clock at an unknown moment between the two.
    let skew = database.since_ms(before.plus_ms(round_trip / 2));
    skew.signum() * (skew.abs() - round_trip / 2).max(0)
}

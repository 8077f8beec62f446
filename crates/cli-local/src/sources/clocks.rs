//! This machine's offset from UTC, for reports that write local times.

use std::sync::OnceLock;

use assay_domain::timestamp::Timestamp;
use assay_reports::Clocks;

/// This machine's offset from UTC in minutes, as it was at the start of the program.
static UTC_OFFSET: OnceLock<Option<i32>> = OnceLock::new();

/// Reads this machine's offset from UTC. The system tells it only to a program with a single thread.
pub fn read_utc_offset() {
    let _ = utc_offset_minutes();
}

/// This machine's offset from UTC in minutes; none if it is unknown.
pub fn utc_offset_minutes() -> Option<i32> {
    *UTC_OFFSET.get_or_init(|| {
        let offset = time::UtcOffset::current_local_offset().ok()?;
        Some(offset.whole_seconds() / 60)
    })
}

/// The clocks for reports of this machine.
pub fn clocks(now: Timestamp) -> Clocks {
    Clocks {
        utc_offset_minutes: utc_offset_minutes(),
        now: Some(now),
    }
}

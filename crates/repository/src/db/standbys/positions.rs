//! The log positions of the primary at moments of the last second.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// The largest lag of a standby's answer behind the primary.
pub(super) const MAX_AGE: Duration = Duration::from_secs(1);
/// Interval of reading the primary's position, while there are reads.
const READ_INTERVAL: Duration = Duration::from_millis(250);

/// A position that a standby must have reached, and when the primary had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequiredPosition {
    pub(super) position: i64,
    pub(super) at: Instant,
}

/// The primary's written positions at moments of the last second.
#[derive(Debug, Default)]
pub(super) struct PrimaryPositions {
    /// Oldest first.
    entries: VecDeque<RequiredPosition>,
    /// When the last request for a position began.
    last_query: Option<Instant>,
}

impl PrimaryPositions {
    /// Whether the caller must ask the primary now. Returns true to one caller only.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self
            .last_query
            .is_none_or(|last_query| now.saturating_duration_since(last_query) >= READ_INTERVAL);
        if is_due {
            self.last_query = Some(now);
        }
        is_due
    }

    /// Records a position that was requested at `now`.
    pub(super) fn record(&mut self, now: Instant, position: i64) {
        self.entries.push_back(RequiredPosition { position, at: now });
    }

    /// The position that must be replayed for an answer that is not too old.
    pub(super) fn oldest_recent(&mut self, now: Instant) -> Option<RequiredPosition> {
        self.entries
            .retain(|entries| now.saturating_duration_since(entries.at) <= MAX_AGE);
        self.entries.front().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_primary_is_read_four_times_a_second_for_the_position_of_a_second_ago() {
        let mut positions = PrimaryPositions::default();
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let oldest_recent = |positions: &mut PrimaryPositions, ms| {
            positions
                .oldest_recent(at(ms))
                .map(|oldest_recent| oldest_recent.position)
        };
        assert_eq!(oldest_recent(&mut positions, 0), None, "nothing is known");
        for (ms, position) in [(0, 10), (250, 20), (500, 30), (750, 40), (1_000, 50)] {
            assert!(positions.is_due(at(ms)));
            assert!(!positions.is_due(at(ms + 249)), "another one asks");
            positions.record(at(ms), position);
        }
        assert_eq!(oldest_recent(&mut positions, 1_000), Some(10));
        assert_eq!(oldest_recent(&mut positions, 1_001), Some(20));
        assert_eq!(oldest_recent(&mut positions, 2_000), Some(50));
        assert_eq!(oldest_recent(&mut positions, 2_001), None);
    }
}

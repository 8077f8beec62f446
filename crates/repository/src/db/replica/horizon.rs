//! The log positions of the primary at moments of the last second.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// The maximum age of an answer.
pub(super) const OLDEST: Duration = Duration::from_secs(1);
/// Interval of reading the primary's position, while there are reads.
const STEP: Duration = Duration::from_millis(250);

/// A position that a standby must have reached, and when the primary had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequiredPosition {
    pub(super) position: i64,
    pub(super) at: Instant,
}

/// The primary's written positions at moments of the last second.
#[derive(Debug, Default)]
pub(super) struct Horizon {
    /// Oldest first.
    known: VecDeque<RequiredPosition>,
    /// When the last request for a position began.
    last_query: Option<Instant>,
}

impl Horizon {
    /// Whether the caller must ask the primary now. Returns true to one caller only.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let due = self
            .last_query
            .is_none_or(|last_query| now.saturating_duration_since(last_query) >= STEP);
        if due {
            self.last_query = Some(now);
        }
        due
    }

    /// Records a position that was requested at `now`.
    pub(super) fn learn(&mut self, now: Instant, position: i64) {
        self.known.push_back(RequiredPosition { position, at: now });
    }

    /// The position that must be replayed for an answer that is not too old.
    pub(super) fn needed(&mut self, now: Instant) -> Option<RequiredPosition> {
        self.known
            .retain(|known| now.saturating_duration_since(known.at) <= OLDEST);
        self.known.front().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_primary_is_asked_four_times_a_second_and_what_is_a_second_old_is_needed() {
        let mut horizon = Horizon::default();
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let needed = |horizon: &mut Horizon, ms| horizon.needed(at(ms)).map(|needed| needed.position);
        assert_eq!(needed(&mut horizon, 0), None, "nothing is known");
        for (ms, position) in [(0, 10), (250, 20), (500, 30), (750, 40), (1_000, 50)] {
            assert!(horizon.is_due(at(ms)));
            assert!(!horizon.is_due(at(ms + 249)), "another one asks");
            horizon.learn(at(ms), position);
        }
        assert_eq!(needed(&mut horizon, 1_000), Some(10));
        assert_eq!(needed(&mut horizon, 1_001), Some(20));
        assert_eq!(needed(&mut horizon, 2_000), Some(50));
        assert_eq!(needed(&mut horizon, 2_001), None);
    }
}

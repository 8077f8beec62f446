//! The participation of one failing test.

use crate::participation::{Participation, Presence};

/// The positions at which a failing test ran, and its counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column<'a> {
    /// The participation of the tests of its word.
    pub(crate) participation: &'a Participation,
    /// Its bit in the word.
    pub(crate) bit: u32,
    /// The counts that every test has.
    pub(crate) presence: Presence,
    /// Pairs of neighbouring results within a chain, without mass failures.
    pub(crate) pairs: u32,
    /// Variants on which it ran, without mass failures.
    pub(crate) variants: u32,
}

impl Column<'_> {
    /// Whether it ran at a position.
    pub(crate) fn contains(&self, position: usize) -> bool {
        self.participation
            .seen
            .get(position)
            .is_some_and(|tests| self.is_in(*tests))
    }

    /// Whether it ran at every position of every lane.
    pub(crate) fn is_everywhere(&self) -> bool {
        let lanes = &self.participation.always_seen;
        lanes.iter().all(|tests| self.is_in(*tests))
    }

    /// Whether its bit is set in `tests`.
    pub(crate) const fn is_in(&self, tests: u64) -> bool {
        tests >> self.bit & 1 == 1
    }
}

//! One failing test among the results of a block.

use crate::participation::{Participation, Presence};

/// Where a failing test took part, and what is counted of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column<'a> {
    /// Where the tests of its word took part.
    pub(crate) participation: &'a Participation,
    /// Its bit in the word.
    pub(crate) bit: u32,
    /// What is counted of every test.
    pub(crate) presence: Presence,
    /// Neighbours within a chain, mass failures aside: one less than results, in each chain.
    pub(crate) pairs: u32,
    /// Variants that it ran on, mass failures aside.
    pub(crate) variants: u32,
}

impl Column<'_> {
    /// Whether it took part at a position.
    pub(crate) fn contains(&self, position: usize) -> bool {
        self.participation
            .seen
            .get(position)
            .is_some_and(|tests| self.is_in(*tests))
    }

    /// Whether it took part wherever any test did.
    pub(crate) fn is_everywhere(&self) -> bool {
        let lanes = &self.participation.always_seen;
        lanes.iter().all(|tests| self.is_in(*tests))
    }

    /// Whether it is among `tests` of its word.
    pub(crate) const fn is_in(&self, tests: u64) -> bool {
        tests >> self.bit & 1 == 1
    }
}

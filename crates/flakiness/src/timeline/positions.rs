//! A set of positions that is cleared and reused.
#![expect(
    clippy::indexing_slicing,
    reason = "every index is a position of the timeline that sized the vector"
)]

use crate::numbers::at;

/// The number of positions in a word.
const BITS: usize = at(u64::BITS);

/// A set of positions.
#[derive(Debug)]
pub(crate) struct Positions(Vec<u64>);

impl Positions {
    /// An empty set for this many positions.
    pub(crate) fn new(positions: usize) -> Self {
        Self(vec![0; positions.div_ceil(BITS)])
    }

    /// Removes all positions.
    pub(crate) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Inserts a position.
    pub(crate) fn insert(&mut self, position: usize) {
        self.0[position / BITS] |= 1 << (position % BITS);
    }

    /// Removes a position.
    pub(crate) fn remove(&mut self, position: usize) {
        self.0[position / BITS] &= !(1 << (position % BITS));
    }

    /// Whether the set contains a position.
    pub(crate) fn contains(&self, position: usize) -> bool {
        self.0[position / BITS] >> (position % BITS) & 1 == 1
    }

    /// The first position in the set from `from` on.
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        let mut rest = u64::MAX << (from % BITS);
        for (index, word) in self.0.iter().enumerate().skip(from / BITS) {
            let matches = word & rest;
            if matches != 0 {
                return Some(index * BITS + at(matches.trailing_zeros()));
            }
            rest = u64::MAX;
        }
        None
    }
}

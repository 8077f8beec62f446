//! The state of a chain's code: how probable the results so far are, with the code good or broken now.
//!
//! Everything is measured against the path of a test that passes everywhere ([`crate::model::always_passing`]): on it the two add up
//! to 1, and a test that leaves it and comes back brings along by how much its results were more or less probable. The two
//! are never divided on the way, which would take most of the time.
#![expect(
    clippy::indexing_slicing,
    reason = "the index runs over the grid, which is the length of every array"
)]

use std::array::from_fn;

use crate::model::{GRID, Likelihood, Move, PerRate};

/// Two values of P(Broken) this near are the same: far below what any figure shows, even summed over a window.
const SAME: f64 = 1e-13;

/// The state of a chain's code under each rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainState {
    good: PerRate,
    broken: PerRate,
}

/// How probable a result is, measured against the path's own there.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    good: PerRate,
    broken: PerRate,
}

impl ChainState {
    /// Before its first result.
    pub(crate) const UNBORN: Self = Self {
        good: [1.0; GRID],
        broken: [0.0; GRID],
    };

    /// On the path, where this is P(Broken).
    pub(crate) fn on_path(broken: &PerRate) -> Self {
        Self {
            good: broken.map(|broken| 1.0 - broken),
            broken: *broken,
        }
    }

    /// Takes in a result after a move. Inlined, the choice among moves would be made anew for each number of theirs.
    #[inline(never)]
    pub(crate) fn take_in(&mut self, by: &Move, seen: &Seen) {
        for k in 0..GRID {
            let (good, broken) = (self.good[k], self.broken[k]);
            // A move loses nothing: what is not broken behind it is good.
            let moved = broken * by.keeps[k] + good * by.breaks[k];
            self.good[k] = (good + broken - moved) * seen.good[k];
            self.broken[k] = moved * seen.broken[k];
        }
    }

    /// Multiplies both by the same.
    #[inline]
    pub(crate) fn scale(&mut self, factors: &PerRate) {
        for (k, factor) in factors.iter().enumerate() {
            self.good[k] *= factor;
            self.broken[k] *= factor;
        }
    }

    /// How probable the results are, whatever the state.
    #[inline]
    pub(crate) fn likelihood(&self) -> PerRate {
        from_fn(|k| self.good[k] + self.broken[k])
    }

    /// P(Broken).
    pub(crate) fn broken(&self) -> PerRate {
        from_fn(|k| self.broken[k] / (self.good[k] + self.broken[k]))
    }

    /// Whether P(Broken) is this one for every purpose.
    #[inline]
    pub(crate) fn is_at(&self, broken: &PerRate) -> bool {
        (0..GRID).all(|k| {
            let all = self.good[k] + self.broken[k];
            (self.broken[k] - broken[k] * all).abs() <= SAME * all
        })
    }
}

impl Seen {
    /// The likelihood of a result where `scale` is 1 over the path's.
    pub(crate) fn new(likelihood: &Likelihood, scale: &PerRate) -> Self {
        Self {
            good: from_fn(|k| likelihood.good[k] * scale[k]),
            broken: scale.map(|scale| likelihood.broken * scale),
        }
    }
}

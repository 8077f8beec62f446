//! The code state of a chain: the likelihood of its results so far with good code and with broken code now.
//!
//! All likelihoods are relative to those of a test that passes everywhere ([`crate::model::always_passing`]). For such
//! a test the two add up to 1. For a test that leaves that state and returns to it, the sum is the factor by which its
//! results were more or less probable. The two are not normalized on the way, because divisions would take most of the
//! time.
#![expect(
    clippy::indexing_slicing,
    reason = "the index runs over the grid, which is the length of every array"
)]

use std::array::from_fn;

use crate::model::{GRID, Likelihood, Move, PerRate};

/// Values of P(Broken) closer than this are equal: far below the precision of any figure, even summed over a window.
const SAME: f64 = 1e-13;

/// The state of a chain's code under each rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainState {
    good: PerRate,
    broken: PerRate,
}

/// The likelihood of a result, relative to that of a pass in the always-passing state.
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

    /// In the always-passing state, with this P(Broken).
    pub(crate) fn on_path(broken: &PerRate) -> Self {
        Self {
            good: broken.map(|broken| 1.0 - broken),
            broken: *broken,
        }
    }

    /// Applies a move, then a result. Inlined; otherwise the choice among moves would be repeated for each rate.
    #[inline(never)]
    pub(crate) fn take_in(&mut self, by: &Move, seen: &Seen) {
        for k in 0..GRID {
            let (good, broken) = (self.good[k], self.broken[k]);
            // A move keeps the sum: what is not broken after it is good.
            let moved = broken * by.keeps[k] + good * by.breaks[k];
            self.good[k] = (good + broken - moved) * seen.good[k];
            self.broken[k] = moved * seen.broken[k];
        }
    }

    /// Multiplies both by the same factor.
    #[inline]
    pub(crate) fn scale(&mut self, factors: &PerRate) {
        for (k, factor) in factors.iter().enumerate() {
            self.good[k] *= factor;
            self.broken[k] *= factor;
        }
    }

    /// The likelihood of the results, whatever the state.
    #[inline]
    pub(crate) fn likelihood(&self) -> PerRate {
        from_fn(|k| self.good[k] + self.broken[k])
    }

    /// P(Broken).
    pub(crate) fn broken(&self) -> PerRate {
        from_fn(|k| self.broken[k] / (self.good[k] + self.broken[k]))
    }

    /// P(this revision broke the test) after a result. `before` is the state before the result, and `broke` is this
    /// probability before it; `None` if the revision is new.
    pub(crate) fn broke(&self, before: &Self, broke: Option<&PerRate>, by: &Move, seen: &Seen) -> PerRate {
        from_fn(|k| {
            let moved = match broke {
                None => before.good[k] * by.own[k],
                Some(broke) => broke[k] * (before.good[k] + before.broken[k]) * by.keeps[k],
            };
            moved * seen.broken[k] / (self.good[k] + self.broken[k])
        })
    }

    /// Whether P(Broken) equals this value for every purpose.
    #[inline]
    pub(crate) fn is_at(&self, broken: &PerRate) -> bool {
        (0..GRID).all(|k| {
            let all = self.good[k] + self.broken[k];
            (self.broken[k] - broken[k] * all).abs() <= SAME * all
        })
    }
}

impl Seen {
    /// The likelihood of a result, where `scale` is 1 divided by that of the always-passing state.
    pub(crate) fn new(likelihood: &Likelihood, scale: &PerRate) -> Self {
        Self {
            good: from_fn(|k| likelihood.good[k] * scale[k]),
            broken: scale.map(|scale| likelihood.broken * scale),
        }
    }
}

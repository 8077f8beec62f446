//! The code state of a chain. It consists of two joint likelihoods of the chain's results so far: one with good code
//! now, and one with broken code now.
//!
//! Both are relative to the likelihoods of a test that passes everywhere ([`crate::model::always_passing`]). For such a
//! test the two add up to 1. For any other test their sum is the likelihood of its results relative to passes. The two
//! are not normalized after each result, because the divisions would take most of the time.
#![expect(
    clippy::indexing_slicing,
    reason = "the index runs over the grid, which is the length of every array"
)]

use std::array::from_fn;

use crate::model::{GRID, Likelihood, Move, PerRate};

/// Values of P(Broken) that differ by less count as equal. The sum of such differences over a window is still far below
/// the precision of any figure.
const SAME: f64 = 1e-13;

/// The state of a chain's code under each rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainState {
    good: PerRate,
    broken: PerRate,
}

/// The likelihood of a result, relative to that of a pass of a test that always passes.
#[derive(Debug, Clone)]
pub(crate) struct RelativeLikelihood {
    good: PerRate,
    broken: PerRate,
}

impl ChainState {
    /// The state before the first result.
    pub(crate) const START: Self = Self {
        good: [1.0; GRID],
        broken: [0.0; GRID],
    };

    /// The state of a test that always passes, with this P(Broken).
    pub(crate) fn always_passing(broken: &PerRate) -> Self {
        Self {
            good: broken.map(|broken| 1.0 - broken),
            broken: *broken,
        }
    }

    /// Applies a move, then a result. Inlining would make the compiler repeat the choice between moves for each rate.
    #[inline(never)]
    pub(crate) fn update(&mut self, by: &Move, result: &RelativeLikelihood) {
        for k in 0..GRID {
            let (good, broken) = (self.good[k], self.broken[k]);
            // A move does not change the sum of the two.
            let moved = broken * by.keeps[k] + good * by.breaks[k];
            self.good[k] = (good + broken - moved) * result.good[k];
            self.broken[k] = moved * result.broken[k];
        }
    }

    /// Multiplies both likelihoods by the same factor.
    #[inline]
    pub(crate) fn scale(&mut self, factors: &PerRate) {
        for (k, factor) in factors.iter().enumerate() {
            self.good[k] *= factor;
            self.broken[k] *= factor;
        }
    }

    /// Applies the probability that broken code is left so.
    pub(crate) fn leave(&mut self, broken: &PerRate) {
        for (k, factor) in broken.iter().enumerate() {
            self.broken[k] *= factor;
        }
    }

    /// The likelihood of the results, with good or broken code.
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
    pub(crate) fn broke(
        &self,
        before: &Self,
        broke: Option<&PerRate>,
        by: &Move,
        result: &RelativeLikelihood,
    ) -> PerRate {
        from_fn(|k| {
            let moved = match broke {
                None => before.good[k] * by.own[k],
                Some(broke) => broke[k] * (before.good[k] + before.broken[k]) * by.keeps[k],
            };
            moved * result.broken[k] / (self.good[k] + self.broken[k])
        })
    }

    /// Whether P(Broken) equals this value, except for rounding.
    #[inline]
    pub(crate) fn is_at(&self, broken: &PerRate) -> bool {
        (0..GRID).all(|k| {
            let all = self.good[k] + self.broken[k];
            (self.broken[k] - broken[k] * all).abs() <= SAME * all
        })
    }
}

impl RelativeLikelihood {
    /// `scale` is 1 divided by the likelihood of a pass of a test that always passes.
    pub(crate) fn new(likelihood: &Likelihood, scale: &PerRate) -> Self {
        Self {
            good: from_fn(|k| likelihood.good[k] * scale[k]),
            broken: scale.map(|scale| likelihood.broken * scale),
        }
    }
}

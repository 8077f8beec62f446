//! The hidden Markov model: one flake rate a test, a code state a chain, and one observation at a time.
//!
//! A grid of ten rates is filtered side by side, so every quantity is an array over the grid.
#![expect(
    clippy::indexing_slicing,
    reason = "the index runs over the grid, which is the length of every array"
)]

pub(crate) mod always_passing;
pub(crate) mod background;
pub(crate) mod causes;
pub(crate) mod chain_state;
pub(crate) mod filter;
pub(crate) mod scaled_product;

use std::array::from_fn;

/// How many flake rates are tried.
pub(crate) const GRID: usize = 10;

/// One number for each flake rate.
pub(crate) type PerRate = [f64; GRID];

/// The flake rates. The first one is that of a reliable test.
pub(crate) const RATES: PerRate = [2e-5, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.6];

/// The probability of each rate before anything is observed.
pub(crate) const PRIOR: PerRate = {
    let mut prior = [0.06 / 9.0; GRID];
    prior[0] = 0.94;
    prior
};

/// P(Broken) of a stable chain before its first run.
const FIRST_STABLE: f64 = 0.015;
/// P(Broken) of another chain before its first run, what it inherits aside.
const FIRST_OTHER: f64 = 0.02;
/// How much of the stable chain's P(Broken) another chain inherits.
const INHERITED: f64 = 0.7;
/// A breakage and a fix within one revision: the environment drifts.
const DRIFT: (f64, f64) = (0.0003, 0.002);
/// A breakage and a fix by a new revision of the stable branch.
const STABLE: (f64, f64) = (0.001, 0.05);
/// A breakage and a fix by a new revision of another branch.
const OTHER: (f64, f64) = (0.01, 0.2);
/// How readily a running branch takes over a breakage of the stable one.
const CAUGHT: f64 = 0.3;
/// How often a broken test passes all the same.
const BROKEN_PASSES: f64 = 0.002;
/// A retry fails again at least this often: attempts are correlated.
const RETRY_FAILS: f64 = 0.5;
/// A retry fails again at most this often.
const RETRY_FAILS_AT_MOST: f64 = 0.95;
/// Retries beyond this many say nothing more.
const TELLING_RETRIES: u32 = 2;

/// How a test ended in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It passed at once.
    Passed,
    /// It passed after a failed attempt.
    Recovered,
    /// It failed finally, after this many failed attempts.
    Failed(u32),
}

impl Outcome {
    /// Whether any attempt failed.
    pub(crate) const fn had_failure(self) -> bool {
        match self {
            Self::Passed => false,
            Self::Recovered | Self::Failed(_) => true,
        }
    }

    /// Whether it failed finally.
    pub(crate) const fn failed(self) -> bool {
        match self {
            Self::Passed | Self::Recovered => false,
            Self::Failed(_) => true,
        }
    }
}

/// What lies between a chain's last observation and the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The chain begins.
    First,
    /// The same code runs again.
    SameRevision,
    /// New code.
    NewRevision,
}

impl Step {
    /// What lies between a run of this revision and the one before it in its chain, if there is one.
    #[inline]
    pub(crate) fn between(before: Option<usize>, revision: usize) -> Self {
        match before {
            None => Self::First,
            Some(before) if before == revision => Self::SameRevision,
            Some(_) => Self::NewRevision,
        }
    }
}

/// How new code or the same moves P(Broken): what it keeps of it, and what it adds where the code was good.
#[derive(Debug, Clone)]
pub(crate) struct Move {
    /// P(still broken) of broken code.
    pub(crate) keeps: PerRate,
    /// P(broken now) of good code.
    pub(crate) breaks: PerRate,
}

impl Move {
    /// What happens before an observation.
    ///
    /// `stable` is P(Broken) of the stable chain of the same variant for a chain off the stable branch, and none where that
    /// is unknown.
    pub(crate) fn new(step: Step, on_stable: bool, stable: Option<&PerRate>) -> Self {
        let inherited = |k: usize| stable.map_or(0.0, |b| INHERITED * b[k]);
        let constant = |(breaks, fixes): (f64, f64)| Self {
            keeps: [1.0 - fixes; GRID],
            breaks: [breaks; GRID],
        };
        match (step, on_stable) {
            // There is nothing to keep: where a chain begins, its code is as if it had been good.
            (Step::First, true) => constant((FIRST_STABLE, 1.0 - FIRST_STABLE)),
            (Step::First, false) => {
                let first: PerRate = from_fn(|k| FIRST_OTHER + (1.0 - FIRST_OTHER) * inherited(k));
                Self {
                    keeps: first,
                    breaks: first,
                }
            }
            (Step::SameRevision, _) => constant(DRIFT),
            (Step::NewRevision, true) => constant(STABLE),
            (Step::NewRevision, false) => Self {
                keeps: from_fn(|k| 1.0 - OTHER.1 * (1.0 - inherited(k))),
                breaks: from_fn(|k| OTHER.0 + (1.0 - OTHER.0) * CAUGHT * inherited(k)),
            },
        }
    }
}

/// How probable an outcome is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Likelihood {
    /// Of good code, under each rate.
    pub(crate) good: PerRate,
    /// Of broken code.
    pub(crate) broken: f64,
}

impl Likelihood {
    /// That of an outcome in a run with this background.
    pub(crate) fn of(outcome: Outcome, beta: f64) -> Self {
        let first_fails = RATES.map(|rate| 1.0 - (1.0 - rate) * (1.0 - beta));
        let again = first_fails.map(|fails| fails.max(RETRY_FAILS));
        let good = match outcome {
            Outcome::Passed => first_fails.map(|fails| 1.0 - fails),
            Outcome::Recovered => from_fn(|k| first_fails[k] * (1.0 - again[k].min(RETRY_FAILS_AT_MOST))),
            Outcome::Failed(attempts) => match telling_retries(attempts) {
                0 => first_fails,
                1 => from_fn(|k| first_fails[k] * again[k]),
                _ => from_fn(|k| first_fails[k] * again[k] * again[k]),
            },
        };
        let broken = match outcome {
            Outcome::Passed | Outcome::Recovered => BROKEN_PASSES,
            Outcome::Failed(_) => 1.0 - BROKEN_PASSES,
        };
        Self { good, broken }
    }
}

/// The retries among so many failed attempts that say something.
fn telling_retries(attempts: u32) -> u32 {
    attempts.saturating_sub(1).min(TELLING_RETRIES)
}

/// The mean of `values` under the posterior `weights`.
pub(crate) fn mean(weights: &PerRate, values: &PerRate) -> f64 {
    weights
        .iter()
        .zip(values)
        .map(|(weight, value)| weight * value)
        .sum()
}

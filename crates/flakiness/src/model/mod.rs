//! The hidden Markov model: one flake rate per test, one code state per chain, and one observation at a time.
//!
//! The filter runs for ten rates side by side, so every quantity is an array over this grid.
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

/// The number of flake rates.
pub(crate) const GRID: usize = 10;

/// One number for each flake rate.
pub(crate) type PerRate = [f64; GRID];

/// The flake rates. The first is that of a reliable test.
pub(crate) const RATES: PerRate = [2e-5, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.6];

/// The prior probability of each rate.
pub(crate) const PRIOR: PerRate = {
    let mut prior = [0.06 / 9.0; GRID];
    prior[0] = 0.94;
    prior
};

/// P(Broken) of a stable chain before its first run.
const FIRST_STABLE: f64 = 0.015;
/// P(Broken) of another chain before its first run, without what it inherits.
const FIRST_OTHER: f64 = 0.02;
/// The share of the stable chain's P(Broken) that another chain inherits.
const INHERITED: f64 = 0.7;
/// Probabilities of a breakage and of a fix within one revision: the environment drifts.
const DRIFT: (f64, f64) = (0.0003, 0.002);
/// Probabilities of a breakage and of a fix by a new revision of the stable branch.
const STABLE: (f64, f64) = (0.001, 0.05);
/// Probabilities of a breakage and of a fix by a new revision of another branch.
const OTHER: (f64, f64) = (0.01, 0.2);
/// The probability that a running branch takes over a breakage of the stable branch.
const CAUGHT: f64 = 0.3;
/// The probability that a broken test passes nevertheless.
const BROKEN_PASSES: f64 = 0.002;
/// The lower bound for the failure rate of a retry: attempts are correlated.
const RETRY_FAILS: f64 = 0.5;
/// The upper bound for the failure rate of a retry.
const RETRY_FAILS_AT_MOST: f64 = 0.95;
/// Further retries do not change the likelihood.
const TELLING_RETRIES: u32 = 2;

/// The outcome of a test in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It passed at the first attempt.
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

/// The transition between a chain's last observation and the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The first observation of the chain.
    First,
    /// The same code runs again.
    SameRevision,
    /// New code.
    NewRevision,
}

impl Step {
    /// The step between a run of this revision and the previous run of its chain, if there is one.
    #[inline]
    pub(crate) fn between(before: Option<usize>, revision: usize) -> Self {
        match before {
            None => Self::First,
            Some(before) if before == revision => Self::SameRevision,
            Some(_) => Self::NewRevision,
        }
    }
}

/// The transition of P(Broken): the part that is kept, and the part that is added if the code was good.
#[derive(Debug, Clone)]
pub(crate) struct Move {
    /// P(still broken) of broken code.
    pub(crate) keeps: PerRate,
    /// P(broken now) of good code.
    pub(crate) breaks: PerRate,
}

impl Move {
    /// The transition before an observation.
    ///
    /// `stable` is P(Broken) of the stable chain of the same variant, for a chain off the stable branch, and `None` if that
    /// is unknown.
    pub(crate) fn new(step: Step, on_stable: bool, stable: Option<&PerRate>) -> Self {
        let inherited = |k: usize| stable.map_or(0.0, |b| INHERITED * b[k]);
        let constant = |(breaks, fixes): (f64, f64)| Self {
            keeps: [1.0 - fixes; GRID],
            breaks: [breaks; GRID],
        };
        match (step, on_stable) {
            // At the start of a chain nothing is kept: its code counts as good before.
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

/// The likelihood of an outcome.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Likelihood {
    /// With good code, under each rate.
    pub(crate) good: PerRate,
    /// With broken code.
    pub(crate) broken: f64,
}

impl Likelihood {
    /// The likelihood of an outcome in a run with this background.
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

/// The number of retries that count, of this many failed attempts.
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

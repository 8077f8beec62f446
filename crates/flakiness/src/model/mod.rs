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
pub(crate) mod failing_branches;
pub(crate) mod filter;
pub(crate) mod scaled_product;

use std::array::from_fn;

use assay_domain::{observation::Failure, timestamp::Timestamp};

/// The number of flake rates.
pub(crate) const GRID: usize = 10;

/// One number for each flake rate.
pub(crate) type PerRate = [f64; GRID];

/// The flake rates. The first is that of a reliable test.
pub(crate) const RATES: PerRate = [2e-5, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.6];

/// The share of unreliable tests in a project of which nothing else is known.
pub(crate) const USUALLY_UNRELIABLE: f64 = 0.06;
/// The prior probability of each rate in such a project.
pub(crate) const PRIOR: PerRate = prior(USUALLY_UNRELIABLE);

/// The prior probability of each rate, if this share of the project's tests is unreliable.
pub(crate) const fn prior(unreliable: f64) -> PerRate {
    let mut prior = [unreliable / 9.0; GRID];
    prior[0] = 1.0 - unreliable;
    prior
}

/// P(Broken) of a stable chain before its first run.
const FIRST_STABLE: f64 = 0.015;
/// The share of the stable chain's P(Broken) that another chain inherits.
const INHERITED: f64 = 0.7;
/// Probabilities of a breakage and of a fix within one revision that runs again soon.
const SAME_REVISION: (f64, f64) = (0.0003, 0.0005);
/// The same after [`LATER_MS`]: dependencies and services change under a revision that runs every night.
const LATER_RERUN: (f64, f64) = (0.001, 0.001);
/// The time between two runs of a revision from which its dependencies may have changed.
const LATER_MS: i64 = 6 * 3_600_000;
/// Probabilities of a breakage and of a fix by a new revision of the stable branch.
const STABLE: (f64, f64) = (0.001, 0.05);
/// The probability that a new revision of another branch breaks a test, in a project of which nothing else is known.
/// The first revision of a branch breaks a test twice as often.
pub(crate) const BRANCHES_USUALLY_BREAK: f64 = 0.0015;
/// The probability that a new revision of another branch mends a test.
const BRANCHES_MEND: f64 = 0.2;
/// The probability that a revision that breaks a test on one variant breaks it on the next variant.
const SIBLING: f64 = 0.85;
/// The probability that a new stable revision contains the breakage of a branch whose last run failed.
const MERGED: f64 = 0.2;
/// The time after a branch's last run within which a stable revision may contain its changes.
pub(crate) const MERGED_WITHIN_MS: i64 = assay_domain::timestamp::DAY_MS;
/// The probability that a running branch takes over a breakage of the stable branch.
const CAUGHT: f64 = 0.3;
/// The probability that a broken test passes nevertheless.
pub(crate) const BROKEN_PASSES: f64 = 0.0001;
/// The lower bound for the failure rate of a retry: attempts are correlated.
const RETRY_FAILS: f64 = 0.5;
/// The upper bound for the failure rate of a retry.
const RETRY_FAILS_AT_MOST: f64 = 0.95;
/// The number of failed retries from which further ones do not change the likelihood.
const INFORMATIVE_RETRIES: u32 = 2;

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
    /// The outcome of a test with this failure; `None` is a pass.
    pub(crate) const fn of(failure: Option<&Failure>) -> Self {
        match failure {
            None => Self::Passed,
            Some(failure) if failure.recovered => Self::Recovered,
            Some(failure) => Self::Failed(failure.failed_attempts),
        }
    }

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
    /// The same code runs again soon.
    SameRevision,
    /// The same code runs again, and time enough has passed for its dependencies to change.
    LaterRerun,
    /// New code.
    NewRevision,
}

impl Step {
    /// The step between a variant run and the previous one of its chain, if there is one.
    pub(crate) fn between_runs(
        before: Option<(usize, Timestamp)>,
        (revision, at): (usize, Timestamp),
    ) -> Self {
        let step = Self::between(before.map(|(revision, _)| revision), revision);
        let is_later = before.is_some_and(|(_, before)| at.since_ms(before) >= LATER_MS);
        if step == Self::SameRevision && is_later {
            Self::LaterRerun
        } else {
            step
        }
    }

    /// Whether new code runs.
    pub(crate) const fn is_new_code(self) -> bool {
        match self {
            Self::First | Self::NewRevision => true,
            Self::SameRevision | Self::LaterRerun => false,
        }
    }

    /// The step between a run of this revision and the previous run of its chain, whatever the time between them.
    #[inline]
    pub(crate) fn between(before: Option<usize>, revision: usize) -> Self {
        match before {
            None => Self::First,
            Some(before) if before == revision => Self::SameRevision,
            Some(_) => Self::NewRevision,
        }
    }
}

/// The transition of P(Broken) before a result.
#[derive(Debug, Clone)]
pub(crate) struct Move {
    /// P(still broken) of broken code.
    pub(crate) keeps: PerRate,
    /// P(broken now) of good code.
    pub(crate) breaks: PerRate,
    /// The part of `breaks` that this revision causes itself.
    pub(crate) own: PerRate,
}

impl Move {
    /// The transition before an observation.
    ///
    /// `stable` is P(Broken) of the stable chain of the same variant, for a chain off the stable branch, and `None` if
    /// that is unknown. `breaks` is the probability that this revision breaks the test: [`break_probability`], unless
    /// another variant or branch gives a better one.
    pub(crate) fn new(step: Step, on_stable: bool, stable: Option<&PerRate>, breaks: &PerRate) -> Self {
        let inherited = |k: usize| stable.map_or(0.0, |b| INHERITED * b[k]);
        let constant = |(breaks, fixes): (f64, f64)| Self {
            keeps: [1.0 - fixes; GRID],
            breaks: [breaks; GRID],
            own: [0.0; GRID],
        };
        match (step, on_stable) {
            // Before a chain's first result its code counts as good, so only `breaks` matters.
            (Step::First, true) => constant((FIRST_STABLE, 1.0 - FIRST_STABLE)),
            (Step::First, false) => {
                let first: PerRate = from_fn(|k| breaks[k] + (1.0 - breaks[k]) * inherited(k));
                Self {
                    keeps: first,
                    breaks: first,
                    own: from_fn(|k| breaks[k] * (1.0 - inherited(k))),
                }
            }
            (Step::SameRevision, _) => constant(SAME_REVISION),
            (Step::LaterRerun, _) => constant(LATER_RERUN),
            (Step::NewRevision, true) => Self {
                keeps: [1.0 - STABLE.1; GRID],
                breaks: *breaks,
                own: *breaks,
            },
            (Step::NewRevision, false) => Self {
                keeps: from_fn(|k| 1.0 - BRANCHES_MEND * (1.0 - inherited(k))),
                breaks: from_fn(|k| breaks[k] + (1.0 - breaks[k]) * CAUGHT * inherited(k)),
                own: from_fn(|k| breaks[k] * (1.0 - CAUGHT * inherited(k))),
            },
        }
    }

    /// The transition over this many revisions, of which the test ran on the last one only.
    pub(crate) fn over(self, revisions: u32) -> Self {
        let steps = f64::from(revisions);
        let (mut keeps, mut breaks, mut own) = (self.keeps, self.breaks, self.own);
        for k in 0..GRID {
            // Two states: P(Broken) approaches `limit` by the factor `keeps - breaks` with each revision.
            let limit = self.breaks[k] / (1.0 - self.keeps[k] + self.breaks[k]);
            let distance = (self.keeps[k] - self.breaks[k]).powf(steps);
            keeps[k] = limit + (1.0 - limit) * distance;
            breaks[k] = limit * (1.0 - distance);
            own[k] *= breaks[k] / self.breaks[k];
        }
        Self { keeps, breaks, own }
    }
}

/// The probability that a revision breaks a test, without results of another variant or branch.
/// `on_branches` is this probability for new revisions of other branches than the stable one.
pub(crate) const fn break_probability(step: Step, on_stable: bool, on_branches: f64) -> f64 {
    match (step, on_stable) {
        (Step::First, false) => 2.0 * on_branches,
        (_, true) => STABLE.0,
        (_, false) => on_branches,
    }
}

/// The probability that a revision breaks a test on a variant, if it broke the test with probability `broke` on the
/// variant before.
pub(crate) fn breaks_like_sibling(on_stable: bool, on_branches: f64, broke: &PerRate) -> PerRate {
    let alone = break_probability(Step::NewRevision, on_stable, on_branches);
    broke.map(|broke| break_beside_sibling(alone, broke))
}

/// The probability that a revision breaks a test on a variant, if it broke the test with probability `broke` on the
/// variant before, and breaks it with probability `alone` otherwise.
const fn break_beside_sibling(alone: f64, broke: f64) -> f64 {
    SIBLING * broke + (1.0 - SIBLING) * alone * (1.0 - broke)
}

/// The probability that a stable revision breaks a test that failed in the last `streak` runs of another branch.
///
/// The head of a pull request and the merge that contains it are one change, though reports do not name the link.
pub(crate) fn breaks_like_branch(streak: u32, on_branches: f64) -> PerRate {
    let alone = break_probability(Step::NewRevision, true, on_branches);
    let of_branch = break_probability(Step::NewRevision, false, on_branches);
    RATES.map(|rate| {
        let flakes = (0..streak).fold(1.0, |flakes, _| flakes * rate);
        alone + (1.0 - alone) * MERGED * of_branch / (of_branch + flakes)
    })
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
    /// The likelihood of an outcome in a run with this background. `broken_passes` is the probability that a broken
    /// test passes.
    pub(crate) fn of(outcome: Outcome, beta: f64, broken_passes: f64) -> Self {
        let first_fails = RATES.map(|rate| 1.0 - (1.0 - rate) * (1.0 - beta));
        let again = first_fails.map(|fails| fails.max(RETRY_FAILS));
        let good = match outcome {
            Outcome::Passed => first_fails.map(|fails| 1.0 - fails),
            Outcome::Recovered => from_fn(|k| first_fails[k] * (1.0 - again[k].min(RETRY_FAILS_AT_MOST))),
            Outcome::Failed(attempts) => match informative_retries(attempts) {
                0 => first_fails,
                1 => from_fn(|k| first_fails[k] * again[k]),
                _ => from_fn(|k| first_fails[k] * again[k] * again[k]),
            },
        };
        let broken = match outcome {
            Outcome::Passed | Outcome::Recovered => broken_passes,
            Outcome::Failed(_) => 1.0 - broken_passes,
        };
        Self { good, broken }
    }
}

/// The number of retries that count, of this many failed attempts.
fn informative_retries(attempts: u32) -> u32 {
    attempts.saturating_sub(1).min(INFORMATIVE_RETRIES)
}

/// The mean of `values` under the posterior `weights`.
pub(crate) fn mean(weights: &PerRate, values: &PerRate) -> f64 {
    weights
        .iter()
        .zip(values)
        .map(|(weight, value)| weight * value)
        .sum()
}

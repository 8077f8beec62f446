//! The hidden Markov model: one hypothesis about each test, one code state per chain, and one observation at a time.
//!
//! The filter runs for all hypotheses side by side, so every quantity is an array over this grid.
#![expect(
    clippy::indexing_slicing,
    reason = "the index runs over the grid, which is the length of every array"
)]

pub(crate) mod always_passing;
pub(crate) mod background;
pub(crate) mod calendar;
pub(crate) mod causes;
pub(crate) mod chain_state;
pub(crate) mod crowd;
pub(crate) mod failing_branches;
pub(crate) mod filter;
pub(crate) mod project_rates;
pub(crate) mod scaled_product;

use std::array::from_fn;

use assay_domain::{
    observation::{Failure, Repetition},
    timestamp::DAY_MS,
};

/// The number of hypotheses about a test: eleven flake rates of tests that changes rarely break, and two of a reliable test
/// that changes break often.
pub(crate) const GRID: usize = 13;

/// One number for each hypothesis.
pub(crate) type PerRate = [f64; GRID];

/// The flake rates. The first one and those of [`TOUCHY`] are those of a reliable test.
pub(crate) const RATES: PerRate = [
    RELIABLE, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 0.85, RELIABLE, RELIABLE,
];
/// The flake rate of a reliable test.
pub(crate) const RELIABLE: f64 = 2e-5;
/// The hypotheses of a reliable test that changes break often, such as a check that a schema is up to date: each with the
/// probability that a branch breaks it at its first revision, if the project's rate is not higher.
const TOUCHY: [(usize, f64); 2] = [(GRID - 2, 0.2), (GRID - 1, 0.05)];
/// The hypotheses of a reliable test.
pub(crate) const RELIABLE_TESTS: [usize; 3] = [0, TOUCHY[0].0, TOUCHY[1].0];
/// The share of the first kind among the reliable tests, for a verdict. The causes know guards only.
const TOUCHY_SHARE: f64 = 0.05;
/// The rate at which all guards together break, as a share of the project's rate.
const GUARD_BREAKAGES: f64 = 0.5;
/// The factor for each later revision: the revisions of a branch are one change, and the later ones seldom break what the
/// first one did not.
const LATER_BREAKS_TOUCHY: f64 = 0.1;
/// Factor by which a new revision of the stable branch breaks such a test more often than others, and the limit. Both count
/// for the hypothesis that every branch breaks it.
const STABLE_BREAKS_TOUCHY: (f64, f64) = (150.0, 0.5);
/// The weights of the ten rates of an unreliable test. Few tests fail in every second run.
const WEIGHTS: [f64; 10] = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.2, 0.0];
/// The same on one of several variants: some machines fail a test in most runs.
const WEIGHTS_ON_VARIANT: [f64; 10] = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.15, 0.05];

/// The prior probability of each hypothesis, if this share of the project's tests is unreliable, and a revision of a branch
/// breaks a test with probability `on_branches`.
pub(crate) fn prior(unreliable: f64, on_branches: f64) -> PerRate {
    with_weights(unreliable, on_branches, &WEIGHTS)
}

/// The same of a test on one of several variants.
pub(crate) fn prior_on_variant(unreliable: f64, on_branches: f64) -> PerRate {
    with_weights(unreliable, on_branches, &WEIGHTS_ON_VARIANT)
}

fn with_weights(unreliable: f64, on_branches: f64, weights: &[f64; 10]) -> PerRate {
    let all: f64 = weights.iter().sum();
    let mut prior = [0.0; GRID];
    for (prior, weight) in prior.iter_mut().skip(1).zip(weights) {
        *prior = unreliable * weight / all;
    }
    prior[0] = (1.0 - unreliable) * (1.0 - TOUCHY_SHARE);
    prior[TOUCHY[0].0] = (1.0 - unreliable) * TOUCHY_SHARE;
    with_guards(prior, on_branches)
}

/// Gives the guards their part of the reliable tests: together they break at a share of the project's rate.
pub(crate) fn with_guards(mut prior: PerRate, on_branches: f64) -> PerRate {
    let (k, first) = TOUCHY[1];
    prior[k] = prior[0] * GUARD_BREAKAGES * (on_branches / first).min(1.0);
    prior[0] -= prior[k];
    prior
}

/// The value of guards and that of all others.
const fn beside_guard(usual: f64, guard: f64) -> PerRate {
    let mut all = [usual; GRID];
    all[TOUCHY[1].0] = guard;
    all
}

/// The probability that the test is unreliable, given the posterior of each hypothesis.
pub(crate) fn unreliable(weights: &PerRate) -> f64 {
    1.0 - reliable(weights)
}

/// The probability that it is reliable.
pub(crate) fn reliable(weights: &PerRate) -> f64 {
    RELIABLE_TESTS.iter().map(|k| weights[*k]).sum()
}

/// The expected flake rate of the test, given the posterior of each hypothesis.
pub(crate) fn flake_rate(weights: &PerRate) -> f64 {
    mean(weights, &RATES)
}

/// The same if the test is unreliable.
pub(crate) fn unreliable_rate(weights: &PerRate) -> f64 {
    rate_if_flaky(unreliable(weights), flake_rate(weights))
}

/// The expected flake rate of a test that is flaky, from the score and the rate of its verdict.
pub fn rate_if_flaky(flake_score: f64, flake_rate: f64) -> f64 {
    let of_flaky = flake_rate - (1.0 - flake_score) * RELIABLE;
    of_flaky / flake_score.max(f64::MIN_POSITIVE)
}

/// P(Broken) of a stable chain before its first run.
const FIRST_STABLE: f64 = 0.015;
/// The share of the stable chain's P(Broken) that another chain inherits.
const INHERITED: f64 = 0.7;
/// The probability that a fix follows within one revision.
const SAME_REVISION_MENDS: f64 = 0.002;
/// The probability that the world breaks a test within one revision: between two runs at the same time, and a day later.
/// Dependencies and services change under a revision that runs every night.
const SAME_REVISION_BREAKS: (f64, f64) = (0.0003, 0.0015);
/// The probability that a new revision of another branch mends a test: the next push mostly mends a guard.
const BRANCHES_MEND: PerRate = beside_guard(0.2, 0.8);
/// The factor of P(Broken) of a guard that fails in the last run of a branch that no longer runs. A broken guard would
/// mostly have been mended.
pub(crate) const LEFT_BROKEN: PerRate = beside_guard(1.0, 0.3);
/// The probability that a revision that breaks a test on one variant breaks it on the next variant.
const SIBLING: f64 = 0.85;
/// The probability that a new stable revision contains the breakage of a branch whose last run failed.
const MERGED: f64 = 0.2;
/// The time after a branch's last run within which a stable revision may contain its changes.
pub(crate) const MERGED_WITHIN_MS: i64 = assay_domain::timestamp::DAY_MS;
/// The probability that a running branch takes over a breakage of the stable branch.
const CAUGHT: f64 = 0.3;
/// The probability that a broken test passes nevertheless.
pub(crate) const BROKEN_PASSES: f64 = 0.002;
/// The lower bound for the failure rate of a retry: attempts are correlated.
pub(crate) const RETRY_FAILS: f64 = 0.5;
/// The upper bound for the failure rate of a retry.
const RETRY_FAILS_AT_MOST: f64 = 0.95;
/// The number of passed executions of a run from which further ones do not change the likelihood.
const INFORMATIVE_EXECUTIONS: u32 = 1_000;
/// The further failures in a run after which it is a row: chance seldom makes four failures.
const SINGLE_FAILURES: u32 = 2;
/// The probability that a row of failures of a flaky test goes on, measured in docs/reruns.md: .42 of all failures have a
/// next one, and .52 are in rows.
const ROW_GOES_ON: f64 = 0.81;
/// The number of further failures in a run from which more of them do not change the likelihood.
const INFORMATIVE_FAILURES: u32 = 50;

/// The main constants of the model by name.
pub(crate) fn constants() -> Vec<(&'static str, Vec<f64>)> {
    vec![
        ("rates", RATES.to_vec()),
        ("weights", WEIGHTS.to_vec()),
        ("weightsOnVariant", WEIGHTS_ON_VARIANT.to_vec()),
        ("touchyShare", vec![TOUCHY_SHARE]),
        ("guardBreakages", vec![GUARD_BREAKAGES]),
        ("firstStable", vec![FIRST_STABLE]),
        ("inherited", vec![INHERITED]),
        ("sameRevisionMends", vec![SAME_REVISION_MENDS]),
        (
            "sameRevisionBreaks",
            vec![SAME_REVISION_BREAKS.0, SAME_REVISION_BREAKS.1],
        ),
        ("branchesMend", vec![BRANCHES_MEND[0], BRANCHES_MEND[TOUCHY[1].0]]),
        ("leftBroken", vec![LEFT_BROKEN[TOUCHY[1].0]]),
        ("sibling", vec![SIBLING]),
        ("merged", vec![MERGED]),
        ("caught", vec![CAUGHT]),
        ("brokenPasses", vec![BROKEN_PASSES]),
        ("retryFails", vec![RETRY_FAILS, RETRY_FAILS_AT_MOST]),
        ("rowGoesOn", vec![ROW_GOES_ON]),
    ]
}

/// The outcome of a test in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It passed at the first attempt of its only execution.
    Passed,
    /// It passed at the first attempt of each of this number of executions.
    PassedRepeatedly(u32),
    /// It passed in this number of executions, in one of them after a failed attempt.
    Recovered(u32),
    /// It failed finally.
    Failed(FailedExecutions),
}

/// The executions of a test that failed finally in at least one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FailedExecutions {
    /// The largest number of failed attempts of one execution.
    pub(crate) attempts: u32,
    /// The executions that failed.
    pub(crate) failed: u32,
    /// All executions.
    pub(crate) all: u32,
}

impl Outcome {
    /// The outcome of a test with this failure and these executions. No failure is a pass, and no repetition is a single
    /// execution.
    pub(crate) fn of(failure: Option<&Failure>, repetition: Option<Repetition>) -> Self {
        let executions = repetition.map_or(1, |repetition| repetition.executions.max(1));
        match failure {
            None if executions == 1 => Self::Passed,
            None => Self::PassedRepeatedly(executions),
            Some(failure) if failure.recovered => Self::Recovered(executions),
            Some(failure) => {
                let failed = repetition.map_or(1, |repetition| repetition.failed);
                Self::Failed(FailedExecutions {
                    attempts: failure.failed_attempts,
                    failed: failed.clamp(1, executions),
                    all: executions,
                })
            }
        }
    }

    /// The outcome without executions that passed beside failed ones: they may be of other tests that share the name.
    pub(crate) const fn without_passes(self) -> Self {
        match self {
            Self::Failed(executions) => Self::Failed(FailedExecutions {
                all: executions.failed,
                ..executions
            }),
            Self::Passed | Self::PassedRepeatedly(_) | Self::Recovered(_) => self,
        }
    }

    /// Whether it failed in a row without a pass. What a change broke does so, so the row is no evidence of a flaky test.
    pub(crate) fn is_row(self) -> bool {
        match self {
            Self::Passed | Self::PassedRepeatedly(_) | Self::Recovered(_) => false,
            Self::Failed(executions) => {
                executions.failed == executions.all && executions.further_failures() > SINGLE_FAILURES
            }
        }
    }

    /// Whether executions of one run contradict each other.
    pub(crate) const fn is_mixed(self) -> bool {
        match self {
            Self::Passed | Self::PassedRepeatedly(_) | Self::Recovered(_) => false,
            Self::Failed(executions) => executions.failed < executions.all,
        }
    }

    /// Whether any attempt failed.
    pub(crate) const fn had_failure(self) -> bool {
        match self {
            Self::Passed | Self::PassedRepeatedly(_) => false,
            Self::Recovered(_) | Self::Failed(_) => true,
        }
    }

    /// Whether it failed finally.
    pub(crate) const fn failed(self) -> bool {
        match self {
            Self::Passed | Self::PassedRepeatedly(_) | Self::Recovered(_) => false,
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
    /// The step between a run of this revision and the previous run of its chain.
    #[inline]
    pub(crate) fn between(before: Option<usize>, revision: usize) -> Self {
        match before {
            None => Self::First,
            Some(before) if before == revision => Self::SameRevision,
            Some(_) => Self::NewRevision,
        }
    }

    /// Whether new code runs.
    pub(crate) const fn is_new_code(self) -> bool {
        match self {
            Self::First | Self::NewRevision => true,
            Self::SameRevision => false,
        }
    }
}

/// The probability that the world breaks a test within one revision, between two runs so far apart.
#[expect(
    clippy::as_conversions,
    reason = "the milliseconds of a window are exact as f64"
)]
pub(crate) fn same_revision_breaks(apart_ms: i64) -> f64 {
    let days = (apart_ms as f64 / DAY_MS as f64).clamp(0.0, 1.0);
    SAME_REVISION_BREAKS.0 + (SAME_REVISION_BREAKS.1 - SAME_REVISION_BREAKS.0) * days
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
    /// The transition between two observations of one revision so far apart.
    pub(crate) fn rerun(apart_ms: i64) -> Self {
        Self {
            keeps: [1.0 - SAME_REVISION_MENDS; GRID],
            breaks: [same_revision_breaks(apart_ms); GRID],
            own: [0.0; GRID],
        }
    }

    /// The transition before the first observation of a stable chain. Its code counts as good before, so only `breaks`
    /// matters.
    pub(crate) const fn first_on_stable() -> Self {
        Self {
            keeps: [FIRST_STABLE; GRID],
            breaks: [FIRST_STABLE; GRID],
            own: [0.0; GRID],
        }
    }

    /// The transition before the first observation of a new revision of a stable chain.
    pub(crate) const fn new_on_stable(breaks: &PerRate, mends: f64) -> Self {
        Self {
            keeps: [1.0 - mends; GRID],
            breaks: *breaks,
            own: *breaks,
        }
    }

    /// The transition before the first observation of another chain. `stable` is P(Broken) of the stable chain of the
    /// same variant, and `None` if that is unknown.
    pub(crate) fn first_on_branch(stable: Option<&PerRate>, breaks: &PerRate) -> Self {
        let inherited = |k: usize| stable.map_or(0.0, |b| INHERITED * b[k]);
        let first: PerRate = from_fn(|k| breaks[k] + (1.0 - breaks[k]) * inherited(k));
        Self {
            keeps: first,
            breaks: first,
            own: from_fn(|k| breaks[k] * (1.0 - inherited(k))),
        }
    }

    /// The transition before the first observation of a new revision of another chain.
    pub(crate) fn new_on_branch(stable: Option<&PerRate>, breaks: &PerRate) -> Self {
        let inherited = |k: usize| stable.map_or(0.0, |b| INHERITED * b[k]);
        Self {
            keeps: from_fn(|k| 1.0 - BRANCHES_MEND[k] * (1.0 - inherited(k))),
            breaks: from_fn(|k| breaks[k] + (1.0 - breaks[k]) * CAUGHT * inherited(k)),
            own: from_fn(|k| breaks[k] * (1.0 - CAUGHT * inherited(k))),
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

/// The probability that a revision of a stable chain breaks a test, if it breaks most tests with this probability.
pub(crate) fn stable_breaks(usual: f64) -> PerRate {
    let mut breaks = [usual; GRID];
    for (k, first) in TOUCHY {
        breaks[k] = first * (STABLE_BREAKS_TOUCHY.0 * usual).min(STABLE_BREAKS_TOUCHY.1);
    }
    breaks
}

/// The probability that a new revision of another branch breaks a test, if it breaks most tests with this probability.
pub(crate) fn branch_breaks(usual: f64) -> PerRate {
    let mut breaks = [usual; GRID];
    for (k, first) in TOUCHY {
        breaks[k] = usual.max(LATER_BREAKS_TOUCHY * first);
    }
    breaks
}

/// The same for the first revision of a branch, given that for a later one. `share` is the part of all breakages that such
/// a branch can have.
pub(crate) fn first_breaks(later: &PerRate, share: f64) -> PerRate {
    raised_at_first(later.map(|later| (2.0 * later).min(0.5)), share)
}

/// These rates, or those at which a branch breaks touchy tests at its first revision.
pub(crate) fn raised_at_first(mut rates: PerRate, share: f64) -> PerRate {
    for (k, first) in TOUCHY {
        rates[k] = rates[k].max(share * first);
    }
    rates
}

/// The probability that a revision breaks a test on a variant, if it broke the test with probability `broke` on the
/// variant before, and breaks it with probability `alone` otherwise.
pub(crate) fn breaks_like_sibling(alone: &PerRate, broke: &PerRate) -> PerRate {
    from_fn(|k| SIBLING * broke[k] + (1.0 - SIBLING) * alone[k] * (1.0 - broke[k]))
}

/// The probability that a stable revision breaks a test that failed in the last `streak` runs of another branch.
///
/// The head of a pull request and the merge that contains it are one change, though reports do not name the link.
pub(crate) fn breaks_like_branch(streak: u32, alone: &PerRate, of_branch: &PerRate) -> PerRate {
    from_fn(|k| {
        let flakes = (0..streak).fold(1.0, |flakes, _| flakes * RATES[k]);
        alone[k] + (1.0 - alone[k]) * MERGED * of_branch[k] / (of_branch[k] + flakes)
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
    /// The likelihood of an outcome in a run with this background.
    pub(crate) fn of(outcome: Outcome, beta: f64) -> Self {
        Self::with_rates(outcome, &RATES, &[beta; GRID])
    }

    /// The likelihood of an outcome with these flake rates, each in a run with its background.
    pub(crate) fn with_rates(outcome: Outcome, rates: &PerRate, backgrounds: &PerRate) -> Self {
        let first_fails: PerRate = from_fn(|k| 1.0 - (1.0 - rates[k]) * (1.0 - backgrounds[k]));
        let again = first_fails.map(|fails| fails.max(RETRY_FAILS));
        let good = match outcome {
            Outcome::Passed => first_fails.map(|fails| 1.0 - fails),
            Outcome::PassedRepeatedly(executions) => {
                from_fn(|k| (1.0 - first_fails[k]).powi(informative(executions)))
            }
            Outcome::Recovered(executions) => from_fn(|k| {
                let passes = (1.0 - first_fails[k]).powi(informative(executions - 1));
                first_fails[k] * (1.0 - again[k].min(RETRY_FAILS_AT_MOST)) * passes
            }),
            Outcome::Failed(executions) => {
                let passed = informative(executions.all - executions.failed);
                let further = executions.further_failures();
                let failed = from_fn(|k| first_fails[k] * fail_again(again[k], further));
                match passed {
                    0 => failed,
                    passed => from_fn(|k| failed[k] * (1.0 - first_fails[k]).powi(passed)),
                }
            }
        };
        // Broken code fails in every execution.
        let broken = if outcome.failed() && !outcome.is_mixed() {
            1.0 - BROKEN_PASSES
        } else {
            BROKEN_PASSES
        };
        Self { good, broken }
    }
}

impl FailedExecutions {
    /// The failures besides the first one: of retries and of other executions.
    fn further_failures(self) -> u32 {
        let retries = self.attempts.saturating_sub(1);
        retries.saturating_add(self.failed - 1)
    }
}

/// The probability that a test that failed on good code fails this many times more in its run, without a pass. A retry
/// fails with `again`, and those of a row at least as often as a row goes on.
fn fail_again(again: f64, further: u32) -> f64 {
    let further = further.min(INFORMATIVE_FAILURES);
    let single = further.min(SINGLE_FAILURES);
    let power = |base: f64, exponent: u32| (0..exponent).fold(1.0, |product, _| product * base);
    power(again, single) * power(again.max(ROW_GOES_ON), further - single)
}

/// The number of passes that count, of this many executions.
fn informative(executions: u32) -> i32 {
    i32::try_from(executions.min(INFORMATIVE_EXECUTIONS)).unwrap_or(i32::MAX)
}

/// The mean of `values` under the posterior `weights`.
pub(crate) fn mean(weights: &PerRate, values: &PerRate) -> f64 {
    weights
        .iter()
        .zip(values)
        .map(|(weight, value)| weight * value)
        .sum()
}

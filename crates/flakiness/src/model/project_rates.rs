//! The rates of a project: how many of its tests are unreliable and how often a branch breaks a test, which its history
//! teaches, and how often the stable branch breaks and mends one, which depends on the time between its revisions.

use std::collections::BTreeMap;

use assay_domain::{test::TestOrdinal, timestamp::DAY_MS};

use crate::{
    numbers::at,
    timeline::{Entry, Timeline},
};

/// The share of unreliable tests in a project of which nothing else is known.
pub(crate) const USUALLY_UNRELIABLE: f64 = 0.06;
/// The weight of this share, in tests. In a small suite, one bad night more or less would change many verdicts.
const USUAL_TESTS: f64 = 500.0;
/// The number of unreliable tests for each recurring test: rare flakes do not fail three times in a fortnight.
const PER_RECURRING: f64 = 1.25;
/// The bounds for the share of unreliable tests. In a window of few runs, few tests recur in any project. Above the upper
/// bound, most recurring tests are those that changes break.
const UNRELIABLE: (f64, f64) = (0.03, 0.15);
/// The probability that a new revision of another branch breaks a test, in a project of which nothing else is known.
pub(crate) const BRANCHES_USUALLY_BREAK: f64 = 0.0015;
/// The most tests that such a revision breaks, whatever the size of the suite.
const USUALLY_BROKEN_TESTS: f64 = 0.4;
/// The weight of this rate, in runs of new revisions.
const USUAL_RUNS: f64 = 20.0;
/// The weight, in broken tests, of the assumption that a revision breaks one test at a time.
const USUALLY_ALONE: f64 = 2.0;
/// The stable branch breaks a test at this rate for each day since the revision before.
const STABLE_BREAKS_A_DAY: f64 = 0.005;
/// The bounds of this rate for one revision.
const STABLE_BREAKS: (f64, f64) = (0.0005, 0.01);
/// The stable branch mends a test at this rate for each day since the revision before.
const STABLE_MENDS_A_DAY: f64 = 0.2;
/// The bounds of this rate for one revision.
const STABLE_MENDS: (f64, f64) = (0.05, 0.3);

/// The rates of a project.
#[derive(Debug)]
pub(crate) struct ProjectRates {
    /// The tests that ran in the window.
    pub(crate) tests: u32,
    /// The share of unreliable tests.
    pub(crate) unreliable: f64,
    /// The probability that a new revision off the stable branch breaks a test.
    pub(crate) branches_break: f64,
    /// The share of the tests that such revisions broke which failed without another test.
    pub(crate) broken_alone: f64,
    /// The probability that the revision at a position of a stable chain breaks a test, by position.
    pub(crate) stable_breaks: Vec<f64>,
    /// The probability that it mends a breakage, by position.
    pub(crate) stable_mends: Vec<f64>,
}

impl ProjectRates {
    /// Learns the rates, given which runs are mass failures and the number of recurring tests.
    pub(crate) fn learn(timeline: &Timeline<'_>, mass_failure: &[bool], recurring: u32) -> Self {
        let tests = timeline.count_tests();
        let unreliable = USUAL_TESTS * USUALLY_UNRELIABLE + PER_RECURRING * f64::from(recurring);
        let (stable_breaks, stable_mends) = timeline.entries.iter().map(stable_rates).unzip();
        let (branches_break, broken_alone) = of_branches(timeline, mass_failure);
        Self {
            tests,
            unreliable: (unreliable / (USUAL_TESTS + f64::from(tests))).clamp(UNRELIABLE.0, UNRELIABLE.1),
            branches_break,
            broken_alone,
            stable_breaks,
            stable_mends,
        }
    }
}

/// How often the revision of a run breaks a test, and how often it mends one, if it is a stable one. The longer the time
/// since the revision before, the more changes a revision contains.
fn stable_rates(entry: &Entry<'_>) -> (f64, f64) {
    let days = days(entry.since_revision_ms);
    let breaks = (STABLE_BREAKS_A_DAY * days).clamp(STABLE_BREAKS.0, STABLE_BREAKS.1);
    let mends = (1.0 - (-STABLE_MENDS_A_DAY * days).exp()).clamp(STABLE_MENDS.0, STABLE_MENDS.1);
    (breaks, mends)
}

#[expect(
    clippy::as_conversions,
    reason = "the milliseconds of a window are exact as f64"
)]
fn days(milliseconds: i64) -> f64 {
    milliseconds.max(0) as f64 / DAY_MS as f64
}

/// The branches on which a test failed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum FailedOn<'h> {
    Nothing,
    OneBranch {
        branch: Option<&'h str>,
        /// Whether it failed there again, or passed at a later revision.
        is_confirmed: bool,
        /// Whether no other test failed in these runs.
        is_alone: bool,
    },
    /// On several branches or the stable one, or it passed on the same code: no sign of a branch that broke it.
    More,
}

/// The probability that a new revision off the stable branch breaks a test, where a suite of this size teaches nothing.
pub(crate) fn branches_usually_break(tests: u32) -> f64 {
    BRANCHES_USUALLY_BREAK.min(USUALLY_BROKEN_TESTS / f64::from(tests.max(1)))
}

/// The probability that a new revision off the stable branch breaks a test, and the share of the broken tests that failed
/// without another one.
///
/// A test that failed on a single branch, and nowhere else, was probably broken by it. A test that failed on several
/// branches is probably flaky, or was broken on the stable branch. A failure after which the test did not run again on
/// its branch is censored: it counts neither as a breakage nor as a result without one.
fn of_branches(timeline: &Timeline<'_>, mass_failure: &[bool]) -> (f64, f64) {
    let tests = timeline.count_tests();
    let mut failed_on = vec![FailedOn::Nothing; timeline.words * at(u64::BITS)];
    let mut results = 0.0;
    for chain in timeline.chains.iter().filter(|chain| !chain.queue) {
        // The tests whose last result failed, each with the revision.
        let mut red: BTreeMap<TestOrdinal, usize> = BTreeMap::new();
        for position in chain.positions.clone() {
            let entry = timeline.entries.get(position);
            let mass_failure = mass_failure.get(position).copied().unwrap_or(false);
            let Some(entry) = entry.filter(|_| !mass_failure) else {
                continue;
            };
            if !chain.stable && entry.step.is_new_code() {
                results += f64::from(timeline.count_seen(entry.observed));
            }
            red.retain(|test, revision| {
                let passed = timeline.is_seen(entry.observed, *test)
                    && entry.failure(*test).is_none_or(|failure| failure.recovered);
                if passed && let Some(failed_on) = failed_on.get_mut(at(*test)) {
                    failed_on.passed(entry.revision == *revision);
                }
                !passed
            });
            for failure in &*entry.failures {
                let Some(failed_on) = failed_on.get_mut(at(failure.test)) else {
                    continue;
                };
                if chain.stable || failure.recovered {
                    *failed_on = FailedOn::More;
                } else {
                    let is_alone = entry.failures.len() == 1;
                    failed_on.failed(chain.branch, failure.failed_attempts > 1, is_alone);
                    red.entry(failure.test).or_insert(entry.revision);
                }
            }
        }
    }
    let (mut confirmed, mut alone, mut censored) = (0_u32, 0_u32, 0_u32);
    for failed_on in failed_on {
        if let FailedOn::OneBranch {
            is_confirmed,
            is_alone,
            ..
        } = failed_on
        {
            confirmed += u32::from(is_confirmed);
            alone += u32::from(is_confirmed && is_alone);
            censored += u32::from(!is_confirmed);
        }
    }
    let usual = USUAL_RUNS * f64::from(tests);
    let known = results - f64::from(censored);
    (
        (branches_usually_break(tests) * usual + f64::from(confirmed)) / (usual + known),
        (USUALLY_ALONE + f64::from(alone)) / (USUALLY_ALONE + f64::from(confirmed)),
    )
}

impl<'h> FailedOn<'h> {
    /// Adds a failure on a branch: whether it was repeated in its run, and whether no other test failed there.
    fn failed(&mut self, on: Option<&'h str>, again: bool, alone: bool) {
        *self = match *self {
            Self::Nothing => Self::OneBranch {
                branch: on,
                is_confirmed: again,
                is_alone: alone,
            },
            Self::OneBranch { branch, is_alone, .. } if branch == on => Self::OneBranch {
                branch,
                is_confirmed: true,
                is_alone: is_alone && alone,
            },
            Self::OneBranch { .. } | Self::More => Self::More,
        };
    }

    /// Adds a pass after a failure, on the same revision or on a later one, which mended it.
    fn passed(&mut self, same_revision: bool) {
        match self {
            Self::OneBranch { .. } if same_revision => *self = Self::More,
            Self::OneBranch { is_confirmed, .. } => *is_confirmed = true,
            Self::Nothing | Self::More => {}
        }
    }
}

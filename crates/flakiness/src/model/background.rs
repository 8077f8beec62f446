//! Pass 1: the probability that a test failed in a run because many tests failed together.

use std::collections::{BTreeSet, VecDeque};

use assay_domain::test::TestOrdinal;

use crate::{
    config::MASS_FAILURE,
    model::{BRANCHES_USUALLY_BREAK, USUALLY_UNRELIABLE},
    numbers::{at, count},
    timeline::{Entry, Lane, Timeline},
};

/// A failure of a longer streak is not fresh: it is no sign of a bad run.
const FRESH: u8 = 3;
/// The number of earlier runs from which the usual number of fresh failures is computed.
const USUAL_RUNS: usize = 20;
/// Up to this number, fresh failures are no excess, even if usually there are none.
const NEVER_MANY: u32 = 3;
/// The upper bound of the background.
const AT_MOST: f64 = 0.95;
/// A test with this many failing streaks outside large crowds is recurring: it recovered in between.
const RECURRING: u8 = 3;
/// The background from which a run is a large crowd, whose failures are more probably the run's own than not.
const LARGE_CROWD: f64 = 0.5;
/// The tests that a window needs before shares and rates are learned from it.
const ENOUGH_TESTS: u32 = 100;
/// The number of unreliable tests for each recurring test: rare flakes do not fail three times in a fortnight.
const PER_RECURRING: f64 = 1.25;
/// The weight of the usual rate of breaking on branches, in results on new revisions.
const USUAL_RESULTS: f64 = 5_000.0;
/// The bounds for the share of unreliable tests. In a window of few runs, few tests recur in any project.
const UNRELIABLE: (f64, f64) = (0.03, 0.5);
/// The number of excess failures at which the background is an eighth, whatever the size of the suite.
const HALFWAY: f64 = 10.0;

/// The background of every position: the probability that a good, reliable test failed there because of the run.
#[derive(Debug)]
pub(crate) struct Background {
    /// By position.
    pub(crate) beta: Vec<f64>,
    /// Whether the variant run at the position is a mass failure, which counts in no incident and no rate; by position.
    pub(crate) mass_failure: Vec<bool>,
    /// The runs with such a variant run, newest first.
    pub(crate) mass_failure_runs: Vec<usize>,
    /// The share of unreliable tests in this project.
    pub(crate) unreliable: f64,
    /// The probability that a new revision off the stable branch breaks a test in this project.
    pub(crate) branches_break: f64,
}

impl Background {
    /// Measures stable-branch runs and other runs separately.
    pub(crate) fn new(timeline: &Timeline<'_>) -> Self {
        let mut beta = vec![0.0; timeline.entries.len()];
        let mut kinds = [true, false].map(|on_stable_branch| Kind::new(timeline.words, on_stable_branch));
        let mut recurring = vec![false; timeline.words * at(u64::BITS)];
        let mut recurring_anywhere = recurring.clone();
        for lane in &timeline.lanes {
            recurring.fill(false);
            let [on_stable, off_stable] = &mut kinds;
            rayon::join(
                || on_stable.observe(timeline, lane),
                || off_stable.observe(timeline, lane),
            );
            for kind in &mut kinds {
                kind.measure(timeline, &recurring, &mut beta);
            }
            // The run does not cause the failures of recurring tests, so the second measurement leaves them out of the
            // excess.
            if find_recurring(&kinds, &mut recurring) {
                for (anywhere, here) in recurring_anywhere.iter_mut().zip(&recurring) {
                    *anywhere |= here;
                }
                for kind in &mut kinds {
                    kind.measure(timeline, &recurring, &mut beta);
                }
            }
        }
        let mass_failure: Vec<bool> = beta.iter().map(|beta| *beta >= MASS_FAILURE).collect();
        let runs: BTreeSet<usize> = (timeline.run_of.iter().zip(&mass_failure))
            .filter(|(_, mass_failure)| **mass_failure)
            .map(|(run, _)| *run)
            .collect();
        let enough = timeline.has_more_tests_than(ENOUGH_TESTS - 1);
        Self {
            unreliable: if enough {
                unreliable(timeline, &recurring_anywhere)
            } else {
                USUALLY_UNRELIABLE
            },
            branches_break: if enough {
                branches_break(timeline, &mass_failure)
            } else {
                BRANCHES_USUALLY_BREAK
            },
            beta,
            mass_failure,
            mass_failure_runs: runs.into_iter().rev().collect(),
        }
    }

    /// Whether the variant run at a position is a mass failure.
    pub(crate) fn is_mass_failure(&self, position: usize) -> bool {
        self.mass_failure.get(position).copied().unwrap_or(false)
    }
}

/// The share of unreliable tests in a project, given its recurring tests.
fn unreliable(timeline: &Timeline<'_>, recurring: &[bool]) -> f64 {
    let recurring = count(recurring.iter().filter(|recurring| **recurring).count());
    let share = PER_RECURRING * f64::from(recurring) / f64::from(timeline.count_tests().max(1));
    share.clamp(UNRELIABLE.0, UNRELIABLE.1)
}

/// The branches on which a test failed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum FailedOn<'h> {
    Nothing,
    OneBranch(Option<&'h str>),
    /// On several branches or the stable one, or it passed on retry: no sign of a branch that broke it.
    More,
}

/// The probability that a new revision off the stable branch breaks a test.
///
/// A test that failed on a single branch, and nowhere else, was probably broken by it. A test that failed on several
/// branches is probably flaky, or was broken on the stable branch.
fn branches_break(timeline: &Timeline<'_>, mass_failure: &[bool]) -> f64 {
    let mut failed_on = vec![FailedOn::Nothing; timeline.words * at(u64::BITS)];
    let mut results = 0.0;
    for (entry, _) in timeline
        .entries
        .iter()
        .zip(mass_failure)
        .filter(|(_, mass)| !**mass)
    {
        let Some(chain) = timeline.chains.get(entry.chain) else {
            continue;
        };
        if !chain.stable && entry.step.is_new_code() {
            results += f64::from(timeline.count_seen(entry.observed));
        }
        for failure in &*entry.failures {
            if let Some(failed_on) = failed_on.get_mut(at(failure.test)) {
                let here = FailedOn::OneBranch(chain.branch);
                let is_first = *failed_on == FailedOn::Nothing || *failed_on == here;
                *failed_on = if is_first && !chain.stable && !failure.recovered {
                    here
                } else {
                    FailedOn::More
                };
            }
        }
    }
    let broken = failed_on.iter().filter(|on| matches!(on, FailedOn::OneBranch(_)));
    let broken = f64::from(count(broken.count()));
    (BRANCHES_USUALLY_BREAK * USUAL_RESULTS + broken) / (USUAL_RESULTS + results)
}

/// Marks the recurring tests over the measured runs of both kinds. Returns whether there are any.
fn find_recurring([on_stable, off_stable]: &[Kind; 2], recurring: &mut [bool]) -> bool {
    let mut is_any = false;
    let streaks = on_stable.streaks_begun.iter().zip(&off_stable.streaks_begun);
    for (recurring, (on_stable, off_stable)) in recurring.iter_mut().zip(streaks) {
        *recurring = on_stable.saturating_add(*off_stable) >= RECURRING;
        is_any |= *recurring;
    }
    is_any
}

/// The state of one kind of run. Runs of the stable branch and of other branches have different usual failures.
struct Kind {
    /// Whether these are the runs of the stable branch.
    on_stable_branch: bool,
    /// Each test's consecutive failures.
    streaks: Vec<u8>,
    /// The tests whose streak is above zero, in any order.
    failing: Vec<TestOrdinal>,
    /// The observed runs of a variant: position, and the end of its fresh failures in `fresh`.
    runs: Vec<(usize, usize)>,
    /// The fresh failures of all observed runs.
    fresh: Vec<FreshFailure>,
    /// The number of fresh failures of the latest runs.
    usual: VecDeque<u32>,
    /// For each test, the number of failing streaks that began outside large crowds.
    streaks_begun: Vec<u8>,
}

/// A failure of a short streak.
struct FreshFailure {
    test: TestOrdinal,
    /// Whether it begins the streak.
    is_first: bool,
}

impl Kind {
    fn new(words: usize, on_stable_branch: bool) -> Self {
        Self {
            on_stable_branch,
            streaks: vec![0; words * at(u64::BITS)],
            failing: Vec::new(),
            runs: Vec::new(),
            fresh: Vec::new(),
            usual: VecDeque::with_capacity(USUAL_RUNS + 1),
            streaks_begun: vec![0; words * at(u64::BITS)],
        }
    }

    /// Finds the fresh failures of a variant's runs of this kind.
    fn observe(&mut self, timeline: &Timeline<'_>, lane: &Lane) {
        self.streaks.fill(0);
        self.failing.clear();
        self.runs.clear();
        self.fresh.clear();
        for position in &lane.by_revision {
            let entry = timeline.entries.get(*position);
            let Some(entry) = entry.filter(|entry| entry.on_stable_branch == self.on_stable_branch) else {
                continue;
            };
            self.end_streaks(timeline, entry);
            self.add_failures(entry);
            self.runs.push((*position, self.fresh.len()));
        }
    }

    /// Ends the streaks of the tests that passed in a run.
    fn end_streaks(&mut self, timeline: &Timeline<'_>, entry: &Entry<'_>) {
        let fails = |test: &TestOrdinal| {
            entry
                .failures
                .binary_search_by_key(test, |failure| failure.test)
                .is_ok()
        };
        let streaks = &mut self.streaks;
        self.failing.retain(|test| {
            let passed = timeline.is_seen(entry.observed, *test) && !fails(test);
            if passed && let Some(streak) = streaks.get_mut(at(*test)) {
                *streak = 0;
            }
            !passed
        });
    }

    /// Extends the streaks of the tests that failed in a run.
    fn add_failures(&mut self, entry: &Entry<'_>) {
        for failure in &*entry.failures {
            let test = failure.test;
            let Some(streak) = self.streaks.get_mut(at(test)) else {
                continue;
            };
            let is_first = *streak == 0;
            if is_first {
                self.failing.push(test);
            }
            *streak = streak.saturating_add(1);
            if *streak <= FRESH {
                self.fresh.push(FreshFailure { test, is_first });
            }
        }
    }

    /// Measures the background of each observed run without the excess of `recurring` tests, and counts the failing
    /// streaks that begin outside large crowds.
    fn measure(&mut self, timeline: &Timeline<'_>, recurring: &[bool], betas: &mut [f64]) {
        self.usual.clear();
        self.streaks_begun.fill(0);
        let mut begin = 0;
        for (position, end) in &self.runs {
            let fresh = self.fresh.get(begin..*end).unwrap_or_default();
            begin = *end;
            let recurs = |fresh: &&FreshFailure| recurring.get(at(fresh.test)).copied().unwrap_or(false);
            let of_recurring = fresh.iter().filter(recurs).count();
            let tests = || {
                let entry = timeline.entries.get(*position);
                entry.map_or(0, |entry| timeline.count_seen(entry.observed))
            };
            let measured = background(&mut self.usual, count(fresh.len()), count(of_recurring), tests);
            if measured < LARGE_CROWD {
                for failure in fresh.iter().filter(|failure| failure.is_first) {
                    if let Some(begun) = self.streaks_begun.get_mut(at(failure.test)) {
                        *begun = begun.saturating_add(1);
                    }
                }
            }
            if let Some(beta) = betas.get_mut(*position) {
                *beta = measured;
            }
        }
    }
}

/// The background of a run of `tests` tests with `fresh` fresh failures, of which `of_recurring` are failures of
/// recurring tests. Adds the run to the `usual` ones.
fn background(usual: &mut VecDeque<u32>, fresh: u32, of_recurring: u32, tests: impl Fn() -> u32) -> f64 {
    let counted = fresh - of_recurring;
    let median = if counted > NEVER_MANY { median(usual) } else { 0.0 };
    if usual.len() == USUAL_RUNS {
        usual.pop_front();
    }
    usual.push_back(fresh);
    let excess = f64::from(counted) - 1.0 - median - 2.0 * (median + 1.0).sqrt();
    if excess <= 0.0 {
        return 0.0;
    }
    let by_share = excess / f64::from(tests().max(1));
    let by_count = (excess / (excess + HALFWAY)).powi(3);
    by_share.max(by_count).min(AT_MOST)
}

/// The median of the usual runs (for an even number the mean of the middle two); zero before the first run.
fn median(usual: &VecDeque<u32>) -> f64 {
    let mut sorted = [0_u32; USUAL_RUNS];
    let runs = usual.len().min(USUAL_RUNS);
    for (place, fresh) in sorted.iter_mut().zip(usual) {
        *place = *fresh;
    }
    let Some(sorted) = sorted.get_mut(..runs) else {
        return 0.0;
    };
    sorted.sort_unstable();
    let middle = |index: usize| sorted.get(index).copied().map_or(0.0, f64::from);
    match runs {
        0 => 0.0,
        odd if odd % 2 == 1 => middle(odd / 2),
        even => f64::midpoint(middle(even / 2 - 1), middle(even / 2)),
    }
}

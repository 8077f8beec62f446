//! The outcomes of a test, one per run: the worst over all attempts and variants.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use crate::{
    observation::{Bitmap, History, RunObservations},
    test::TestOrdinal,
    timestamp::Timestamp,
};

/// The outcome of a test in a run, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Skipped or interrupted.
    Skipped,
    /// Passed on the first attempt.
    Passed,
    /// Passed after a failed attempt.
    Recovered,
    /// Failed in a mass failure, which does not count.
    MassFailure,
    /// Failed or timed out.
    Failed,
}

impl Outcome {
    /// All outcomes, in the order of a legend.
    pub const ALL: [Self; 5] = [
        Self::Passed,
        Self::Recovered,
        Self::Failed,
        Self::MassFailure,
        Self::Skipped,
    ];

    /// The outcome in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::Passed => "passed",
            Self::Recovered => "passed on retry",
            Self::MassFailure => "failed with many others, not counted",
            Self::Failed => "failed",
        }
    }
}

/// A test counts as newly failing if its first failure is at most this many days old.
pub const NEW_DAYS: i64 = 7;

/// Most newest results of a test in a list.
pub const NEWEST: usize = 24;

/// The display name of a variant.
pub const fn variant_name(variant: &str) -> &str {
    if variant.is_empty() { "(default)" } else { variant }
}

/// A test in the runs of one branch or variant, oldest first.
#[derive(Debug, Clone)]
pub struct Strip {
    /// The branch or variant of the strip.
    pub subject: StripSubject,
    /// The index of each run, from [`run_indexes`], and the test's outcome in it.
    pub cells: Vec<(usize, Outcome)>,
}

/// The branch or variant of a strip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StripSubject {
    /// The runs of a branch; `None` for runs without a branch.
    Branch {
        /// Its name.
        name: Option<Arc<str>>,
        /// Whether it is the stable branch.
        stable: bool,
    },
    /// The runs of one variant of several, on all branches.
    Variant(Arc<str>),
}

impl Strip {
    /// Whether the test failed or recovered in any of its runs.
    pub fn has_failure(&self) -> bool {
        self.cells.iter().any(|(_, outcome)| *outcome > Outcome::Passed)
    }
}

/// The index of each history entry's run, oldest first. The variants of a run share one index.
pub fn run_indexes(history: &History) -> Vec<usize> {
    let position = |run: &RunObservations| (run.run.started_at, run.run.number);
    let runs: BTreeSet<(Timestamp, i32)> = history.runs.iter().map(position).collect();
    let index_of_run: HashMap<i32, usize> = runs
        .into_iter()
        .enumerate()
        .map(|(index, (_, number))| (number, index))
        .collect();
    let index = |run: &RunObservations| index_of_run.get(&run.run.number).copied().unwrap_or_default();
    history.runs.iter().map(index).collect()
}

/// The outcome of the test in a run; none if the test has no result there.
fn outcome(run: &RunObservations, test: TestOrdinal) -> Option<Outcome> {
    if !run.present.contains(test) {
        return None;
    }
    if run.skipped.contains(test) {
        return Some(Outcome::Skipped);
    }
    Some(match run.failure(test) {
        Some(failure) if failure.recovered => Outcome::Recovered,
        Some(_) => Outcome::Failed,
        None => Outcome::Passed,
    })
}

/// The runs of a history in the order of their starts, for the outcomes of several tests.
pub struct Cells<'a> {
    history: &'a History,
    indexes: Vec<usize>,
    /// By index.
    starts: Vec<Timestamp>,
}

impl<'a> Cells<'a> {
    /// Those of a history.
    pub fn of(history: &'a History) -> Self {
        let indexes = run_indexes(history);
        let mut starts: Vec<_> = indexes
            .iter()
            .zip(&history.runs)
            .map(|(index, observed)| (*index, observed.run.started_at))
            .collect();
        starts.sort_unstable();
        starts.dedup_by_key(|(index, _)| *index);
        Self {
            history,
            indexes,
            starts: starts.into_iter().map(|(_, start)| start).collect(),
        }
    }

    /// The worst outcome of a test in each of the selected runs over all variants: the index of the run, and the outcome.
    pub fn worst(
        &self,
        test: TestOrdinal,
        is_selected: impl Fn(&RunObservations) -> bool,
    ) -> Vec<(usize, Outcome)> {
        worst(self.history, &self.indexes, test, is_selected)
    }

    /// The start of the run with this index.
    pub fn started_at(&self, index: usize) -> Option<Timestamp> {
        self.starts.get(index).copied()
    }

    /// The start of the newest of these runs in which an attempt failed.
    pub fn last_failed_at(&self, cells: &[(usize, Outcome)]) -> Option<Timestamp> {
        let failed = cells.iter().rev().find(|(_, outcome)| *outcome > Outcome::Passed);
        self.started_at(failed?.0)
    }

    /// The names of the variants in which a test has a result.
    pub fn variants(&self, test: TestOrdinal) -> Vec<String> {
        let runs = self.history.runs.iter().filter(|run| run.present.contains(test));
        let names: BTreeSet<&str> = runs.map(|run| variant_name(&run.run.variant)).collect();
        names.into_iter().map(str::to_owned).collect()
    }
}

/// The worst outcome in each of the selected runs over all variants.
pub fn worst(
    history: &History,
    indexes: &[usize],
    test: TestOrdinal,
    is_selected: impl Fn(&RunObservations) -> bool,
) -> Vec<(usize, Outcome)> {
    let mut cells: BTreeMap<usize, Outcome> = BTreeMap::new();
    let runs = history.runs.iter().zip(indexes);
    for (run, index) in runs.filter(|(run, _)| is_selected(run)) {
        if let Some(outcome) = outcome(run, test) {
            let worst = cells.entry(*index).or_insert(outcome);
            *worst = outcome.max(*worst);
        }
    }
    cells.into_iter().collect()
}

/// The variants in which a test failed or recovered.
pub fn failing_variants(history: &History, test: TestOrdinal) -> BTreeSet<Arc<str>> {
    let failing = history
        .runs
        .iter()
        .filter(|run| outcome(run, test) > Some(Outcome::Passed));
    failing.map(|run| Arc::clone(&run.run.variant)).collect()
}

/// The tests that failed or recovered in a run for which `is_selected` holds.
pub fn failing(history: &History, is_selected: impl Fn(&RunObservations) -> bool) -> Bitmap {
    let runs = history.runs.iter().filter(|run| is_selected(run));
    runs.flat_map(|run| &run.failures)
        .map(|failure| failure.test)
        .collect()
}

/// The tests that first failed after `since` and ran without a failure before.
pub fn newly_failing(history: &History, since: Timestamp) -> Bitmap {
    let (mut earlier, mut later) = (Bitmap::default(), Bitmap::default());
    let mut ran_before = Bitmap::default();
    for run in &history.runs {
        let is_earlier = run.run.started_at <= since;
        let failed = if is_earlier { &mut earlier } else { &mut later };
        for failure in &run.failures {
            failed.insert(failure.test);
        }
        if is_earlier {
            ran_before.insert_all(&run.present);
        }
    }
    let is_new = |test: &TestOrdinal| ran_before.contains(*test) && !earlier.contains(*test);
    later.iter().filter(is_new).collect()
}

/// The strips of a test. Branches come first: the stable one, then those with a failure, then the most recent ones. If
/// there are several variants, those with a failure follow.
pub fn strips(history: &History, indexes: &[usize], test: TestOrdinal) -> Vec<Strip> {
    let no_branches = history.runs.iter().all(|run| run.run.branch.is_none());
    let mut branches: BTreeMap<Option<Arc<str>>, BTreeMap<usize, Outcome>> = BTreeMap::new();
    let mut variants: BTreeMap<Arc<str>, BTreeMap<usize, Outcome>> = BTreeMap::new();
    for (run, index) in history.runs.iter().zip(indexes) {
        let Some(outcome) = outcome(run, test) else {
            continue;
        };
        let of_branch = branches.entry(run.run.branch.clone()).or_default();
        let of_variant = variants.entry(Arc::clone(&run.run.variant)).or_default();
        for cells in [of_branch, of_variant] {
            let worst = cells.entry(*index).or_insert(outcome);
            *worst = outcome.max(*worst);
        }
    }
    let mut strips: Vec<Strip> = branches
        .into_iter()
        .map(|(name, cells)| Strip {
            subject: StripSubject::Branch {
                stable: no_branches || name.as_deref() == Some(&*history.stable_branch),
                name,
            },
            cells: cells.into_iter().collect(),
        })
        .collect();
    strips.sort_by_key(|strip| {
        let is_stable = matches!(strip.subject, StripSubject::Branch { stable: true, .. });
        let last = strip.cells.last().map(|(index, _)| *index);
        (!is_stable, !strip.has_failure(), std::cmp::Reverse(last))
    });
    if variants.len() > 1 {
        let failing = variants.into_iter().map(|(name, cells)| Strip {
            subject: StripSubject::Variant(name),
            cells: cells.into_iter().collect(),
        });
        strips.extend(failing.filter(Strip::has_failure));
    }
    strips
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{Failure, RunFacts};

    const NOW: Timestamp = Timestamp::from_unix_ms(1_795_200_363_120);

    /// A run: its age in days, its variant, and its tests with whether each passed.
    type TestRun<'a> = (i64, &'a str, &'a [(TestOrdinal, bool)]);

    /// A history of these runs on `main`.
    fn history(runs: &[TestRun<'_>]) -> History {
        let run = |(number, (days_ago, variant, tests)): (i32, &TestRun<'_>)| {
            let mut run = RunObservations::of(RunFacts {
                id: number.to_string().into(),
                number,
                started_at: NOW.plus_days(-days_ago),
                branch: Some("main".into()),
                revision: None,
                variant: (*variant).into(),
                ..RunFacts::default()
            });
            for (test, passed) in *tests {
                run.present.insert(*test);
                if !passed {
                    run.failures.push(Failure {
                        test: *test,
                        recovered: false,
                        failed_attempts: 1,
                        lost_ms: None,
                    });
                }
            }
            run
        };
        History {
            stable_branch: "main".into(),
            tests: 201,
            runs: (1..).zip(runs).map(run).collect(),
        }
    }

    #[test]
    fn a_test_is_new_if_it_ran_without_a_failure_until_this_week() {
        let history = history(&[
            (10, "", &[(0, true), (1, false), (2, true)]),
            (8, "", &[(0, true), (1, true), (2, true)]),
            (3, "", &[(0, false), (1, false), (2, true), (200, false)]),
        ]);
        let new: Vec<TestOrdinal> = newly_failing(&history, NOW.plus_days(-7)).iter().collect();
        // Test 1 failed before, test 2 never failed, and test 200 did not run before.
        assert_eq!(new, [0]);
    }

    #[test]
    fn failing_tests_are_those_of_the_selected_runs() {
        let history = history(&[
            (2, "linux", &[(0, false), (1, true)]),
            (1, "mac", &[(0, true), (1, false)]),
        ]);
        let on_mac = failing(&history, |run| &*run.run.variant == "mac");
        assert_eq!(on_mac.iter().collect::<Vec<_>>(), [1]);
    }
}

//! How a test ended in run after run: the worst of each run, whatever was tried again and in how many variants.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use assay_domain::{
    observation::{Bitmap, History, RunObservations},
    test::TestOrdinal,
    timestamp::Timestamp,
};

use crate::strip::Outcome;

/// How many days a test may be known to fail and still be new.
pub const NEW_DAYS: i64 = 7;

/// What a variant is called.
pub const fn variant_name(variant: &str) -> &str {
    if variant.is_empty() { "(default)" } else { variant }
}

/// A test in the runs of one branch or variant, oldest first.
#[derive(Debug, Clone)]
pub struct Strip {
    /// What the strip shows.
    pub of: Of,
    /// The place of each run among the history's runs, as [`run_places`] counts them, and how the test ended in it.
    pub cells: Vec<(usize, Outcome)>,
}

/// What a strip shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Of {
    /// The runs of a branch; none for runs that name no branch.
    Branch {
        /// Its name.
        name: Option<Arc<str>>,
        /// Whether releases are made from it.
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

/// Places of the history's entries among its runs, oldest first: the variants of a run are one.
pub fn run_places(history: &History) -> Vec<usize> {
    let position = |run: &RunObservations| (run.run.started_at, run.run.number);
    let runs: BTreeSet<(Timestamp, i32)> = history.runs.iter().map(position).collect();
    let places: HashMap<i32, usize> = runs
        .into_iter()
        .enumerate()
        .map(|(place, (_, number))| (number, place))
        .collect();
    let place = |run: &RunObservations| places.get(&run.run.number).copied().unwrap_or_default();
    history.runs.iter().map(place).collect()
}

/// How the test ended in a run; none where it took no part.
fn outcome(run: &RunObservations, test: TestOrdinal) -> Option<Outcome> {
    if !run.present.contains(test) {
        return None;
    }
    if run.skipped.contains(test) {
        return Some(Outcome::Skipped);
    }
    let failure = run.failures.binary_search_by_key(&test, |failure| failure.test);
    Some(match failure.ok().and_then(|place| run.failures.get(place)) {
        Some(failure) if failure.recovered => Outcome::Recovered,
        Some(_) => Outcome::Failed,
        None => Outcome::Passed,
    })
}

/// The worst outcome of each run, whatever the branch and variant.
pub fn worst(history: &History, places: &[usize], test: TestOrdinal) -> Vec<(usize, Outcome)> {
    let mut cells: BTreeMap<usize, Outcome> = BTreeMap::new();
    for (run, place) in history.runs.iter().zip(places) {
        if let Some(outcome) = outcome(run, test) {
            let worst = cells.entry(*place).or_insert(outcome);
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

/// The tests that failed or recovered in a run that `is_meant`.
pub fn failing(history: &History, is_meant: impl Fn(&RunObservations) -> bool) -> Bitmap {
    let runs = history.runs.iter().filter(|run| is_meant(run));
    runs.flat_map(|run| &run.failures)
        .map(|failure| failure.test)
        .collect()
}

/// The tests that first failed after `since`, and ran without a failure before.
pub fn newly_failing(history: &History, since: Timestamp) -> Bitmap {
    let (mut earlier, mut later) = (Bitmap::default(), Bitmap::default());
    let mut ran_before: Vec<u64> = Vec::new();
    for run in &history.runs {
        let is_earlier = run.run.started_at <= since;
        let failed = if is_earlier { &mut earlier } else { &mut later };
        for failure in &run.failures {
            failed.insert(failure.test);
        }
        if is_earlier {
            let words = run.present.words();
            ran_before.resize(ran_before.len().max(words.len()), 0);
            for (all, word) in ran_before.iter_mut().zip(words) {
                *all |= word;
            }
        }
    }
    let ran_before = Bitmap::from_words(ran_before);
    let is_new = |test: &TestOrdinal| ran_before.contains(*test) && !earlier.contains(*test);
    later.iter().filter(is_new).collect()
}

/// The strips of a test. First branches: the stable one, then where it failed, then the most recent. Then, where there are
/// several variants, those in which it failed.
pub fn strips(history: &History, places: &[usize], test: TestOrdinal) -> Vec<Strip> {
    let no_branches = history.runs.iter().all(|run| run.run.branch.is_none());
    let mut branches: BTreeMap<Option<Arc<str>>, BTreeMap<usize, Outcome>> = BTreeMap::new();
    let mut variants: BTreeMap<Arc<str>, BTreeMap<usize, Outcome>> = BTreeMap::new();
    for (run, place) in history.runs.iter().zip(places) {
        let Some(outcome) = outcome(run, test) else {
            continue;
        };
        let of_branch = branches.entry(run.run.branch.clone()).or_default();
        let of_variant = variants.entry(Arc::clone(&run.run.variant)).or_default();
        for cells in [of_branch, of_variant] {
            let worst = cells.entry(*place).or_insert(outcome);
            *worst = outcome.max(*worst);
        }
    }
    let mut strips: Vec<Strip> = branches
        .into_iter()
        .map(|(name, cells)| Strip {
            of: Of::Branch {
                stable: no_branches || name.as_deref() == Some(&*history.stable_branch),
                name,
            },
            cells: cells.into_iter().collect(),
        })
        .collect();
    strips.sort_by_key(|strip| {
        let is_stable = matches!(strip.of, Of::Branch { stable: true, .. });
        let last = strip.cells.last().map(|(place, _)| *place);
        (!is_stable, !strip.has_failure(), std::cmp::Reverse(last))
    });
    if variants.len() > 1 {
        let failing = variants.into_iter().map(|(name, cells)| Strip {
            of: Of::Variant(name),
            cells: cells.into_iter().collect(),
        });
        strips.extend(failing.filter(Strip::has_failure));
    }
    strips
}

#[cfg(test)]
mod tests {
    use assay_domain::observation::{Failure, RunFacts};

    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_ms(1_795_200_363_120);

    /// A run so many days before now, in a variant, with tests and whether each passed.
    type Ran<'a> = (i64, &'a str, &'a [(TestOrdinal, bool)]);

    /// A history of these runs on `main`.
    fn history(runs: &[Ran<'_>]) -> History {
        let run = |(number, (days_ago, variant, tests)): (i32, &Ran<'_>)| {
            let mut run = RunObservations::of(RunFacts {
                id: number.to_string().into(),
                number,
                started_at: NOW.plus_days(-days_ago),
                branch: Some("main".into()),
                revision: None,
                variant: (*variant).into(),
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
    fn a_test_is_new_that_ran_without_a_failure_until_this_week() {
        let history = history(&[
            (10, "", &[(0, true), (1, false), (2, true)]),
            (8, "", &[(0, true), (1, true), (2, true)]),
            (3, "", &[(0, false), (1, false), (2, true), (200, false)]),
        ]);
        let new: Vec<TestOrdinal> = newly_failing(&history, NOW.plus_days(-7)).iter().collect();
        // 1 failed before, 2 never failed, 200 is itself new.
        assert_eq!(new, [0]);
    }

    #[test]
    fn failing_tests_are_those_of_the_runs_that_are_meant() {
        let history = history(&[
            (2, "linux", &[(0, false), (1, true)]),
            (1, "mac", &[(0, true), (1, false)]),
        ]);
        let on_mac = failing(&history, |run| &*run.run.variant == "mac");
        assert_eq!(on_mac.iter().collect::<Vec<_>>(), [1]);
    }
}

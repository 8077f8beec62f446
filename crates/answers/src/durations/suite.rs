//! The time of a suite as a sum.

use std::collections::{BTreeMap, BTreeSet};

use assay_domain::{observation::RunObservations, test::TestOrdinal, timing::lower_median};
use assay_flakiness::durations::{ChangePoint, Durations};
use serde::Serialize;

/// The number of newest runs whose durations are usual now, and of oldest ones whose durations were.
const COMPARED: usize = 5;

/// How long a suite takes on the stable branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SuiteDurations {
    /// The suite; empty for runs without one.
    pub suite: String,
    /// The number of complete runs that were read.
    pub runs: u64,
    /// The sum of the usual durations of its tests in milliseconds: of each test, the median of its passes at the first
    /// attempt in the newest five runs, if it ran in at least half of them.
    pub tests_ms: u64,
    /// The mean of all failed attempts in the newest five runs, in milliseconds a run.
    pub failed_attempts_ms: u64,
    /// The median time in which a part of the run ran, of the newest five runs in milliseconds; null if no report has it.
    /// Machines and workers that run at the same time make it shorter than the tests, and waiting within a part longer.
    pub run_ms: Option<u64>,
    /// What changed since the oldest five runs; null for fewer than ten runs.
    pub change: Option<SuiteChange>,
}

/// What changed in the time of a suite. The sum of `earlierTestsMs` and the four changes is `testsMs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SuiteChange {
    /// `testsMs` of the oldest five runs.
    pub earlier_tests_ms: u64,
    /// The time of tests that are in none of the oldest five runs.
    pub new_tests_ms: i64,
    /// The time of tests that are in none of the newest five runs, below zero.
    pub removed_tests_ms: i64,
    /// The additional time of tests that became slower with a probability of at least .95.
    pub slower_tests_ms: i64,
    /// The rest: other speeds of machines, small changes of many tests, and tests that fail now or failed then.
    pub other_ms: i64,
    /// `failedAttemptsMs` of the oldest five runs.
    pub earlier_failed_attempts_ms: u64,
    /// `runMs` of the oldest five runs.
    pub earlier_run_ms: Option<u64>,
}

/// The complete runs of a suite, oldest first.
pub(super) struct Suite<'a> {
    pub(super) name: &'a str,
    pub(super) runs: Vec<&'a RunObservations>,
    /// By run: the durations of tests that passed at their first attempt.
    pub(super) tests: Vec<Durations>,
    /// By run: the time from its start to its end.
    pub(super) whole: Vec<Option<u64>>,
}

/// Some neighbouring runs of a suite.
struct Part<'a> {
    runs: &'a [&'a RunObservations],
    tests: &'a [Durations],
    whole: &'a [Option<u64>],
}

impl Suite<'_> {
    /// The usual duration of each test now.
    pub(super) fn usual_now(&self) -> BTreeMap<TestOrdinal, u64> {
        self.newest().usual()
    }

    /// The sum, given the tests that became slower.
    pub(super) fn durations(&self, slower: &[ChangePoint]) -> SuiteDurations {
        let newest = self.newest();
        let now = newest.usual();
        SuiteDurations {
            suite: self.name.to_owned(),
            runs: u64::try_from(self.runs.len()).unwrap_or(u64::MAX),
            tests_ms: now.values().sum(),
            failed_attempts_ms: newest.failed_attempts_ms(),
            run_ms: newest.run_ms(),
            change: (self.runs.len() >= 2 * COMPARED).then(|| {
                let slower = slower.iter().map(|point| point.test).collect();
                change(&self.part(0, COMPARED), &newest, &now, &slower)
            }),
        }
    }

    fn newest(&self) -> Part<'_> {
        let all = self.runs.len();
        self.part(all.saturating_sub(COMPARED), all)
    }

    fn part(&self, from: usize, to: usize) -> Part<'_> {
        Part {
            runs: self.runs.get(from..to).unwrap_or_default(),
            tests: self.tests.get(from..to).unwrap_or_default(),
            whole: self.whole.get(from..to).unwrap_or_default(),
        }
    }
}

impl Part<'_> {
    /// The median duration of each test that ran in at least half of the runs.
    fn usual(&self) -> BTreeMap<TestOrdinal, u64> {
        let mut durations: BTreeMap<TestOrdinal, Vec<u64>> = BTreeMap::new();
        for (test, ms) in self.tests.iter().flatten() {
            durations.entry(*test).or_default().push(*ms);
        }
        let often = |test: TestOrdinal| {
            let ran = self.runs.iter().filter(|run| run.ran(test)).count();
            2 * ran >= self.runs.len()
        };
        durations
            .into_iter()
            .filter(|(test, _)| often(*test))
            .filter_map(|(test, mut of_test)| Some((test, lower_median(&mut of_test)?)))
            .collect()
    }

    /// Whether any of the runs reported a test.
    fn has(&self, test: TestOrdinal) -> bool {
        self.runs.iter().any(|run| run.present.contains(test))
    }

    fn failed_attempts_ms(&self) -> u64 {
        let failures = self.runs.iter().flat_map(|run| &run.failures);
        let lost: u64 = failures.filter_map(|failure| failure.lost_ms).sum();
        let runs = u64::try_from(self.runs.len()).unwrap_or(u64::MAX);
        lost.checked_div(runs).unwrap_or(0)
    }

    fn run_ms(&self) -> Option<u64> {
        let mut known: Vec<u64> = self.whole.iter().flatten().copied().collect();
        lower_median(&mut known)
    }
}

fn change(
    earlier: &Part<'_>,
    newest: &Part<'_>,
    now: &BTreeMap<TestOrdinal, u64>,
    slower: &BTreeSet<TestOrdinal>,
) -> SuiteChange {
    let before = earlier.usual();
    let ms = |of: &BTreeMap<TestOrdinal, u64>, test: TestOrdinal| signed(of.get(&test).copied().unwrap_or(0));
    let mut change = SuiteChange {
        earlier_tests_ms: before.values().sum(),
        new_tests_ms: 0,
        removed_tests_ms: 0,
        slower_tests_ms: 0,
        other_ms: 0,
        earlier_failed_attempts_ms: earlier.failed_attempts_ms(),
        earlier_run_ms: earlier.run_ms(),
    };
    let tests: BTreeSet<TestOrdinal> = before.keys().chain(now.keys()).copied().collect();
    for test in tests {
        let part = if !earlier.has(test) {
            &mut change.new_tests_ms
        } else if !newest.has(test) {
            &mut change.removed_tests_ms
        } else if slower.contains(&test) {
            &mut change.slower_tests_ms
        } else {
            &mut change.other_ms
        };
        *part += ms(now, test) - ms(&before, test);
    }
    change
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use assay_domain::{
        attempt::AttemptStatus, execution::TestOutcome, observation::RunFacts, timestamp::Timestamp,
    };

    use super::*;

    /// A run of tests with their durations. A test without one failed for 100 ms.
    fn run(number: i32, tests: &[(TestOrdinal, Option<u64>)]) -> (RunObservations, Durations) {
        let facts = RunFacts {
            id: number.to_string().into(),
            number,
            started_at: Timestamp::from_unix_ms(i64::from(number)),
            branch: None,
            revision: None,
            ..RunFacts::default()
        };
        let mut observed = RunObservations::of(facts);
        let mut durations = Durations::new();
        for (test, ms) in tests {
            let attempt = match ms {
                Some(ms) => (AttemptStatus::Passed, Some(*ms)),
                None => (AttemptStatus::Failed, Some(100)),
            };
            observed.add(*test, &TestOutcome::of([[attempt]]).unwrap());
            durations.extend(ms.map(|ms| (*test, ms)));
        }
        (observed, durations)
    }

    fn durations(runs: &[(RunObservations, Durations)]) -> SuiteDurations {
        let suite = Suite {
            name: "unit",
            runs: runs.iter().map(|(observed, _)| observed).collect(),
            tests: runs.iter().map(|(_, durations)| durations.clone()).collect(),
            whole: (0..runs.len()).map(|place| u64::try_from(place).ok()).collect(),
        };
        suite.durations(&[])
    }

    #[test]
    fn the_parts_of_a_change_add_up() {
        let runs: Vec<_> = (0..10)
            .map(|number| match number < 5 {
                true => run(number, &[(0, Some(40)), (1, Some(30)), (3, None)]),
                false => run(number, &[(0, Some(50)), (2, Some(70)), (3, Some(20))]),
            })
            .collect();
        let suite = durations(&runs);
        assert_eq!(
            (suite.tests_ms, suite.failed_attempts_ms, suite.run_ms),
            (140, 0, Some(7))
        );
        let expected = SuiteChange {
            earlier_tests_ms: 70,
            new_tests_ms: 70,
            removed_tests_ms: -30,
            slower_tests_ms: 0,
            // Test 3 failed before, so it is no new test.
            other_ms: 30,
            earlier_failed_attempts_ms: 100,
            earlier_run_ms: Some(2),
        };
        assert_eq!(suite.change, Some(expected));
    }

    #[test]
    fn a_test_that_ran_in_fewer_than_half_of_the_newest_runs_takes_no_time() {
        let runs: Vec<_> = (0..5)
            .map(|number| match number < 2 {
                true => run(number, &[(0, Some(40)), (1, Some(30))]),
                false => run(number, &[(0, Some(40))]),
            })
            .collect();
        let suite = durations(&runs);
        assert_eq!((suite.tests_ms, suite.change), (40, None));
        assert_eq!(durations(&[]).tests_ms, 0);
    }
}

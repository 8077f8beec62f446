//! Where the time of the stable branch's runs goes: each suite as a sum, its slowest tests, and the tests that became slower.

use std::{collections::BTreeMap, sync::Arc};

use assay_domain::{
    observation::{History, RunObservations},
    project::{Project, ProjectTag},
    store::{SharedKey, Snapshot, Store, StoreError, in_snapshot, shared},
    test::{TestName, TestOrdinal},
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, FailingSince},
};
use assay_flakiness::durations::{ChangePoint, Durations, change_points};
use serde::Serialize;

use self::suite::Suite;
pub use self::suite::{COMPARED, SuiteChange, SuiteDurations};
use crate::{
    numbers::{count, rounded},
    stable_branch::since,
};

mod suite;

/// A test is listed as slower from this probability on.
const LISTED_FROM: f64 = 0.95;
/// The newest complete runs of a suite that are read.
const MOST_RUNS_OF_SUITE: usize = 30;
/// The most results that are read of all suites: fewer runs of each if they have more.
const MOST_RESULTS: u64 = 2_000_000;
/// Most tests that became slower.
const MOST_SLOWER: usize = 100;
/// Most of the slowest tests, and most suites.
const MOST_LISTED: usize = 50;

/// Where the time of the stable branch's runs goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProjectDurations {
    /// The project.
    pub project: ProjectTag,
    /// The stable branch.
    pub stable_branch: String,
    /// The number of complete runs that were read: the newest of each suite in 14 days, at most 30, and fewer of each if
    /// they have more than two million results in all. If one run of each has more, the last suites by name are left out.
    pub runs: u64,
    /// The first 50 suites, those that take the most time first.
    #[cfg_attr(feature = "openapi", schema(max_items = 50))]
    pub suites: Vec<SuiteDurations>,
    /// The 50 slowest tests, slowest first.
    #[cfg_attr(feature = "openapi", schema(max_items = 50))]
    pub slowest: Vec<SlowTest>,
    /// The tests that became slower and stayed so.
    pub slower: SlowerSinceTests,
}

/// A test that takes long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SlowTest {
    /// The test.
    pub test: TestName,
    /// The suite; empty for runs without one.
    pub suite: String,
    /// The median of its passes at the first attempt in the newest five runs, in milliseconds.
    pub usual_ms: u64,
}

/// The tests that became slower and stayed so.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SlowerSinceTests {
    /// Their number.
    pub total: u64,
    /// The first 100 of them, those that take the most additional time first.
    #[cfg_attr(feature = "openapi", schema(max_items = 100))]
    pub tests: Vec<SlowerSince>,
}

/// A test that became slower and stayed so.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SlowerSince {
    /// The test.
    pub test: TestName,
    /// The suite; empty for runs without one.
    pub suite: String,
    /// The first run in which it was slower.
    pub since: FailingSince,
    /// The number of runs since then in which it passed at its first attempt.
    pub runs: u32,
    /// How many times as long it takes since then, whatever the speed of the machine.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub factor: f64,
    /// P(it became slower).
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub probability: f64,
    /// The milliseconds that it takes longer in a run of usual speed.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub extra_ms: i64,
}

/// Where the time of the stable branch's runs within the last 14 days went.
pub fn durations(
    store: &dyn Store,
    project: &Project,
    now: Timestamp,
) -> Result<ProjectDurations, StoreError> {
    in_snapshot(store, project, |snapshot| {
        let window = (now.plus_days(-ENGINE_WINDOW_DAYS), now);
        let history = snapshot.observations(window.0, window.1)?;
        let key = SharedKey::of_window("durations");
        let durations = shared(snapshot, key, window, |snapshot| {
            let durations = of_history(snapshot, project.tag(), &history)?;
            let bytes = durations.bytes();
            Ok((durations, bytes))
        })?;
        // The project may have got another name since.
        Ok(ProjectDurations {
            project: project.tag(),
            ..ProjectDurations::clone(&durations)
        })
    })
}

fn of_history(
    snapshot: &mut dyn Snapshot,
    project: ProjectTag,
    history: &History,
) -> Result<ProjectDurations, StoreError> {
    let suites = stable_runs(history, MOST_RESULTS);
    let all: Vec<usize> = suites.values().flatten().copied().collect();
    let observed = |index: &usize| history.runs.get(*index);
    let runs: Vec<(i32, Timestamp)> = all
        .iter()
        .filter_map(observed)
        .map(|observed| (observed.run.number, observed.run.started_at))
        .collect();
    let mut tests_of_runs = snapshot.green_durations(&runs)?.into_iter();
    let mut run_durations = snapshot.run_durations(&runs)?.into_iter();
    let mut of_suites = Vec::with_capacity(suites.len());
    for (name, indexes) in &suites {
        let runs: Vec<&RunObservations> = indexes.iter().filter_map(observed).collect();
        let tests: Vec<Durations> = tests_of_runs.by_ref().take(indexes.len()).collect();
        let whole = run_durations.by_ref().take(indexes.len()).collect();
        let mut slower = change_points(&tests);
        slower.retain(|point| point.probability >= LISTED_FROM);
        let suite = Suite {
            name,
            runs,
            tests,
            whole,
        };
        of_suites.push((suite, indexes, slower));
    }
    Ok(ProjectDurations {
        project,
        stable_branch: history.stable_branch.to_string(),
        runs: count(all.len()),
        slowest: slowest(snapshot, of_suites.iter().map(|(suite, ..)| suite))?,
        slower: slower(snapshot, history, &of_suites)?,
        suites: longest(of_suites.iter().map(|(suite, _, slower)| suite.durations(slower))),
    })
}

impl ProjectDurations {
    /// About the memory that they take.
    fn bytes(&self) -> usize {
        let suites = self
            .suites
            .iter()
            .map(|suite| size_of_val(suite) + suite.suite.len());
        let slowest = self
            .slowest
            .iter()
            .map(|slow| size_of_val(slow) + slow.test.text_bytes() + slow.suite.len());
        let slower = self
            .slower
            .tests
            .iter()
            .map(|slower| size_of_val(slower) + slower.test.text_bytes() + slower.suite.len());
        size_of::<Self>() + suites.chain(slowest).chain(slower).sum::<usize>()
    }
}

/// The suites that take the most time.
fn longest(suites: impl Iterator<Item = SuiteDurations>) -> Vec<SuiteDurations> {
    let mut suites: Vec<SuiteDurations> = suites.collect();
    suites.sort_by(|left, right| (right.tests_ms, &left.suite).cmp(&(left.tests_ms, &right.suite)));
    suites.truncate(MOST_LISTED);
    suites
}

/// The slowest tests of all suites.
fn slowest<'a>(
    snapshot: &mut dyn Snapshot,
    suites: impl Iterator<Item = &'a Suite<'a>>,
) -> Result<Vec<SlowTest>, StoreError> {
    let of_suite = |suite: &'a Suite<'a>| {
        let usual = suite.usual_now().into_iter();
        usual.map(|(test, ms)| (ms, test, suite.name))
    };
    let mut tests: Vec<(u64, TestOrdinal, &str)> = suites.flat_map(of_suite).collect();
    tests.sort_unstable_by(|left, right| (right.0, left.1, left.2).cmp(&(left.0, right.1, right.2)));
    tests.truncate(MOST_LISTED);
    let numbers: Vec<TestOrdinal> = tests.iter().map(|(_, test, _)| *test).collect();
    let names = snapshot.test_names(&numbers)?;
    let tests = tests.into_iter().zip(names);
    Ok(tests
        .map(|((usual_ms, _, suite), test)| SlowTest {
            test,
            suite: suite.to_owned(),
            usual_ms,
        })
        .collect())
}

/// The tests that became slower, of all suites with the indexes of their runs.
fn slower(
    snapshot: &mut dyn Snapshot,
    history: &History,
    suites: &[(Suite<'_>, &Vec<usize>, Vec<ChangePoint>)],
) -> Result<SlowerSinceTests, StoreError> {
    let mut found = Vec::new();
    for (suite, indexes, points) in suites {
        found.extend(
            points
                .iter()
                .filter_map(|point| Some((suite.name, *indexes.get(point.run)?, point))),
        );
    }
    found.sort_by(|(_, _, left), (_, _, right)| {
        let more = right.extra_ms.total_cmp(&left.extra_ms);
        more.then_with(|| left.test.cmp(&right.test))
    });
    let total = count(found.len());
    found.truncate(MOST_SLOWER);
    let numbers: Vec<TestOrdinal> = found.iter().map(|(.., point)| point.test).collect();
    let names = snapshot.test_names(&numbers)?;
    let tests = found.into_iter().zip(names);
    let tests = tests
        .filter_map(|((suite, run, point), test)| Some(listed(test, suite, since(history, run)?, point)));
    Ok(SlowerSinceTests {
        total,
        tests: tests.collect(),
    })
}

fn listed(test: TestName, suite: &str, since: FailingSince, point: &ChangePoint) -> SlowerSince {
    SlowerSince {
        test,
        suite: suite.to_owned(),
        since,
        runs: point.runs,
        factor: point.factor,
        probability: point.probability,
        extra_ms: rounded(point.extra_ms),
    }
}

/// The indexes of the newest complete runs of each suite on the stable branch, oldest first. They have at most
/// `most_results` results in all. If one run of each suite has more, the last suites by name are left out.
pub(crate) fn stable_runs(history: &History, most_results: u64) -> BTreeMap<Arc<str>, Vec<usize>> {
    let stable = history.stable();
    let mut runs: Vec<_> = history
        .runs
        .iter()
        .enumerate()
        .filter(|(_, observed)| observed.ending.complete && stable.is(observed.run.branch.as_deref()))
        .collect();
    runs.sort_by_key(|(_, observed)| std::cmp::Reverse((observed.run.started_at, observed.run.number)));
    let mut suites: BTreeMap<Arc<str>, Vec<usize>> = BTreeMap::new();
    for (index, observed) in runs {
        let of_suite = suites.entry(Arc::clone(&observed.run.variant)).or_default();
        if of_suite.len() < MOST_RUNS_OF_SUITE {
            of_suite.push(index);
        }
    }
    let results = |run: &usize| {
        let observed = history.runs.get(*run);
        observed.map_or(0, |observed| u64::from(observed.present.len()))
    };
    // All suites are read as far back: a suite that runs each night keeps its runs beside those that run with each change.
    let results_of_nth = |n: usize| {
        suites
            .values()
            .filter_map(|runs| runs.get(n))
            .map(results)
            .sum::<u64>()
    };
    let with_further = (0..MOST_RUNS_OF_SUITE).scan(0, |sum, n| {
        *sum += results_of_nth(n);
        Some(*sum)
    });
    let of_each = with_further.take_while(|sum| *sum <= most_results).count().max(1);
    let mut left = most_results;
    suites.retain(|_, of_suite| {
        of_suite.truncate(of_each);
        of_suite.reverse();
        let needed = of_suite.iter().map(results).sum();
        let is_read = needed <= left;
        left = left.saturating_sub(needed);
        is_read
    });
    suites
}

#[cfg(test)]
mod tests {
    use assay_domain::observation::RunFacts;

    use super::*;

    #[test]
    fn a_nightly_suite_keeps_its_runs_beside_those_that_run_with_each_change() {
        let run = |number: i32, suite: &str| {
            let mut run = RunObservations::of(RunFacts {
                id: number.to_string().into(),
                number,
                started_at: Timestamp::from_unix_ms(i64::from(number)),
                branch: Some("main".into()),
                revision: None,
                variant: suite.into(),
                ..RunFacts::default()
            });
            run.present.insert(0);
            run
        };
        // The nightly runs are older than all others.
        let nightly = (0..5).map(|number| run(number, "nightly"));
        let others = (5..).zip(["a", "b", "c", "d"].repeat(40));
        let history = History {
            stable_branch: "main".into(),
            tests: 0,
            runs: nightly
                .chain(others.map(|(number, suite)| run(number, suite)))
                .collect(),
        };
        let suites = stable_runs(&history, 101);
        let lengths: Vec<(&str, usize)> = suites.iter().map(|(name, runs)| (&**name, runs.len())).collect();
        assert_eq!(
            lengths,
            [("a", 24), ("b", 24), ("c", 24), ("d", 24), ("nightly", 5)]
        );
        assert_eq!(suites.get("nightly").unwrap(), &[0, 1, 2, 3, 4]);
        // Of the other suites, the newest ones, oldest first.
        let of_d = suites.get("d").unwrap();
        assert_eq!((of_d.first(), of_d.last()), (Some(&72), Some(&164)));
        // With few results no suite has more than thirty, and with many some have none.
        let lengths = |most| -> Vec<usize> { stable_runs(&history, most).values().map(Vec::len).collect() };
        assert_eq!(lengths(1_000), [30, 30, 30, 30, 5]);
        assert_eq!(lengths(5), [1, 1, 1, 1, 1]);
        assert_eq!(lengths(3), [1, 1, 1]);
    }
}

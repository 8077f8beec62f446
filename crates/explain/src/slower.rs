//! The tests that became slower on the stable branch, each with the run since which it is.

use std::{collections::BTreeMap, sync::Arc};

use assay_domain::{
    observation::History,
    project::{Project, ProjectTag},
    store::{Snapshot, Store, StoreError, in_snapshot},
    test::TestName,
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, FailingSince},
};
use assay_flakiness::durations::{ChangePoint, Durations, change_points};
use serde::Serialize;

use crate::stable_branch::since;

/// A test is listed from this probability on.
const LISTED_FROM: f64 = 0.95;
/// The newest complete runs of a suite that are compared, and of all suites.
const MOST_RUNS_OF_SUITE: usize = 30;
const MOST_RUNS: usize = 120;
/// Most tests of the list.
const MOST_LISTED: usize = 100;

/// The tests that became slower on the stable branch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SlowerList {
    /// The project.
    pub project: ProjectTag,
    /// The stable branch.
    pub stable_branch: String,
    /// The number of complete runs that were compared: the newest 30 of each suite in 14 days, and 120 in all.
    pub runs: u64,
    /// The number of tests that became slower.
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

/// Lists the tests that became slower in the runs of the stable branch within the last 14 days.
pub fn slower_list(store: &dyn Store, project: &Project, now: Timestamp) -> Result<SlowerList, StoreError> {
    in_snapshot(store, project, |snapshot| {
        let history = snapshot.observations(now.plus_days(-ENGINE_WINDOW_DAYS), now)?;
        let suites = stable_runs(&history);
        let all: Vec<usize> = suites.values().flatten().copied().collect();
        let mut durations = durations(snapshot, &history, &all)?.into_iter();
        let mut found = Vec::new();
        for (suite, indexes) in &suites {
            let of_suite: Vec<Durations> = durations.by_ref().take(indexes.len()).collect();
            let points = change_points(&of_suite);
            let certain = points
                .into_iter()
                .filter(|point| point.probability >= LISTED_FROM);
            found.extend(certain.filter_map(|point| Some((suite, *indexes.get(point.run)?, point))));
        }
        found.sort_by(|(_, _, left), (_, _, right)| {
            let more = right.extra_ms.total_cmp(&left.extra_ms);
            more.then_with(|| left.test.cmp(&right.test))
        });
        let total = count(found.len());
        found.truncate(MOST_LISTED);
        let tests: Vec<_> = found.iter().map(|(.., point)| point.test).collect();
        let names = snapshot.test_names(&tests)?;
        let tests = found.into_iter().zip(names);
        Ok(SlowerList {
            project: project.tag(),
            stable_branch: history.stable_branch.to_string(),
            runs: count(all.len()),
            total,
            tests: tests
                .filter_map(|((suite, run, point), test)| {
                    Some(listed(test, suite, since(&history, run)?, &point))
                })
                .collect(),
        })
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

/// The indexes of the newest complete runs of each suite on the stable branch, oldest first.
fn stable_runs(history: &History) -> BTreeMap<Arc<str>, Vec<usize>> {
    let stable = history.stable();
    let mut runs: Vec<_> = history
        .runs
        .iter()
        .enumerate()
        .filter(|(_, observed)| observed.ending.complete && stable.is(observed.run.branch.as_deref()))
        .collect();
    runs.sort_by_key(|(_, observed)| std::cmp::Reverse((observed.run.started_at, observed.run.number)));
    let mut suites: BTreeMap<Arc<str>, Vec<usize>> = BTreeMap::new();
    let mut all = 0;
    for (index, observed) in runs {
        let of_suite = suites.entry(Arc::clone(&observed.run.variant)).or_default();
        if of_suite.len() < MOST_RUNS_OF_SUITE && all < MOST_RUNS {
            of_suite.push(index);
            all += 1;
        }
    }
    for of_suite in suites.values_mut() {
        of_suite.reverse();
    }
    suites
}

fn durations(
    snapshot: &mut dyn Snapshot,
    history: &History,
    indexes: &[usize],
) -> Result<Vec<Durations>, StoreError> {
    let runs = indexes.iter().filter_map(|index| history.runs.get(*index));
    let runs: Vec<_> = runs
        .map(|observed| (observed.run.number, observed.run.started_at))
        .collect();
    snapshot.green_durations(&runs)
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// A duration in whole milliseconds.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "saturates; a duration is far below 2^63 milliseconds"
)]
pub(crate) fn rounded(ms: f64) -> i64 {
    ms.round() as i64
}

//! The health of a project week by week: how long its stable branch was red, what flaky tests cost, how its runs ended,
//! its tests by verdict, and the time of its suites.
//!
//! A past week is judged as of its end, from the runs of the engine's window before it. The runs are read one by one, and
//! two weeks of them are in memory at a time. Requests share the past weeks until the project changes.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use assay_domain::{
    observation::{History, RunObservations},
    project::{Project, ProjectTag},
    store::{SharedKey, Snapshot, Store, StoreError, in_snapshot, shared},
    test::{TestName, TestOrdinal},
    test_names::TestNames,
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, Verdict},
};
use serde::Serialize;

use self::{
    change::explanation,
    week::{Branch, Week, Weeks},
};
use crate::{
    numbers::count,
    test_list::{JudgedTests, OWNERS, OwnerCounts, StatusCounts, name_of},
};

mod change;
mod week;

/// Days of a week.
const WEEK: i64 = 7;
/// Most suites of the answer.
const MOST_SUITES: usize = 20;

/// The health of a project week by week. A week begins on Monday in UTC.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProjectHealth {
    /// The project.
    pub project: ProjectTag,
    /// The stable branch.
    pub stable_branch: String,
    /// One sentence: which figure of the last whole week changed most in relation to the week before, and why.
    pub explanation: String,
    /// The weeks whose engine's window lies within the retention, from the first one with a run; the last one is the
    /// present week so far.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 11))]
    pub weeks: Vec<HealthWeek>,
    /// The suites of the stable branch, those that took the most time first.
    #[cfg_attr(feature = "openapi", schema(max_items = 20))]
    pub suites: Vec<SuiteWeeks>,
    /// The owners by the present owners file, those whose flaky tests cost the most time first. A test with several
    /// owners counts for each; `unowned` has the tests without one.
    #[cfg_attr(feature = "openapi", schema(max_items = 100))]
    pub owners: Vec<OwnerWeeks>,
    /// The number of further owners.
    pub other_owners: u64,
}

/// A week of a project.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct HealthWeek {
    /// Its start, inclusive.
    pub from: Timestamp,
    /// Its end, exclusive; of the present week the time of the request.
    pub to: Timestamp,
    /// Milliseconds in which the stable branch was red: from the start of a run that failed to the start of a complete run
    /// of the suite that did not. A suite counts until 14 days after its newest run.
    pub red_ms: u64,
    /// The longest red time of the week; null if there is none.
    pub longest_red: Option<RedTime>,
    /// How often the branch became green.
    pub repairs: u64,
    /// The median of the milliseconds that it had been red then (of an even number the lower middle one), from the start of
    /// the run that failed first; null without
    /// a repair.
    pub time_to_green_ms: Option<u64>,
    /// The runs of all branches.
    pub runs: HealthRuns,
    /// The tests of the 14 days before the end of the week, by the verdict at that time.
    pub tests: StatusCounts,
    /// Milliseconds of failed attempts in the runs of the week, of the tests that were flaky at its end.
    pub flaky_lost_ms: u64,
    /// The test with most of it; null if no attempt of a flaky test cost time.
    pub most_lost: Option<LostTime>,
}

/// A time in which the stable branch was red.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RedTime {
    /// The id of the run that failed first.
    pub run_id: String,
    /// Its number.
    pub run_number: i32,
    /// Its start, which may be in an earlier week.
    pub started_at: Timestamp,
    /// The red milliseconds of the week.
    pub red_ms: u64,
}

/// The runs of a week that count in verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HealthRuns {
    /// Runs.
    pub total: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that did not fail, but have a test that passed on retry.
    pub recovered: u64,
}

/// What a flaky test cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct LostTime {
    /// The test.
    pub test: TestName,
    /// Milliseconds of its failed attempts in the week.
    pub lost_ms: u64,
}

/// The time of a suite week by week.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SuiteWeeks {
    /// The suite; empty for runs without one.
    pub suite: String,
    /// In the order of `weeks`.
    pub weeks: Vec<SuiteWeek>,
}

/// The complete runs of a suite on the stable branch in a week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SuiteWeek {
    /// The runs.
    pub runs: u64,
    /// The median of their numbers of tests; null without a run.
    pub tests: Option<u64>,
    /// The median of their milliseconds in which a part ran; null if no report has them.
    pub p50_ms: Option<u64>,
    /// The smallest of these durations that 95 % of them do not exceed.
    pub p95_ms: Option<u64>,
}

/// The tests of an owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct OwnerWeeks {
    /// The owner, or `unowned`.
    pub owner: String,
    /// The tests now.
    pub tests: StatusCounts,
    /// `flakyLostMs` of the tests, in the order of `weeks`.
    pub flaky_lost_ms: Vec<u64>,
}

/// Judges a history as of a time.
type JudgeAt<'a> = dyn Fn(&History, Timestamp) -> Vec<Verdict> + 'a;

/// The health of a project as of one state of it. `judge` calls the engine.
pub fn health(
    store: &dyn Store,
    judge: &JudgeAt<'_>,
    project: &Project,
    now: Timestamp,
) -> Result<ProjectHealth, StoreError> {
    in_snapshot(store, project, |snapshot| {
        let judged = JudgedTests::in_snapshot(snapshot, |history| judge(history, now), now)?;
        let number = (now.day() + 3).div_euclid(WEEK);
        let monday = Timestamp::from_unix_ms(0).plus_days(number * WEEK - 3);
        let key = SharedKey {
            kind: "health",
            of: i32::try_from(number).unwrap_or(i32::MAX),
        };
        let window = (now.plus_days(-ENGINE_WINDOW_DAYS), now);
        let past = shared(snapshot, key, window, |snapshot| {
            let past = past(snapshot, judge, project, &judged.history, (monday, now))?;
            let bytes = size_of_val(&past) + past.0.iter().map(Week::bytes).sum::<usize>();
            Ok((past, bytes))
        })?;
        let (past, branch) = &*past;
        let present = present(snapshot, &judged, branch.clone(), (monday, now))?;
        let names = snapshot.all_test_names()?;
        let past = past.iter().skip_while(|week| week.is_empty());
        let weeks: Vec<&Week> = past.chain([&present]).collect();
        let (owners, other_owners) = owners(&judged, &names, &weeks)?;
        let suites = suites(&weeks);
        let weeks = weeks
            .iter()
            .map(|week| named(week, &names))
            .collect::<Result<Vec<_>, _>>()?;
        let stable_branch = judged.history.stable_branch.to_string();
        Ok(ProjectHealth {
            project: project.tag(),
            explanation: explanation(&stable_branch, &weeks, &suites),
            stable_branch,
            weeks,
            suites,
            owners,
            other_owners,
        })
    })
}

/// The weeks before this Monday whose engine's window lies within the retention, also at the end of the present week, and
/// the state of the stable branch at their end.
fn past(
    snapshot: &mut dyn Snapshot,
    judge: &JudgeAt<'_>,
    project: &Project,
    history: &History,
    (monday, now): (Timestamp, Timestamp),
) -> Result<(Vec<Week>, Branch), StoreError> {
    let retention = now.day() - project.visible_from.day();
    let first = monday.plus_days(-WEEK * (retention / WEEK - 2).max(0));
    let empty = History {
        runs: Vec::new(),
        ..History::clone(history)
    };
    let mut weeks = Weeks::new(judge, empty, first);
    snapshot.each_run(
        (first.plus_days(-WEEK), monday.plus_ms(-1)),
        &mut |observed, duration_ms| weeks.add(observed, duration_ms),
    )?;
    Ok(weeks.until(monday))
}

/// The week since this Monday.
fn present(
    snapshot: &mut dyn Snapshot,
    judged: &JudgedTests,
    mut branch: Branch,
    (monday, now): (Timestamp, Timestamp),
) -> Result<Week, StoreError> {
    let history = &judged.history;
    let first = history.runs.partition_point(|run| run.run.started_at < monday);
    let runs = history.runs.get(first..).unwrap_or_default();
    let keys: Vec<(i32, Timestamp)> = runs
        .iter()
        .map(|run| (run.run.number, run.run.started_at))
        .collect();
    let durations = snapshot.run_durations(&keys)?;
    let runs: Vec<(&RunObservations, Option<u64>)> = runs.iter().zip(durations).collect();
    Ok(Week::of(
        (monday, now),
        history.stable(),
        &runs,
        &judged.verdicts,
        &mut branch,
    ))
}

/// A week with the name of the test that cost most.
fn named(week: &Week, names: &TestNames) -> Result<HealthWeek, StoreError> {
    let most = week.lost.iter().max_by_key(|(test, ms)| (*ms, Reverse(*test)));
    let named = |(test, lost_ms): &(TestOrdinal, u64)| {
        let test = name_of(names, *test)?.owned();
        Ok::<_, StoreError>(LostTime {
            test,
            lost_ms: *lost_ms,
        })
    };
    Ok(HealthWeek {
        most_lost: most.map(named).transpose()?,
        ..week.figures.clone()
    })
}

/// The suites that took the most time.
fn suites(weeks: &[&Week]) -> Vec<SuiteWeeks> {
    let names: BTreeSet<&Arc<str>> = weeks.iter().flat_map(|week| week.suites.keys()).collect();
    let of = |name: &Arc<str>| {
        let of_week = |week: &&Week| week.suites.get(name).copied().unwrap_or_default();
        SuiteWeeks {
            suite: name.to_string(),
            weeks: weeks.iter().map(of_week).collect(),
        }
    };
    let mut suites: Vec<SuiteWeeks> = names.into_iter().map(of).collect();
    let time = |week: &SuiteWeek| week.runs.saturating_mul(week.p50_ms.unwrap_or(0));
    suites.sort_by_key(|suite| Reverse(suite.weeks.iter().map(time).sum::<u64>()));
    suites.truncate(MOST_SUITES);
    suites
}

/// The owners, and the number of those that the answer omits.
fn owners(
    judged: &JudgedTests,
    names: &TestNames,
    weeks: &[&Week],
) -> Result<(Vec<OwnerWeeks>, u64), StoreError> {
    let mut lookup = judged.owners.lookup();
    let mut owners: BTreeMap<String, (StatusCounts, Vec<u64>)> = BTreeMap::new();
    let none = || (StatusCounts::default(), vec![0; weeks.len()]);
    for (place, week) in weeks.iter().enumerate() {
        for (test, ms) in &week.lost {
            for owner in lookup.of(name_of(names, *test)?.file_path).groups() {
                let (_, lost) = owners.entry(owner.to_owned()).or_insert_with(none);
                if let Some(of_week) = lost.get_mut(place) {
                    *of_week += ms;
                }
            }
        }
    }
    for OwnerCounts { owner, counts } in judged.owner_counts(&judged.entries(names, |_| true)?) {
        owners.entry(owner).or_insert_with(none).0 = counts;
    }
    let of = |(owner, (tests, flaky_lost_ms))| OwnerWeeks {
        owner,
        tests,
        flaky_lost_ms,
    };
    let mut owners: Vec<OwnerWeeks> = owners.into_iter().map(of).collect();
    owners.sort_by_key(|owner| {
        let lost: u64 = owner.flaky_lost_ms.iter().sum();
        Reverse((lost, owner.tests.flaky, owner.tests.broken))
    });
    let others = owners.len().saturating_sub(OWNERS);
    owners.truncate(OWNERS);
    Ok((owners, count(others)))
}

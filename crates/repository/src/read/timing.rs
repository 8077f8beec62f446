//! The usual durations of tests, from the newest passed runs of the stable branch.

use std::collections::HashMap;

use assay_domain::{
    attempt::AttemptStatus,
    id::RunId,
    joins::Joins,
    observation::Bitmap,
    project::Project,
    run::Outcome,
    test::TestOrdinal,
    timestamp::Timestamp,
    timing::{RUNS_PER_SUITE, TIMED_RUNS, TestTiming, TimedRun, Timings, lower_median},
};
use diesel::{dsl::exists, prelude::*};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    db::{
        column::{At, count, status_code},
        period::retention_bounds,
        pool::Read,
        schema::{part, project as projects, run},
    },
    read::{joins, result_block, test_name_cache::TestNameCache},
};

/// The most passed runs that are looked at to find those of each suite.
const CANDIDATES: i64 = 1_000;

/// The usual durations of the tests, by the runs that had arrived whole before a time.
pub(crate) fn find(
    connection: &mut PgConnection,
    cache: &TestNameCache,
    project: &Project,
    before: Timestamp,
) -> Read<Timings> {
    let (stable_branch, joined): (String, Option<Value>) = projects::table
        .filter(projects::id.eq(project.id.0))
        .select((projects::stable_branch, projects::joined_tests))
        .first(connection)?;
    let joins = joins::parsed(joined)?;
    let runs = newest_of_each_suite(passed_runs(connection, project, &stable_branch, before)?);
    let numbers: Vec<i32> = runs.iter().map(|run| run.run_number).collect();
    let mut durations: HashMap<TestOrdinal, Vec<u64>> = HashMap::new();
    if let (Some(newest), Some(oldest)) = (
        runs.iter().map(|run| run.started_at).max(),
        runs.iter().map(|run| run.started_at).min(),
    ) {
        // An expected failure is stored as skipped, and it takes time.
        let timed = [AttemptStatus::Passed, AttemptStatus::Skipped].map(status_code);
        result_block::for_each_of_runs(
            connection,
            project.id.0,
            &numbers,
            (At(oldest), At(newest)),
            |_, result| {
                let milliseconds = result.duration_ms.and_then(|ms| u64::try_from(ms).ok());
                if let (true, Some(milliseconds), Ok(test)) =
                    (timed.contains(&result.status), milliseconds, count(result.test))
                {
                    durations
                        .entry(joins.current(test))
                        .or_default()
                        .push(milliseconds);
                }
            },
        )?;
    }
    let names = cache.current(connection, project.id.0)?;
    let mut tests = Vec::with_capacity(durations.len());
    for (test, mut durations) in durations {
        if let (Some(name), Some(duration_ms)) = (names.get(test), lower_median(&mut durations)) {
            tests.push(TestTiming {
                test_name: name.name.to_owned(),
                file_path: name.file_path.map(str::to_owned),
                duration_ms,
            });
        }
    }
    tests.sort_unstable_by(|a, b| (&a.file_path, &a.test_name).cmp(&(&b.file_path, &b.test_name)));
    Ok(Timings {
        stable_branch,
        runs,
        tests,
    })
}

/// The durations of the tests that passed at their first attempt, for each of these runs in their order.
pub(crate) fn of_runs(
    connection: &mut PgConnection,
    project: &Project,
    joins: &Joins,
    runs: &[(i32, Timestamp)],
) -> Read<Vec<Vec<(TestOrdinal, u64)>>> {
    let starts = || runs.iter().map(|(_, start)| *start);
    let (Some(oldest), Some(newest)) = (starts().min(), starts().max()) else {
        return Ok(Vec::new());
    };
    let places: HashMap<i32, usize> = runs
        .iter()
        .enumerate()
        .map(|(place, (run, _))| (*run, place))
        .collect();
    let numbers: Vec<i32> = places.keys().copied().collect();
    let mut durations = vec![Vec::new(); runs.len()];
    let passed = status_code(AttemptStatus::Passed);
    let mut unknown = None;
    let mut reported: HashMap<usize, Bitmap> = HashMap::new();
    let bounds = (At(oldest), At(newest));
    result_block::for_each_of_runs(connection, project.id.0, &numbers, bounds, |run, result| {
        if let (false, Ok(test), Some(place)) = (joins.is_empty(), count(result.test), places.get(&run)) {
            reported.entry(*place).or_default().insert(test);
        }
        let is_green = result.status == passed && result.attempts <= 1;
        let milliseconds = result.duration_ms.and_then(|ms| u64::try_from(ms).ok());
        let of_run = places.get(&run).and_then(|place| durations.get_mut(*place));
        if let (true, Some(milliseconds), Some(of_run)) = (is_green, milliseconds, of_run) {
            match count(result.test) {
                Ok(test) => of_run.push((test, milliseconds)),
                Err(error) => unknown = Some(error),
            }
        }
    })?;
    for (place, tests) in reported {
        if let (Some((_, start)), Some(of_run)) = (runs.get(place), durations.get_mut(place)) {
            let moves = joins.in_run(*start, &tests);
            for (test, _) in &mut *of_run {
                *test = moves.get(test).copied().unwrap_or(*test);
            }
        }
    }
    match unknown {
        Some(error) => Err(error.into()),
        None => Ok(durations),
    }
}

/// The time in which a part of each of these runs ran, in their order.
pub(crate) fn whole_runs(
    connection: &mut PgConnection,
    project: &Project,
    runs: &[(i32, Timestamp)],
) -> QueryResult<Vec<Option<u64>>> {
    let numbers: Vec<i32> = runs.iter().map(|(number, _)| *number).collect();
    let known: HashMap<i32, Option<i64>> = run::table
        .filter(run::project_id.eq(project.id.0))
        .filter(run::number.eq_any(&numbers))
        .select((run::number, run::duration_ms))
        .load(connection)?
        .into_iter()
        .collect();
    let duration = |number: &i32| u64::try_from((*known.get(number)?)?).ok();
    Ok(numbers.iter().map(duration).collect())
}

/// The newest passed, complete runs of the stable branch, newest first. No part of them arrived at this time or later.
fn passed_runs(
    connection: &mut PgConnection,
    project: &Project,
    stable_branch: &str,
    before: Timestamp,
) -> QueryResult<Vec<TimedRun>> {
    let (from, to) = retention_bounds(project);
    let arrived_later = part::table
        .filter(part::project_id.eq(project.id.0))
        .filter(part::run_number.eq(run::number))
        .filter(part::id.ge(first_id_of(before)));
    let rows: Vec<(Uuid, i32, Option<String>, At)> = run::table
        .filter(run::project_id.eq(project.id.0))
        .filter(run::branch.eq(stable_branch))
        .filter(run::started_at.between(from, to))
        .filter(run::status.eq(Outcome::Passed.as_str()))
        .filter(run::complete)
        .filter(run::counts_in_verdicts)
        .filter(diesel::dsl::not(exists(arrived_later)))
        .order((run::started_at.desc(), run::number.desc()))
        .limit(CANDIDATES)
        .select((run::id, run::number, run::suite, run::started_at))
        .load(connection)?;
    let timed_run = |(id, run_number, suite, started_at): (Uuid, i32, Option<String>, At)| TimedRun {
        id: RunId(id),
        run_number,
        suite,
        started_at: started_at.0,
    };
    Ok(rows.into_iter().map(timed_run).collect())
}

/// The newest runs of each suite, of runs in their order.
fn newest_of_each_suite(runs: Vec<TimedRun>) -> Vec<TimedRun> {
    let mut of_suite: HashMap<Option<String>, usize> = HashMap::new();
    let mut is_among_newest = |run: &TimedRun| {
        let before = of_suite.entry(run.suite.clone()).or_default();
        *before += 1;
        *before <= RUNS_PER_SUITE
    };
    runs.into_iter()
        .filter(|run| is_among_newest(run))
        .take(TIMED_RUNS)
        .collect()
}

/// The smallest id of a part that arrived at this time or later: ids begin with the time of arrival.
fn first_id_of(time: Timestamp) -> Uuid {
    let ms = u128::try_from(time.unix_ms()).unwrap_or(0);
    Uuid::from_u128(ms << 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_ordered_by_arrival() {
        let at = |ms| first_id_of(Timestamp::from_unix_ms(ms));
        let id = |ms: u64| {
            let time = uuid::Timestamp::from_unix(
                uuid::NoContext,
                ms / 1_000,
                u32::try_from(ms % 1_000).unwrap() * 1_000_000,
            );
            Uuid::new_v7(time)
        };
        assert!(id(1_700_000_000_122) < at(1_700_000_000_123));
        assert!(id(1_700_000_000_123) >= at(1_700_000_000_123));
    }
}

//! What verdicts know of results, so that the most frequent reads need none: how each test ended in its last run,
//! and when the newest run with it started.

use std::collections::{BTreeMap, HashMap};

use assay_domain::{
    observation::{Bitmap, History},
    test::TestOrdinal,
};
use diesel::{ExpressionMethods, PgConnection, QueryDsl, QueryResult, RunQueryDsl, dsl::max};
use uuid::Uuid;

use super::{Touched, rows::Rows};
use crate::{
    column::{At, int},
    observation::{self, Ended},
    pool::Read,
    schema::{result, verdict},
};

/// Completes the rows of judged tests.
pub(super) fn complete(
    connection: &mut PgConnection,
    project: Uuid,
    rows: &mut Rows,
    history: &History,
    touched: &Touched,
) -> Read<()> {
    let starts: HashMap<i32, At> = history
        .runs
        .iter()
        .map(|run| (run.run.number, At(run.run.started_at)))
        .collect();
    let known = known(connection, project, touched)?;
    let (mut tests, mut runs) = (Vec::new(), BTreeMap::new());
    for (test, run) in rows.tests.iter().zip(&rows.last_runs) {
        let Some(run) = run else { continue };
        if !known.contains_key(&(*test, *run))
            && let Some(start) = starts.get(run)
        {
            tests.push(*test);
            runs.insert(*run, *start);
        }
    }
    let read = if tests.is_empty() {
        HashMap::new()
    } else {
        observation::ended(connection, project, &tests, &runs)?
    };
    let newest = newest_starts(history);
    for (index, (test, run)) in rows.tests.iter().zip(&rows.last_runs).enumerate() {
        let ended = run.and_then(|run| known.get(&(*test, run)).or_else(|| read.get(&(*test, run))));
        if let Some(slot) = rows.last_statuses.get_mut(index) {
            *slot = ended.map(|ended| ended.status);
        }
        if let Some(slot) = rows.last_offsets.get_mut(index) {
            *slot = ended.and_then(|ended| ended.offset_ms);
        }
        if let Some(slot) = rows.newest.get_mut(index) {
            *slot = newest.get(test).copied();
        }
    }
    Ok(())
}

/// Test, last run, and how it ended there.
type Row = (i32, Option<i32>, Option<i16>, Option<i32>);

/// How the tests ended in the last runs that are stored with their verdicts, but for a run that was written anew, by
/// test and run.
fn known(
    connection: &mut PgConnection,
    project: Uuid,
    touched: &Touched,
) -> QueryResult<HashMap<(i32, i32), Ended>> {
    let rows: Vec<Row> = verdict::table
        .filter(verdict::project_id.eq(project))
        .select((
            verdict::test,
            verdict::last_run,
            verdict::last_status,
            verdict::last_offset_ms,
        ))
        .load(connection)?;
    let known = |(test, run, status, offset_ms): Row| {
        let run = run.filter(|run| Some(*run) != touched.run && !touched.all)?;
        Some((
            (test, run),
            Ended {
                status: status?,
                offset_ms,
            },
        ))
    };
    Ok(rows.into_iter().filter_map(known).collect())
}

/// When the newest run with each test started. Goes back no further than to the oldest of these runs, and from word to
/// word only where there is a test that no newer run has.
fn newest_starts(history: &History) -> HashMap<i32, At> {
    let mut newest = HashMap::new();
    let mut found = Vec::new();
    let mut runs: Vec<_> = history.runs.iter().collect();
    runs.sort_by_key(|run| std::cmp::Reverse((run.run.started_at, run.run.number)));
    for run in runs {
        let words = run.present.words();
        if found.len() < words.len() {
            found.resize(words.len(), 0);
        }
        let fresh: Vec<u64> = words
            .iter()
            .zip(&mut found)
            .map(|(word, found)| {
                let fresh = word & !*found;
                *found |= word;
                fresh
            })
            .collect();
        let fresh = Bitmap::from_words(fresh);
        newest.extend(
            fresh
                .iter()
                .map(|test: TestOrdinal| (int(test), At(run.run.started_at))),
        );
    }
    newest
}

/// When the newest run with each of these tests started, out of all that are stored.
pub(super) fn newest_of<'a>(
    connection: &mut PgConnection,
    project: Uuid,
    tests: impl Iterator<Item = &'a i32>,
) -> QueryResult<HashMap<i32, At>> {
    let tests: Vec<i32> = tests.copied().collect();
    if tests.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<(i32, Option<At>)> = result::table
        .filter(result::project_id.eq(project))
        .filter(result::test.eq_any(tests))
        .group_by(result::test)
        .select((result::test, max(result::started_at)))
        .load(connection)?;
    Ok(rows
        .into_iter()
        .filter_map(|(test, start)| Some((test, start?)))
        .collect())
}

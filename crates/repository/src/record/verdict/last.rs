//! The parts of results that verdict rows contain: each test's result in its last run, and the start of its newest
//! run. The most frequent reads therefore need no results.

use std::collections::HashMap;

use assay_domain::{
    observation::{Bitmap, History},
    store::StoreError,
    test::TestOrdinal,
    verdict::VerdictStatus,
};
use diesel::{
    ExpressionMethods, PgConnection, QueryDsl, QueryResult, QueryableByName, RunQueryDsl,
    sql_types::{Array, Integer, Text, Uuid as SqlUuid},
};
use uuid::Uuid;

use super::{ImportChanges, rows::Rows};
use crate::{
    db::{
        column::{At, int, word},
        pool::Read,
        schema::verdict,
    },
    read::observation::{self, StoredFinalResult},
};

/// The last results in a stored verdict.
#[derive(Debug)]
pub(super) struct LastResults {
    pub(super) status: VerdictStatus,
    /// Whether its test had a result in the engine's window.
    pub(super) in_window: bool,
    /// The last run, and the test's result in it.
    last: Option<(i32, StoredFinalResult)>,
}

/// Test, status of its verdict, whether it was in the window, last run, status and start offset in that run.
type Row = (i32, String, bool, Option<i32>, Option<i16>, Option<i32>);

/// The last results of the stored verdicts, by test.
pub(super) fn stored(connection: &mut PgConnection, project: Uuid) -> Read<HashMap<i32, LastResults>> {
    let rows: Vec<Row> = verdict::table
        .filter(verdict::project_id.eq(project))
        .select((
            verdict::test,
            verdict::status,
            verdict::in_window,
            verdict::last_run,
            verdict::last_status,
            verdict::last_offset_ms,
        ))
        .load(connection)?;
    let stored = |(test, status, in_window, run, last_status, offset_ms): Row| {
        let final_result = last_status.map(|status| StoredFinalResult { status, offset_ms });
        let stored = LastResults {
            status: word("verdict", &status)?,
            in_window,
            last: run.zip(final_result),
        };
        Ok((test, stored))
    };
    Ok(rows.into_iter().map(stored).collect::<Result<_, StoreError>>()?)
}

/// Completes the rows of judged tests.
pub(super) fn complete(
    connection: &mut PgConnection,
    project: Uuid,
    rows: &mut Rows,
    history: &History,
    stored: &HashMap<i32, LastResults>,
    import_changes: &ImportChanges,
) -> Read<()> {
    let starts: HashMap<i32, At> = history
        .runs
        .iter()
        .map(|run| (run.run.number, At(run.run.started_at)))
        .collect();
    // Known without reading results: the run that was just written, and runs without changes.
    let known_result = |test: i32, run: i32| {
        if Some(run) == import_changes.run {
            return import_changes.final_results.get(&test).copied();
        }
        let (last_run, final_result) = stored.get(&test)?.last?;
        (last_run == run && !import_changes.all).then_some(final_result)
    };
    let mut unknown = Vec::new();
    for (test, run) in rows.tests.iter().zip(&rows.last_runs) {
        let Some(run) = run else { continue };
        if known_result(*test, *run).is_none()
            && let Some(start) = starts.get(run)
        {
            unknown.push((*test, *run, *start));
        }
    }
    let stored_results = observation::stored_final_results(connection, project, &unknown)?;
    let newest = newest_starts(history);
    for (index, (test, run)) in rows.tests.iter().zip(&rows.last_runs).enumerate() {
        let final_result = run
            .and_then(|run| known_result(*test, run).or_else(|| stored_results.get(&(*test, run)).copied()));
        if let Some(slot) = rows.last_statuses.get_mut(index) {
            *slot = final_result.map(|result| result.status);
        }
        if let Some(slot) = rows.last_offsets.get_mut(index) {
            *slot = final_result.and_then(|result| result.offset_ms);
        }
        if let Some(slot) = rows.newest.get_mut(index) {
            *slot = newest.get(test).copied();
        }
    }
    Ok(())
}

/// The start of the newest run with each test.
fn newest_starts(history: &History) -> HashMap<i32, At> {
    let mut newest = HashMap::new();
    let mut newest_words = Vec::new();
    let mut runs: Vec<_> = history.runs.iter().collect();
    runs.sort_by_key(|run| std::cmp::Reverse((run.run.started_at, run.run.number)));
    for run in runs {
        let words = run.present.words();
        if newest_words.len() < words.len() {
            newest_words.resize(words.len(), 0);
        }
        let fresh: Vec<u64> = words
            .iter()
            .zip(&mut newest_words)
            .map(|(word, newest_words)| {
                let fresh = word & !*newest_words;
                *newest_words |= word;
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

/// A stored verdict on a test that no run of the window has.
#[derive(Debug, QueryableByName)]
pub(super) struct VerdictOutsideWindow {
    #[diesel(sql_type = Integer)]
    pub(super) test: i32,
    #[diesel(sql_type = Text)]
    pub(super) body: String,
}

/// The stored verdicts on these tests, which have no result in the window.
pub(super) fn outside_window(
    connection: &mut PgConnection,
    project: Uuid,
    tests: &[i32],
) -> QueryResult<Vec<VerdictOutsideWindow>> {
    if tests.is_empty() {
        return Ok(Vec::new());
    }
    // Raw SQL, because diesel has no rows from arrays.
    diesel::sql_query(
        "SELECT verdict.test, verdict.body FROM unnest($2) AS asked (test) \
         JOIN verdict ON verdict.project_id = $1 AND verdict.test = asked.test",
    )
    .bind::<SqlUuid, _>(project)
    .bind::<Array<Integer>, _>(tests)
    .load(connection)
}

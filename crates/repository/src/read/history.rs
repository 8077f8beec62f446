//! A test's history.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use assay_domain::{
    attempt::AttemptStatus,
    execution::TestOutcome,
    history::{HistoryRest, Occurrence, TestHistory},
    id::RunId,
    joins::Joins,
    period::Period,
    project::Project,
    revision::{RevisionOrigin, tested_or_commit},
    store::StoreError,
    test::{TestLookup, TestOrdinal, TestSelector},
    timestamp::Timestamp,
};
use diesel::prelude::*;
use uuid::Uuid;

use crate::{
    db::{
        column::{At, corrupt, count, duration, int, status},
        period::visible,
        pool::Read,
        schema::attempt,
        sql_statement::{Part, SqlStatement, sql_row},
    },
    read::{
        joins::{self, of_tests},
        result_block::{result_of, with_tests},
        revision, test,
    },
};

/// The outcomes of a test in the runs of a period, newest first.
pub(crate) fn find(
    connection: &mut PgConnection,
    project: &Project,
    selector: &TestSelector,
    period: &Period,
) -> Read<TestLookup<TestHistory>> {
    let lookup = test::find(connection, project, selector)?;
    lookup.try_map(|test| {
        let after = (period.to, i32::MAX);
        let rows = newest_rows(connection, project, &test.stored_as, period, after)?;
        let newest = rows.first().map(|row| row.started_at.0);
        let revisions = revision::load(connection, project, &test.stable_branch, period.to, newest)?;
        let rest = HistoryRest {
            test: test.ordinal,
            stored_as: test.stored_as,
            period: *period,
            revisions: Arc::new(revisions),
            after,
            runs: HashSet::new(),
        };
        let (occurrences, rest) = occurrences(connection, project, rows, rest)?;
        Ok(TestHistory {
            test: test.name,
            written_name: test.written_name,
            stable_branch: test.stable_branch,
            occurrences,
            rest,
        })
    })
}

/// How many occurrences are read at once.
const PART_OCCURRENCES: usize = 1_000;
/// SQL: one more.
const PART_AND_NEXT: &str = "1001";
const _: () = assert!(PART_OCCURRENCES == 1_000, "PART_AND_NEXT is one more");

sql_row! {
    #[derive(Debug)]
    struct Row {
        /// The number under which the result is stored.
        test: i32,
        run_id: Uuid,
        run_number: i32,
        branch: Option<String>,
        tested_revision: Option<String>,
        commit_sha: Option<String>,
        suite: Option<String>,
        counts_in_verdicts: bool,
        started_at: At,
        status: i16,
        duration_ms: Option<i64>,
    }
}

/// The next occurrences of a history, and the rest that is still to be read.
pub(crate) fn part(
    connection: &mut PgConnection,
    project: &Project,
    rest: HistoryRest,
) -> Read<(Vec<Occurrence>, Option<HistoryRest>)> {
    let rows = newest_rows(connection, project, &rest.stored_as, &rest.period, rest.after)?;
    occurrences(connection, project, rows, rest)
}

/// The results of a part and of the run after it: the newest ones of some tests in the runs before `after`, newest first.
fn newest_rows(
    connection: &mut PgConnection,
    project: &Project,
    tests: &[i32],
    period: &Period,
    (started_at, number): (Timestamp, i32),
) -> QueryResult<Vec<Row>> {
    let (from, _) = visible(project, period);
    // No parameter: for any limit Postgres expects a tenth of all rows.
    let limit = match tests {
        [_] => Part::Sql(PART_AND_NEXT),
        several => Part::BigInt(i64::try_from(PART_OCCURRENCES + several.len()).unwrap_or(i64::MAX)),
    };
    // The blocks come in the order of their key, and so few are read. Then their runs are looked up.
    let statement = SqlStatement::new(concat!(
        "SELECT newest.test, run.id, run.number, run.branch, run.tested_revision, run.commit_sha, run.suite, \
             run.counts_in_verdicts, newest.started_at, newest.status, newest.duration_ms \
         FROM (SELECT requested.test, of_test.* FROM {requested} AS requested CROSS JOIN LATERAL (\
             SELECT block.started_at, block.run_number, result.status, result.duration_ms \
             FROM result_block AS block",
        result_of!("requested.test"),
        " WHERE block.block = requested.test / 512 AND block.project_id = {project} \
             AND block.started_at BETWEEN {from} AND {before} \
             AND (block.started_at < {before} OR block.run_number < {number}) \
             ORDER BY block.started_at DESC, block.run_number DESC LIMIT {limit}) AS of_test \
             ORDER BY started_at DESC, run_number DESC LIMIT {limit}) AS newest \
         JOIN run ON run.number = newest.run_number AND run.project_id = {project} \
         ORDER BY newest.started_at DESC, newest.run_number DESC"
    ));
    with_tests(statement, tests)
        .bind("project", project.id.0)
        .bind("from", from)
        .bind("before", At(started_at))
        .bind("number", number)
        .bind("limit", limit)
        .load(connection)
}

/// The occurrences of a part's rows, and the rest.
fn occurrences(
    connection: &mut PgConnection,
    project: &Project,
    mut rows: Vec<Row>,
    mut rest: HistoryRest,
) -> Read<(Vec<Occurrence>, Option<HistoryRest>)> {
    let has_more = truncate_to_whole_runs(&mut rows);
    let (Some(newest), Some(oldest)) = (rows.first(), rows.last()) else {
        return Ok((Vec::new(), None));
    };
    let (newest, oldest) = (newest.started_at, oldest.started_at);
    if let Some(last) = rows.last() {
        rest.after = (last.started_at.0, last.run_number);
    }
    if rest.stored_as.len() > 1 {
        let joins = joins::load(connection, project.id.0)?;
        keep_counting(&mut rows, &joins, count(rest.test)?);
    }
    rows.retain(|row| rest.runs.insert(row.run_number));
    let mut retried = retried(connection, project.id.0, &rest.stored_as, oldest, newest)?;
    let occurrences = rows
        .into_iter()
        .map(|row| {
            let retried_outcome = retried.remove(&(row.run_number, row.test));
            let revision = if row.counts_in_verdicts {
                rest.revisions.origin(
                    row.run_number,
                    tested_or_commit(row.tested_revision.as_deref(), row.commit_sha.as_deref()),
                    row.started_at.0,
                )
            } else {
                RevisionOrigin::default()
            };
            row.into_occurrence(retried_outcome, revision)
        })
        .collect::<Result<_, _>>()?;
    Ok((occurrences, has_more.then_some(rest)))
}

/// Cuts rows to the runs that are whole in one part, and returns whether there are more.
fn truncate_to_whole_runs(rows: &mut Vec<Row>) -> bool {
    let Some(next) = rows.get(PART_OCCURRENCES) else {
        return false;
    };
    let next = next.run_number;
    let first_of_next = rows.iter().position(|row| row.run_number == next);
    rows.truncate(first_of_next.unwrap_or(PART_OCCURRENCES));
    true
}

/// Keeps of each run the result that counts as that of this test.
fn keep_counting(rows: &mut Vec<Row>, joins: &Joins, test: TestOrdinal) {
    let mut counting = HashSet::new();
    for run in rows.chunk_by(|current, next| current.run_number == next.run_number) {
        let Some(first) = run.first() else { continue };
        let of_name = |name| run.iter().find(|row| row.test == int(name));
        let row = joins.result_of(test, first.started_at.0, of_name);
        counting.extend(row.map(|row| (row.run_number, row.test)));
    }
    rows.retain(|row| counting.contains(&(row.run_number, row.test)));
}

/// The outcomes by run and test in those runs of the period for which these tests have rows of `attempt`.
fn retried(
    connection: &mut PgConnection,
    project: Uuid,
    tests: &[i32],
    from: At,
    to: At,
) -> Read<HashMap<(i32, i32), TestOutcome>> {
    type Row = ((i32, i32), i32, i16, Option<i64>);
    let rows: Vec<Row> = attempt::table
        .filter(attempt::project_id.eq(project))
        .filter(of_tests(tests))
        .filter(attempt::started_at.between(from, to))
        .order((
            attempt::run_number,
            attempt::test,
            attempt::execution,
            attempt::retry,
        ))
        .select((
            (attempt::run_number, attempt::test),
            attempt::execution,
            attempt::status,
            attempt::duration_ms,
        ))
        .load(connection)?;
    let rows = rows
        .into_iter()
        .map(|(run, execution, code, duration_ms)| {
            Ok((run, execution, (status(code)?, duration(duration_ms)?)))
        })
        .collect::<Result<Vec<_>, StoreError>>()?;
    let runs = rows.chunk_by(|current, next| current.0 == next.0);
    let outcome = |run: &[((i32, i32), i32, Attempt)]| {
        let executions = run.chunk_by(|current, next| current.1 == next.1);
        let attempts = executions.map(|execution| execution.iter().map(|row| row.2));
        Some((run.first()?.0, TestOutcome::of(attempts)?))
    };
    Ok(runs.filter_map(outcome).collect())
}

/// Status and milliseconds.
type Attempt = (AttemptStatus, Option<u64>);

impl Row {
    fn into_occurrence(
        self,
        retried: Option<TestOutcome>,
        revision: RevisionOrigin,
    ) -> Result<Occurrence, StoreError> {
        let (status, duration_ms) = (status(self.status)?, duration(self.duration_ms)?);
        let outcome = retried
            .or_else(|| TestOutcome::of([[(status, duration_ms)]]))
            .ok_or_else(|| corrupt("test without attempts", &self.run_number.to_string()))?;
        Ok(Occurrence {
            run_id: RunId(self.run_id),
            run_number: self.run_number,
            branch: self.branch,
            tested_revision: self.tested_revision,
            commit_sha: self.commit_sha,
            suite: self.suite,
            started_at: self.started_at.0,
            status,
            duration_ms,
            attempts: outcome.attempts,
            wasted_ms: outcome.wasted_ms,
            lost_ms: outcome.timed.then_some(outcome.lost_ms.unwrap_or(0)),
            any_failed_attempt: outcome.failed_attempts > 0,
            trusted: self.counts_in_verdicts,
            revision,
        })
    }
}

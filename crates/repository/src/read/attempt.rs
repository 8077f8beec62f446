//! The attempts of one test in one run.

use std::collections::VecDeque;

use assay_domain::{
    attempt::{AttemptOutput, ErrorDetail, ShardTag},
    id::RunId,
    project::Project,
    run::RunTag,
    store::StoreError,
    test::{FileSelector, TestLookup, TestName, TestSelector},
    test_attempts::{StoredAttempt, TestAttempts},
};
use diesel::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    db::{
        column::{At, corrupt, count, duration, failure_codes, file_hash, short_hash, status},
        period::retention_bounds,
        pool::Read,
        sql_statement::{SqlStatement, sql_row},
    },
    read::{
        part::text_bytes,
        result_block::result_of,
        test::{choose, is_in_file, stable_selector},
        verdict,
    },
};

/// SQL: the errors of a row of `attempt`, up to the project. A query of its own, because a join may search all
/// partitions.
macro_rules! errors_of {
    ($attempt:literal) => {
        concat!(
            "(SELECT texts.errors[",
            $attempt,
            ".texts_place]",
            $crate::read::attempt::from_texts!($attempt)
        )
    };
}
pub(crate) use errors_of;

/// SQL: an array of the errors and the output of a row of `attempt`, as [`errors_of`].
macro_rules! texts_of {
    ($attempt:literal) => {
        concat!(
            "(SELECT ARRAY[texts.errors[",
            $attempt,
            ".texts_place], texts.outputs[",
            $attempt,
            ".texts_place]]",
            $crate::read::attempt::from_texts!($attempt)
        )
    };
}

/// SQL: the row of `attempt_texts` of a row of `attempt`, up to the project.
macro_rules! from_texts {
    ($attempt:literal) => {
        concat!(
            " FROM attempt_texts AS texts WHERE texts.run_number = ",
            $attempt,
            ".run_number AND texts.part = ",
            $attempt,
            ".part AND texts.number = ",
            $attempt,
            ".texts AND texts.started_at = ",
            $attempt,
            ".started_at AND texts.project_id = {project})"
        )
    };
}
pub(crate) use from_texts;

sql_row! {
    /// An attempt with its run and its test. Every row has the run, even without a test or an attempt.
    #[derive(Debug)]
    struct Row {
        run: RunRow,
        /// None if the run has no test of the name.
        result: Option<ResultRow>,
        /// None for a single attempt without errors, which the result describes completely.
        attempt: Option<AttemptRow>,
        browser_name: Option<String>,
        /// The id of the shard that ran it, and its index in a run with shards.
        part: Option<(Uuid, Option<i32>)>,
    }
}

sql_row! {
    #[derive(Debug)]
    struct RunRow {
        id: Uuid,
        number: i32,
        branch: Option<String>,
        commit_sha: Option<String>,
        tested_revision: Option<String>,
        started_at: At,
    }
}

sql_row! {
    /// The result of the test in the run.
    #[derive(Debug)]
    struct ResultRow {
        test: i32,
        file_path: Option<String>,
        /// The hash of the file of the test's identity.
        file_hash: Vec<u8>,
        status: i16,
        duration_ms: Option<i64>,
    }
}

sql_row! {
    #[derive(Debug)]
    struct AttemptRow {
        execution: i32,
        retry: i32,
        status: i16,
        duration_ms: Option<i64>,
        /// Its errors, and its output.
        texts: Option<Vec<Option<Value>>>,
        skip_reason: Option<String>,
    }
}

/// The attempts of a test in a run; none if there is no such run.
///
/// The candidates are the tests of this name with a result in the run, unlike those of [`find`](super::test::find). The
/// answer is about one run, so a test of the same name that did not run there does not make the name ambiguous. The
/// rows of the run contain the candidates, and the whole answer needs one statement.
pub(crate) fn find(
    connection: &mut PgConnection,
    project: &Project,
    id: RunId,
    selector: &TestSelector,
) -> Read<Option<TestLookup<TestAttempts>>> {
    match (
        find_named(connection, project, id, selector)?,
        stable_selector(selector),
    ) {
        (Some(TestLookup::Missing), Some(stable)) => find_named(connection, project, id, &stable),
        (found, _) => Ok(found),
    }
}

fn find_named(
    connection: &mut PgConnection,
    project: &Project,
    id: RunId,
    selector: &TestSelector,
) -> Read<Option<TestLookup<TestAttempts>>> {
    let mut candidates: Vec<(TestName, Vec<u8>, CappedRows)> = Vec::new();
    let (mut last_test, mut has_run) = (None, false);
    let (_, to) = retention_bounds(project);
    for row in rows(connection, project, id, &short_hash(&selector.name))? {
        let row = row?;
        if row.run.started_at > to {
            return Ok(None);
        }
        has_run = true;
        let Some(result) = &row.result else { continue };
        if last_test != Some(result.test) {
            last_test = Some(result.test);
            let name = TestName {
                name: selector.name.clone(),
                file_path: result.file_path.clone(),
            };
            if let (FileSelector::Any, Some((.., attempt_rows))) = (&selector.file, candidates.last_mut()) {
                // The name is ambiguous, so the answer has only the files.
                *attempt_rows = CappedRows::default();
            }
            candidates.push((name, result.file_hash.clone(), CappedRows::default()));
        }
        if let Some((name, hash, attempt_rows)) = candidates.last_mut()
            && is_in_file(&selector.file, name.file_path.as_deref(), hash)
        {
            attempt_rows.push(row);
        }
    }
    if !has_run {
        return Ok(None);
    }
    let choice = choose(candidates, &selector.file, |(name, hash, _)| (name, hash));
    let attempts = choice.try_map(|(name, _, rows)| {
        let ordinal = rows
            .oldest
            .first()
            .and_then(|row| row.result.as_ref())
            .map(|result| result.test);
        let mut attempts = attempts(name, rows)?;
        // Only the prompt for a failed attempt shows the verdict.
        let failed = attempts
            .attempts
            .iter()
            .any(|attempt| attempt.status.is_failure());
        if let Some(ordinal) = ordinal.filter(|_| failed) {
            attempts.verdict = verdict::of_test(connection, project, ordinal)?;
        }
        Ok(attempts)
    });
    attempts.map(Some)
}

/// The errors of the last failed attempt of each of these tests in its run, in the same order.
///
/// A test is found by its identity, else by the file that is shown.
pub(crate) fn last_errors(
    connection: &mut PgConnection,
    project: &Project,
    tests: &[(RunId, TestName)],
) -> Read<Vec<Vec<ErrorDetail>>> {
    let runs: Vec<Uuid> = tests.iter().map(|(run, _)| run.0).collect();
    let names: Vec<Vec<u8>> = tests.iter().map(|(_, test)| short_hash(&test.name)).collect();
    let files: Vec<Option<&str>> = tests.iter().map(|(_, test)| test.file_path.as_deref()).collect();
    let hashes: Vec<Vec<u8>> = files.iter().map(|file| file_hash(*file)).collect();
    let failed: Vec<i32> = failure_codes().map(i32::from).collect();
    let (from, to) = retention_bounds(project);
    let rows: Vec<(i64, Option<Value>)> = SqlStatement::new(concat!(
        "SELECT DISTINCT ON (asked.place) asked.place, ended.errors \
         FROM unnest({runs}, {names}, {hashes}, {files}) WITH ORDINALITY AS asked (run, name, hash, file, \
         place) JOIN part ON part.id = asked.run AND part.project_id = {project} JOIN run \
         ON run.number = part.run_number AND run.project_id = {project} \
         AND run.started_at BETWEEN {from} AND {to} JOIN test ON test.name_hash = asked.name \
         AND (test.file_hash = asked.hash OR test.file_path = asked.file) \
         AND test.project_id = {project} CROSS JOIN LATERAL (SELECT ",
        errors_of!("attempt"),
        " AS errors FROM attempt WHERE attempt.project_id = {project} AND attempt.test = test.ordinal \
         AND attempt.started_at = run.started_at AND attempt.run_number = run.number \
         AND attempt.status = ANY({failed}) ORDER BY attempt.execution DESC, attempt.retry DESC \
         LIMIT 1) AS ended \
         ORDER BY asked.place, test.file_hash <> asked.hash"
    ))
    .bind("runs", runs.as_slice())
    .bind("names", names.as_slice())
    .bind("hashes", hashes.as_slice())
    .bind("files", files.as_slice())
    .bind("project", project.id.0)
    .bind("from", from)
    .bind("to", to)
    .bind("failed", failed.as_slice())
    .load(connection)?;
    let mut all = vec![Vec::new(); tests.len()];
    for (place, stored) in rows {
        let place = usize::try_from(place).ok().and_then(|place| place.checked_sub(1));
        if let Some(of_test) = place.and_then(|place| all.get_mut(place)) {
            *of_test = errors(stored)?;
        }
    }
    Ok(all)
}

/// Most bytes of errors of the oldest attempts of a test, and as many again of the newest. Attempts in between are
/// omitted.
const MOST_ERROR_BYTES: usize = 4 << 20;

/// The rows of one test. If there are too many, only the oldest and the newest.
#[derive(Debug, Default)]
struct CappedRows {
    oldest: Vec<Row>,
    oldest_bytes: usize,
    newest: VecDeque<(Row, usize)>,
    newest_bytes: usize,
    omitted: u32,
}

impl CappedRows {
    fn push(&mut self, row: Row) {
        let texts = row.attempt.iter().flat_map(|attempt| &attempt.texts).flatten();
        let bytes = texts.flatten().map(text_bytes).sum::<usize>();
        if self.oldest_bytes <= MOST_ERROR_BYTES && self.newest.is_empty() {
            self.oldest_bytes += bytes;
            self.oldest.push(row);
            return;
        }
        self.newest_bytes += bytes;
        self.newest.push_back((row, bytes));
        while self.newest_bytes > MOST_ERROR_BYTES && self.newest.len() > 1 {
            if let Some((_, bytes)) = self.newest.pop_front() {
                self.newest_bytes -= bytes;
                self.omitted += 1;
            }
        }
    }

    fn rows(self) -> impl Iterator<Item = Row> {
        let newest = self.newest.into_iter().map(|(row, _)| row);
        self.oldest.into_iter().chain(newest)
    }
}

/// Rows of the run, its tests with the name and their attempts, in one statement, by file, execution and retry. Read
/// row by row, because the errors of all attempts may have a gigabyte.
fn rows<'a>(
    connection: &'a mut PgConnection,
    project: &Project,
    id: RunId,
    name_hash: &'a [u8],
) -> QueryResult<impl Iterator<Item = QueryResult<Row>> + use<'a>> {
    let project_id = project.id.0;
    let (from, _) = retention_bounds(project);
    // The caller checks the other bound of the start: with both, Postgres searches all runs of the period while it has no
    // statistics.
    SqlStatement::new(concat!(
        "SELECT run.id, run.number, run.branch, run.commit_sha, run.tested_revision, run.started_at, \
         ran.test, ran.file_path, ran.file_hash, ran.status, ran.duration_ms, \
         attempt.execution, attempt.retry, attempt.status, attempt.duration_ms, ",
        texts_of!("attempt"),
        ", attempt.skip_reason, browser.name, ran_in.shard_id, ran_in.index \
         FROM part JOIN run ON run.number = part.run_number AND run.project_id = {project} \
         LEFT JOIN LATERAL (SELECT test.ordinal AS test, test.file_path, test.file_hash, result.* \
         FROM test \
         JOIN result_block AS block ON block.block = test.ordinal / 512 \
         AND block.project_id = {project} AND block.run_number = run.number \
         AND block.started_at = run.started_at",
        result_of!("test.ordinal"),
        " WHERE test.project_id = {project} AND test.name_hash = {name_hash}) AS ran ON true \
         LEFT JOIN attempt ON attempt.project_id = {project} AND attempt.test = ran.test \
         AND attempt.run_number = run.number AND attempt.started_at = run.started_at \
         LEFT JOIN browser ON browser.ordinal = coalesce(attempt.browser, ran.browser) \
         AND browser.project_id = {project} LEFT JOIN part AS ran_in ON ran_in.run_number = run.number \
         AND ran_in.number = coalesce(attempt.part, ran.part) AND ran_in.project_id = {project} \
         WHERE part.project_id = {project} AND part.id = {id} AND run.started_at >= {from} \
         ORDER BY ran.file_path NULLS FIRST, ran.test, attempt.execution, attempt.retry"
    ))
    .bind("project", project_id)
    .bind("name_hash", name_hash)
    .bind("id", id.0)
    .bind("from", from)
    .load_iter(connection)
}

fn attempts(test: TestName, rows: CappedRows) -> Result<TestAttempts, StoreError> {
    let nothing = || corrupt("test without attempts", &test.name);
    let first = rows.oldest.first().ok_or_else(nothing)?;
    Ok(TestAttempts {
        run: RunTag {
            id: RunId(first.run.id),
            run_number: first.run.number,
            branch: first.run.branch.clone(),
        },
        started_at: first.run.started_at.0,
        commit_sha: first.run.commit_sha.clone(),
        tested_revision: first.run.tested_revision.clone(),
        verdict: None,
        omitted: rows.omitted,
        attempts: rows.rows().map(Row::into_attempt).collect::<Result<_, _>>()?,
        test,
    })
}

impl Row {
    fn into_attempt(self) -> Result<StoredAttempt, StoreError> {
        let (shard_id, index) = self.part.ok_or_else(|| {
            corrupt(
                "result of an unknown part",
                &format!("in run {}", self.run.number),
            )
        })?;
        let single = |result: ResultRow| AttemptRow {
            execution: 0,
            retry: 0,
            status: result.status,
            duration_ms: result.duration_ms,
            texts: None,
            skip_reason: None,
        };
        let attempt = self
            .attempt
            .or(self.result.map(single))
            .ok_or_else(|| corrupt("attempt without a result", &format!("in run {}", self.run.number)))?;
        let mut texts = attempt.texts.unwrap_or_default().into_iter();
        Ok(StoredAttempt {
            execution: count(attempt.execution)?,
            retry: count(attempt.retry)?,
            status: status(attempt.status)?,
            duration_ms: duration(attempt.duration_ms)?,
            browser_name: self.browser_name,
            errors: errors(texts.next().flatten())?,
            output: output(texts.next().flatten())?,
            skip_reason: attempt.skip_reason,
            shard: index.map(count).transpose()?.map(|index| ShardTag {
                index,
                run_id: RunId(shard_id),
            }),
        })
    }
}

/// What a report has beside the errors of an attempt.
fn output(stored: Option<Value>) -> Result<AttemptOutput, StoreError> {
    let Some(stored) = stored.filter(|stored| !stored.is_null()) else {
        return Ok(AttemptOutput::default());
    };
    AttemptOutput::deserialize(&stored).map_err(|_| corrupt("output of an attempt", &stored.to_string()))
}

/// The errors of an attempt.
pub(crate) fn errors(stored: Option<Value>) -> Result<Vec<ErrorDetail>, StoreError> {
    let Some(stored) = stored else {
        return Ok(Vec::new());
    };
    Vec::deserialize(&stored).map_err(|_| corrupt("list of errors", &stored.to_string()))
}

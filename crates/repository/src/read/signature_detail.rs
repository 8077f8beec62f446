//! One error signature: its figures, the tests it hits and the runs it occurred in.

use assay_domain::{
    excerpt::MOST_ENTRIES,
    id::RunId,
    period::Period,
    project::Project,
    signature::{SignatureDetail, SignatureRun},
};
use diesel::PgConnection;
use uuid::Uuid;

use crate::{
    db::{
        column::{At, corrupt, count, long_count, status},
        period::visible,
        pool::Read,
        sql_statement::SqlStatement,
    },
    read::{
        shared_values::{SharedValues, ValueName},
        signature::{
            OccurrenceFilter, SignatureFigures, by_fingerprint, latest, occurrence_times, runs_hit, tests_hit,
        },
        signature_list,
    },
};

/// How many bytes the names of tests or runs of one answer may have.
const MOST_NAME_BYTES: usize = 1 << 20;

/// An error signature over a period, or over everything visible if it did not occur in the period. Requests over the
/// same runs share it.
pub(crate) fn find_shared(
    connection: &mut PgConnection,
    shared: &SharedValues,
    project: &Project,
    fingerprint: &str,
    period: &Period,
) -> Read<Option<SignatureDetail>> {
    shared.read_once(
        connection,
        project,
        period,
        ValueName::Signature(fingerprint.to_owned()),
        |connection, has_joins| find(connection, project, fingerprint, (period, has_joins)),
        |detail| detail.as_ref().map_or(0, bytes),
    )
}

/// About the memory that a signature with its tests and runs takes.
fn bytes(detail: &SignatureDetail) -> usize {
    let tests = detail.tests.iter().map(|test| {
        size_of_val(test) + test.test_name.len() + test.file_path.as_ref().map_or(0, String::len)
    });
    let runs = detail.runs.iter().map(|run| {
        let texts = [&run.branch, &run.file_path];
        let texts: usize = texts.into_iter().flatten().map(|text| text.len()).sum();
        size_of_val(run) + run.test_name.len() + texts
    });
    signature_list::bytes(&detail.signature) + tests.chain(runs).sum::<usize>()
}

/// An error signature over a period, or over everything visible if it did not occur in the period.
fn find(
    connection: &mut PgConnection,
    project: &Project,
    fingerprint: &str,
    (period, has_joins): (&Period, bool),
) -> Read<Option<SignatureDetail>> {
    let Some((ordinal, head)) = by_fingerprint(connection, project.id.0, fingerprint)? else {
        return Ok(None);
    };
    let Some(times) = occurrence_times(connection, project, &[ordinal])?.remove(&ordinal) else {
        return Ok(None);
    };
    let (from, to) = visible(project, period);
    let mut filter = OccurrenceFilter {
        project: project.id.0,
        from,
        to,
        branch: None,
        has_joins,
    };
    let mut tests = tests_hit(connection, &filter, &[ordinal], MOST_NAME_BYTES)?.remove(&ordinal);
    let window_empty = tests.is_none();
    if window_empty {
        (filter.from, filter.to) = (At(project.visible_from), times.last_run);
        tests = tests_hit(connection, &filter, &[ordinal], MOST_NAME_BYTES)?.remove(&ordinal);
    }
    let latest = latest(connection, &filter, &[ordinal])?.remove(&ordinal);
    let (Some(tests), Some(latest)) = (tests, latest) else {
        return Err(corrupt("signature that occurred nowhere", &head.fingerprint).into());
    };
    let figures = SignatureFigures {
        tests: &tests,
        runs: runs_hit(connection, &filter, &[ordinal])?
            .remove(&ordinal)
            .unwrap_or(0),
        latest,
        first_seen: times.first.0,
        is_new: !window_empty && times.first_run >= from,
    };
    let signature = figures.signature(head);
    let (runs, runs_truncated) = runs(connection, &filter, ordinal)?;
    Ok(Some(SignatureDetail {
        signature,
        window_empty,
        truncated: tests.truncated || runs_truncated,
        tests: tests.first,
        runs,
    }))
}

/// The newest runs that the signature hit, an entry for each test, and whether there are more.
fn runs(
    connection: &mut PgConnection,
    filter: &OccurrenceFilter<'_>,
    signature: i32,
) -> Read<(Vec<SignatureRun>, bool)> {
    let rows = runs_with_tests(filter, signature).load_iter(connection)?;
    let (mut runs, mut bytes_left, mut truncated) = (Vec::new(), MOST_NAME_BYTES, false);
    for row in rows {
        let (number, id, branch, started_at, test_name, file_path, occurrences, attempts, final_status) =
            row?;
        let texts = [Some(&test_name), file_path.as_ref(), branch.as_ref()];
        let bytes: usize = texts.into_iter().flatten().map(String::len).sum();
        let bytes_after = bytes_left.checked_sub(bytes);
        truncated |= bytes_after.is_none() || runs.len() == MOST_ENTRIES;
        if truncated {
            continue;
        }
        bytes_left = bytes_after.unwrap_or(0);
        runs.push(SignatureRun {
            run_id: RunId(id),
            run_number: number,
            branch: branch.map(Into::into),
            started_at: started_at.0,
            test_name: test_name.into(),
            file_path: file_path.map(Into::into),
            attempts: count(attempts.max(1))?,
            occurrences: long_count(occurrences)?,
            final_status: status(final_status)?,
        });
    }
    Ok((runs, truncated))
}

/// Number, id and branch of a run, its start, name and file of a test, occurrences, attempts and the final status.
type HitRow = (
    i32,
    Uuid,
    Option<String>,
    At,
    String,
    Option<String>,
    i64,
    i32,
    i16,
);

/// Selects the runs that [`runs`] returns, and one entry more, which shows that there are more. Runs are chosen before
/// names are read; all tests of the last one are read, for their order. The rows of all attempts of a test have its
/// result, so that its block is not read.
fn runs_with_tests<'a>(filter: &OccurrenceFilter<'a>, signature: i32) -> SqlStatement<'a, HitRow> {
    let limit = i64::try_from(MOST_ENTRIES).unwrap_or(i64::MAX);
    let statement = SqlStatement::new(
        "SELECT shown.run_number, hit_run.id, hit_run.branch, shown.started_at, shown.name, \
         shown.file_path, \
         shown.occurrences, ended.attempts, ended.status \
         FROM (SELECT hit.*, named_test.name, named_test.file_path \
         FROM (SELECT attempt.started_at, attempt.run_number, attempt.test, count(*) AS occurrences \
         FROM attempt WHERE {occurrence} AND attempt.signature = {signature} \
         GROUP BY attempt.started_at, attempt.run_number, attempt.test \
         ORDER BY attempt.started_at DESC, attempt.run_number DESC FETCH FIRST ({limit} + 1) ROWS WITH \
         TIES) AS hit \
         CROSS JOIN LATERAL (SELECT test.name, test.file_path FROM test \
         WHERE test.project_id = {project} AND test.ordinal = hit.test OFFSET 0) AS named_test \
         ORDER BY hit.started_at DESC, hit.run_number DESC, named_test.name, named_test.file_path NULLS \
         FIRST LIMIT {limit} + 1) AS shown CROSS JOIN LATERAL (SELECT run.id, run.branch FROM run \
         WHERE run.project_id = {project} AND run.number = shown.run_number OFFSET 0) AS hit_run \
         CROSS JOIN LATERAL (SELECT max(attempt.retry) + 1 AS attempts, \
         max(attempt.status) FILTER (WHERE attempt.is_final) AS status FROM attempt \
         WHERE attempt.project_id = {project} AND attempt.test = shown.test \
         AND attempt.started_at = shown.started_at \
         AND attempt.run_number = shown.run_number) AS ended \
         ORDER BY shown.started_at DESC, shown.run_number DESC, shown.name, shown.file_path NULLS FIRST",
    );
    filter
        .fill(statement)
        .bind("signature", signature)
        .bind("limit", limit)
}

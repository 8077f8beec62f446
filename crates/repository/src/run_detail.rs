//! One logical run with every test's final attempt.

use std::collections::HashMap;

use assay_domain::{
    attempt::ErrorDetail,
    excerpt::excerpt,
    id::RunId,
    project::Project,
    run::{Run, RunDetail, Shards, TestEntry},
    store::StoreError,
};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, JoinOnDsl, NullableExpressionMethods, OptionalExtension,
    PgConnection, QueryDsl, QueryResult, RunQueryDsl, SelectableHelper,
};
use uuid::Uuid;

use crate::{
    browser::Browsers,
    column::{At, LISTED, beginning, count, duration, optional_word, status},
    pool::Read,
    run::{StoredRun, outcome},
    schema::{attempt, result, run as runs, shard as shards, signature, test},
    shard::{self, ShardTags, ShownShard},
};

/// The logical run that this id, or the id of any of its shards, names.
pub(crate) fn find(connection: &mut PgConnection, project: &Project, id: RunId) -> Read<Option<RunDetail>> {
    let Some((stored, context)) = run(connection, project, id)? else {
        return Ok(None);
    };
    let shards = shard::shown_of_run(connection, project.id.0, stored.number)?;
    let report_errors = shard::report_errors(connection, project.id.0, stored.number, &shards)?;
    let tests = tests(connection, project.id.0, &stored, &ShardTags::of(&shards)?)?;
    Ok(Some(RunDetail {
        counts: stored.counts.counts()?,
        run: shown(stored, context, &shards, report_errors)?,
        tests,
    }))
}

/// Message, author, title, provider and suite: what only the detail shows.
type Context = (
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
);

/// The visible run that this id, or the id of any of its shards, names.
fn run(
    connection: &mut PgConnection,
    project: &Project,
    id: RunId,
) -> QueryResult<Option<(StoredRun, Context)>> {
    runs::table
        .inner_join(
            shards::table.on(shards::project_id
                .eq(runs::project_id)
                .and(shards::run_number.eq(runs::number))),
        )
        .filter(runs::project_id.eq(project.id.0))
        .filter(shards::project_id.eq(project.id.0))
        .filter(shards::id.eq(id.0))
        .filter(runs::started_at.ge(At(project.visible_from)))
        .select((
            StoredRun::as_select(),
            (
                runs::commit_message,
                runs::author_name,
                runs::pull_request_title,
                runs::ci_provider,
                runs::suite,
            ),
        ))
        .first(connection)
        .optional()
}

fn shown(
    stored: StoredRun,
    context: Context,
    shards: &[ShownShard],
    (report_errors, omitted_report_errors): (Vec<ErrorDetail>, u32),
) -> Result<Run, StoreError> {
    let (commit_message, author_name, pull_request_title, ci_provider, suite) = context;
    let received = shards
        .iter()
        .filter_map(|shard| shard.shown().transpose())
        .collect::<Result<_, _>>()?;
    let expected = stored.shards_expected.map(count).transpose()?;
    Ok(Run {
        id: RunId(stored.id),
        run_number: stored.number,
        status: outcome(&stored)?.into(),
        started_at: stored.started_at.0,
        finished_at: stored.finished_at.map(|at| at.0),
        duration_ms: stored.duration_ms(),
        shards: stored.sharded.then_some(Shards { expected, received }),
        report_errors,
        omitted_report_errors,
        branch: stored.branch,
        commit_sha: stored.commit_sha,
        commit_message,
        author_name,
        tested_revision: stored.tested_revision,
        pull_request_number: stored.pull_request_number,
        pull_request_title,
        ci_provider: optional_word("CI provider", ci_provider.as_deref())?,
        suite,
    })
}

/// Test, name, file, status, duration, browser, slot, attempts.
type ResultRow = (i32, String, Option<String>, i16, Option<i64>, i32, i16, i32);

/// Every test of the run, by file, then name.
fn tests(
    connection: &mut PgConnection,
    project: Uuid,
    run: &StoredRun,
    tags: &ShardTags,
) -> Read<Vec<TestEntry>> {
    let rows: Vec<ResultRow> = result::table
        .inner_join(
            test::table.on(test::project_id
                .eq(result::project_id)
                .and(test::ordinal.eq(result::test))),
        )
        .filter(result::project_id.eq(project))
        .filter(test::project_id.eq(project))
        .filter(result::run_number.eq(run.number))
        .filter(result::started_at.eq(run.started_at))
        .select((
            result::test,
            test::name,
            test::file_path,
            result::status,
            result::duration_ms,
            result::browser,
            result::slot,
            result::attempts,
        ))
        .load(connection)?;
    let browsers = Browsers::load(connection, project, rows.iter().map(|row| row.5))?;
    let mut errors = errors(connection, project, run)?;
    let mut entries = Vec::with_capacity(rows.len());
    for (ordinal, test_name, file_path, final_status, duration_ms, browser, slot, attempts) in rows {
        // Of the final attempt.
        let final_error = errors.remove(&(ordinal, attempts.saturating_sub(1)));
        let (error_message, fingerprint) = final_error.unwrap_or_default();
        entries.push(TestEntry {
            test_name,
            file_path,
            status: status(final_status)?,
            attempts: count(attempts.max(1))?,
            duration_ms: duration(duration_ms)?,
            error_message,
            fingerprint,
            browser_name: browsers.name(browser),
            shard: tags.get(slot)?,
        });
    }
    entries.sort_unstable_by(|a, b| (&a.file_path, &a.test_name).cmp(&(&b.file_path, &b.test_name)));
    Ok(entries)
}

/// A message and a fingerprint.
type FinalError = (Option<String>, Option<String>);

/// The message and fingerprint of each attempt that has any, by test and place among the test's attempts.
fn errors(
    connection: &mut PgConnection,
    project: Uuid,
    run: &StoredRun,
) -> QueryResult<HashMap<(i32, i32), FinalError>> {
    let rows: Vec<(i32, i32, Option<String>, Option<String>)> = attempt::table
        .left_join(
            signature::table.on(signature::project_id
                .eq(attempt::project_id)
                .and(attempt::signature.eq(signature::ordinal.nullable()))
                .and(signature::project_id.eq(project))),
        )
        .filter(attempt::project_id.eq(project))
        .filter(attempt::run_number.eq(run.number))
        // Tells which partition has the rows.
        .filter(attempt::started_at.eq(run.started_at))
        .filter(
            attempt::message
                .is_not_null()
                .or(attempt::signature.is_not_null()),
        )
        .select((
            attempt::test,
            attempt::retry,
            beginning(attempt::message, LISTED),
            signature::fingerprint.nullable(),
        ))
        .load(connection)?;
    Ok(rows
        .into_iter()
        .map(|(test, retry, message, fingerprint)| ((test, retry), (message.map(excerpt), fingerprint)))
        .collect())
}

//! One run with every test's final attempt.

use std::collections::HashMap;

use assay_domain::{
    attempt::{AttemptStatus, ErrorDetail},
    cause::FailedRun,
    excerpt::excerpt,
    id::RunId,
    project::Project,
    recording::Gaps,
    run::{Run, RunDetail, RunPart, RunRest, Shards, SomeTests, TestEntry},
    store::StoreError,
};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, JoinOnDsl, NullableExpressionMethods, OptionalExtension,
    PgConnection, PgSortExpressionMethods, QueryDsl, QueryResult, RunQueryDsl, SelectableHelper,
    TextExpressionMethods, alias,
};
use uuid::Uuid;

use crate::{
    db::{
        column::{LISTED_CHARS, beginning, count, duration, int, optional_word, status, status_code},
        period::retention_bounds,
        pool::Read,
        schema::{attempt, part as parts, result, run as runs, signature, test},
    },
    read::{
        browser::Browsers,
        part::{self, PartSummary, ShardTags},
        run::{StoredRun, outcome},
        run_parts,
        signature::attempts_of_run,
    },
};

/// The run with this id. The id of any of its shards also identifies it.
pub(crate) fn find(connection: &mut PgConnection, project: &Project, id: RunId) -> Read<Option<RunDetail>> {
    let Some((stored, context)) = run(connection, project, id)? else {
        return Ok(None);
    };
    let parts = part::summaries_of_run(connection, project.id.0, stored.number)?;
    let report_errors = part::report_errors(connection, project.id.0, stored.number, &parts)?;
    let counts = stored.counts.counts()?;
    let mut rest = if counts.total > MOST_TESTS_AT_ONCE {
        run_parts::plan(connection, project.id.0, &stored)?
    } else {
        None
    };
    let first = rest.as_mut().and_then(|rest| rest.parts.pop_front());
    let first = first.as_ref().map(|part| part.tests.as_slice());
    let tests = tests(connection, project.id.0, &stored, &ShardTags::of(&parts)?, first)?;
    Ok(Some(RunDetail {
        rest,
        counts,
        run: detail_run(stored, context, &parts, report_errors)?,
        tests,
    }))
}

/// The same with only some of its tests.
pub(crate) fn find_with(
    connection: &mut PgConnection,
    project: &Project,
    id: RunId,
    selection: &SomeTests,
) -> Read<Option<RunDetail>> {
    let Some((stored, context)) = run(connection, project, id)? else {
        return Ok(None);
    };
    let project = project.id.0;
    let parts = part::summaries_of_run(connection, project, stored.number)?;
    let report_errors = part::report_errors(connection, project, stored.number, &parts)?;
    let ordinals = match selection {
        SomeTests::Of(tests) => tests.iter().map(|test| int(*test)).collect(),
        SomeTests::Page { offset, limit } => page(connection, project, &stored, *offset, *limit)?,
    };
    let tests = if ordinals.is_empty() {
        Vec::new()
    } else {
        tests(
            connection,
            project,
            &stored,
            &ShardTags::of(&parts)?,
            Some(&ordinals),
        )?
    };
    Ok(Some(RunDetail {
        rest: None,
        counts: stored.counts.counts()?,
        run: detail_run(stored, context, &parts, report_errors)?,
        tests,
    }))
}

/// The ordinals of one page of a run's tests.
fn page(
    connection: &mut PgConnection,
    project: Uuid,
    run: &StoredRun,
    offset: u64,
    limit: u32,
) -> QueryResult<Vec<i32>> {
    result::table
        .inner_join(
            test::table.on(test::project_id
                .eq(result::project_id)
                .and(test::ordinal.eq(result::test))),
        )
        .filter(result::project_id.eq(project))
        .filter(test::project_id.eq(project))
        .filter(result::run_number.eq(run.number))
        .filter(result::started_at.eq(run.started_at))
        .order((
            test::file_path.asc().nulls_first(),
            test::name.concat(UNPACKED_ONCE),
        ))
        .offset(i64::try_from(offset).unwrap_or(i64::MAX))
        .limit(i64::from(limit))
        .select(result::test)
        .load(connection)
}

/// Appended to a name that a statement orders by. Postgres unpacks a long name at every comparison, and such an expression
/// once.
pub(crate) const UNPACKED_ONCE: &str = "";

/// Runs of up to this many tests are read at once.
const MOST_TESTS_AT_ONCE: u32 = 500;

/// The tests of a part; none where the run or its signatures have changed.
pub(crate) fn part(
    connection: &mut PgConnection,
    project: &Project,
    rest: &RunRest,
    part: &RunPart,
) -> Read<Option<Vec<TestEntry>>> {
    let Some((stored, _)) = run(connection, project, rest.run)? else {
        return Ok(None);
    };
    if !run_parts::is_current(connection, project.id.0, &stored, rest, part)? {
        return Ok(None);
    }
    let parts = part::summaries_of_run(connection, project.id.0, stored.number)?;
    let tags = ShardTags::of(&parts)?;
    tests(connection, project.id.0, &stored, &tags, Some(&part.tests)).map(Some)
}

/// Title, provider and page of the CI run, for the detail.
type Context = (Option<String>, Option<String>, Option<String>);

/// The visible run with this id. The id of any of its shards also identifies it.
pub(crate) fn run(
    connection: &mut PgConnection,
    project: &Project,
    id: RunId,
) -> QueryResult<Option<(StoredRun, Context)>> {
    let (from, to) = retention_bounds(project);
    runs::table
        .inner_join(
            parts::table.on(parts::project_id
                .eq(runs::project_id)
                .and(parts::run_number.eq(runs::number))),
        )
        .filter(runs::project_id.eq(project.id.0))
        .filter(parts::project_id.eq(project.id.0))
        .filter(parts::id.eq(id.0))
        .filter(runs::started_at.between(from, to))
        .select((
            StoredRun::as_select(),
            (runs::pull_request_title, runs::ci_provider, runs::run_url),
        ))
        .first(connection)
        .optional()
}

/// The summary of the run with this id. The id of any of its shards also identifies it.
pub(crate) fn failed_run(
    connection: &mut PgConnection,
    project: &Project,
    id: RunId,
) -> Read<Option<FailedRun>> {
    let (from, to) = retention_bounds(project);
    let project = project.id.0;
    let named_part = alias!(parts as named_part);
    let rows: Vec<(StoredRun, PartSummary)> = runs::table
        .inner_join(
            named_part.on(named_part
                .field(parts::project_id)
                .eq(runs::project_id)
                .and(named_part.field(parts::run_number).eq(runs::number))),
        )
        .inner_join(
            parts::table.on(parts::project_id
                .eq(runs::project_id)
                .and(parts::run_number.eq(runs::number))),
        )
        .filter(runs::project_id.eq(project))
        .filter(parts::project_id.eq(project))
        .filter(named_part.field(parts::project_id).eq(project))
        .filter(named_part.field(parts::id).eq(id.0))
        .filter(runs::started_at.between(from, to))
        .order((parts::index.asc(), parts::number.asc()))
        .select((StoredRun::as_select(), PartSummary::as_select()))
        .load(connection)?;
    let (mut stored, parts): (Vec<StoredRun>, Vec<PartSummary>) = rows.into_iter().unzip();
    let Some(stored) = stored.pop() else {
        return Ok(None);
    };
    Ok(Some(FailedRun {
        trusted: stored.counts_in_verdicts,
        id: RunId(stored.id),
        run_number: stored.number,
        status: outcome(stored.status.as_deref())?.into(),
        tests: stored.counts.counts()?.total,
        started_at: stored.started_at.0,
        incomplete: why_incomplete(connection, project, &stored, &parts)?,
        branch: stored.branch,
        commit_sha: stored.commit_sha,
    }))
}

/// The reason why a run may lack results.
fn why_incomplete(
    connection: &mut PgConnection,
    project: Uuid,
    run: &StoredRun,
    parts: &[PartSummary],
) -> Read<Option<String>> {
    let (report_errors, _) = part::report_errors(connection, project, run.number, parts)?;
    // Interrupted tests count as skipped. Without any there is no need to look at all results.
    let interrupted: i64 = match run.counts.counts()?.skipped {
        0 => 0,
        _ => result::table
            .filter(result::project_id.eq(project))
            .filter(result::run_number.eq(run.number))
            .filter(result::started_at.eq(run.started_at))
            .filter(result::status.eq(status_code(AttemptStatus::Interrupted)))
            .count()
            .get_result(connection)?,
    };
    let gaps = Gaps {
        missing_shards: part::missing(parts, run.shards_expected)?,
        is_cut_short: part::is_cut_short(parts)?,
        report_error: report_errors.first(),
        interrupted_tests: u64::try_from(interrupted).unwrap_or(0),
        // Such tests are failures of the run.
        left_failed: 0,
    };
    Ok(gaps.reason())
}

fn detail_run(
    stored: StoredRun,
    context: Context,
    parts: &[PartSummary],
    (report_errors, omitted_report_errors): (Vec<ErrorDetail>, u32),
) -> Result<Run, StoreError> {
    let (pull_request_title, ci_provider, run_url) = context;
    let received = part::shards(parts)?;
    let expected = stored.shards_expected.map(count).transpose()?;
    Ok(Run {
        id: RunId(stored.id),
        run_number: stored.number,
        status: outcome(stored.status.as_deref())?.into(),
        started_at: stored.started_at.0,
        finished_at: stored.finished_at.map(|at| at.0),
        duration_ms: stored.duration_ms,
        shards: stored.sharded.then_some(Shards { expected, received }),
        report_errors,
        omitted_report_errors,
        branch: stored.branch,
        commit_sha: stored.commit_sha,
        commit_message: stored.commit_message,
        author_name: stored.author_name,
        tested_revision: stored.tested_revision,
        pull_request_number: stored.pull_request_number,
        pull_request_title,
        ci_provider: optional_word("CI provider", ci_provider.as_deref())?,
        suite: stored.suite,
        trusted: stored.counts_in_verdicts,
        run_url,
    })
}

/// Test, name, file, status, duration, browser, part, attempts.
type ResultRow = (i32, String, Option<String>, i16, Option<i64>, i32, i16, i32);

/// The tests of the run, or some of them, by file, then name.
fn tests(
    connection: &mut PgConnection,
    project: Uuid,
    run: &StoredRun,
    tags: &ShardTags,
    only: Option<&[i32]>,
) -> Read<Vec<TestEntry>> {
    let mut statement = result::table
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
            result::part,
            result::attempts,
        ))
        .into_boxed();
    if let Some(only) = only {
        statement = statement.filter(result::test.eq_any(only));
    }
    let rows: Vec<ResultRow> = statement.load(connection)?;
    let browsers = Browsers::load(connection, project, rows.iter().map(|row| row.5))?;
    let mut errors = errors(connection, project, run, only)?;
    let mut entries = Vec::with_capacity(rows.len());
    for (ordinal, test_name, file_path, final_status, duration_ms, browser, part, attempts) in rows {
        let (error_message, fingerprint) = errors.remove(&ordinal).unwrap_or_default();
        entries.push(TestEntry {
            test_name,
            file_path,
            status: status(final_status)?,
            attempts: count(attempts.max(1))?,
            duration_ms: duration(duration_ms)?,
            error_message,
            fingerprint,
            browser_name: browsers.name(browser),
            shard: tags.get(part)?,
        });
    }
    entries.sort_unstable_by(|a, b| (&a.file_path, &a.test_name).cmp(&(&b.file_path, &b.test_name)));
    Ok(entries)
}

/// A message and a fingerprint.
type FinalError = (Option<String>, Option<String>);

/// The message and fingerprint of each final attempt that has any, by test.
fn errors(
    connection: &mut PgConnection,
    project: Uuid,
    run: &StoredRun,
    only: Option<&[i32]>,
) -> QueryResult<HashMap<i32, FinalError>> {
    let mut statement = attempts_of_run(project, run.number, run.started_at)
        .filter(attempt::is_final)
        .filter(
            attempt::message
                .is_not_null()
                .or(attempt::signature.is_not_null()),
        )
        .select((
            attempt::test,
            beginning(attempt::message, LISTED_CHARS),
            signature::fingerprint.nullable(),
        ))
        .into_boxed();
    if let Some(only) = only {
        statement = statement.filter(attempt::test.eq_any(only));
    }
    let rows: Vec<(i32, Option<String>, Option<String>)> = statement.load(connection)?;
    Ok(rows
        .into_iter()
        .map(|(test, message, fingerprint)| (test, (message.map(excerpt), fingerprint)))
        .collect())
}

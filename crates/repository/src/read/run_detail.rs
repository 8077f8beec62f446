//! One run with every test's final attempt.

use std::collections::HashMap;

use assay_domain::{
    attempt::{AttemptStatus, ErrorDetail},
    cause::FailedRun,
    excerpt::excerpt,
    id::RunId,
    project::Project,
    recording::{Gaps, LeftOver},
    run::{Run, RunDetail, RunPart, RunRest, RunResult, Shards, SomeTests, TestEntry},
    store::StoreError,
    test::TestOrdinal,
    test_names::{TestNameRef, TestNames},
};
use diesel::{alias, prelude::*};
use uuid::Uuid;

use crate::{
    db::{
        column::{
            LISTED_CHARS, beginning, corrupt, count, duration, int, optional_word, status, status_code,
        },
        period::retention_bounds,
        pool::{Read, converted},
        schema::{attempt, part as parts, run as runs, signature},
    },
    read::{
        browser::Browsers,
        part::{self, PartSummary, ShardTags},
        result_block::{count_with_status, results_of_run},
        run::{StoredRun, outcome},
        run_parts,
        signature::attempts_of_run,
        test_name_cache::TestNameCache,
    },
};

/// The run with this id. The id of any of its shards also identifies it.
pub(crate) fn find(
    connection: &mut PgConnection,
    cache: &TestNameCache,
    project: &Project,
    id: RunId,
) -> Read<Option<RunDetail>> {
    let Some(found) = FoundRun::find(connection, project, id)? else {
        return Ok(None);
    };
    let names = cache.current(connection, project.id.0)?;
    let results = found.results(connection, &names, None)?;
    let mut rest = run_parts::plan(connection, project.id.0, &found.run, &results)?;
    let first = rest.as_mut().and_then(|rest| rest.parts.pop_front());
    let first = first.map_or(results.len(), |first| first.results.len());
    let first = results.get(..first).unwrap_or(&results);
    found.detail(connection, first, rest).map(Some)
}

/// The same with only some of its tests.
pub(crate) fn find_with(
    connection: &mut PgConnection,
    cache: &TestNameCache,
    project: &Project,
    id: RunId,
    selection: &SomeTests,
) -> Read<Option<RunDetail>> {
    let Some(found) = FoundRun::find(connection, project, id)? else {
        return Ok(None);
    };
    let names = cache.current(connection, project.id.0)?;
    let results = match selection {
        SomeTests::Of(tests) => {
            let tests: Vec<i32> = tests.iter().map(|test| int(*test)).collect();
            found.results(connection, &names, Some(&tests))?
        }
        SomeTests::Page { offset, limit } => {
            page_of(found.results(connection, &names, None)?, *offset, *limit)
        }
        SomeTests::Slowest { offset, limit } => {
            let mut results = found.results(connection, &names, None)?;
            // Stable, so that tests of one duration keep the order by file and name.
            results.sort_by_key(|(_, result)| std::cmp::Reverse(result.duration_ms));
            page_of(results, *offset, *limit)
        }
    };
    found.detail(connection, &results, None).map(Some)
}

/// At most `limit` results from index `offset` on.
fn page_of(results: NamedResults<'_>, offset: u64, limit: u32) -> NamedResults<'_> {
    let page = results
        .into_iter()
        .skip(usize::try_from(offset).unwrap_or(usize::MAX));
    page.take(usize::try_from(limit).unwrap_or(usize::MAX)).collect()
}

/// The tests of a part; none where the run or its signatures have changed.
pub(crate) fn part(
    connection: &mut PgConnection,
    cache: &TestNameCache,
    project: &Project,
    rest: &RunRest,
    part: &RunPart,
) -> Read<Option<Vec<TestEntry>>> {
    let Some(found) = FoundRun::find(connection, project, rest.run)? else {
        return Ok(None);
    };
    if !run_parts::is_current(connection, project.id.0, &found.run, rest, part)? {
        return Ok(None);
    }
    let names = cache.current(connection, project.id.0)?;
    let results = found.named(part.results.iter().copied(), &names)?;
    found.tests(connection, &results).map(Some)
}

/// Provider and page of the CI run.
type Context = (Option<String>, Option<String>);

/// A visible run with its parts, by shard and in order of arrival.
pub(crate) struct FoundRun {
    project: Uuid,
    pub(crate) run: StoredRun,
    context: Context,
    parts: Vec<PartSummary>,
}

/// The results of a run with the names of their tests, by file, then name.
type NamedResults<'n> = Vec<(TestNameRef<'n>, RunResult)>;

impl FoundRun {
    /// The visible run with this id. The id of any of its shards also identifies it.
    pub(crate) fn find(
        connection: &mut PgConnection,
        project: &Project,
        id: RunId,
    ) -> QueryResult<Option<Self>> {
        let (from, to) = retention_bounds(project);
        let project = project.id.0;
        let named_part = alias!(parts as named_part);
        // A join instead would read all runs up to this one.
        let number = named_part
            .filter(named_part.field(parts::project_id).eq(project))
            .filter(named_part.field(parts::id).eq(id.0))
            .select(named_part.field(parts::run_number))
            .single_value();
        let rows: Vec<(StoredRun, Context, PartSummary)> = runs::table
            .inner_join(
                parts::table.on(parts::project_id
                    .eq(runs::project_id)
                    .and(parts::run_number.eq(runs::number))),
            )
            .filter(runs::project_id.eq(project))
            .filter(parts::project_id.eq(project))
            .filter(runs::number.nullable().eq(number))
            .filter(runs::started_at.between(from, to))
            .order((parts::index.asc(), parts::number.asc()))
            .select((
                StoredRun::as_select(),
                (runs::ci_provider, runs::run_url),
                PartSummary::as_select(),
            ))
            .load(connection)?;
        let mut found: Option<Self> = None;
        for (run, context, part) in rows {
            let found = found.get_or_insert_with(|| Self {
                project,
                run,
                context,
                parts: Vec::new(),
            });
            found.parts.push(part);
        }
        Ok(found)
    }

    /// The results of the run, or of some of its tests.
    fn results<'n>(
        &self,
        connection: &mut PgConnection,
        names: &'n TestNames,
        only: Option<&[i32]>,
    ) -> Read<NamedResults<'n>> {
        let (project, number, started_at) = (self.project, self.run.number, self.run.started_at);
        let results = results_of_run(connection, project, number, started_at, only)?;
        let results = results.into_iter().map(|result| {
            Ok(RunResult {
                test: count(result.test)?,
                status: status(result.status)?,
                attempts: count(result.attempts)?,
                duration_ms: duration(result.duration_ms)?,
                browser: result.browser,
                part: result.part,
            })
        });
        let results = results.collect::<Result<Vec<_>, StoreError>>()?;
        let mut results = self.named(results, names)?;
        results.sort_unstable_by_key(|(name, _)| (name.file_path, name.name));
        Ok(results)
    }

    /// Results with the names of their tests.
    fn named<'n>(
        &self,
        results: impl IntoIterator<Item = RunResult>,
        names: &'n TestNames,
    ) -> Result<NamedResults<'n>, StoreError> {
        let named = |result: RunResult| {
            let name = names.get(result.test).ok_or_else(|| {
                let place = format!("test {} in run {}", result.test, self.run.number);
                corrupt("result of an unknown test", &place)
            })?;
            Ok((name, result))
        };
        results.into_iter().map(named).collect()
    }

    fn detail(
        self,
        connection: &mut PgConnection,
        results: &[(TestNameRef<'_>, RunResult)],
        rest: Option<RunRest>,
    ) -> Read<RunDetail> {
        let report_errors = part::report_errors(connection, self.project, self.run.number, &self.parts)?;
        Ok(RunDetail {
            rest,
            counts: self.run.counts.counts()?,
            tests: self.tests(connection, results)?,
            run: detail_run(self.run, self.context, &self.parts, report_errors)?,
        })
    }

    /// The entries of some results.
    fn tests(
        &self,
        connection: &mut PgConnection,
        results: &[(TestNameRef<'_>, RunResult)],
    ) -> Read<Vec<TestEntry>> {
        let total = self.run.counts.counts()?.total;
        let browsers = results.iter().map(|(_, result)| result.browser);
        let browsers = Browsers::load(connection, self.project, browsers)?;
        let is_whole = u32::try_from(results.len()).is_ok_and(|count| count == total);
        let with_rows: Vec<i32> = results
            .iter()
            .filter(|(_, result)| result.attempts > 0)
            .map(|(_, result)| int(result.test))
            .collect();
        let mut errors = errors(connection, self.project, &self.run, &with_rows, is_whole)?;
        let tags = ShardTags::of(&self.parts)?;
        let entry = |(name, result): &(TestNameRef<'_>, RunResult)| {
            let (error_message, fingerprint) = errors.remove(&result.test).unwrap_or_default();
            Ok(TestEntry {
                test_name: name.name.to_owned(),
                file_path: name.file_path.map(str::to_owned),
                status: result.status,
                attempts: result.attempts.max(1),
                duration_ms: result.duration_ms,
                error_message,
                fingerprint,
                browser_name: browsers.name(result.browser),
                shard: tags.get(result.part)?,
            })
        };
        converted(results, entry)
    }
}

/// The summary of the run with this id. The id of any of its shards also identifies it.
pub(crate) fn failed_run(
    connection: &mut PgConnection,
    project: &Project,
    id: RunId,
) -> Read<Option<FailedRun>> {
    let Some(FoundRun {
        run: stored, parts, ..
    }) = FoundRun::find(connection, project, id)?
    else {
        return Ok(None);
    };
    Ok(Some(FailedRun {
        trusted: stored.counts_in_verdicts,
        id: RunId(stored.id),
        run_number: stored.number,
        status: outcome(stored.status.as_deref())?.into(),
        tests: stored.counts.counts()?.total,
        started_at: stored.started_at.0,
        incomplete: why_incomplete(connection, project.id.0, &stored, &parts)?,
        shard_durations: part::shard_durations(&parts),
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
    let interrupted = match run.counts.counts()?.skipped {
        0 => 0,
        _ => count_with_status(
            connection,
            project,
            run.number,
            run.started_at,
            status_code(AttemptStatus::Interrupted),
        )?,
    };
    let gaps = Gaps {
        missing_shards: part::missing(parts, run.shards_expected)?,
        is_cut_short: part::is_cut_short(parts)?,
        report_error: report_errors.first(),
        interrupted_tests: u64::try_from(interrupted).unwrap_or(0),
        // They are failures and errors of the run.
        left_over: LeftOver::default(),
    };
    Ok(gaps.reason())
}

fn detail_run(
    stored: StoredRun,
    context: Context,
    parts: &[PartSummary],
    (report_errors, omitted_report_errors): (Vec<ErrorDetail>, u32),
) -> Result<Run, StoreError> {
    let (ci_provider, run_url) = context;
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
        pull_request_title: stored.pull_request_title,
        ci_provider: optional_word("CI provider", ci_provider.as_deref())?,
        suite: stored.suite,
        trusted: stored.counts_in_verdicts,
        run_url,
    })
}

/// A message and a fingerprint.
type FinalError = (Option<String>, Option<String>);
/// The errors of final attempts by test.
type FinalErrors = HashMap<TestOrdinal, FinalError>;

/// The message and fingerprint of the final attempts of these tests, by test. `is_whole` is whether these are all tests of
/// the run with rows of `attempt`.
fn errors(
    connection: &mut PgConnection,
    project: Uuid,
    run: &StoredRun,
    tests: &[i32],
    is_whole: bool,
) -> Read<FinalErrors> {
    if tests.is_empty() {
        return Ok(HashMap::new());
    }
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
    if !is_whole {
        statement = statement.filter(attempt::test.eq_any(tests));
    }
    let rows: Vec<(i32, Option<String>, Option<String>)> = statement.load(connection)?;
    let by_test = |(test, message, fingerprint): (i32, Option<String>, Option<String>)| {
        Ok((count(test)?, (message.map(excerpt), fingerprint)))
    };
    converted(rows, by_test)
}

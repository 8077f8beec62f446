//! The attempts of one test in one run.

use assay_domain::{
    attempt::{ErrorDetail, StoredAttempt, TestAttempts},
    id::RunId,
    project::Project,
    run::RunTag,
    store::StoreError,
    test::{TestLookup, TestName, TestSelector},
};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, JoinOnDsl, NullableExpressionMethods, PgConnection,
    PgSortExpressionMethods, QueryDsl, Queryable, RunQueryDsl,
};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    browser::Browsers,
    column::{corrupt, count, duration, optional_word, short_hash, status},
    pool::Read,
    run::{self, StoredRun},
    schema::{attempt, result, test, verdict},
    shard::{self, ShardTags},
    test::{choose, then},
};

/// How the test ended in the run, with its stored verdict.
#[derive(Debug, Queryable)]
struct Ended {
    test: i32,
    file_path: Option<String>,
    status: i16,
    duration_ms: Option<i64>,
    browser: i32,
    slot: i16,
    attempts: i32,
    verdict: Option<String>,
}

/// The attempts of a test in a run; none where there is no such run.
pub(crate) fn find(
    connection: &mut PgConnection,
    project: &Project,
    id: RunId,
    asked: &TestSelector,
) -> Read<Option<TestLookup<TestAttempts>>> {
    let Some(run) = run::find(connection, project, id)? else {
        return Ok(None);
    };
    let candidates = ended(connection, project.id.0, run.number, &asked.name)?;
    let candidates = candidates
        .into_iter()
        .map(|ended| {
            (
                TestName {
                    name: asked.name.clone(),
                    file_path: ended.file_path.clone(),
                },
                ended,
            )
        })
        .collect();
    let found = choose(candidates, &asked.file, |(name, _)| name);
    then(found, |(name, ended)| {
        attempts(connection, project.id.0, run, name, &ended)
    })
    .map(Some)
}

/// The results in the run of the tests with this name, by file.
fn ended(connection: &mut PgConnection, project: Uuid, run: i32, name: &str) -> Read<Vec<Ended>> {
    Ok(result::table
        .inner_join(
            test::table.on(test::project_id
                .eq(result::project_id)
                .and(test::ordinal.eq(result::test))),
        )
        .left_join(
            verdict::table.on(verdict::project_id
                .eq(result::project_id)
                .and(verdict::test.eq(result::test))
                .and(verdict::project_id.eq(project))),
        )
        .filter(result::project_id.eq(project))
        .filter(test::project_id.eq(project))
        .filter(result::run_number.eq(run))
        .filter(test::name_hash.eq(short_hash(name)))
        .order(test::file_path.asc().nulls_first())
        .select((
            result::test,
            test::file_path,
            result::status,
            result::duration_ms,
            result::browser,
            result::slot,
            result::attempts,
            verdict::status.nullable(),
        ))
        .load(connection)?)
}

/// A row of the table `attempt`.
#[derive(Debug, Queryable)]
struct Row {
    retry: i32,
    status: i16,
    duration_ms: Option<i64>,
    browser: i32,
    slot: i16,
    errors: Option<Value>,
}

fn attempts(
    connection: &mut PgConnection,
    project: Uuid,
    run: StoredRun,
    test: TestName,
    ended: &Ended,
) -> Read<TestAttempts> {
    let rows: Vec<Row> = if ended.attempts == 0 {
        // A single attempt without errors, which the result tells wholly.
        vec![Row {
            retry: 0,
            status: ended.status,
            duration_ms: ended.duration_ms,
            browser: ended.browser,
            slot: ended.slot,
            errors: None,
        }]
    } else {
        attempt::table
            .filter(attempt::project_id.eq(project))
            .filter(attempt::run_number.eq(run.number))
            .filter(attempt::test.eq(ended.test))
            .order(attempt::retry)
            .select((
                attempt::retry,
                attempt::status,
                attempt::duration_ms,
                attempt::browser,
                attempt::slot,
                attempt::errors,
            ))
            .load(connection)?
    };
    let tags = ShardTags::of(&shard::of_run(connection, project, run.number)?)?;
    let browsers = Browsers::load(connection, project, rows.iter().map(|row| row.browser))?;
    let attempts = rows
        .into_iter()
        .map(|row| row.shown(&tags, &browsers))
        .collect::<Result<_, _>>()?;
    Ok(TestAttempts {
        run: RunTag {
            id: RunId(run.id),
            run_number: run.number,
            branch: run.branch,
        },
        tested_revision: run.tested_revision,
        test,
        verdict: optional_word("verdict", ended.verdict.as_deref())?,
        attempts,
    })
}

impl Row {
    fn shown(self, tags: &ShardTags, browsers: &Browsers) -> Result<StoredAttempt, StoreError> {
        Ok(StoredAttempt {
            retry: count(self.retry)?,
            status: status(self.status)?,
            duration_ms: duration(self.duration_ms)?,
            browser_name: browsers.name(self.browser),
            errors: errors(self.errors)?,
            shard: tags.get(self.slot)?,
        })
    }
}

/// The errors of an attempt.
pub(crate) fn errors(stored: Option<Value>) -> Result<Vec<ErrorDetail>, StoreError> {
    let Some(stored) = stored else {
        return Ok(Vec::new());
    };
    Vec::deserialize(&stored).map_err(|_| corrupt("list of errors", &stored.to_string()))
}

//! Reads the runs and the tests of a project as rows for files, a run at a time.

use std::borrow::Cow;

use assay_domain::{
    attempt::AttemptStatus, id::RunId, project::Project, store::StoreError, timestamp::Timestamp,
};
use diesel::{
    deserialize::{self, FromSql},
    pg::{Pg, PgValue},
    prelude::*,
    row::{Field as _, NamedRow, Row},
    sql_types::{BigInt, Bool, Double, Integer, Text, Timestamptz, Untyped},
};
use serde::Serialize;
use uuid::Uuid;

use crate::{
    Database,
    db::{
        column::{At, failure_codes, status},
        period::retention_bounds,
        pool::{Read, converted},
        schema::run,
        sql_statement::{SqlRow, SqlStatement},
    },
    read::{
        browser::Browsers,
        result_block::{self, StoredResult},
    },
};

/// How many characters of a message are exported.
const MESSAGE_CHARS: i32 = 8_000;

/// A value of a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the types of columns")]
pub enum ExportValue {
    Null,
    Int(i32),
    Long(i64),
    Real(f64),
    Flag(bool),
    Time(Timestamp),
    Text(Cow<'static, str>),
}

macro_rules! values {
    ($($type:ty => $variant:ident($value:ident) $expression:expr;)*) => {
        $(impl From<$type> for ExportValue {
            fn from($value: $type) -> Self {
                Self::$variant($expression)
            }
        })*
    };
}

values! {
    i32 => Int(value) value;
    // Counts and numbers are far below the maximum.
    u32 => Int(value) i32::try_from(value).unwrap_or(i32::MAX);
    i64 => Long(value) value;
    f64 => Real(value) value;
    bool => Flag(value) value;
    Timestamp => Time(value) value;
    At => Time(value) value.0;
    &'static str => Text(value) value.into();
    String => Text(value) value.into();
}

impl<T: Into<Self>> From<Option<T>> for ExportValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A row, with the columns of docs/export.md in their order.
pub type ExportRow = Vec<ExportValue>;

/// A run with its rows, as of one state of the database.
#[derive(Debug)]
pub struct ExportedRun {
    /// Its id.
    pub id: RunId,
    /// Its number and its start, with which the rows of other tables begin.
    pub key: [ExportValue; 2],
    /// Whether an attempt failed.
    pub has_failures: bool,
    /// Its row of `runs`.
    pub run: ExportRow,
    /// Its rows of `results`, ascending by test.
    pub results: Vec<ExportRow>,
    /// Its rows of `attempts`, ascending by test, execution and retry.
    pub attempts: Vec<ExportRow>,
}

impl Database {
    /// The numbers of the project's visible runs that started within `from..to` and have a number greater than `after`,
    /// ascending.
    pub fn runs_to_export(
        &self,
        project: &Project,
        (from, to): (Timestamp, Timestamp),
        after: i32,
    ) -> Result<Vec<i32>, StoreError> {
        let (visible_from, visible_to) = retention_bounds(project);
        self.on_standby("reading the runs to export", |connection| {
            Ok(run::table
                .filter(run::project_id.eq(project.id.0))
                .filter(run::number.gt(after))
                .filter(run::started_at.ge(At(from)).and(run::started_at.lt(At(to))))
                .filter(run::started_at.between(visible_from, visible_to))
                .order(run::number)
                .select(run::number)
                .load(connection)?)
        })
    }

    /// The run of this number; none if it was deleted. The whole run is in memory.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if what is stored of it is damaged.
    pub fn run_to_export(&self, project: &Project, number: i32) -> Result<Option<ExportedRun>, StoreError> {
        self.find_in_snapshot("exporting a run", |connection| {
            exported_run(connection, project, number)
        })
    }

    /// The rows of `tests` of the project's tests whose newest result is visible and whose number is at least `from`,
    /// ascending, at most `limit`, and the number from which the next ones begin.
    pub fn tests_to_export(
        &self,
        project: &Project,
        from: i32,
        limit: u32,
    ) -> Result<(Vec<ExportRow>, Option<i32>), StoreError> {
        let rows = self.on_standby("exporting tests", |connection| {
            exported_tests(connection, project, from, limit)
        })?;
        let last = rows.last().and_then(|last| last.first());
        let next = last.and_then(|number| {
            let ExportValue::Int(number) = number else {
                return None;
            };
            number.checked_add(1)
        });
        Ok((rows, next))
    }
}

/// A row of a statement with the columns of a table in docs/export.md.
struct SelectedRow(ExportRow);

impl SqlRow for SelectedRow {
    type Sql = Untyped;
}

impl QueryableByName<Pg> for SelectedRow {
    fn build<'a>(row: &impl NamedRow<'a, Pg>) -> deserialize::Result<Self> {
        let value = |place| {
            let column = Row::get(row, place).ok_or("a row lacks a column")?;
            column.value().map_or(Ok(ExportValue::Null), typed)
        };
        let values: deserialize::Result<ExportRow> = (0..row.field_count()).map(value).collect();
        Ok(Self(values?))
    }
}

/// A value by the number of its type in Postgres.
fn typed(value: PgValue<'_>) -> deserialize::Result<ExportValue> {
    Ok(match value.get_oid().get() {
        16 => <bool as FromSql<Bool, Pg>>::from_sql(value)?.into(),
        20 => <i64 as FromSql<BigInt, Pg>>::from_sql(value)?.into(),
        23 => <i32 as FromSql<Integer, Pg>>::from_sql(value)?.into(),
        25 => <String as FromSql<Text, Pg>>::from_sql(value)?.into(),
        701 => <f64 as FromSql<Double, Pg>>::from_sql(value)?.into(),
        1184 => <At as FromSql<Timestamptz, Pg>>::from_sql(value)?.into(),
        other => return Err(format!("no column has the type {other}").into()),
    })
}

fn rows(
    statement: SqlStatement<'_, SelectedRow>,
    connection: &mut PgConnection,
) -> QueryResult<Vec<ExportRow>> {
    let rows = statement.load(connection)?.into_iter();
    Ok(rows.map(|SelectedRow(row)| row).collect())
}

fn exported_run(connection: &mut PgConnection, project: &Project, number: i32) -> Read<Option<ExportedRun>> {
    let found: Option<(Uuid, At)> = run::table
        .find((project.id.0, number))
        .select((run::id, run::started_at))
        .first(connection)
        .optional()?;
    let Some((id, start)) = found else {
        return Ok(None);
    };
    let key = [number.into(), start.into()];
    let statuses: Vec<&str> = AttemptStatus::ALL.iter().map(|status| status.as_str()).collect();
    let failures: Vec<i32> = failure_codes().map(i32::from).collect();
    let of_run = |statement: &'static str| {
        SqlStatement::new(statement)
            .bind("statuses", &*statuses)
            .bind("characters", MESSAGE_CHARS)
            .bind("project", project.id.0)
            .bind("number", number)
            .bind("start", start)
    };
    let run = of_run(
        "SELECT number, id::text, suite, branch, commit_sha, tested_revision, pull_request_number, run_url, \
         coalesce(status, 'incomplete'), counts_in_verdicts, started_at, finished_at, duration_ms, total, passed, failed, \
         skipped, recovered, CASE WHEN sharded THEN shards_received END, CASE WHEN sharded THEN shards_expected END \
         FROM run WHERE project_id = {project} AND number = {number}",
    );
    let attempts = of_run(
        "SELECT attempt.run_number, attempt.started_at, attempt.test, attempt.execution, attempt.retry, attempt.is_final, \
         ({statuses})[attempt.status + 1], CASE WHEN attempt.timed THEN attempt.occurred_at END, attempt.duration_ms, \
         browser.name, signature.fingerprint, left(attempt.message, {characters}), attempt.skip_reason \
         FROM attempt LEFT JOIN browser ON browser.ordinal = attempt.browser AND browser.project_id = {project} \
         LEFT JOIN signature ON signature.ordinal = attempt.signature AND signature.project_id = {project} \
         WHERE attempt.project_id = {project} AND attempt.run_number = {number} AND attempt.started_at = {start} \
         ORDER BY attempt.test, attempt.execution, attempt.retry, attempt.part, attempt.place",
    );
    let has_failures = SqlStatement::<bool>::new(
        "SELECT EXISTS (SELECT FROM attempt WHERE project_id = {project} AND run_number = {number} \
         AND started_at = {start} AND status = ANY({failures}))",
    )
    .bind("project", project.id.0)
    .bind("number", number)
    .bind("start", start)
    .bind("failures", &*failures);
    Ok(Some(ExportedRun {
        id: RunId(id),
        has_failures: has_failures.get_result(connection)?,
        run: rows(run, connection)?.pop().unwrap_or_default(),
        results: exported_results(connection, project, number, start)?,
        attempts: rows(attempts, connection)?,
        key,
    }))
}

fn exported_results(
    connection: &mut PgConnection,
    project: &Project,
    run: i32,
    start: At,
) -> Read<Vec<ExportRow>> {
    let mut results = Vec::new();
    for block in result_block::of_run(connection, project.id.0, run, start)? {
        results.extend(block.results()?);
    }
    let numbers = results.iter().map(|result| result.browser);
    let browsers = Browsers::load(connection, project.id.0, numbers)?;
    let row = |result: StoredResult| {
        let started_at = result.start_offset_ms.map(|ms| start.0.plus_ms(ms.into()));
        Ok(vec![
            run.into(),
            start.into(),
            result.test.into(),
            status(result.status)?.as_str().into(),
            started_at.into(),
            result.duration_ms.into(),
            result.attempts.max(1).into(),
            browsers.name(result.browser).into(),
        ])
    };
    converted(results, row)
}

fn exported_tests(
    connection: &mut PgConnection,
    project: &Project,
    first: i32,
    limit: u32,
) -> Read<Vec<ExportRow>> {
    let statement = SqlStatement::new(
        "SELECT test.ordinal, test.name, test.file_path, block.status[{place}], block.reason[{place}], \
         block.bodies[block.body[{place}]]::jsonb ->> 'explanation', block.flake_score[{place}], \
         block.flake_rate[{place}], block.broken_probability[{place}], block.impact[{place}], \
         block.time_lost_ms[{place}], CASE WHEN block.status[{place}] IS NOT NULL THEN project.evaluated_at END \
         FROM test JOIN project ON project.id = test.project_id \
         LEFT JOIN verdict_block AS block ON block.block = test.ordinal / 128 \
         AND block.project_id = {project} WHERE test.project_id = {project} AND project.id = {project} \
         AND test.ordinal >= {first} AND coalesce(block.newest[{place}], 'infinity') >= {visible_from} \
         ORDER BY test.ordinal LIMIT {limit}",
    );
    let statement = statement
        .text("place", "test.ordinal % 128 + 1")
        .bind("project", project.id.0)
        .bind("first", first)
        .bind("visible_from", At(project.visible_from))
        .bind("limit", i64::from(limit));
    Ok(rows(statement, connection)?)
}

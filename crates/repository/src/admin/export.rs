//! Reads the runs and the tests of a project as rows for files, a run at a time.

use std::borrow::Cow;

use assay_domain::{
    id::RunId,
    project::Project,
    run::{RunRow, RunStatus},
    store::StoreError,
    timestamp::Timestamp,
    verdict::{Signal, VerdictStatus},
};
use diesel::prelude::*;
use serde::Serialize;

use crate::{
    Database,
    db::{
        column::{At, beginning, optional_word, status},
        period::retention_bounds,
        pool::Read,
        schema::{attempt, run, signature},
        sql_statement::SqlStatement,
    },
    read::{browser::Browsers, result_block, run::StoredRun, signature::attempts_of_run, verdict},
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
    /// ascending, at most `limit`, each with the number.
    pub fn tests_to_export(
        &self,
        project: &Project,
        from: i32,
        limit: u32,
    ) -> Result<Vec<(i32, ExportRow)>, StoreError> {
        self.on_standby("exporting tests", |connection| {
            exported_tests(connection, project, from, limit)
        })
    }
}

fn exported_run(connection: &mut PgConnection, project: &Project, number: i32) -> Read<Option<ExportedRun>> {
    let id = project.id.0;
    let stored: Option<StoredRun> = run::table
        .find((id, number))
        .select(StoredRun::as_select())
        .first(connection)
        .optional()?;
    let Some(stored) = stored else {
        return Ok(None);
    };
    let start = stored.started_at;
    let mut stored_results = Vec::new();
    for block in result_block::of_run(connection, id, number, start)? {
        stored_results.extend(block.results()?);
    }
    /// Test, execution, retry and whether it is final; status; start and whether that is its own, duration, browser;
    /// fingerprint, message, reason of a skip.
    type Attempt = (
        (i32, i32, i32, bool),
        i16,
        (At, bool, Option<i64>, i32),
        (Option<String>, Option<String>, Option<String>),
    );
    let stored_attempts: Vec<Attempt> = attempts_of_run(id, number, start)
        .order((
            attempt::test,
            attempt::execution,
            attempt::retry,
            attempt::part,
            attempt::place,
        ))
        .select((
            (
                attempt::test,
                attempt::execution,
                attempt::retry,
                attempt::is_final,
            ),
            attempt::status,
            (
                attempt::occurred_at,
                attempt::timed,
                attempt::duration_ms,
                attempt::browser,
            ),
            (
                signature::fingerprint.nullable(),
                beginning(attempt::message, MESSAGE_CHARS),
                attempt::skip_reason,
            ),
        ))
        .load(connection)?;
    let numbers = stored_results.iter().map(|result| result.browser);
    let numbers = numbers.chain(stored_attempts.iter().map(|(_, _, (.., browser), _)| *browser));
    let browsers = Browsers::load(connection, id, numbers)?;

    let key = [number.into(), start.into()];
    let row = |values: &[ExportValue]| [&key, values].concat();
    let (mut results, mut attempts) = (Vec::with_capacity(stored_results.len()), Vec::new());
    for result in stored_results {
        let started_at = result.start_offset_ms.map(|ms| start.0.plus_ms(ms.into()));
        results.push(row(&[
            result.test.into(),
            status(result.status)?.as_str().into(),
            started_at.into(),
            result.duration_ms.into(),
            result.attempts.max(1).into(),
            browsers.name(result.browser).into(),
        ]));
    }
    let mut has_failures = false;
    for ((test, execution, retry, is_final), code, (at, timed, duration_ms, browser), texts) in
        stored_attempts
    {
        let status = status(code)?;
        has_failures |= status.is_failure();
        attempts.push(row(&[
            test.into(),
            execution.into(),
            retry.into(),
            is_final.into(),
            status.as_str().into(),
            timed.then_some(at).into(),
            duration_ms.into(),
            browsers.name(browser).into(),
            texts.0.into(),
            texts.1.into(),
            texts.2.into(),
        ]));
    }
    let run = stored.row()?;
    Ok(Some(ExportedRun {
        id: run.id,
        key,
        has_failures,
        run: run_row(run),
        results,
        attempts,
    }))
}

fn run_row(run: RunRow) -> ExportRow {
    let counts = run.counts;
    vec![
        run.run_number.into(),
        run.id.to_string().into(),
        run.suite.into(),
        run.branch.into(),
        run.commit_sha.into(),
        run.tested_revision.into(),
        run.pull_request_number.into(),
        run.run_url.into(),
        RunStatus::from(run.status).as_str().into(),
        run.trusted.into(),
        run.started_at.into(),
        run.finished_at.into(),
        run.duration_ms.into(),
        counts.total.into(),
        counts.passed.into(),
        counts.failed.into(),
        counts.skipped.into(),
        counts.recovered.into(),
        run.shards.map(|shards| shards.received).into(),
        run.shards.and_then(|shards| shards.expected).into(),
    ]
}

fn exported_tests(
    connection: &mut PgConnection,
    project: &Project,
    first: i32,
    limit: u32,
) -> Read<Vec<(i32, ExportRow)>> {
    /// Number, name and file; status, reason and body of the verdict, when it was judged; its figures.
    type Row = (
        (i32, String, Option<String>),
        (Option<String>, Option<String>, Option<String>, Option<At>),
        (Option<f64>, Option<f64>, Option<f64>, Option<f64>, Option<i64>),
    );
    let rows: Vec<Row> = SqlStatement::new(
        "SELECT test.ordinal, test.name, test.file_path, block.status[test.ordinal % 128 + 1], \
         block.reason[test.ordinal % 128 + 1], block.bodies[block.body[test.ordinal % 128 + 1]], \
         project.evaluated_at, \
         block.flake_score[test.ordinal % 128 + 1], block.flake_rate[test.ordinal % 128 + 1], \
         block.broken_probability[test.ordinal % 128 + 1], block.impact[test.ordinal % 128 + 1], \
         block.time_lost_ms[test.ordinal % 128 + 1] \
         FROM test JOIN project ON project.id = test.project_id \
         LEFT JOIN verdict_block AS block ON block.block = test.ordinal / 128 \
         AND block.project_id = {project} WHERE test.project_id = {project} AND project.id = {project} \
         AND test.ordinal >= {first} AND coalesce(block.newest[test.ordinal % 128 + 1], 'infinity') >= \
         {visible_from} ORDER BY test.ordinal LIMIT {limit}",
    )
    .bind("project", project.id.0)
    .bind("first", first)
    .bind("visible_from", At(project.visible_from))
    .bind("limit", i64::from(limit))
    .load(connection)?;
    let mut tests = Vec::with_capacity(rows.len());
    for ((test, name, file_path), (status, reason, body, evaluated_at), figures) in rows {
        let status: Option<VerdictStatus> = optional_word("verdict", status.as_deref())?;
        let reason: Option<Signal> = optional_word("signal", reason.as_deref())?;
        let body = body.as_deref().map(verdict::parsed).transpose()?;
        let (flake_score, flake_rate, broken_probability, impact, time_lost_ms) = figures;
        let of_verdict: [ExportValue; 9] = [
            status.map(VerdictStatus::as_str).into(),
            reason.map(Signal::as_str).into(),
            body.map(|body| body.explanation).into(),
            flake_score.into(),
            flake_rate.into(),
            broken_probability.into(),
            impact.into(),
            time_lost_ms.into(),
            evaluated_at.into(),
        ];
        let has_verdict = status.is_some();
        let of_verdict = of_verdict.map(|value| if has_verdict { value } else { ExportValue::Null });
        let mut row = vec![test.into(), name.into(), file_path.into()];
        row.extend(of_verdict);
        tests.push((test, row));
    }
    Ok(tests)
}

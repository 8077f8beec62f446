//! A test in short: its verdict, and its outcomes in the runs of a period.

use assay_domain::{
    history::{FailedOccurrence, RunOutcome, TestSummary},
    id::RunId,
    period::Period,
    project::Project,
    run::RunTag,
    test::{TestLookup, TestSelector},
    timestamp::Timestamp,
};
use diesel::prelude::*;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    db::{
        column::{At, failure_codes, status},
        period::visible,
        pool::{Read, converted},
        sql_statement::SqlStatement,
    },
    read::{
        attempt::{errors, errors_of},
        result_block::{result_of, with_tests},
        signature_counts, test, verdict,
    },
};

/// Most outcomes.
const MOST_OUTCOMES: i64 = 1_000;

/// The summary of a test over a period.
pub(crate) fn find(
    connection: &mut PgConnection,
    project: &Project,
    selector: &TestSelector,
    period: &Period,
    failures: u32,
) -> Read<TestLookup<TestSummary>> {
    let lookup = test::find(connection, project, selector)?;
    lookup.try_map(|test| {
        let failed: Vec<i32> = failure_codes().map(i32::from).collect();
        let (from, to) = visible(project, period);
        let results = Results {
            project: project.id.0,
            tests: &test.stored_as,
            from,
            to,
            failed: &failed,
        };
        Ok(TestSummary {
            verdict: verdict::of_test(connection, project, test.ordinal)?,
            outcomes: results.outcomes(connection)?,
            first_failure: results.first_failure(connection)?,
            last_failures: results.last_failures(connection, failures)?,
            signatures: signature_counts::of_ordinals(connection, project, &test.stored_as, period)?,
            test: test.name,
        })
    })
}

/// The results of a test in the visible runs of a period.
struct Results<'a> {
    project: Uuid,
    /// The numbers under which they may be stored.
    tests: &'a [i32],
    from: At,
    to: At,
    /// The stored numbers of failures.
    failed: &'a [i32],
}

impl Results<'_> {
    /// Puts the condition that a row of `attempt` is a failed attempt of them at `{failed_attempt}`. Binds `{project}`,
    /// `{from}` and `{to}`.
    fn fill<'a, Row>(&'a self, statement: SqlStatement<'a, Row>) -> SqlStatement<'a, Row> {
        let statement = statement.text(
            "failed_attempt",
            "attempt.project_id = {project} AND attempt.test {is_requested} \
             AND attempt.started_at BETWEEN {from} AND {to} AND attempt.status = ANY({failed})",
        );
        with_tests(statement, self.tests)
            .bind("project", self.project)
            .bind("from", self.from)
            .bind("to", self.to)
            .bind("failed", self.failed)
    }

    /// The outcomes in the newest runs, newest first.
    ///
    /// `IN` reads the runs with a failed attempt once. A generic plan, which expects few rows, would search a joined
    /// list of them for each run.
    fn outcomes(&self, connection: &mut PgConnection) -> Read<Vec<RunOutcome>> {
        let statement = SqlStatement::new(concat!(
            "SELECT run.branch, ran.status, ran.run_number IN (SELECT attempt.run_number FROM attempt \
         WHERE {failed_attempt}) FROM (SELECT block.run_number, block.started_at, result.status \
         FROM {requested} AS requested JOIN result_block AS block ON block.block = requested.test / 512 \
         AND block.project_id = {project} AND block.started_at BETWEEN {from} AND {to}",
            result_of!("requested.test"),
            " ORDER BY block.started_at DESC, block.run_number DESC LIMIT {most}) AS ran JOIN run \
         ON run.number = ran.run_number AND run.project_id = {project} \
         ORDER BY ran.started_at DESC, ran.run_number DESC"
        ));
        let statement = self.fill(statement).bind("most", MOST_OUTCOMES);
        let rows: Vec<(Option<String>, i16, bool)> = statement.load(connection)?;
        converted(rows, |(branch, code, any_failed_attempt)| {
            Ok(RunOutcome {
                branch,
                status: status(code)?,
                any_failed_attempt,
            })
        })
    }

    /// The oldest run with a failed attempt, and its start.
    fn first_failure(&self, connection: &mut PgConnection) -> Read<Option<(RunTag, Timestamp)>> {
        let statement = SqlStatement::new(
            "SELECT run.id, run.number, run.branch, failed.started_at FROM ( \
         SELECT attempt.run_number, attempt.started_at FROM attempt WHERE {failed_attempt} \
         ORDER BY attempt.started_at, attempt.run_number LIMIT 1) AS failed \
         JOIN run ON run.number = failed.run_number AND run.project_id = {project}",
        );
        let row: Option<(Uuid, i32, Option<String>, At)> =
            self.fill(statement).get_result(connection).optional()?;
        Ok(row.map(|(id, number, branch, started_at)| (run_tag(id, number, branch), started_at.0)))
    }

    /// The newest runs with a failed attempt, newest first, each with the errors of its last failed attempt.
    fn last_failures(&self, connection: &mut PgConnection, failures: u32) -> Read<Vec<FailedOccurrence>> {
        let statement = SqlStatement::new(concat!(
            "SELECT run.id, run.number, run.branch, failed.started_at, (SELECT max(ended.status) \
         FROM attempt AS ended \
         WHERE ended.is_final AND ended.test = failed.test AND ended.started_at = failed.started_at \
         AND ended.run_number = failed.run_number AND ended.project_id = {project}), ",
            errors_of!("failed"),
            " FROM ( \
         SELECT DISTINCT ON (attempt.started_at, attempt.run_number) attempt.* FROM attempt \
         WHERE {failed_attempt} ORDER BY attempt.started_at DESC, attempt.run_number DESC, \
         attempt.execution DESC, attempt.retry DESC LIMIT {failures}) AS failed JOIN run \
         ON run.number = failed.run_number AND run.project_id = {project} \
         ORDER BY failed.started_at DESC, failed.run_number DESC"
        ));
        let statement = self.fill(statement).bind("failures", i64::from(failures));
        type Row = (Uuid, i32, Option<String>, At, i16, Option<Value>);
        let rows: Vec<Row> = statement.load(connection)?;
        converted(rows, |(id, number, branch, started_at, code, stored)| {
            Ok(FailedOccurrence {
                run: run_tag(id, number, branch),
                started_at: started_at.0,
                status: status(code)?,
                errors: errors(stored)?,
            })
        })
    }
}

fn run_tag(id: Uuid, run_number: i32, branch: Option<String>) -> RunTag {
    RunTag {
        id: RunId(id),
        run_number,
        branch,
    }
}

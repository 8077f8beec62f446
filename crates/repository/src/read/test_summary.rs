//! A test in short: its verdict, and its outcomes in the runs of a period.

use assay_domain::{
    history::{FailedOccurrence, RunOutcome, TestSummary},
    id::RunId,
    period::Period,
    project::Project,
    run::RunTag,
    store::StoreError,
    test::{TestLookup, TestSelector},
    timestamp::Timestamp,
};
use diesel::{
    prelude::*,
    sql_types::{Bool, Integer, Jsonb, Nullable, SmallInt, Text, Timestamptz, Uuid as SqlUuid},
};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    db::{
        column::{At, failure_codes, status},
        period::visible,
        pool::Read,
        sql_statement::{Part, SqlStatement},
    },
    read::{
        attempt::{errors, errors_of},
        result_block::{requested, result_of},
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
    test::map_found(lookup, |test| {
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
    /// Condition: a row of `attempt` is a failed attempt of them.
    fn failed_attempt(&self) -> [Part<'_>; 10] {
        let (equals, of_tests, end) = match self.tests {
            [only] => (" AND attempt.test = ", Part::Integer(*only), ""),
            several => (" AND attempt.test = ANY(", Part::Integers(several), ")"),
        };
        [
            Part::Sql("attempt.project_id = "),
            Part::Uuid(self.project),
            Part::Sql(equals),
            of_tests,
            Part::Sql(end),
            Part::Sql(" AND attempt.started_at BETWEEN "),
            Part::At(self.from),
            Part::Sql(" AND "),
            Part::At(self.to),
            Part::Sql(" AND attempt.status = ANY("),
        ]
    }

    /// The outcomes in the newest runs, newest first.
    ///
    /// `IN` reads the runs with a failed attempt once. A generic plan, which expects few rows, would search a joined
    /// list of them for each run.
    fn outcomes(&self, connection: &mut PgConnection) -> Read<Vec<RunOutcome>> {
        type Types = (Nullable<Text>, SmallInt, Bool);
        let rows = SqlStatement::<Types>::new(
            "SELECT run.branch, ran.status, ran.run_number IN (SELECT attempt.run_number FROM attempt WHERE ",
        )
        .all(&self.failed_attempt())
        .bind(self.failed)
        .sql(")) FROM (SELECT block.run_number, block.started_at, result.status FROM ")
        .all(&requested(self.tests))
        .sql(
            " AS requested JOIN result_block AS block ON block.block = requested.test / 512 \
                 AND block.project_id = ",
        )
        .bind(self.project)
        .sql(" AND block.started_at BETWEEN ")
        .bind(self.from)
        .sql(" AND ")
        .bind(self.to)
        .sql(result_of!("requested.test"))
        .sql(" ORDER BY block.started_at DESC, block.run_number DESC LIMIT ")
        .bind(MOST_OUTCOMES)
        .sql(") AS ran JOIN run ON run.number = ran.run_number AND run.project_id = ")
        .bind(self.project)
        .sql(" ORDER BY ran.started_at DESC, ran.run_number DESC")
        .load::<(Option<String>, i16, bool)>(connection)?;
        let outcome = |(branch, code, any_failed_attempt)| {
            Ok(RunOutcome {
                branch,
                status: status(code)?,
                any_failed_attempt,
            })
        };
        Ok(rows.into_iter().map(outcome).collect::<Result<_, StoreError>>()?)
    }

    /// The oldest run with a failed attempt, and its start.
    fn first_failure(&self, connection: &mut PgConnection) -> Read<Option<(RunTag, Timestamp)>> {
        type Types = (SqlUuid, Integer, Nullable<Text>, Timestamptz);
        let row = SqlStatement::<Types>::new(
            "SELECT run.id, run.number, run.branch, failed.started_at FROM ( \
                 SELECT attempt.run_number, attempt.started_at FROM attempt WHERE ",
        )
        .all(&self.failed_attempt())
        .bind(self.failed)
        .sql(
            ") ORDER BY attempt.started_at, attempt.run_number LIMIT 1) AS failed \
             JOIN run ON run.number = failed.run_number AND run.project_id = ",
        )
        .bind(self.project)
        .get_result::<(Uuid, i32, Option<String>, At)>(connection)
        .optional()?;
        Ok(row.map(|(id, number, branch, started_at)| (run_tag(id, number, branch), started_at.0)))
    }

    /// The newest runs with a failed attempt, newest first, each with the errors of its last failed attempt.
    fn last_failures(&self, connection: &mut PgConnection, failures: u32) -> Read<Vec<FailedOccurrence>> {
        type Types = (
            SqlUuid,
            Integer,
            Nullable<Text>,
            Timestamptz,
            SmallInt,
            Nullable<Jsonb>,
        );
        let rows = SqlStatement::<Types>::new(
            "SELECT run.id, run.number, run.branch, failed.started_at, (SELECT max(ended.status) FROM attempt AS ended \
                 WHERE ended.is_final AND ended.test = failed.test AND ended.started_at = failed.started_at \
                     AND ended.run_number = failed.run_number AND ended.project_id = ",
        )
        .bind(self.project)
        .sql(concat!("), ", errors_of!("failed")))
        .bind(self.project)
        .sql(
            ") FROM ( \
                 SELECT DISTINCT ON (attempt.started_at, attempt.run_number) attempt.* FROM attempt WHERE ",
        )
        .all(&self.failed_attempt())
        .bind(self.failed)
        .sql(
            ") ORDER BY attempt.started_at DESC, attempt.run_number DESC, attempt.execution DESC, attempt.retry DESC LIMIT ",
        )
        .bind(i64::from(failures))
        .sql(") AS failed JOIN run ON run.number = failed.run_number AND run.project_id = ")
        .bind(self.project)
        .sql(" ORDER BY failed.started_at DESC, failed.run_number DESC")
        .load::<(Uuid, i32, Option<String>, At, i16, Option<Value>)>(connection)?;
        let failure = |(id, number, branch, started_at, code, stored): (_, _, _, At, _, _)| {
            Ok(FailedOccurrence {
                run: run_tag(id, number, branch),
                started_at: started_at.0,
                status: status(code)?,
                errors: errors(stored)?,
            })
        };
        Ok(rows.into_iter().map(failure).collect::<Result<_, StoreError>>()?)
    }
}

fn run_tag(id: Uuid, run_number: i32, branch: Option<String>) -> RunTag {
    RunTag {
        id: RunId(id),
        run_number,
        branch,
    }
}

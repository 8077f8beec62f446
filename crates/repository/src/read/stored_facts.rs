//! The stored facts about failed tests: their verdicts, and when they failed first.

use std::collections::{BTreeSet, HashMap};

use assay_domain::{
    cause::{StoredFacts, VerdictTag},
    joins::Joins,
    project::Project,
    store::StoreError,
    test::TestOrdinal,
};
use diesel::PgConnection;

use crate::{
    db::{
        column::{At, corrupt, count, failure_codes, optional_word, word},
        period::retention_bounds,
        pool::{Read, converted},
        sql_statement::SqlStatement,
    },
    read::joins,
};

/// Test, start of its first failed run, status and reason of its verdict, time of the judgement.
type Row = (i32, Option<At>, Option<String>, Option<String>, Option<At>);

/// The stored facts about tests.
pub(crate) fn of_tests(
    connection: &mut PgConnection,
    project: &Project,
    joins: &Joins,
    tests: &[TestOrdinal],
) -> Read<HashMap<TestOrdinal, StoredFacts>> {
    if tests.is_empty() {
        return Ok(HashMap::new());
    }
    let names: BTreeSet<i32> = tests
        .iter()
        .flat_map(|test| joins::stored_as(joins, *test))
        .collect();
    let mut by_name = of_ordinals(connection, project, &Vec::from_iter(names))?;
    let mut facts = HashMap::with_capacity(tests.len());
    for test in tests {
        let former = joins.names_of(*test).into_iter().skip(1);
        let first_failures = former.filter_map(|name| by_name.get(&name)?.first_failed_at);
        let first_failed_at = first_failures.min();
        let Some(own) = by_name.remove(test) else { continue };
        let first_failed_at = own.first_failed_at.into_iter().chain(first_failed_at).min();
        facts.insert(
            *test,
            StoredFacts {
                first_failed_at,
                ..own
            },
        );
    }
    Ok(facts)
}

/// The same for these numbers, without their other names.
fn of_ordinals(
    connection: &mut PgConnection,
    project: &Project,
    tests: &[i32],
) -> Read<HashMap<TestOrdinal, StoredFacts>> {
    let failures: Vec<i32> = failure_codes().map(i32::from).collect();
    let (from, to) = retention_bounds(project);
    // One index search for each test, oldest partition first: grouping by test would read all of its attempts.
    let rows: Vec<Row> = SqlStatement::new(
        "SELECT failed.test, (SELECT attempt.started_at FROM attempt \
         WHERE attempt.project_id = {project} AND attempt.test = failed.test \
         AND attempt.started_at BETWEEN {from} AND {to} AND attempt.status = ANY({failures}) \
         ORDER BY attempt.started_at LIMIT 1), block.status[failed.test % 128 + 1], \
         block.reason[failed.test % 128 + 1], \
         project.evaluated_at FROM unnest({tests}) AS failed (test) JOIN project \
         ON project.id = {project} LEFT JOIN verdict_block AS block ON block.block = failed.test / 128 \
         AND block.project_id = {project} AND block.newest[failed.test % 128 + 1] BETWEEN {from} AND {to}",
    )
    .bind("project", project.id.0)
    .bind("from", from)
    .bind("to", to)
    .bind("failures", &*failures)
    .bind("tests", tests)
    .load(connection)?;
    converted(rows, |(test, first_failed_at, status, reason, evaluated_at)| {
        let verdict = status.map(|status| tag(&status, reason.as_deref(), evaluated_at));
        let facts = StoredFacts {
            verdict: verdict.transpose()?,
            first_failed_at: first_failed_at.map(|at| at.0),
        };
        Ok((count(test)?, facts))
    })
}

/// A verdict in short.
fn tag(status: &str, reason: Option<&str>, evaluated_at: Option<At>) -> Result<VerdictTag, StoreError> {
    Ok(VerdictTag {
        status: word("verdict", status)?,
        status_reason: optional_word("signal", reason)?,
        evaluated_at: evaluated_at
            .ok_or_else(|| corrupt("verdict without a time", status))?
            .0,
    })
}

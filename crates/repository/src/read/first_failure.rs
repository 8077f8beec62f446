//! When tests failed first.

use std::collections::HashMap;

use assay_domain::{
    attempt::AttemptStatus, project::Project, store::StoreError, test::TestOrdinal, timestamp::Timestamp,
};
use diesel::{
    PgConnection, RunQueryDsl as _,
    sql_types::{Integer, Nullable, Timestamptz},
};

use crate::db::{
    column::{At, count, int, status_code},
    period::ever_visible,
    pool::Read,
    sql_statement::SqlStatement,
};

/// The starts of the first visible runs in which these tests failed. Tests that never failed are absent.
pub(crate) fn of_tests(
    connection: &mut PgConnection,
    project: &Project,
    tests: &[TestOrdinal],
) -> Read<HashMap<TestOrdinal, Timestamp>> {
    if tests.is_empty() {
        return Ok(HashMap::new());
    }
    let tests: Vec<i32> = tests.iter().map(|test| int(*test)).collect();
    let failures: Vec<i32> = AttemptStatus::ALL
        .iter()
        .filter(|status| status.is_failure())
        .map(|status| i32::from(status_code(*status)))
        .collect();
    let (from, to) = ever_visible(project);
    // One index search for each test, oldest partition first: grouping by test would read all of its attempts.
    let rows = SqlStatement::<(Integer, Nullable<Timestamptz>)>::new(
        "SELECT failed.test, (SELECT attempt.started_at FROM attempt WHERE attempt.project_id = ",
    )
    .bind(project.id.0)
    .sql(" AND attempt.test = failed.test AND attempt.started_at BETWEEN ")
    .bind(from)
    .sql(" AND ")
    .bind(to)
    .sql(" AND attempt.status = ANY(")
    .bind(&*failures)
    .sql(") ORDER BY attempt.started_at LIMIT 1) FROM unnest(")
    .bind(&*tests)
    .sql(") AS failed (test)")
    .load::<(i32, Option<At>)>(connection)?;
    let first = rows
        .into_iter()
        .filter_map(|(test, at)| Some((test, at?)))
        .map(|(test, at)| Ok((count(test)?, at.0)));
    Ok(first.collect::<Result<_, StoreError>>()?)
}

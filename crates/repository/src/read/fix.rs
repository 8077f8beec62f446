//! The stored fixes of tests, with the runs that show whether they hold.

use std::collections::BTreeMap;

use assay_domain::{
    fix::{FixRun, MOST_FIXES, ShownFix, StoredFix, TestFixes},
    id::RunId,
    joins::Joins,
    period::Period,
    project::Project,
    store::StoreError,
    test::{TestLookup, TestSelector},
};
use diesel::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    db::{
        column::{At, corrupt, count, failure_codes, int, status},
        period::visible,
        pool::Read,
        schema::fix,
        sql_statement::{SqlStatement, sql_row},
    },
    read::{
        joins::{self, stored_as},
        result_block::{result_of, with_tests},
        test,
    },
};

/// The fixes of a test under its names.
pub(crate) fn of_test(
    connection: &mut PgConnection,
    project: &Project,
    selector: &TestSelector,
    period: &Period,
) -> Read<TestLookup<TestFixes>> {
    let lookup = test::find(connection, project, selector)?;
    lookup.try_map(|found| {
        let branch = (project.id.0, found.stable_branch.as_str());
        let loaded = load(connection, branch, visible(project, period), &[found.ordinal])?;
        Ok(loaded
            .into_values()
            .next()
            .map(|(_, fixes)| fixes)
            .unwrap_or_default())
    })
}

/// The keys of a test's fixes in their order: the number under which each is stored, and its id.
type Keys = Vec<(i32, Uuid)>;

/// The fixes of those of these tests that have some, with their runs on the stable branch that started between two times.
pub(crate) fn load(
    connection: &mut PgConnection,
    (project, stable_branch): (Uuid, &str),
    period: (At, At),
    tests: &[i32],
) -> Read<BTreeMap<i32, (Keys, TestFixes)>> {
    let joins = joins::load(connection, project)?;
    let mut names = BTreeMap::new();
    for test in tests {
        let of_test = stored_as(&joins, count(*test)?);
        names.extend(of_test.into_iter().map(|name| (name, *test)));
    }
    let rows: Vec<(i32, Uuid, Value, Option<Value>)> = fix::table
        .filter(fix::project_id.eq(project))
        .filter(fix::test.eq_any(names.keys()))
        .order(fix::id.desc())
        .select((fix::test, fix::id, fix::body, fix::decided))
        .load(connection)?;
    let mut loaded: BTreeMap<i32, (Keys, TestFixes)> = BTreeMap::new();
    for (name, id, body, decided) in rows {
        let Some(test) = names.get(&name) else { continue };
        let (keys, of_test) = loaded.entry(*test).or_default();
        if of_test.fixes.len() < usize::try_from(MOST_FIXES).unwrap_or(usize::MAX) {
            let decided = decided.map(stored::<ShownFix>).transpose()?;
            keys.push((name, id));
            of_test.fixes.push((stored::<StoredFix>(body)?, decided));
        }
    }
    names.retain(|_, test| loaded.contains_key(test));
    if !names.is_empty() {
        let names: Vec<i32> = names.into_keys().collect();
        let results = results(connection, (project, stable_branch), period, &names)?;
        for run in results.chunk_by(|current, next| current.run_number == next.run_number) {
            for (test, (_, of_test)) in &mut loaded {
                of_test.runs.extend(result_of_test(run, &joins, *test)?);
            }
        }
    }
    Ok(loaded)
}

/// A stored fix, or its decision.
pub(crate) fn stored<T: DeserializeOwned>(body: Value) -> Result<T, StoreError> {
    let text = body.to_string();
    serde_json::from_value(body).map_err(|_| corrupt("fix", &text))
}

sql_row! {
    struct Row {
        /// The number under which the result is stored.
        test: i32,
        run_id: Uuid,
        run_number: i32,
        started_at: At,
        tested_revision: Option<String>,
        commit_sha: Option<String>,
        suite: Option<String>,
        most_failed: bool,
        status: i16,
        failed: Option<i16>,
        error: Option<String>,
    }
}

/// The results of tests on the stable branch, the oldest first.
fn results(
    connection: &mut PgConnection,
    (project, stable_branch): (Uuid, &str),
    (from, to): (At, At),
    tests: &[i32],
) -> QueryResult<Vec<Row>> {
    let failed: Vec<i32> = failure_codes().map(i32::from).collect();
    let statement = SqlStatement::new(concat!(
        "SELECT requested.test, run.id, run.number, run.started_at, run.tested_revision, run.commit_sha, run.suite, \
             run.failed > 2 AND 2 * run.failed > run.total - run.skipped AS most_failed, result.status, failed.status, signature.title \
         FROM run CROSS JOIN {requested} AS requested \
         JOIN result_block AS block ON block.block = requested.test / 512 AND block.project_id = {project} \
             AND block.started_at = run.started_at AND block.run_number = run.number \
             AND block.started_at BETWEEN {from} AND {to}",
        result_of!("requested.test"),
        " LEFT JOIN LATERAL (SELECT attempt.status, attempt.signature FROM attempt \
             WHERE attempt.project_id = {project} AND attempt.test = requested.test \
             AND attempt.started_at = run.started_at AND attempt.run_number = run.number \
             AND attempt.started_at BETWEEN {from} AND {to} \
             AND attempt.status = ANY({failed}) ORDER BY attempt.execution DESC, attempt.retry DESC LIMIT 1) AS failed \
             ON true \
         LEFT JOIN signature ON signature.project_id = {project} AND signature.ordinal = failed.signature \
         WHERE run.project_id = {project} AND run.branch = {branch} AND run.counts_in_verdicts \
             AND run.started_at BETWEEN {from} AND {to} \
         ORDER BY run.started_at, run.number, requested.test"
    ));
    with_tests(statement, tests)
        .bind("project", project)
        .bind("branch", stable_branch)
        .bind("from", from)
        .bind("to", to)
        .bind("failed", failed.as_slice())
        .load(connection)
}

/// The result of a test in a run, among the results of its names; none for a skip.
fn result_of_test(run: &[Row], joins: &Joins, test: i32) -> Result<Option<FixRun>, StoreError> {
    let Some(first) = run.first() else { return Ok(None) };
    let of_name = |name| run.iter().find(|row| row.test == int(name));
    let Some(row) = joins.result_of(count(test)?, first.started_at.0, of_name) else {
        return Ok(None);
    };
    let status = status(row.status)?;
    Ok((!status.is_skip()).then(|| FixRun {
        id: RunId(row.run_id),
        number: row.run_number,
        started_at: row.started_at.0,
        tested_revision: row.tested_revision.clone(),
        commit_sha: row.commit_sha.clone(),
        suite: row.suite.clone(),
        failed: row.failed.is_some() || status.is_failure(),
        most_failed: row.most_failed,
        error: row.error.clone(),
    }))
}

//! The data that explain the failures of a run: its outcomes, and the error signatures of the window.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use assay_domain::{
    cause::{ErrorName, FailedRun, FinalStatus, WindowErrors},
    joins::Joins,
    project::Project,
    test::{TestName, TestOrdinal},
    timestamp::Timestamp,
};
use diesel::prelude::*;

use crate::{
    db::{
        column::{At, corrupt, count, int, status},
        pool::{Read, converted},
        schema::{attempt, run, signature},
        sql_statement::SqlStatement,
    },
    read::{joins, result_block::result_of},
};

/// The names and the outcomes of tests in a run, in the requested order.
pub(crate) fn final_statuses(
    connection: &mut PgConnection,
    project: &Project,
    joins: &Joins,
    run: &FailedRun,
    tests: &[TestOrdinal],
) -> Read<Vec<(FinalStatus, TestName)>> {
    let ordinals = all_names(joins, tests);
    let rows: Vec<(i32, i16, i32, String, Option<String>)> = SqlStatement::new(concat!(
        "SELECT requested.test, result.status, result.attempts, test.name, test.file_path \
         FROM unnest({ordinals}) AS requested (test) JOIN test ON test.ordinal = requested.test \
         AND test.project_id = {project} JOIN result_block AS block \
         ON block.block = requested.test / 512 AND block.project_id = {project} \
         AND block.run_number = {run_number} AND block.started_at = {started_at}",
        result_of!("requested.test")
    ))
    .bind("ordinals", &*ordinals)
    .bind("project", project.id.0)
    .bind("run_number", run.run_number)
    .bind("started_at", At(run.started_at))
    .load(connection)?;
    let by_test: HashMap<TestOrdinal, (FinalStatus, TestName)> =
        converted(rows, |(test, code, attempts, name, file_path)| {
            let final_status = FinalStatus {
                status: status(code)?,
                attempts: count(attempts)?.max(1),
            };
            Ok((count(test)?, (final_status, TestName { name, file_path })))
        })?;
    let of_test = |test: &TestOrdinal| {
        let result = joins.result_of(*test, run.started_at, |name| by_test.get(&name));
        result.cloned().ok_or_else(|| {
            let place = format!("test {test} in run {}", run.run_number);
            corrupt("pack with a test that has no result", &place)
        })
    };
    converted(tests, of_test)
}

/// The numbers under which the results of these tests may be stored.
fn all_names(joins: &Joins, tests: &[TestOrdinal]) -> Vec<i32> {
    let names: BTreeSet<i32> = tests
        .iter()
        .flat_map(|test| joins::stored_as(joins, *test))
        .collect();
    names.into_iter().collect()
}

/// Test, run and its start, error signature, whether the run counts in verdicts; of the failed run, the signature's fingerprint and
/// title.
type ErrorRow = (i32, (i32, At), Option<i32>, bool, Option<(String, String)>);

/// The error signatures of a window for these tests, which failed in a run. `counts` are those of the window.
pub(crate) fn window_errors(
    connection: &mut PgConnection,
    project: &Project,
    joins: &Joins,
    (failed_run, tests): (i32, &[TestOrdinal]),
    window: (Timestamp, Timestamp),
    counts: &[(u32, u32)],
) -> Read<WindowErrors> {
    let ordinals = all_names(joins, tests);
    let rows = error_rows(connection, project, failed_run, &ordinals, window)?;
    let reported: HashSet<(i32, i32)> = rows.iter().map(|(test, (run, _), ..)| (*test, *run)).collect();
    let mut errors = ErrorsOfTests::default();
    for (test, (run_number, start), text, counts_in_verdicts, name) in rows {
        let Some(text) = text else { continue };
        let present = joins.at(count(test)?, start.0);
        // A run that reported a test under both names has two tests.
        let test = match reported.contains(&(int(present), run_number)) {
            true => count(test)?,
            false => present,
        };
        errors.add((test, run_number), count(text)?, counts_in_verdicts, name);
    }
    Ok(errors.in_window(counts))
}

/// The attempts of these tests with an error signature, the last one of each run last.
fn error_rows(
    connection: &mut PgConnection,
    project: &Project,
    failed_run: i32,
    ordinals: &[i32],
    (from, to): (Timestamp, Timestamp),
) -> QueryResult<Vec<ErrorRow>> {
    attempt::table
        .inner_join(run::table.on(run::number.eq(attempt::run_number)))
        // Only the texts of the failed run are shown.
        .left_join(
            signature::table.on(signature::project_id
                .eq(project.id.0)
                .and(attempt::signature.eq(signature::ordinal.nullable()))
                .and(attempt::run_number.eq(failed_run))),
        )
        .filter(run::project_id.eq(project.id.0))
        .filter(attempt::project_id.eq(project.id.0))
        .filter(attempt::started_at.between(At(from), At(to)))
        .filter(attempt::test.eq_any(ordinals))
        .filter(attempt::signature.is_not_null())
        // A run that does not count in verdicts is no evidence for the causes of another one.
        .filter(run::counts_in_verdicts.or(attempt::run_number.eq(failed_run)))
        .order((
            attempt::test,
            attempt::run_number,
            attempt::execution,
            attempt::retry,
        ))
        .select((
            attempt::test,
            (attempt::run_number, attempt::started_at),
            attempt::signature,
            run::counts_in_verdicts,
            (signature::fingerprint, signature::title).nullable(),
        ))
        .load(connection)
}

/// The error signatures of some tests in the runs of a window.
#[derive(Default)]
struct ErrorsOfTests {
    /// By test and run, the signature of the last failed attempt, which is the one that is shown.
    last: BTreeMap<(TestOrdinal, i32), u32>,
    /// The signatures of each test in runs that count in verdicts, and in the failed run if it does not.
    counted: HashSet<(TestOrdinal, u32)>,
    not_counted: BTreeSet<(TestOrdinal, u32)>,
    names: BTreeMap<u32, ErrorName>,
}

impl ErrorsOfTests {
    /// Adds the next failed attempt of a test in a run.
    fn add(
        &mut self,
        (test, run): (TestOrdinal, i32),
        text: u32,
        counts_in_verdicts: bool,
        name: Option<(String, String)>,
    ) {
        self.last.insert((test, run), text);
        if let Some((fingerprint, title)) = name {
            self.names.insert(text, ErrorName { fingerprint, title });
        }
        if counts_in_verdicts {
            self.counted.insert((test, text));
        } else {
            self.not_counted.insert((test, text));
        }
    }

    /// The errors with the counts of the window, which lack the failed run if it does not count in verdicts.
    fn in_window(self, counts: &[(u32, u32)]) -> WindowErrors {
        let mut counts: BTreeMap<u32, u32> = counts.iter().copied().collect();
        for (_, text) in self.not_counted.iter().filter(|of| !self.counted.contains(*of)) {
            *counts.entry(*text).or_default() += 1;
        }
        let last = self.last.into_iter();
        WindowErrors {
            failures: last.map(|((test, run), text)| (run, test, text)).collect(),
            tests: counts.into_iter().collect(),
            names: self.names.into_iter().collect(),
        }
    }
}

//! The error signatures of one test, with counts.

use std::collections::HashMap;

use assay_domain::{
    period::Period,
    project::Project,
    signature::TestSignature,
    test::{TestLookup, TestSelector},
};
use diesel::{
    dsl::{count, count_star, max},
    prelude::*,
};

use crate::{
    db::{
        column::{At, corrupt, long_count, word},
        period::visible,
        pool::{Read, converted},
        schema::{attempt, signature},
    },
    read::{joins::of_tests, test},
};

/// How many signatures of a test are listed.
const MOST_OF_A_TEST: i64 = 20;

/// The signatures that a test showed most in a period.
pub(crate) fn of_test(
    connection: &mut PgConnection,
    project: &Project,
    selector: &TestSelector,
    period: &Period,
) -> Read<TestLookup<Vec<TestSignature>>> {
    let lookup = test::find(connection, project, selector)?;
    lookup.try_map(|test| of_ordinals(connection, project, &test.stored_as, period))
}

/// Like [`of_test`], for the test whose results are stored under these numbers.
pub(crate) fn of_ordinals(
    connection: &mut PgConnection,
    project: &Project,
    tests: &[i32],
    period: &Period,
) -> Read<Vec<TestSignature>> {
    let (from, to) = visible(project, period);
    // Attempts without a signature are counted too, and left out below. Without them, Postgres would read the index of
    // signatures, which has the failures of all tests.
    let rows: Vec<(Option<i32>, i64, i64, Option<At>)> = attempt::table
        .filter(attempt::project_id.eq(project.id.0))
        .filter(attempt::started_at.between(from, to))
        .filter(of_tests(tests))
        .group_by(attempt::signature)
        .select((
            attempt::signature,
            count_star(),
            count(attempt::run_number).aggregate_distinct(),
            max(attempt::started_at),
        ))
        .order((count_star().desc(), attempt::signature))
        .limit(MOST_OF_A_TEST + 1)
        .load(connection)?;
    let rows = rows.into_iter().filter(|(ordinal, ..)| ordinal.is_some());
    let rows: Vec<_> = rows
        .take(usize::try_from(MOST_OF_A_TEST).unwrap_or(usize::MAX))
        .collect();
    let ordinals: Vec<i32> = rows.iter().filter_map(|(ordinal, ..)| *ordinal).collect();
    let mut names: HashMap<i32, (String, String, String)> = signature::table
        .filter(signature::project_id.eq(project.id.0))
        .filter(signature::ordinal.eq_any(ordinals))
        .select((
            signature::ordinal,
            (signature::fingerprint, signature::title, signature::category),
        ))
        .load::<(i32, (String, String, String))>(connection)?
        .into_iter()
        .collect();
    let signature = |(ordinal, occurrences, runs, last): (Option<i32>, i64, i64, Option<At>)| {
        let missing = || corrupt("attempt with an unknown signature", &format!("{ordinal:?}"));
        let name = ordinal.and_then(|ordinal| names.remove(&ordinal));
        let (fingerprint, title, category) = name.ok_or_else(missing)?;
        Ok(TestSignature {
            fingerprint,
            title,
            category: word("category", &category)?,
            occurrences: long_count(occurrences)?,
            runs: long_count(runs)?,
            last_run: last.ok_or_else(missing)?.0,
        })
    };
    converted(rows, signature)
}

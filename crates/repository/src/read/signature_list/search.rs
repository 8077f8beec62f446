//! The search of signatures. It is not done in the database, because Postgres' case folding depends on its locale.
//!
//! Texts are read row by row, and only the numbers of signatures and tests are kept, so that a search needs little
//! memory for any number of signatures.

use std::collections::BTreeSet;

use assay_domain::folding::{contains_folded, fold};
use diesel::{
    PgConnection, RunQueryDsl,
    pg::PgRowByRowLoadingMode,
    sql_types::{Integer, Text},
};

use crate::{
    db::{pool::Read, sql_statement::SqlStatement},
    read::signature::{Within, each_latest},
};

/// More than any message has, in characters.
const WHOLE: i32 = 1_000_000;

/// The signatures whose title, latest message or file contains a text, ignoring case; ascending.
pub(super) fn matching(connection: &mut PgConnection, within: &Within<'_>, search: &str) -> Read<Vec<i32>> {
    let search = fold(search);
    let holds = |text: &str| contains_folded(text, &search);
    let mut found = BTreeSet::new();
    let titles = SqlStatement::<(Integer, Text)>::new(
        "SELECT signature.ordinal, signature.title FROM signature WHERE signature.project_id = ",
    )
    .bind(within.project)
    .load_iter::<(i32, String), PgRowByRowLoadingMode>(connection)?;
    for row in titles {
        let (signature, title) = row?;
        if holds(&title) {
            found.insert(signature);
        }
    }
    each_latest(connection, within, None, WHOLE, |latest| {
        if latest.message.as_deref().is_some_and(holds) {
            found.insert(latest.signature);
        }
    })?;
    let mut tests = Vec::new();
    let files = SqlStatement::<(Integer, Text)>::new(
        "SELECT hit.test, named_test.file_path FROM (SELECT DISTINCT attempt.test FROM attempt WHERE ",
    )
    .all(&within.condition())
    .sql(
        " AND attempt.signature IS NOT NULL) AS hit \
         CROSS JOIN LATERAL (SELECT test.file_path FROM test WHERE test.project_id = ",
    )
    .bind(within.project)
    .sql(" AND test.ordinal = hit.test AND test.file_path IS NOT NULL OFFSET 0) AS named_test")
    .load_iter::<(i32, String), PgRowByRowLoadingMode>(connection)?;
    for row in files {
        let (test, file) = row?;
        if holds(&file) {
            tests.push(test);
        }
    }
    if !tests.is_empty() {
        let of_files: Vec<i32> =
            SqlStatement::<Integer>::new("SELECT DISTINCT attempt.signature FROM attempt WHERE ")
                .all(&within.condition())
                .sql(" AND attempt.signature IS NOT NULL AND attempt.test = ANY(")
                .bind(tests.as_slice())
                .sql(")")
                .load(connection)?;
        found.extend(of_files);
    }
    Ok(found.into_iter().collect())
}

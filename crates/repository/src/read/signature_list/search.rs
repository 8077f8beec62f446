//! The search of signatures. It is not done in the database, because Postgres' case folding depends on its locale.
//!
//! Texts are read row by row, and only the numbers of signatures and tests are kept. A search thus needs little memory
//! for any number of signatures.

use std::collections::BTreeSet;

use assay_domain::folding::{contains_folded, fold};
use diesel::PgConnection;

use crate::{
    db::{pool::Read, sql_statement::SqlStatement},
    read::signature::{OccurrenceFilter, each_latest},
};

/// More characters than any message has.
const ALL_CHARACTERS: i32 = 1_000_000;

/// The signatures whose title, latest message or file contains a text, ignoring case; ascending.
pub(super) fn matching(
    connection: &mut PgConnection,
    filter: &OccurrenceFilter<'_>,
    search: &str,
) -> Read<Vec<i32>> {
    let search = fold(search);
    let contains_search = |text: &str| contains_folded(text, &search);
    let mut matches = BTreeSet::new();
    let titles = SqlStatement::<(i32, String)>::new(
        "SELECT signature.ordinal, signature.title FROM signature WHERE signature.project_id = {project}",
    )
    .bind("project", filter.project)
    .load_iter(connection)?;
    for row in titles {
        let (signature, title) = row?;
        if contains_search(&title) {
            matches.insert(signature);
        }
    }
    each_latest(connection, filter, None, ALL_CHARACTERS, |latest| {
        if latest.message.as_deref().is_some_and(contains_search) {
            matches.insert(latest.signature);
        }
    })?;
    let mut tests = Vec::new();
    // A joined test has its present file and the one that was reported.
    let statement = SqlStatement::<(i32, String)>::new(
        "SELECT hit.test, named_test.file_path FROM (SELECT DISTINCT {hit} FROM {attempts} \
             WHERE {occurrence} AND attempt.signature IS NOT NULL) AS hit \
         CROSS JOIN LATERAL (SELECT test.file_path FROM test WHERE test.project_id = {project} \
             AND test.ordinal = hit.test AND test.file_path IS NOT NULL OFFSET 0) AS named_test",
    );
    let hit = match filter.has_joins {
        false => "attempt.test",
        true => "unnest(ARRAY[attempt.test, joined.new]) AS test",
    };
    let files = filter.fill(statement.text("hit", hit)).load_iter(connection)?;
    for row in files {
        let (test, file) = row?;
        if contains_search(&file) {
            tests.push(test);
        }
    }
    if !tests.is_empty() {
        let statement = SqlStatement::new(
            "SELECT DISTINCT attempt.signature FROM {attempts} WHERE {occurrence} \
             AND attempt.signature IS NOT NULL AND (attempt.test = ANY({tests}){or_joined})",
        );
        let or_joined = match filter.has_joins {
            false => "",
            true => " OR joined.new = ANY({tests})",
        };
        let statement = filter.fill(statement.text("or_joined", or_joined));
        let of_files: Vec<i32> = statement.bind("tests", &*tests).load(connection)?;
        matches.extend(of_files);
    }
    Ok(matches.into_iter().collect())
}

//! The texts that the signatures of a list are shown with, or searched by.

use std::collections::{BTreeMap, HashMap};

use assay_domain::{project::Project, signature::SignatureQuery, test::TestName};
use diesel::{ExpressionMethods, PgConnection, QueryDsl, QueryResult, RunQueryDsl};

use crate::{
    column::At,
    period::span,
    schema::{attempt, run},
    signature::Head,
    test::names_by_ordinal,
};

use super::{Found, Latest, period};

/// The messages and the names of tests that signatures are shown with.
pub(super) struct Texts {
    pub(super) messages: HashMap<i32, Option<String>>,
    pub(super) names: HashMap<i32, TestName>,
}

impl Texts {
    /// The texts of all that was found.
    pub(super) fn load(
        connection: &mut PgConnection,
        project: &Project,
        query: &SignatureQuery,
        found: &BTreeMap<i32, Found>,
    ) -> QueryResult<Self> {
        let mut tests: Vec<i32> = found
            .values()
            .flat_map(|found| found.tests.keys().copied())
            .collect();
        tests.sort_unstable();
        tests.dedup();
        let messages = latest_messages(connection, project, query, found)?;
        Ok(Self {
            messages,
            names: names_by_ordinal(connection, project.id.0, &tests)?,
        })
    }

    /// Whether the title, the message or a file of a signature contains a text, which is in lower case.
    ///
    /// Here rather than in the database, whose idea of case depends on its locale.
    pub(super) fn contain(&self, head: Option<&Head>, ordinal: i32, found: &Found, search: &str) -> bool {
        let files = found
            .tests
            .keys()
            .filter_map(|test| self.names.get(test)?.file_path.as_deref());
        let message = self.messages.get(&ordinal).and_then(Option::as_deref);
        head.map(|head| head.title.as_str())
            .into_iter()
            .chain(message)
            .chain(files)
            .any(|text| text.to_lowercase().contains(search))
    }
}

/// The message of each signature's latest occurrence; of several attempts of one test that of the last.
fn latest_messages(
    connection: &mut PgConnection,
    project: &Project,
    query: &SignatureQuery,
    found: &BTreeMap<i32, Found>,
) -> QueryResult<HashMap<i32, Option<String>>> {
    let latest = || found.values().map(|found| found.latest);
    let signatures: Vec<i32> = found.keys().copied().collect();
    let tests: Vec<i32> = latest().map(|latest| latest.test).collect();
    let numbers: Vec<i32> = latest().map(|latest| latest.run_number).collect();
    let (from, to) = period(project, query);
    let starts: Vec<At> = run::table
        .filter(run::project_id.eq(project.id.0))
        .filter(run::number.eq_any(&numbers))
        // Follows from the numbers; it keeps Postgres from reading all runs while it does not know how many there are.
        .filter(run::started_at.between(from, to))
        .select(run::started_at)
        .load(connection)?;
    let Some((oldest, newest)) = span(&starts) else {
        return Ok(HashMap::new());
    };
    type Row = (Option<i32>, At, i32, i32, Option<String>);
    let rows: Vec<Row> = attempt::table
        .filter(attempt::project_id.eq(project.id.0))
        .filter(attempt::test.eq_any(tests))
        // The bounds follow from the list; a plan for any list leaves out partitions by them alone.
        .filter(attempt::started_at.between(oldest, newest))
        .filter(attempt::started_at.eq_any(starts))
        .filter(attempt::run_number.eq_any(numbers))
        .filter(attempt::signature.eq_any(signatures))
        .order(attempt::retry)
        .select((
            attempt::signature,
            attempt::occurred_at,
            attempt::run_number,
            attempt::test,
            attempt::message,
        ))
        .load(connection)?;
    // More than these may have been read, and the last attempt of each comes last.
    let messages = rows
        .into_iter()
        .filter_map(|(signature, at, run_number, test, message)| {
            let signature = signature?;
            let read = Latest { at, run_number, test };
            (found.get(&signature)?.latest == read).then_some((signature, message))
        });
    Ok(messages.collect())
}

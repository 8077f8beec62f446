//! The texts that the signatures of a list are shown with, or searched by.

use std::collections::{BTreeMap, HashMap};

use assay_domain::{project::Project, signature::SignatureQuery, test::TestName};
use diesel::{ExpressionMethods, PgConnection, QueryDsl, QueryResult, RunQueryDsl};

use crate::{
    column::At,
    period::visible,
    schema::run,
    signature::{Head, Latest, latest_messages},
    test::names_by_ordinal,
};

use super::Found;

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
        let latest: BTreeMap<i32, Latest> = found
            .iter()
            .map(|(signature, found)| (*signature, found.latest))
            .collect();
        let starts = starts(connection, project, query, &latest)?;
        let messages = latest_messages(connection, project.id.0, &latest, &starts)?;
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

/// When the runs of these occurrences started.
fn starts(
    connection: &mut PgConnection,
    project: &Project,
    query: &SignatureQuery,
    latest: &BTreeMap<i32, Latest>,
) -> QueryResult<Vec<At>> {
    let (from, to) = visible(project, &query.window);
    run::table
        .filter(run::project_id.eq(project.id.0))
        .filter(run::number.eq_any(latest.values().map(|latest| latest.run_number)))
        // Follows from the numbers; it keeps Postgres from reading all runs while it does not know how many there are.
        .filter(run::started_at.between(from, to))
        .select(run::started_at)
        .load(connection)
}

//! The joined tests of a project, derived from its renames file and its tests.

use assay_domain::{
    joins::Joins,
    renames::{Join, Renames},
    store::StoreError,
    test::TestOrdinal,
};
use diesel::{pg::Pg, prelude::*, sql_types::Bool};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    db::{
        column::{corrupt, int},
        pool::Read,
        schema::{attempt, project},
    },
    read::test_name_cache,
};

/// The joined tests of a project.
pub(crate) fn load(connection: &mut PgConnection, of: Uuid) -> Read<Joins> {
    let stored: Option<Option<Value>> = project::table
        .find(of)
        .select(project::joined_tests)
        .first(connection)
        .optional()?;
    Ok(parsed(stored.flatten())?)
}

/// The joined tests of the stored column.
pub(crate) fn parsed(stored: Option<Value>) -> Result<Joins, StoreError> {
    let Some(stored) = stored else {
        return Ok(Joins::default());
    };
    let joins: Vec<Join> =
        serde_json::from_value(stored).map_err(|error| corrupt("joined tests", &error.to_string()))?;
    Ok(Joins::of(joins))
}

/// Derives the joined tests again; returns whether the stored ones were different. The caller holds the project's lock.
pub(crate) fn refresh(connection: &mut PgConnection, of: Uuid) -> Read<bool> {
    let stored: Option<(Option<String>, Option<Value>)> = project::table
        .find(of)
        .select((project::renames_text, project::joined_tests))
        .first(connection)
        .optional()?;
    let Some((text, stored)) = stored else {
        return Ok(false);
    };
    let joins = match text {
        None => Vec::new(),
        Some(text) => {
            let (names, _) = test_name_cache::read(connection, of, 0)?;
            Renames::parse(&text).joins(names.iter())
        }
    };
    let derived = match joins.is_empty() {
        true => None,
        false => Some(serde_json::to_value(joins).map_err(|error| StoreError::Failed {
            doing: "writing joined tests",
            source: Box::new(error),
        })?),
    };
    if stored == derived {
        return Ok(false);
    }
    diesel::update(project::table.find(of))
        .set(project::joined_tests.eq(derived))
        .execute(connection)?;
    Ok(true)
}

/// The numbers under which the results of a test may be stored, its own first.
pub(crate) fn stored_as(joins: &Joins, test: TestOrdinal) -> Vec<i32> {
    joins.names_of(test).into_iter().map(int).collect()
}

/// Condition: a row of `attempt` is of one of these tests.
pub(crate) fn of_tests(tests: &[i32]) -> Box<dyn BoxableExpression<attempt::table, Pg, SqlType = Bool> + '_> {
    match tests {
        // Of a list, Postgres expects more rows, and may read the index of signatures.
        [only] => Box::new(attempt::test.eq(*only)),
        several => Box::new(attempt::test.eq_any(several)),
    }
}

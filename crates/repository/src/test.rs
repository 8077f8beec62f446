//! Tests: looking one up by name, and naming many.

use std::collections::HashMap;

use assay_domain::{
    project::Project,
    store::StoreError,
    test::{FileSelector, TestLookup, TestName, TestOrdinal, TestSelector},
};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, PgConnection, PgSortExpressionMethods, QueryDsl, QueryResult,
    RunQueryDsl, dsl::exists,
};
use uuid::Uuid;

use crate::{
    column::{At, corrupt, int, short_hash},
    pool::Read,
    schema::{result, test},
};

/// A test that was looked up.
#[derive(Debug, Clone)]
pub(crate) struct FoundTest {
    pub(crate) ordinal: i32,
    pub(crate) name: TestName,
}

/// The test that is asked for, among those with a visible result.
pub(crate) fn find(
    connection: &mut PgConnection,
    project: &Project,
    asked: &TestSelector,
) -> Read<TestLookup<FoundTest>> {
    let visible = result::table
        .filter(result::project_id.eq(project.id.0))
        .filter(result::test.eq(test::ordinal))
        .filter(result::started_at.ge(At(project.visible_from)));
    let candidates: Vec<(i32, Option<String>)> = test::table
        .filter(
            test::project_id
                .eq(project.id.0)
                .and(test::name_hash.eq(short_hash(&asked.name))),
        )
        .filter(exists(visible))
        .order(test::file_path.asc().nulls_first())
        .select((test::ordinal, test::file_path))
        .load(connection)?;
    let candidates = candidates.into_iter().map(|(ordinal, file_path)| FoundTest {
        ordinal,
        name: TestName {
            name: asked.name.clone(),
            file_path,
        },
    });
    Ok(choose(candidates.collect(), &asked.file, |found| &found.name))
}

/// The candidate in the file that is asked for. The candidates are ordered by file.
pub(crate) fn choose<T>(
    mut candidates: Vec<T>,
    file: &FileSelector,
    name: impl Fn(&T) -> &TestName,
) -> TestLookup<T> {
    if let FileSelector::Exactly(file) = file {
        candidates.retain(|candidate| name(candidate).file_path == *file);
    }
    match (candidates.pop(), candidates.is_empty()) {
        (None, _) => TestLookup::Missing,
        (Some(only), true) => TestLookup::Found(only),
        (Some(last), false) => {
            candidates.push(last);
            TestLookup::Ambiguous(
                candidates
                    .iter()
                    .map(|candidate| name(candidate).file_path.clone())
                    .collect(),
            )
        }
    }
}

/// What was found, made of the test by `read`.
pub(crate) fn then<T, U>(found: TestLookup<T>, read: impl FnOnce(T) -> Read<U>) -> Read<TestLookup<U>> {
    Ok(match found {
        TestLookup::Found(test) => TestLookup::Found(read(test)?),
        TestLookup::Missing => TestLookup::Missing,
        TestLookup::Ambiguous(files) => TestLookup::Ambiguous(files),
    })
}

/// The names of tests by their ordinals.
pub(crate) fn names_by_ordinal(
    connection: &mut PgConnection,
    project: Uuid,
    ordinals: &[i32],
) -> QueryResult<HashMap<i32, TestName>> {
    let rows: Vec<(i32, String, Option<String>)> = test::table
        .filter(test::project_id.eq(project))
        .filter(test::ordinal.eq_any(ordinals))
        .select((test::ordinal, test::name, test::file_path))
        .load(connection)?;
    Ok(rows
        .into_iter()
        .map(|(ordinal, name, file_path)| (ordinal, TestName { name, file_path }))
        .collect())
}

/// The names of tests, in the order asked for.
pub(crate) fn names(
    connection: &mut PgConnection,
    project: &Project,
    tests: &[TestOrdinal],
) -> Read<Vec<TestName>> {
    let ordinals: Vec<i32> = tests.iter().map(|test| int(*test)).collect();
    let names = names_by_ordinal(connection, project.id.0, &ordinals)?;
    Ok(ordinals
        .iter()
        .map(|ordinal| named(&names, *ordinal))
        .collect::<Result<_, StoreError>>()?)
}

/// The name of a test that other rows speak of, and that therefore has one.
pub(crate) fn named(names: &HashMap<i32, TestName>, ordinal: i32) -> Result<TestName, StoreError> {
    names
        .get(&ordinal)
        .cloned()
        .ok_or_else(|| corrupt("result of an unknown test", &ordinal.to_string()))
}

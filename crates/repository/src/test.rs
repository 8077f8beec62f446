//! Tests: looking one up by name, and naming many.

use std::collections::{HashMap, HashSet};

use assay_domain::{
    project::Project,
    store::StoreError,
    test::{FileSelector, TestLookup, TestName, TestOrdinal, TestSelector},
};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, JoinOnDsl, NullableExpressionMethods, PgConnection,
    PgSortExpressionMethods, QueryDsl, QueryResult, RunQueryDsl,
};
use uuid::Uuid;

use crate::{
    column::{At, corrupt, int, short_hash},
    pool::Read,
    schema::{project as projects, result, test, verdict},
};

/// A test that was looked up.
#[derive(Debug, Clone)]
pub(crate) struct FoundTest {
    pub(crate) ordinal: i32,
    pub(crate) name: TestName,
    /// The project's stable branch.
    pub(crate) stable_branch: String,
}

/// The test that is asked for, among those with a visible result.
pub(crate) fn find(
    connection: &mut PgConnection,
    project: &Project,
    asked: &TestSelector,
) -> Read<TestLookup<FoundTest>> {
    let mut candidates: Vec<Candidate> = test::table
        .inner_join(projects::table.on(projects::id.eq(test::project_id)))
        .left_join(
            verdict::table.on(verdict::project_id
                .eq(project.id.0)
                .and(verdict::test.eq(test::ordinal))),
        )
        .filter(projects::id.eq(project.id.0))
        .filter(
            test::project_id
                .eq(project.id.0)
                .and(test::name_hash.eq(short_hash(&asked.name))),
        )
        .order(test::file_path.asc().nulls_first())
        .select((
            test::ordinal,
            test::file_path,
            projects::stable_branch,
            verdict::newest.nullable(),
        ))
        .load(connection)?;
    let unsure: Vec<i32> = candidates
        .iter()
        .filter(|(.., newest)| newest.is_none())
        .map(|(ordinal, ..)| *ordinal)
        .collect();
    let seen = seen(connection, project, &unsure)?;
    candidates.retain(|(ordinal, .., newest)| {
        newest.map_or_else(
            || seen.contains(ordinal),
            |newest| newest.0 >= project.visible_from,
        )
    });
    let candidates = candidates
        .into_iter()
        .map(|(ordinal, file_path, stable_branch, _)| FoundTest {
            ordinal,
            name: TestName {
                name: asked.name.clone(),
                file_path,
            },
            stable_branch,
        });
    Ok(choose(candidates.collect(), &asked.file, |found| &found.name))
}

/// Ordinal, file, the project's stable branch, and when the newest run with a result started.
type Candidate = (i32, Option<String>, String, Option<At>);

/// The files of the tests with this name that have a visible result.
pub(crate) fn files(
    connection: &mut PgConnection,
    project: &Project,
    asked: &TestSelector,
) -> Read<Vec<Option<String>>> {
    let any = TestSelector {
        name: asked.name.clone(),
        file: FileSelector::Any,
    };
    Ok(match find(connection, project, &any)? {
        TestLookup::Ambiguous(files) => files,
        TestLookup::Found(only) => vec![only.name.file_path],
        TestLookup::Missing => Vec::new(),
    })
}

/// Those of the tests that have a visible result. Only for tests that no verdict tells it of: those that came with
/// reports older than the engine's window, or of a time yet to come.
pub(crate) fn seen(
    connection: &mut PgConnection,
    project: &Project,
    tests: &[i32],
) -> QueryResult<HashSet<i32>> {
    if tests.is_empty() {
        return Ok(HashSet::new());
    }
    let seen: Vec<i32> = result::table
        .filter(result::project_id.eq(project.id.0))
        .filter(result::test.eq_any(tests))
        .filter(result::started_at.ge(At(project.visible_from)))
        .select(result::test)
        .distinct()
        .load(connection)?;
    Ok(seen.into_iter().collect())
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
    names.get(&ordinal).cloned().ok_or_else(|| unknown_test(ordinal))
}

pub(crate) fn unknown_test(ordinal: i32) -> StoreError {
    corrupt("result of an unknown test", &ordinal.to_string())
}

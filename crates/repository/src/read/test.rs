//! Tests: looking one up by name, and naming many.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap, HashSet},
};

use assay_domain::{
    project::Project,
    stable_name::stable_name,
    store::StoreError,
    test::{CandidateFiles, FileSelector, TestLookup, TestName, TestOrdinal, TestSelector},
};
use diesel::prelude::*;
use uuid::Uuid;

use crate::{
    db::{
        column::{At, corrupt, count, file_hash, int, short_hash},
        period::retention_bounds,
        pool::{Read, converted},
        schema::{project as projects, test, verdict_block},
        sql_statement::SqlStatement,
    },
    read::{
        joins, result_block,
        verdict_block::{block_of_test, newest_run},
    },
};

/// A test that was looked up.
#[derive(Debug, Clone)]
pub(crate) struct FoundTest {
    pub(crate) ordinal: i32,
    pub(crate) name: TestName,
    /// The name in the newest report, if the stored one lacks the parts that change from run to run.
    pub(crate) written_name: Option<String>,
    /// The project's stable branch.
    pub(crate) stable_branch: String,
    /// The numbers under which its results may be stored: its own, and those of its former names.
    pub(crate) stored_as: Vec<i32>,
}

/// The selected test, among those with a visible result. Needs several statements if a name is shared.
///
/// The candidates are those of all runs within retention, unlike those of the attempts of a test in one run. The
/// callers answer about many runs, so a second test of the name makes it ambiguous wherever it ran. A test whose
/// results are all past retention is not a candidate: the API hides it, though its row remains until it is pruned.
pub(crate) fn find(
    connection: &mut PgConnection,
    project: &Project,
    selector: &TestSelector,
) -> Read<TestLookup<FoundTest>> {
    by_either_name(selector, |selector| find_named(connection, project, selector))
}

/// Looks a test up by the name as it is given, else without the parts that change from run to run.
pub(crate) fn by_either_name<T>(
    selector: &TestSelector,
    mut find: impl FnMut(&TestSelector) -> Read<TestLookup<T>>,
) -> Read<TestLookup<T>> {
    match (find(selector)?, stable_selector(selector)) {
        (TestLookup::Missing, Some(stable)) => find(&stable),
        (lookup, _) => Ok(lookup),
    }
}

/// The selector with the name without the parts that change from run to run; none if it has none.
pub(crate) fn stable_selector(selector: &TestSelector) -> Option<TestSelector> {
    match stable_name(&selector.name) {
        Cow::Borrowed(_) => None,
        Cow::Owned(name) => Some(TestSelector {
            name,
            file: selector.file.clone(),
        }),
    }
}

/// Whether a test is selected by its file: the one of its identity, whose hash this is, or the one that is shown.
pub(crate) fn is_in_file(file: &FileSelector, shown: Option<&str>, hash: &[u8]) -> bool {
    match file {
        FileSelector::Any => true,
        FileSelector::Exactly(file) => {
            *hash == *file_hash(file.as_deref()) || (file.is_some() && file.as_deref() == shown)
        }
    }
}

fn find_named(
    connection: &mut PgConnection,
    project: &Project,
    selector: &TestSelector,
) -> Read<TestLookup<FoundTest>> {
    let mut candidates = candidates(connection, project, &TestKey::Named(selector))?;
    if candidates.iter().any(|candidate| candidate.has_joins) {
        return find_joined(connection, project, selector);
    }
    if let FileSelector::Exactly(file) = &selector.file
        && candidates.len() > 1
    {
        // One has the file as its identity. The other one's was found in the checkout.
        let hash = file_hash(file.as_deref());
        candidates.retain(|candidate| candidate.file_hash == hash);
    }
    if candidates.len() > 1 {
        let visible = visible_ordinals(connection, project, &selector.name)?;
        let [only] = visible.as_slice() else {
            return files(connection, project, &visible);
        };
        candidates = self::candidates(connection, project, &TestKey::Numbered(*only))?;
    } else {
        let ordinals: Vec<_> = candidates
            .iter()
            .map(|candidate| (candidate.ordinal, candidate.newest))
            .collect();
        let visible = visible(connection, project, &ordinals)?;
        candidates.retain(|candidate| visible.contains(&candidate.ordinal));
    }
    Ok(match candidates.pop() {
        None => TestLookup::Missing,
        Some(candidate) => TestLookup::Found(FoundTest {
            ordinal: candidate.ordinal,
            name: TestName {
                name: selector.name.clone(),
                file_path: candidate.file_path,
            },
            written_name: candidate.written_name,
            stable_branch: candidate.stable_branch,
            stored_as: vec![candidate.ordinal],
        }),
    })
}

/// The same in a project with renames: a test is also found by its former names.
fn find_joined(
    connection: &mut PgConnection,
    project: &Project,
    selector: &TestSelector,
) -> Read<TestLookup<FoundTest>> {
    let joins = joins::load(connection, project.id.0)?;
    let mut alike: Vec<(i32, Option<String>, Vec<u8>)> = test::table
        .filter(test::project_id.eq(project.id.0))
        .filter(test::name_hash.eq(short_hash(&selector.name)))
        .order(test::file_path.asc().nulls_first())
        .select((test::ordinal, test::file_path, test::file_hash))
        .load(connection)?;
    alike.retain(|(_, file, hash)| is_in_file(&selector.file, file.as_deref(), hash));
    if let FileSelector::Exactly(file) = &selector.file
        && alike.len() > 1
    {
        let hash = file_hash(file.as_deref());
        alike.retain(|(_, _, of_identity)| *of_identity == hash);
    }
    let mut present: Vec<TestOrdinal> = Vec::new();
    for (ordinal, ..) in alike {
        let test = joins.current(count(ordinal)?);
        if !present.contains(&test) {
            present.push(test);
        }
    }
    // The newest result of a test may be stored under a former name.
    let names: BTreeSet<i32> = present
        .iter()
        .flat_map(|test| joins::stored_as(&joins, *test))
        .collect();
    let visible = with_visible_result(connection, project, &Vec::from_iter(names))?;
    present.retain(|test| {
        let names = joins::stored_as(&joins, *test);
        names.iter().any(|name| visible.contains(name))
    });
    let ordinals: Vec<i32> = present.iter().map(|test| int(*test)).collect();
    let [only] = present.as_slice() else {
        return files(connection, project, &ordinals);
    };
    let candidate = candidates(connection, project, &TestKey::Numbered(int(*only)))?.pop();
    let name = names_by_ordinal(connection, project.id.0, &ordinals)?.remove(&int(*only));
    let (Some(candidate), Some(name)) = (candidate, name) else {
        return Ok(TestLookup::Missing);
    };
    Ok(TestLookup::Found(FoundTest {
        ordinal: candidate.ordinal,
        name,
        written_name: candidate.written_name,
        stable_branch: candidate.stable_branch,
        stored_as: joins::stored_as(&joins, *only),
    }))
}

/// The numbers of the selected tests, among those with a visible result, in the same order.
///
/// One statement finds each test whose name is unique. A shared name, and a test that was never in the engine's window,
/// need a look-up of their own.
pub(crate) fn ordinals(
    connection: &mut PgConnection,
    project: &Project,
    selectors: &[TestSelector],
) -> Read<Vec<TestLookup<TestOrdinal>>> {
    type Row = (String, i32, Option<String>, Option<At>, bool);
    let hashes = selectors.iter().map(|selector| short_hash(&selector.name));
    let rows: Vec<Row> = test::table
        .inner_join(projects::table.on(projects::id.eq(test::project_id)))
        .left_join(
            verdict_block::table.on(verdict_block::project_id
                .eq(project.id.0)
                .and(verdict_block::block.eq(block_of_test()))),
        )
        .filter(projects::id.eq(project.id.0))
        .filter(test::project_id.eq(project.id.0))
        .filter(test::name_hash.eq_any(hashes.collect::<Vec<_>>()))
        .select((
            test::name,
            test::ordinal,
            test::file_path,
            newest_run(),
            projects::joined_tests.is_not_null(),
        ))
        .limit(MOST_CANDIDATES)
        .load(connection)?;
    let is_complete = i64::try_from(rows.len()).unwrap_or(i64::MAX) < MOST_CANDIDATES;
    let mut by_name: HashMap<&str, Vec<&Row>> = HashMap::new();
    for row in &rows {
        by_name.entry(row.0.as_str()).or_default().push(row);
    }
    let (from, to) = retention_bounds(project);
    let mut lookups = Vec::with_capacity(selectors.len());
    for selector in selectors {
        let alike = by_name.get(selector.name.as_str()).map_or(&[][..], Vec::as_slice);
        let lookup = match alike {
            [] if is_complete && stable_selector(selector).is_none() => TestLookup::Missing,
            [(_, ordinal, file, Some(newest), false)]
                if is_complete && selector.file.admits(file.as_deref()) && (from..=to).contains(newest) =>
            {
                TestLookup::Found(count(*ordinal)?)
            }
            _ => ordinal(connection, project, selector)?,
        };
        lookups.push(lookup);
    }
    Ok(lookups)
}

/// Most rows of a look-up of many names.
const MOST_CANDIDATES: i64 = 1_000;

/// The number of the selected test.
fn ordinal(
    connection: &mut PgConnection,
    project: &Project,
    selector: &TestSelector,
) -> Read<TestLookup<TestOrdinal>> {
    find(connection, project, selector)?.try_map(|found| Ok(count(found.ordinal)?))
}

/// How a test is looked up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TestKey<'a> {
    Named(&'a TestSelector),
    Numbered(i32),
}

/// A test of the selected name.
#[derive(Debug, Queryable)]
struct Candidate {
    ordinal: i32,
    file_path: Option<String>,
    /// The hash of its identity's file.
    file_hash: Vec<u8>,
    written_name: Option<String>,
    /// The project's stable branch.
    stable_branch: String,
    /// When the newest run with a result started.
    newest: Option<At>,
    /// Whether tests of the project are joined.
    has_joins: bool,
}

/// At most two of the selected tests, which is enough to detect a shared name.
fn candidates(
    connection: &mut PgConnection,
    project: &Project,
    key: &TestKey<'_>,
) -> QueryResult<Vec<Candidate>> {
    let query = test::table
        .inner_join(projects::table.on(projects::id.eq(test::project_id)))
        .left_join(
            verdict_block::table.on(verdict_block::project_id
                .eq(project.id.0)
                .and(verdict_block::block.eq(block_of_test()))),
        )
        .filter(projects::id.eq(project.id.0))
        .filter(test::project_id.eq(project.id.0))
        .select((
            test::ordinal,
            test::file_path,
            test::file_hash,
            test::written_name,
            projects::stable_branch,
            newest_run(),
            projects::joined_tests.is_not_null(),
        ))
        .limit(2)
        .into_boxed();
    match key {
        TestKey::Numbered(ordinal) => query.filter(test::ordinal.eq(*ordinal)),
        TestKey::Named(TestSelector { name, file }) => {
            let query = query.filter(test::name_hash.eq(short_hash(name)));
            match file {
                FileSelector::Any => query,
                FileSelector::Exactly(None) => query.filter(test::file_hash.eq(file_hash(None))),
                FileSelector::Exactly(Some(file)) => query.filter(
                    test::file_hash
                        .eq(file_hash(Some(file)))
                        .or(test::file_path.is_not_distinct_from(file)),
                ),
            }
        }
    }
    .load(connection)
}

/// The tests of this name that have a visible result, by file. Reads no text, because a name may be in very many
/// files.
fn visible_ordinals(connection: &mut PgConnection, project: &Project, name: &str) -> QueryResult<Vec<i32>> {
    let ordinals: Vec<(i32, Option<At>)> = test::table
        .left_join(
            verdict_block::table.on(verdict_block::project_id
                .eq(project.id.0)
                .and(verdict_block::block.eq(block_of_test()))),
        )
        .filter(test::project_id.eq(project.id.0))
        .filter(test::name_hash.eq(short_hash(name)))
        .order(test::file_path.asc().nulls_first())
        .select((test::ordinal, newest_run()))
        .load(connection)?;
    let visible = visible(connection, project, &ordinals)?;
    Ok(ordinals
        .into_iter()
        .map(|(ordinal, _)| ordinal)
        .filter(|ordinal| visible.contains(ordinal))
        .collect())
}

/// Those of the tests that have a visible result. Each has the start of its newest run, if its verdict has it.
fn visible(
    connection: &mut PgConnection,
    project: &Project,
    tests: &[(i32, Option<At>)],
) -> QueryResult<HashSet<i32>> {
    let (from, to) = retention_bounds(project);
    let unsure: Vec<i32> = tests
        .iter()
        .filter(|(_, newest)| newest.is_none_or(|newest| newest > to))
        .map(|(ordinal, _)| *ordinal)
        .collect();
    let mut visible = with_visible_result(connection, project, &unsure)?;
    visible.extend(
        tests
            .iter()
            .filter(|(_, newest)| newest.is_some_and(|newest| (from..=to).contains(&newest)))
            .map(|(ordinal, _)| *ordinal),
    );
    Ok(visible)
}

/// The answer for several tests that share a name, given by file: the first files, and the number of the others.
fn files<T>(connection: &mut PgConnection, project: &Project, ordinals: &[i32]) -> Read<TestLookup<T>> {
    if ordinals.is_empty() {
        return Ok(TestLookup::Missing);
    }
    let first: Vec<i32> = ordinals.iter().copied().take(CandidateFiles::NAMED).collect();
    let first_files = test::table
        .filter(test::project_id.eq(project.id.0))
        .filter(test::ordinal.eq_any(&first))
        .order(test::file_path.asc().nulls_first())
        .select(test::file_path)
        .load(connection)?;
    let others = ordinals.len().saturating_sub(first.len());
    Ok(TestLookup::Ambiguous(CandidateFiles {
        named: first_files,
        others: u64::try_from(others).unwrap_or(u64::MAX),
    }))
}

/// Those of the tests that have a visible result. Only for tests whose verdict does not have it: those from reports
/// older than the engine's window, or from the future.
fn with_visible_result(
    connection: &mut PgConnection,
    project: &Project,
    tests: &[i32],
) -> QueryResult<HashSet<i32>> {
    if tests.is_empty() {
        return Ok(HashSet::new());
    }
    let newest =
        result_block::newest_starts(connection, project.id.0, tests, Some(retention_bounds(project)))?;
    Ok(newest.into_keys().collect())
}

/// The candidate in the selected file. The candidates are ordered by file. `key` gives the name of a candidate and the
/// hash of its identity's file.
pub(crate) fn choose<T>(
    mut candidates: Vec<T>,
    file: &FileSelector,
    key: impl Fn(&T) -> (&TestName, &[u8]),
) -> TestLookup<T> {
    let name = |candidate: &T| key(candidate).0.clone();
    candidates.retain(|candidate| {
        let (name, hash) = key(candidate);
        is_in_file(file, name.file_path.as_deref(), hash)
    });
    if let FileSelector::Exactly(file) = file
        && candidates.len() > 1
    {
        let hash = file_hash(file.as_deref());
        candidates.retain(|candidate| *key(candidate).1 == *hash);
    }
    match (candidates.pop(), candidates.is_empty()) {
        (None, _) => TestLookup::Missing,
        (Some(only), true) => TestLookup::Found(only),
        (Some(last), false) => {
            candidates.push(last);
            TestLookup::Ambiguous(CandidateFiles::first_of(
                candidates.iter().map(|candidate| name(candidate).file_path),
            ))
        }
    }
}

/// The names of the stored ones of these tests. A join, because Postgres would scan a list for each test.
pub(crate) fn names_by_ordinal(
    connection: &mut PgConnection,
    project: Uuid,
    ordinals: &[i32],
) -> QueryResult<HashMap<i32, TestName>> {
    let rows: Vec<(i32, String, Option<String>)> = SqlStatement::new(
        "SELECT test.ordinal, test.name, test.file_path FROM unnest({ordinals}) AS requested (ordinal) \
         JOIN test ON test.project_id = {project} AND test.ordinal = requested.ordinal",
    )
    .bind("ordinals", ordinals)
    .bind("project", project)
    .load(connection)?;
    let named = rows.into_iter();
    Ok(named
        .map(|(ordinal, name, file_path)| (ordinal, TestName { name, file_path }))
        .collect())
}

/// The names of tests, in the requested order.
pub(crate) fn names(
    connection: &mut PgConnection,
    project: &Project,
    tests: &[TestOrdinal],
) -> Read<Vec<TestName>> {
    let ordinals: Vec<i32> = tests.iter().map(|test| int(*test)).collect();
    let names = names_by_ordinal(connection, project.id.0, &ordinals)?;
    converted(ordinals, |ordinal| name_of(&names, ordinal))
}

/// The name of a test that other rows refer to, and that therefore exists.
pub(crate) fn name_of(names: &HashMap<i32, TestName>, ordinal: i32) -> Result<TestName, StoreError> {
    names.get(&ordinal).cloned().ok_or_else(|| unknown_test(ordinal))
}

pub(crate) fn unknown_test(ordinal: i32) -> StoreError {
    corrupt("result of an unknown test", &ordinal.to_string())
}

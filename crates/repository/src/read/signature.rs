//! Error signatures: their titles, when they were seen, and the figures of their occurrences.
//!
//! Postgres counts. The rows that are read are bounded by the limits of an answer.

use std::collections::{HashMap, HashSet};

use assay_domain::{
    excerpt::{MOST_ENTRIES, excerpt},
    project::Project,
    signature::{Category, Signature, SignatureHits, SignatureTest},
    store::StoreError,
    timestamp::Timestamp,
};
use diesel::{
    dsl::{max, min},
    prelude::*,
};
use uuid::Uuid;

use crate::db::{
    column::{At, LISTED_CHARS, can_be_stored, count, long_count, word},
    period::retention_bounds,
    pool::{Read, converted},
    schema::{attempt, signature, signature_alias},
    sql_statement::SqlStatement,
};

/// The signature that has a fingerprint, or had it before errors were grouped again.
pub(crate) fn by_fingerprint(
    connection: &mut PgConnection,
    project: Uuid,
    fingerprint_or_alias: &str,
) -> Read<Option<(i32, SignatureTitle)>> {
    if !can_be_stored(fingerprint_or_alias) {
        return Ok(None);
    }
    let former = signature_alias::table
        .filter(signature_alias::project_id.eq(project))
        .filter(signature_alias::fingerprint.eq(fingerprint_or_alias))
        .select(signature_alias::signature);
    let row: Option<(i32, String, String, String)> = signature::table
        .filter(signature::project_id.eq(project))
        .filter(
            signature::fingerprint
                .eq(fingerprint_or_alias)
                .or(signature::ordinal.eq_any(former)),
        )
        // A signature that has it now precedes one that had it.
        .order((
            signature::fingerprint.ne(fingerprint_or_alias),
            signature::ordinal,
        ))
        .select((
            signature::ordinal,
            signature::fingerprint,
            signature::title,
            signature::category,
        ))
        .first(connection)
        .optional()?;
    let Some((ordinal, fingerprint, title, category)) = row else {
        return Ok(None);
    };
    let head = SignatureTitle {
        fingerprint,
        title,
        category: word("category", &category)?,
    };
    Ok(Some((ordinal, head)))
}

/// The ordinals of the stored ones of a few fingerprints. Aliases are not looked up.
pub(crate) fn ordinals(
    connection: &mut PgConnection,
    project: Uuid,
    fingerprints: &[&str],
) -> QueryResult<HashMap<String, i32>> {
    let rows: Vec<(String, i32)> = signature::table
        .filter(signature::project_id.eq(project))
        .filter(signature::fingerprint.eq_any(fingerprints))
        .select((signature::fingerprint, signature::ordinal))
        .load(connection)?;
    Ok(rows.into_iter().collect())
}

/// The numbers of signatures, as those of the engine.
pub(crate) fn numbers(ordinals: HashMap<String, i32>) -> Result<HashMap<String, u32>, StoreError> {
    let numbered = ordinals
        .into_iter()
        .map(|(fingerprint, ordinal)| Ok((fingerprint, count(ordinal)?)));
    numbered.collect()
}

/// The attempts of a run, each with its signature if it has one. The start restricts the read to the rows' partition.
#[diesel::dsl::auto_type]
pub(crate) fn attempts_of_run(project: Uuid, run_number: i32, started_at: At) -> _ {
    attempt::table
        .left_join(
            signature::table.on(signature::project_id
                .eq(attempt::project_id)
                .and(attempt::signature.eq(signature::ordinal.nullable()))
                .and(signature::project_id.eq(project))),
        )
        .filter(attempt::project_id.eq(project))
        .filter(attempt::run_number.eq(run_number))
        .filter(attempt::started_at.eq(started_at))
}

/// Deletes the signatures without occurrences.
pub(crate) fn delete_orphans(connection: &mut PgConnection, project: Uuid) -> QueryResult<usize> {
    // Finds the first occurrence of each by an index; `not exists` might read all attempts instead.
    let occurrence = attempt::table
        .filter(attempt::project_id.eq(project))
        .filter(attempt::signature.eq(signature::ordinal.nullable()))
        .select(attempt::test)
        .limit(1)
        .single_value();
    diesel::delete(signature::table)
        .filter(signature::project_id.eq(project))
        .filter(occurrence.is_null())
        .execute(connection)
}

/// Fingerprint, title and category of a signature.
pub(crate) struct SignatureTitle {
    pub(crate) fingerprint: String,
    pub(crate) title: String,
    pub(crate) category: Category,
}

/// Selects the occurrences in a visible run of a period, and of a branch if one is named.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OccurrenceFilter<'a> {
    pub(crate) project: Uuid,
    pub(crate) from: At,
    pub(crate) to: At,
    pub(crate) branch: Option<&'a str>,
    /// Whether tests of the project are joined. Without joins, the indexes of attempts are enough for counting.
    pub(crate) has_joins: bool,
}

impl<'a> OccurrenceFilter<'a> {
    /// Puts the attempts with the joins of their tests at `{attempts}`, the present test of a row of them at `{present}`,
    /// and the condition that a row is such an occurrence at `{occurrence}`. Binds `{project}`, `{from}` and `{to}`.
    pub(crate) fn fill<Row>(&self, statement: SqlStatement<'a, Row>) -> SqlStatement<'a, Row> {
        let (attempts, present) = match self.has_joins {
            false => ("attempt", "attempt.test"),
            true => (
                "attempt LEFT JOIN (SELECT joined.* FROM project CROSS JOIN LATERAL \
                     jsonb_to_recordset(project.joined_tests) \
                     AS joined (old integer, new integer, \"from\" timestamptz, until timestamptz) \
                     WHERE project.id = {project}) \
                 AS joined ON joined.old = attempt.test AND coalesce(joined.\"from\" <= attempt.started_at, true) \
                     AND coalesce(attempt.started_at < joined.until, true)",
                "coalesce(joined.new, attempt.test)",
            ),
        };
        let of_branch = match self.branch {
            None => "",
            Some(_) => {
                " AND attempt.run_number IN (SELECT run.number FROM run WHERE run.project_id = {project} \
                 AND run.branch = {branch} AND run.started_at BETWEEN {from} AND {to})"
            }
        };
        statement
            .text("attempts", attempts)
            .text("present", present)
            .text(
                "occurrence",
                "attempt.project_id = {project} AND attempt.started_at BETWEEN {from} AND {to}{of_branch}",
            )
            .text("of_branch", of_branch)
            .bind("project", self.project)
            .bind("from", self.from)
            .bind("to", self.to)
            .bind("branch", self.branch.unwrap_or_default())
    }
}

/// The tests that a signature hit, with counts over all of its occurrences.
#[derive(Debug, Default)]
pub(crate) struct TestsHit {
    /// The first of them, most occurrences first.
    pub(crate) first: Vec<SignatureTest>,
    /// Whether there are more.
    pub(crate) truncated: bool,
    tests: u64,
    files: u64,
    occurrences: u64,
}

/// The tests that each of these signatures hit: the first [`MOST_ENTRIES`], or as many as have names of
/// `name_bytes` bytes.
pub(crate) fn tests_hit(
    connection: &mut PgConnection,
    filter: &OccurrenceFilter<'_>,
    signatures: &[i32],
    name_bytes: usize,
) -> Read<HashMap<i32, TestsHit>> {
    type Row = (i32, String, Option<String>, i64, i64, i64, i64);
    // OFFSET 0 makes Postgres look up the name of each test by its key, instead of reading all tests.
    let statement = SqlStatement::<Row>::new(
        "SELECT placed.signature, placed.name, placed.file_path, placed.occurrences, placed.tests, \
         placed.files, placed.total \
         FROM (SELECT named.*, count(*) OVER whole AS tests, \
         count(*) FILTER (WHERE named.of_file = 1 AND named.file_path IS NOT NULL) OVER whole AS files, \
         (sum(named.occurrences) OVER whole)::bigint AS total \
         FROM (SELECT hit.signature, hit.occurrences, named_test.name, named_test.file_path, \
         row_number() OVER (PARTITION BY hit.signature \
         ORDER BY hit.occurrences DESC, named_test.name, named_test.file_path NULLS FIRST) AS place, \
         row_number() OVER (PARTITION BY hit.signature, named_test.file_path) AS of_file \
         FROM (SELECT attempt.signature, {present} AS test, count(*) AS occurrences \
         FROM {attempts} WHERE {occurrence} AND attempt.signature = ANY({signatures}) \
         GROUP BY 1, 2) AS hit \
         CROSS JOIN LATERAL (SELECT test.name, test.file_path FROM test \
         WHERE test.project_id = {project} AND test.ordinal = hit.test OFFSET 0) AS named_test) AS named \
         WINDOW whole AS (PARTITION BY named.signature)) AS placed WHERE placed.place <= {most} \
         ORDER BY placed.signature, placed.place",
    );
    let rows = filter
        .fill(statement)
        .bind("signatures", signatures)
        .bind("most", i64::try_from(MOST_ENTRIES).unwrap_or(i64::MAX))
        .load_iter(connection)?;
    let mut hit: HashMap<i32, (TestsHit, usize)> = HashMap::new();
    for row in rows {
        let (signature, test_name, file_path, occurrences, tests, files, total) = row?;
        let (hit, bytes_used) = hit.entry(signature).or_default();
        hit.tests = long_count(tests)?;
        hit.files = long_count(files)?;
        hit.occurrences = long_count(total)?;
        *bytes_used += test_name.len() + file_path.as_ref().map_or(0, String::len);
        if *bytes_used <= name_bytes {
            hit.first.push(SignatureTest {
                test_name,
                file_path,
                occurrence_count: long_count(occurrences)?,
            });
        }
    }
    let with_truncation = |(signature, (mut hit, _)): (i32, (TestsHit, usize))| {
        hit.truncated = u64::try_from(hit.first.len()).unwrap_or(u64::MAX) < hit.tests;
        (signature, hit)
    };
    Ok(hit.into_iter().map(with_truncation).collect())
}

/// In how many runs each of these signatures occurred.
pub(crate) fn runs_hit(
    connection: &mut PgConnection,
    filter: &OccurrenceFilter<'_>,
    signatures: &[i32],
) -> Read<HashMap<i32, u64>> {
    let statement = SqlStatement::new(
        "SELECT attempt.signature, count(DISTINCT attempt.run_number) FROM attempt WHERE {occurrence} \
         AND attempt.signature = ANY({signatures}) GROUP BY attempt.signature",
    );
    let statement = filter.fill(statement).bind("signatures", signatures);
    let rows: Vec<(i32, i64)> = statement.load(connection)?;
    converted(rows, |(signature, runs)| Ok((signature, long_count(runs)?)))
}

/// Puts the condition of these signatures at `{selected}`, or that of any signature if none are given.
pub(crate) fn selected<'a, Row>(
    statement: SqlStatement<'a, Row>,
    signatures: Option<&'a [i32]>,
) -> SqlStatement<'a, Row> {
    match signatures {
        Some(signatures) => statement
            .text("selected", "= ANY({signatures})")
            .bind("signatures", signatures),
        None => statement.text("selected", "IS NOT NULL"),
    }
}

/// The latest occurrence of a signature. Of simultaneous ones, the one in the newest run, and there that of the last
/// test.
#[derive(Debug)]
pub(crate) struct LatestOccurrence {
    pub(crate) signature: i32,
    pub(crate) at: At,
    /// The message of its test's last attempt at that time.
    pub(crate) message: Option<String>,
}

/// Calls `each` with the latest occurrence of each of these signatures, or of every signature if none are given.
/// Messages are cut to this number of characters.
pub(crate) fn each_latest(
    connection: &mut PgConnection,
    filter: &OccurrenceFilter<'_>,
    signatures: Option<&[i32]>,
    characters: i32,
    mut each: impl FnMut(LatestOccurrence),
) -> QueryResult<()> {
    let statement = SqlStatement::<(i32, At, Option<String>)>::new(
        "SELECT latest.signature, latest.occurred_at, left(whole.message, {characters}) \
         FROM (SELECT DISTINCT ON (attempt.signature) attempt.signature, attempt.occurred_at, attempt.started_at, \
             attempt.run_number, attempt.test FROM attempt WHERE {occurrence} AND attempt.signature {selected} \
             ORDER BY attempt.signature, attempt.occurred_at DESC, attempt.run_number DESC, attempt.test DESC) AS latest \
         CROSS JOIN LATERAL (SELECT attempt.message FROM attempt WHERE attempt.project_id = {project} \
             AND attempt.test = latest.test AND attempt.started_at = latest.started_at \
             AND attempt.run_number = latest.run_number AND attempt.signature = latest.signature \
             AND attempt.occurred_at = latest.occurred_at \
             ORDER BY attempt.execution DESC, attempt.retry DESC LIMIT 1) AS whole",
    );
    let rows = selected(filter.fill(statement), signatures)
        .bind("characters", characters)
        .load_iter(connection)?;
    for row in rows {
        let (signature, at, message) = row?;
        each(LatestOccurrence {
            signature,
            at,
            message,
        });
    }
    Ok(())
}

/// The latest occurrences of these signatures, with messages as lists show them.
pub(crate) fn latest(
    connection: &mut PgConnection,
    filter: &OccurrenceFilter<'_>,
    signatures: &[i32],
) -> QueryResult<HashMap<i32, LatestOccurrence>> {
    let mut latest_by_signature = HashMap::new();
    each_latest(
        connection,
        filter,
        Some(signatures),
        LISTED_CHARS,
        |mut latest| {
            latest.message = latest.message.map(excerpt);
            latest_by_signature.insert(latest.signature, latest);
        },
    )?;
    Ok(latest_by_signature)
}

/// The figures of a signature.
pub(crate) struct SignatureFigures<'a> {
    pub(crate) tests: &'a TestsHit,
    pub(crate) runs: u64,
    pub(crate) latest: LatestOccurrence,
    pub(crate) first_seen: Timestamp,
    pub(crate) is_new: bool,
}

impl SignatureFigures<'_> {
    pub(crate) fn signature(self, head: SignatureTitle) -> Signature {
        let mut names = HashSet::new();
        let tests = &self.tests.first;
        let test_names = tests
            .iter()
            .map(|test| &test.test_name)
            .filter(|name| names.insert(*name))
            .cloned()
            .collect();
        Signature {
            fingerprint: head.fingerprint,
            title: head.title,
            message: self.latest.message,
            category: head.category,
            file_path: tests.first().and_then(|test| test.file_path.clone()),
            file_count: self.tests.files,
            test_count: self.tests.tests,
            test_names,
            truncated: self.tests.truncated,
            occurrence_count: self.tests.occurrences,
            run_count: self.runs,
            first_seen: self.first_seen,
            last_seen: self.latest.at.0,
            is_new: self.is_new,
        }
    }
}

/// The tests that a signature hit in the runs of a period; none where it hit no test.
pub(crate) fn tests_with(
    connection: &mut PgConnection,
    project: &Project,
    fingerprint: &str,
    (from, to): (Timestamp, Timestamp),
) -> Read<Option<SignatureHits>> {
    let Some((ordinal, head)) = by_fingerprint(connection, project.id.0, fingerprint)? else {
        return Ok(None);
    };
    let tests: Vec<i32> = attempt::table
        .filter(attempt::project_id.eq(project.id.0))
        .filter(attempt::signature.eq(ordinal))
        .filter(attempt::started_at.between(At(from), At(to)))
        .select(attempt::test)
        .distinct()
        .order(attempt::test)
        .load(connection)?;
    let tests = tests
        .into_iter()
        .map(count)
        .collect::<Result<Vec<_>, StoreError>>()?;
    Ok((!tests.is_empty()).then_some(SignatureHits {
        title: head.title,
        tests,
    }))
}

/// When a signature occurred among everything visible.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OccurrenceTimes {
    /// The earliest occurrence.
    pub(crate) first: At,
    /// The earliest and the latest start of a run that it occurred in.
    pub(crate) first_run: At,
    pub(crate) last_run: At,
}

/// When these signatures occurred among everything visible; those that did not are left out.
pub(crate) fn occurrence_times(
    connection: &mut PgConnection,
    project: &Project,
    signatures: &[i32],
) -> Read<HashMap<i32, OccurrenceTimes>> {
    type Row = (Option<i32>, Option<At>, Option<At>, Option<At>);
    let (from, to) = retention_bounds(project);
    let rows: Vec<Row> = attempt::table
        .filter(attempt::project_id.eq(project.id.0))
        .filter(attempt::signature.eq_any(signatures))
        .filter(attempt::started_at.between(from, to))
        .group_by(attempt::signature)
        .select((
            attempt::signature,
            min(attempt::occurred_at),
            min(attempt::started_at),
            max(attempt::started_at),
        ))
        .load(connection)?;
    let occurrence_times = |(signature, first, first_run, last_run): Row| {
        Some((
            signature?,
            OccurrenceTimes {
                first: first?,
                first_run: first_run?,
                last_run: last_run?,
            },
        ))
    };
    // A group has at least one row, and only the signature can be null.
    Ok(rows.into_iter().filter_map(occurrence_times).collect())
}

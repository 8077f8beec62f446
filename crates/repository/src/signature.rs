//! Error signatures: what they are called, when they were seen, and the figures of their occurrences.

use std::collections::{BTreeMap, HashMap, HashSet};

use assay_domain::{
    project::Project,
    signature::{Category, Signature, SignatureTest},
    store::StoreError,
    test::TestName,
    timestamp::Timestamp,
};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, NullableExpressionMethods, OptionalExtension, PgConnection,
    QueryDsl, QueryResult, RunQueryDsl,
    dsl::{max, min},
};
use uuid::Uuid;

use crate::{
    column::{At, corrupt, long_count, word},
    period::span,
    pool::Read,
    schema::{attempt, signature, signature_alias},
    test::named,
};

/// The signature that has a fingerprint now, or had it before errors were grouped anew.
pub(crate) fn named_by(
    connection: &mut PgConnection,
    project: Uuid,
    asked: &str,
) -> Read<Option<(i32, Head)>> {
    let former = signature_alias::table
        .filter(signature_alias::project_id.eq(project))
        .filter(signature_alias::fingerprint.eq(asked))
        .select(signature_alias::signature);
    let found: Option<(i32, String, String, String)> = signature::table
        .filter(signature::project_id.eq(project))
        .filter(
            signature::fingerprint
                .eq(asked)
                .or(signature::ordinal.eq_any(former)),
        )
        // One that has it now goes before one that had it.
        .order((signature::fingerprint.ne(asked), signature::ordinal))
        .select((
            signature::ordinal,
            signature::fingerprint,
            signature::title,
            signature::category,
        ))
        .first(connection)
        .optional()?;
    let Some((ordinal, fingerprint, title, category)) = found else {
        return Ok(None);
    };
    let head = Head {
        fingerprint,
        title,
        category: word("category", &category)?,
    };
    Ok(Some((ordinal, head)))
}

/// Deletes the signatures that nothing has.
pub(crate) fn delete_orphans(connection: &mut PgConnection, project: Uuid) -> QueryResult<usize> {
    // The first occurrence of each is looked for, which an index finds; `not exists` might read all attempts instead.
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

/// What a signature is called.
pub(crate) struct Head {
    pub(crate) fingerprint: String,
    pub(crate) title: String,
    pub(crate) category: Category,
}

/// What the occurrences of a signature come to.
pub(crate) struct Figures<'a> {
    /// Most occurrences first.
    pub(crate) tests: &'a [SignatureTest],
    pub(crate) message: Option<String>,
    pub(crate) runs: u64,
    pub(crate) first_seen: Timestamp,
    pub(crate) last_seen: Timestamp,
    pub(crate) is_new: bool,
}

impl Figures<'_> {
    pub(crate) fn signature(self, head: Head) -> Signature {
        let mut known = HashSet::new();
        let test_names = self
            .tests
            .iter()
            .map(|test| &test.test_name)
            .filter(|name| known.insert(*name))
            .cloned()
            .collect();
        let files: HashSet<&String> = self
            .tests
            .iter()
            .filter_map(|test| test.file_path.as_ref())
            .collect();
        Signature {
            fingerprint: head.fingerprint,
            title: head.title,
            message: self.message,
            category: head.category,
            file_path: self.tests.first().and_then(|test| test.file_path.clone()),
            file_count: u64::try_from(files.len()).unwrap_or(u64::MAX),
            test_count: u64::try_from(self.tests.len()).unwrap_or(u64::MAX),
            test_names,
            occurrence_count: self.tests.iter().map(|test| test.occurrence_count).sum(),
            run_count: self.runs,
            first_seen: self.first_seen,
            last_seen: self.last_seen,
            is_new: self.is_new,
        }
    }
}

/// The most occurrences first, then by name and file.
pub(crate) fn order_tests(tests: &mut [SignatureTest]) {
    tests.sort_unstable_by(|a, b| {
        b.occurrence_count
            .cmp(&a.occurrence_count)
            .then_with(|| (&a.test_name, &a.file_path).cmp(&(&b.test_name, &b.file_path)))
    });
}

/// When a signature occurred among everything visible.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// The earliest and the latest occurrence.
    pub(crate) first: At,
    pub(crate) last: At,
    /// The earliest and the latest start of a run that it occurred in.
    pub(crate) first_run: At,
    pub(crate) last_run: At,
}

/// When these signatures occurred among everything visible; those that did not are left out.
pub(crate) fn seen(
    connection: &mut PgConnection,
    project: &Project,
    signatures: &[i32],
) -> Read<HashMap<i32, Seen>> {
    type Row = (Option<i32>, Option<At>, Option<At>, Option<At>, Option<At>);
    let rows: Vec<Row> = attempt::table
        .filter(attempt::project_id.eq(project.id.0))
        .filter(attempt::signature.eq_any(signatures))
        .filter(attempt::started_at.ge(At(project.visible_from)))
        .group_by(attempt::signature)
        .select((
            attempt::signature,
            min(attempt::occurred_at),
            max(attempt::occurred_at),
            min(attempt::started_at),
            max(attempt::started_at),
        ))
        .load(connection)?;
    let whole = |(signature, first, last, first_run, last_run): Row| {
        Some((
            signature?,
            Seen {
                first: first?,
                last: last?,
                first_run: first_run?,
                last_run: last_run?,
            },
        ))
    };
    // A group has at least one row, and none of the columns but the signature is ever null.
    Ok(rows.into_iter().filter_map(whole).collect())
}

/// The latest occurrence of a signature; of several at once that of the newest run, then of the last test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Latest {
    pub(crate) at: At,
    pub(crate) run_number: i32,
    pub(crate) test: i32,
}

/// The messages of these occurrences, by signature, whose runs started then; of several attempts of one test that of the
/// last.
pub(crate) fn latest_messages(
    connection: &mut PgConnection,
    project: Uuid,
    latest: &BTreeMap<i32, Latest>,
    starts: &[At],
) -> QueryResult<HashMap<i32, Option<String>>> {
    let Some((oldest, newest)) = span(starts) else {
        return Ok(HashMap::new());
    };
    type Row = (Option<i32>, At, i32, i32, Option<String>);
    let rows: Vec<Row> = attempt::table
        .filter(attempt::project_id.eq(project))
        .filter(attempt::test.eq_any(latest.values().map(|latest| latest.test)))
        // The bounds follow from the list; a plan for any list leaves out partitions by them alone.
        .filter(attempt::started_at.between(oldest, newest))
        .filter(attempt::started_at.eq_any(starts))
        .filter(attempt::run_number.eq_any(latest.values().map(|latest| latest.run_number)))
        .filter(attempt::signature.eq_any(latest.keys()))
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
            (*latest.get(&signature)? == read).then_some((signature, message))
        });
    Ok(messages.collect())
}

/// Tests with these numbers of occurrences, most occurrences first.
pub(crate) fn counted(
    counts: impl IntoIterator<Item = (i32, i64)>,
    names: &HashMap<i32, TestName>,
) -> Result<Vec<SignatureTest>, StoreError> {
    let mut tests = counts
        .into_iter()
        .map(|(test, occurrences)| {
            let test = named(names, test)?;
            Ok(SignatureTest {
                test_name: test.name,
                file_path: test.file_path,
                occurrence_count: long_count(occurrences)?,
            })
        })
        .collect::<Result<Vec<_>, StoreError>>()?;
    order_tests(&mut tests);
    Ok(tests)
}

/// The name of a signature that attempts speak of, and that therefore has one.
pub(crate) fn head(heads: &mut HashMap<i32, Head>, ordinal: i32) -> Result<Head, StoreError> {
    heads
        .remove(&ordinal)
        .ok_or_else(|| corrupt("attempt with an unknown signature", &ordinal.to_string()))
}

//! The list of error signatures: computed whole, then cut to a page.
//!
//! A project has as many signatures in a period as it has kinds of failure, so the figures are read as one row for each
//! signature, and put together here. Texts are read only for the page, unless a search needs them all.

mod texts;

use std::collections::{BTreeMap, HashMap};

use assay_domain::{
    attempt::AttemptStatus,
    page::Page,
    project::Project,
    signature::{Category, Signature, SignaturePage, SignatureQuery, SignatureSort},
    store::StoreError,
};
use diesel::{
    BoolExpressionMethods, BoxableExpression, ExpressionMethods, NullableExpressionMethods, PgConnection,
    QueryDsl, QueryResult, RunQueryDsl, pg::Pg, sql_types::Bool,
};
use uuid::Uuid;

use texts::Texts;

use crate::{
    column::{At, array_agg, long_count, status_code, word},
    period::visible,
    pool::Read,
    schema::{attempt, run, signature},
    signature::{Figures, Head, Latest, counted, head, seen},
};

/// One page of the signatures that occurred in a period.
pub(crate) fn page(
    connection: &mut PgConnection,
    project: &Project,
    query: &SignatureQuery,
) -> Read<SignaturePage> {
    if query.branch.as_ref().is_some_and(|branch| branch.contains('\0')) {
        let page = Page::of(query.page, query.per_page, 0);
        return Ok(SignaturePage {
            page,
            signatures: Vec::new(),
            unfingerprinted_count: 0,
        });
    }
    let unfingerprinted: i64 = attempt::table
        .filter(within(project, query))
        .filter(attempt::signature.is_null())
        .filter(attempt::status.eq_any(FAILURES.map(status_code)))
        .count()
        .get_result(connection)?;
    let mut found = found(connection, project, query)?;
    let ordinals: Vec<i32> = found.keys().copied().collect();
    let mut heads = heads(connection, project.id.0, &ordinals)?;
    if let Some(category) = query.category {
        found.retain(|ordinal, _| heads.get(ordinal).is_some_and(|head| head.category == category));
    }
    if let Some(search) = &query.search {
        let texts = Texts::load(connection, project, query, &found)?;
        let search = search.to_lowercase();
        found.retain(|ordinal, found| texts.contain(heads.get(ordinal), *ordinal, found, &search));
    }
    // When they were first seen is read for the page alone, unless it is what the order goes by.
    let first_seen = match query.sort {
        SignatureSort::FirstSeen => {
            let all: Vec<i32> = found.keys().copied().collect();
            seen(connection, project, &all)?
        }
        SignatureSort::Occurrences | SignatureSort::Tests | SignatureSort::LastSeen => HashMap::new(),
    };
    let mut ordered: Vec<Entry> = found
        .into_iter()
        .map(|(ordinal, found)| Entry {
            ordinal,
            found,
            first: first_seen.get(&ordinal).map(|seen| seen.first),
        })
        .collect();
    let fingerprint = |entry: &Entry| heads.get(&entry.ordinal).map(|head| head.fingerprint.as_str());
    ordered.sort_by(|a, b| {
        a.order(b, query.sort)
            .then_with(|| fingerprint(a).cmp(&fingerprint(b)))
    });
    let page = Page::of(
        query.page,
        query.per_page,
        u64::try_from(ordered.len()).unwrap_or(u64::MAX),
    );
    let offset = usize::try_from(page.offset()).unwrap_or(usize::MAX);
    let size = usize::try_from(page.per_page).unwrap_or(usize::MAX);
    let shown: Vec<Entry> = ordered.into_iter().skip(offset).take(size).collect();
    let signatures = complete(connection, project, query, shown, &mut heads)?;
    Ok(SignaturePage {
        page,
        signatures,
        unfingerprinted_count: long_count(unfingerprinted)?,
    })
}

/// The statuses that count as a failure.
const FAILURES: [AttemptStatus; 2] = [AttemptStatus::Failed, AttemptStatus::TimedOut];

type Condition<'a> = Box<dyn BoxableExpression<attempt::table, Pg, SqlType = Bool> + 'a>;

/// That an attempt belongs to a visible run of the period and branch.
fn within<'a>(project: &Project, query: &'a SignatureQuery) -> Condition<'a> {
    let (from, to) = visible(project, &query.window);
    let in_period = attempt::project_id
        .eq(project.id.0)
        .and(attempt::started_at.between(from, to));
    match &query.branch {
        None => Box::new(in_period),
        Some(branch) => Box::new(
            in_period.and(
                attempt::run_number.eq_any(
                    run::table
                        .filter(run::project_id.eq(project.id.0))
                        .filter(run::started_at.between(from, to))
                        .filter(run::branch.assume_not_null().eq(branch))
                        .select(run::number),
                ),
            ),
        ),
    }
}

/// The occurrences of one signature in the period.
#[derive(Debug)]
struct Found {
    /// Occurrences by test.
    tests: BTreeMap<i32, i64>,
    runs: u64,
    latest: Latest,
}

impl Found {
    fn occurrences(&self) -> i64 {
        self.tests.values().sum()
    }
}

/// What occurred in the period, by signature.
///
/// A row for each signature, with the tests and runs of all its occurrences to be counted here: that takes a quarter of the time
/// of having Postgres group by both.
fn found(
    connection: &mut PgConnection,
    project: &Project,
    query: &SignatureQuery,
) -> QueryResult<BTreeMap<i32, Found>> {
    type Row = (Option<i32>, Option<Vec<i32>>, Option<Vec<i32>>, Option<Vec<At>>);
    let rows: Vec<Row> = attempt::table
        .filter(within(project, query))
        .filter(attempt::signature.is_not_null())
        .group_by(attempt::signature)
        .select((
            attempt::signature,
            array_agg(attempt::test),
            array_agg(attempt::run_number),
            array_agg(attempt::occurred_at),
        ))
        .load(connection)?;
    let found = |(signature, tests, runs, times): Row| {
        let (tests, mut runs) = (tests?, runs?);
        let places = times?.into_iter().zip(&runs).zip(&tests);
        let latest = places.map(|((at, run_number), test)| Latest {
            at,
            run_number: *run_number,
            test: *test,
        });
        let latest = latest.max()?;
        runs.sort_unstable();
        runs.dedup();
        let mut occurrences = BTreeMap::new();
        for test in tests {
            *occurrences.entry(test).or_default() += 1;
        }
        let found = Found {
            tests: occurrences,
            runs: u64::try_from(runs.len()).unwrap_or(u64::MAX),
            latest,
        };
        Some((signature?, found))
    };
    // A group has at least one row, and none of the columns is ever null in it.
    Ok(rows.into_iter().filter_map(found).collect())
}

fn heads(connection: &mut PgConnection, project: Uuid, ordinals: &[i32]) -> Read<HashMap<i32, Head>> {
    let rows: Vec<(i32, String, String, String)> = signature::table
        .filter(signature::project_id.eq(project))
        .filter(signature::ordinal.eq_any(ordinals))
        .select((
            signature::ordinal,
            signature::fingerprint,
            signature::title,
            signature::category,
        ))
        .load(connection)?;
    let head = |(ordinal, fingerprint, title, category): (i32, String, String, String)| {
        let category: Category = word("category", &category)?;
        Ok((
            ordinal,
            Head {
                fingerprint,
                title,
                category,
            },
        ))
    };
    Ok(rows.into_iter().map(head).collect::<Result<_, StoreError>>()?)
}

/// A signature of the list, before its texts are read.
struct Entry {
    ordinal: i32,
    found: Found,
    /// The earliest occurrence, where the order goes by it.
    first: Option<At>,
}

impl Entry {
    /// The largest or latest first.
    fn order(&self, other: &Self, sort: SignatureSort) -> std::cmp::Ordering {
        match sort {
            SignatureSort::Occurrences => other.found.occurrences().cmp(&self.found.occurrences()),
            SignatureSort::Tests => other.found.tests.len().cmp(&self.found.tests.len()),
            SignatureSort::LastSeen => other.found.latest.at.cmp(&self.found.latest.at),
            SignatureSort::FirstSeen => other.first.cmp(&self.first),
        }
    }
}

/// The signatures of the page, with their texts.
fn complete(
    connection: &mut PgConnection,
    project: &Project,
    query: &SignatureQuery,
    shown: Vec<Entry>,
    heads: &mut HashMap<i32, Head>,
) -> Read<Vec<Signature>> {
    let order: Vec<i32> = shown.iter().map(|entry| entry.ordinal).collect();
    let seen = seen(connection, project, &order)?;
    let mut found: BTreeMap<i32, Found> = shown
        .into_iter()
        .map(|entry| (entry.ordinal, entry.found))
        .collect();
    let mut texts = Texts::load(connection, project, query, &found)?;
    let (from, _) = visible(project, &query.window);
    let mut signatures = Vec::with_capacity(order.len());
    for ordinal in order {
        let (Some(found), Some(seen)) = (found.remove(&ordinal), seen.get(&ordinal)) else {
            continue;
        };
        let tests = counted(found.tests, &texts.names)?;
        let figures = Figures {
            tests: &tests,
            message: texts.messages.remove(&ordinal).flatten(),
            runs: found.runs,
            first_seen: seen.first.0,
            last_seen: found.latest.at.0,
            is_new: seen.first_run >= from,
        };
        signatures.push(figures.signature(head(heads, ordinal)?));
    }
    Ok(signatures)
}

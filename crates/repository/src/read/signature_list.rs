//! The list of error signatures of a period.
//!
//! Postgres counts, orders and cuts the list to a page. A search runs first: it reads the texts of all signatures of
//! the project row by row and keeps the numbers of the matching ones.

mod search;

use assay_domain::{
    page::{Page, PerPage},
    project::Project,
    signature::{Category, Signature, SignaturePage, SignatureQuery, SignatureSort},
};
use diesel::prelude::*;

use crate::{
    db::{
        column::{can_be_stored, corrupt, failure_codes, long_count, word},
        period::{retention_bounds, visible},
        pool::{Read, converted},
        sql_statement::SqlStatement,
    },
    read::{
        shared_values::{SharedValues, ValueName},
        signature::{
            OccurrenceFilter, SignatureFigures, SignatureTitle, latest, occurrence_times, runs_hit, selected,
            tests_hit,
        },
    },
};

/// How many bytes the names of the tests of each signature may have: a page has up to 50 signatures.
const MOST_NAME_BYTES: usize = 128 << 10;

/// Names a page of the list over the runs of a window.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ListName {
    branch: Option<String>,
    category: Option<Category>,
    search: Option<String>,
    sort: SignatureSort,
    page: u64,
    per_page: PerPage,
}

impl ListName {
    fn of(query: &SignatureQuery) -> Self {
        Self {
            branch: query.branch.clone(),
            category: query.category,
            search: query.search.clone(),
            sort: query.sort,
            page: query.page,
            per_page: query.per_page,
        }
    }

    /// The bytes of its texts.
    pub(crate) fn texts(&self) -> usize {
        [&self.branch, &self.search]
            .into_iter()
            .flatten()
            .map(String::len)
            .sum()
    }
}

/// One page of the signatures that occurred in a period. Requests over the same runs share it.
pub(crate) fn shared_page(
    connection: &mut PgConnection,
    shared: &SharedValues,
    project: &Project,
    query: &SignatureQuery,
) -> Read<SignaturePage> {
    shared.read_once(
        connection,
        project,
        &query.period,
        ValueName::Signatures(ListName::of(query)),
        |connection, has_joins| page(connection, project, query, has_joins),
        |page| page.signatures.iter().map(bytes).sum(),
    )
}

/// About the memory that a signature takes.
pub(crate) fn bytes(signature: &Signature) -> usize {
    let names = signature.test_names.iter();
    let texts = [&signature.message, &signature.file_path];
    let texts: usize = texts.into_iter().flatten().map(String::len).sum();
    size_of_val(signature)
        + signature.fingerprint.len()
        + signature.title.len()
        + texts
        + names.map(|name| size_of_val(name) + name.len()).sum::<usize>()
}

/// One page of the signatures that occurred in a period.
fn page(
    connection: &mut PgConnection,
    project: &Project,
    query: &SignatureQuery,
    has_joins: bool,
) -> Read<SignaturePage> {
    if query.branch.as_ref().is_some_and(|branch| !can_be_stored(branch)) {
        let page = Page::of(query.page, query.per_page, 0);
        return Ok(SignaturePage {
            page,
            signatures: Vec::new(),
            unfingerprinted_count: 0,
        });
    }
    let (from, to) = visible(project, &query.period);
    let filter = OccurrenceFilter {
        project: project.id.0,
        from,
        to,
        branch: query.branch.as_deref(),
        has_joins,
    };
    let unfingerprinted = unfingerprinted(connection, &filter)?;
    let matching = match &query.search {
        Some(search) => Some(search::matching(connection, &filter, search)?),
        None => None,
    };
    let list = List {
        project,
        query,
        filter,
        matching: matching.as_deref(),
    };
    let (page, rows) = list.page(connection)?;
    Ok(SignaturePage {
        page,
        signatures: list.complete(connection, rows)?,
        unfingerprinted_count: unfingerprinted,
    })
}

/// How many failed attempts have no signature.
fn unfingerprinted(connection: &mut PgConnection, filter: &OccurrenceFilter<'_>) -> Read<u64> {
    let failures: Vec<i32> = failure_codes().map(i32::from).collect();
    let statement = SqlStatement::new(
        "SELECT count(*) FROM attempt WHERE {occurrence} AND attempt.signature IS NULL \
         AND attempt.status = ANY({failures})",
    );
    let statement = filter.fill(statement).bind("failures", &*failures);
    let count: i64 = statement.get_result(connection)?;
    Ok(long_count(count)?)
}

/// Number, fingerprint, title and category of a signature, and how many signatures the list has.
type Row = (i32, String, String, String, i64);

/// A list that pages are cut from.
struct List<'a> {
    project: &'a Project,
    query: &'a SignatureQuery,
    filter: OccurrenceFilter<'a>,
    /// The signatures that a search found, ascending.
    matching: Option<&'a [i32]>,
}

impl List<'_> {
    /// The requested page, or the last one if that is past the end.
    fn page(&self, connection: &mut PgConnection) -> Read<(Page, Vec<Row>)> {
        let per_page = i64::from(self.query.per_page.count());
        let page = i64::try_from(self.query.page).unwrap_or(i64::MAX);
        let offset = page.saturating_sub(1).saturating_mul(per_page);
        let rows = self.rows(connection, offset, per_page)?;
        if let Some((.., total)) = rows.first() {
            let page = Page::of(self.query.page, self.query.per_page, long_count(*total)?);
            return Ok((page, rows));
        }
        let total = match self.rows(connection, 0, 1)?.first() {
            Some((.., total)) => long_count(*total)?,
            None => 0,
        };
        let page = Page::of(self.query.page, self.query.per_page, total);
        let offset = i64::try_from(page.offset()).unwrap_or(i64::MAX);
        let rows = if total == 0 {
            Vec::new()
        } else {
            self.rows(connection, offset, per_page)?
        };
        Ok((page, rows))
    }

    fn rows(&self, connection: &mut PgConnection, offset: i64, limit: i64) -> QueryResult<Vec<Row>> {
        let (figure, figured) = match self.query.sort {
            SignatureSort::Occurrences => ("count(*)", "attempt"),
            SignatureSort::Tests => ("count(DISTINCT {present})", "{attempts}"),
            SignatureSort::LastSeen => ("max(attempt.occurred_at)", "attempt"),
            SignatureSort::FirstSeen => ("min(attempt.occurred_at)", "attempt"),
        };
        // The first occurrence is of everything visible, for signatures that occurred in the period.
        let (counted, having) = match self.query.sort {
            SignatureSort::Occurrences | SignatureSort::Tests | SignatureSort::LastSeen => {
                ("{occurrence}", "")
            }
            SignatureSort::FirstSeen => (
                "attempt.project_id = {project} AND attempt.started_at BETWEEN {visible_from} AND {visible_to}",
                " HAVING bool_or({occurrence})",
            ),
        };
        let of_category = match self.query.category {
            Some(_) => " WHERE signature.category = {category}",
            None => "",
        };
        let statement = SqlStatement::new(
            "SELECT signature.ordinal, signature.fingerprint, signature.title, signature.category, count(*) OVER () \
             FROM (SELECT attempt.signature, {figure} AS figure FROM {figured} WHERE {counted} \
                 AND attempt.signature {selected} GROUP BY attempt.signature{having}) AS found \
             JOIN signature ON signature.project_id = {project} AND signature.ordinal = found.signature{of_category} \
             ORDER BY found.figure DESC, signature.fingerprint LIMIT {limit} OFFSET {offset}",
        )
        .text("figure", figure)
        .text("figured", figured)
        .text("counted", counted)
        .text("having", having)
        .text("of_category", of_category);
        let (visible_from, visible_to) = retention_bounds(self.project);
        selected(self.filter.fill(statement), self.matching)
            .bind("visible_from", visible_from)
            .bind("visible_to", visible_to)
            .bind("category", self.query.category.map_or("", Category::as_str))
            .bind("limit", limit)
            .bind("offset", offset)
            .load(connection)
    }

    /// The signatures of a page with their figures.
    fn complete(&self, connection: &mut PgConnection, rows: Vec<Row>) -> Read<Vec<Signature>> {
        let ordinals: Vec<i32> = rows.iter().map(|(ordinal, ..)| *ordinal).collect();
        if ordinals.is_empty() {
            return Ok(Vec::new());
        }
        let times = occurrence_times(connection, self.project, &ordinals)?;
        let tests = tests_hit(connection, &self.filter, &ordinals, MOST_NAME_BYTES)?;
        let runs = runs_hit(connection, &self.filter, &ordinals)?;
        let mut latest = latest(connection, &self.filter, &ordinals)?;
        let signature = |(ordinal, fingerprint, title, category, _): Row| {
            let nowhere = || corrupt("signature that occurred nowhere", &fingerprint);
            let times = times.get(&ordinal).ok_or_else(nowhere)?;
            let figures = SignatureFigures {
                tests: tests.get(&ordinal).ok_or_else(nowhere)?,
                runs: runs.get(&ordinal).copied().ok_or_else(nowhere)?,
                latest: latest.remove(&ordinal).ok_or_else(nowhere)?,
                first_seen: times.first.0,
                is_new: times.first_run >= self.filter.from,
            };
            let category = word("category", &category)?;
            Ok(figures.signature(SignatureTitle {
                fingerprint,
                title,
                category,
            }))
        };
        converted(rows, signature)
    }
}

//! Runs: the list, and the look-up by the id of any shard.

use assay_domain::{
    id::RunId,
    page::{Direction, RunPosition},
    project::Project,
    run::{Counts, RunPage, RunQuery, RunRow, ShardCount},
    store::StoreError,
};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, JoinOnDsl, OptionalExtension, PgConnection, QueryDsl,
    QueryResult, Queryable, RunQueryDsl, Selectable, SelectableHelper,
    dsl::{exists, select, sql},
    pg::Pg,
    sql_types::{Bool, Text},
};
use uuid::Uuid;

use crate::{
    column::{At, count, long_count, optional_word, word},
    pool::Read,
    schema::{run, shard},
};

/// A run, as stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = run, check_for_backend(Pg))]
pub(crate) struct StoredRun {
    pub(crate) number: i32,
    pub(crate) id: Uuid,
    pub(crate) sharded: bool,
    pub(crate) branch: Option<String>,
    pub(crate) commit_sha: Option<String>,
    pub(crate) tested_revision: Option<String>,
    pub(crate) pull_request_number: Option<i64>,
    pub(crate) status: Option<String>,
    pub(crate) started_at: At,
    pub(crate) finished_at: Option<At>,
    pub(crate) shards_received: i32,
    pub(crate) shards_expected: Option<i32>,
    #[diesel(embed)]
    pub(crate) counts: StoredCounts,
}

/// How a run's tests ended, as stored.
#[derive(Debug, Clone, Copy, Queryable, Selectable)]
#[diesel(table_name = run, check_for_backend(Pg))]
pub(crate) struct StoredCounts {
    total: i32,
    passed: i32,
    failed: i32,
    skipped: i32,
    recovered: i32,
}

impl StoredCounts {
    pub(crate) fn counts(&self) -> Result<Counts, StoreError> {
        Ok(Counts {
            total: count(self.total)?,
            passed: count(self.passed)?,
            failed: count(self.failed)?,
            skipped: count(self.skipped)?,
            recovered: count(self.recovered)?,
        })
    }
}

impl StoredRun {
    /// From start to end, where the end is known. A report whose end lies before its start took no time.
    pub(crate) fn duration_ms(&self) -> Option<i64> {
        self.finished_at
            .map(|end| end.0.since_ms(self.started_at.0).max(0))
    }

    fn row(self) -> Result<RunRow, StoreError> {
        let shards = if self.sharded {
            Some(ShardCount {
                received: count(self.shards_received)?,
                expected: self.shards_expected.map(count).transpose()?,
            })
        } else {
            None
        };
        Ok(RunRow {
            id: RunId(self.id),
            run_number: self.number,
            status: optional_word("run status", self.status.as_deref())?,
            started_at: self.started_at.0,
            finished_at: self.finished_at.map(|at| at.0),
            duration_ms: self.duration_ms(),
            counts: self.counts.counts()?,
            shards,
            branch: self.branch,
            commit_sha: self.commit_sha,
            tested_revision: self.tested_revision,
            pull_request_number: self.pull_request_number,
        })
    }

    fn position(&self) -> RunPosition {
        RunPosition {
            started_at: self.started_at.0,
            number: self.number,
        }
    }
}

/// The visible run that this id, or the id of any of its shards, names.
pub(crate) fn find(
    connection: &mut PgConnection,
    project: &Project,
    id: RunId,
) -> QueryResult<Option<StoredRun>> {
    run::table
        .inner_join(
            shard::table.on(shard::project_id
                .eq(run::project_id)
                .and(shard::run_number.eq(run::number))),
        )
        .filter(run::project_id.eq(project.id.0))
        .filter(shard::project_id.eq(project.id.0))
        .filter(shard::id.eq(id.0))
        .filter(run::started_at.ge(At(project.visible_from)))
        .select(StoredRun::as_select())
        .first(connection)
        .optional()
}

/// One page of the runs list.
pub(crate) fn page(connection: &mut PgConnection, project: &Project, query: &RunQuery) -> Read<RunPage> {
    if [&query.branch, &query.sha]
        .into_iter()
        .flatten()
        .any(|text| text.contains('\0'))
    {
        return Ok(RunPage {
            runs: Vec::new(),
            total: 0,
            has_older: false,
            has_newer: false,
        });
    }
    let total: i64 = matching(project, query).count().get_result(connection)?;
    let per_page = query.per_page.count();
    let beyond = match query.position {
        None => matching(project, query),
        Some(position) => past(matching(project, query), position, query.direction),
    };
    let ordered = match query.direction {
        Direction::Next => beyond.order((run::started_at.desc(), run::number.desc())),
        Direction::Prev => beyond.order((run::started_at.asc(), run::number.asc())),
    };
    let mut rows: Vec<StoredRun> = ordered
        .select(StoredRun::as_select())
        .limit(i64::from(per_page) + 1)
        .load(connection)?;
    let more = rows.len() > usize::try_from(per_page).unwrap_or(usize::MAX);
    if more {
        rows.pop();
    }
    // What lies on the side that the page was reached from: past its first row, or past the position where it is empty.
    let behind = match (query.position, rows.first()) {
        (None, _) => false,
        (Some(position), first) => {
            let edge = first.map_or(position, StoredRun::position);
            let back = match query.direction {
                Direction::Next => Direction::Prev,
                Direction::Prev => Direction::Next,
            };
            select(exists(past(matching(project, query), edge, back))).get_result(connection)?
        }
    };
    let (has_older, has_newer) = match query.direction {
        Direction::Next => (more, behind),
        Direction::Prev => {
            rows.reverse();
            (behind, more)
        }
    };
    Ok(RunPage {
        runs: rows.into_iter().map(StoredRun::row).collect::<Result<_, _>>()?,
        total: long_count(total)?,
        has_older,
        has_newer,
    })
}

type Matching<'a> = run::BoxedQuery<'a, Pg>;

/// The visible runs of the period that the filters let through.
fn matching<'a>(project: &Project, query: &'a RunQuery) -> Matching<'a> {
    let mut runs = run::table
        .into_boxed()
        .filter(run::project_id.eq(project.id.0))
        .filter(run::started_at.ge(At(query.window.from.max(project.visible_from))))
        .filter(run::started_at.le(At(query.window.to)));
    if let Some(branch) = &query.branch {
        runs = runs.filter(run::branch.eq(branch));
    }
    if let Some(prefix) = &query.sha {
        let begins = |column: &'static str| {
            sql::<Bool>("starts_with(lower(")
                .sql(column)
                .sql("), ")
                .bind::<Text, _>(prefix.as_str())
                .sql(")")
        };
        runs = runs.filter(begins("commit_sha").or(begins("tested_revision")));
    }
    if let Some(status) = query.status {
        runs = runs.filter(run::status.eq(status.as_str()));
    }
    runs
}

/// Those of the runs that lie past a position.
fn past(runs: Matching<'_>, position: RunPosition, direction: Direction) -> Matching<'_> {
    let (at, number) = (At(position.started_at), position.number);
    // The first condition follows from the second; it alone tells Postgres where in the index to begin.
    match direction {
        Direction::Next => runs
            .filter(run::started_at.le(at))
            .filter(run::started_at.lt(at).or(run::number.lt(number))),
        Direction::Prev => runs
            .filter(run::started_at.ge(at))
            .filter(run::started_at.gt(at).or(run::number.gt(number))),
    }
}

/// The status of a run, as stored.
pub(crate) fn outcome(stored: &StoredRun) -> Result<Option<assay_domain::run::Outcome>, StoreError> {
    stored
        .status
        .as_deref()
        .map(|status| word("run status", status))
        .transpose()
}

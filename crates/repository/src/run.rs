//! Runs: the list, and the look-up by the id of any shard.

use assay_domain::{
    id::RunId,
    page::{Direction, RunPosition},
    project::Project,
    run::{Counts, RunPage, RunQuery, RunRow, ShardCount},
    store::StoreError,
};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, IntoSql, NullableExpressionMethods, PgConnection, QueryDsl,
    Queryable, RunQueryDsl, Selectable, SelectableHelper, define_sql_function,
    dsl::{exists, select},
    pg::Pg,
    sql_types::{Bool, Nullable, Text},
};
use uuid::Uuid;

use crate::{
    column::{At, count, long_count, optional_word, word},
    pool::Read,
    schema::{project as projects, run},
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
}

/// One page of the runs list, in one statement wherever it has a run.
pub(crate) fn page(connection: &mut PgConnection, project: &Project, query: &RunQuery) -> Read<RunPage> {
    let beyond = match query.position {
        None => matching(project, query),
        Some(position) => past(matching(project, query), position, query.direction),
    };
    let ordered = match query.direction {
        Direction::Next => beyond.order((run::started_at.desc(), run::number.desc())),
        Direction::Prev => beyond.order((run::started_at.asc(), run::number.asc())),
    };
    // None of these depends on the row, so Postgres finds each out once.
    let around = |behind| {
        (
            projects::table
                .find(project.id.0)
                .select(projects::stable_branch)
                .single_value()
                .assume_not_null(),
            matching(project, query).count().single_value().assume_not_null(),
            exists(behind),
        )
    };
    let per_page = query.per_page.count();
    let found: Vec<(StoredRun, Around)> = ordered
        .select((
            StoredRun::as_select(),
            around(behind(matching(project, query), query, true)),
        ))
        .limit(i64::from(per_page) + 1)
        .load(connection)?;
    let (mut rows, mut arounds): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let (stable_branch, total, is_behind) = match arounds.pop() {
        Some(around) => around,
        None => select(around(behind(matching(project, query), query, false))).get_result(connection)?,
    };
    let more = rows.len() > usize::try_from(per_page).unwrap_or(usize::MAX);
    if more {
        rows.pop();
    }
    let (has_older, has_newer) = match query.direction {
        Direction::Next => (more, is_behind),
        Direction::Prev => {
            rows.reverse();
            (is_behind, more)
        }
    };
    Ok(RunPage {
        stable_branch,
        runs: rows.into_iter().map(StoredRun::row).collect::<Result<_, _>>()?,
        total: long_count(total)?,
        has_older,
        has_newer,
    })
}

/// The stable branch, how many runs match, and whether one matches that lies behind the page.
type Around = (String, i64, bool);

type Matching<'a> = run::BoxedQuery<'a, Pg>;

/// The visible runs of the period that the filters let through.
fn matching<'a>(project: &Project, query: &'a RunQuery) -> Matching<'a> {
    let mut runs = run::table
        .into_boxed()
        .filter(run::project_id.eq(project.id.0))
        .filter(run::started_at.ge(At(query.window.from.max(project.visible_from))))
        .filter(run::started_at.le(At(query.window.to)));
    if [&query.branch, &query.sha]
        .into_iter()
        .flatten()
        .any(|text| text.contains('\0'))
    {
        // No stored text has it, and Postgres takes none that does.
        return runs.filter(false.into_sql::<Bool>());
    }
    if let Some(branch) = &query.branch {
        runs = runs.filter(run::branch.eq(branch));
    }
    if let Some(prefix) = &query.sha {
        runs = runs.filter(
            starts_with(lower(run::commit_sha), prefix).or(starts_with(lower(run::tested_revision), prefix)),
        );
    }
    if let Some(status) = query.status {
        runs = runs.filter(run::status.eq(status.as_str()));
    }
    runs
}

define_sql_function! {
    fn starts_with(text: Nullable<Text>, prefix: Text) -> Nullable<Bool>;
}
define_sql_function! {
    fn lower(text: Nullable<Text>) -> Nullable<Text>;
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

/// Those of the runs that lie on the side that a page was reached from. The position's own run is one of them where
/// the page has others.
fn behind<'a>(runs: Matching<'a>, query: &RunQuery, own: bool) -> Matching<'a> {
    let Some(position) = query.position else {
        return runs.filter(false.into_sql::<Bool>());
    };
    let (at, number) = (At(position.started_at), position.number);
    let beside = i32::from(!own);
    match query.direction {
        Direction::Next => runs.filter(run::started_at.ge(at)).filter(
            run::started_at
                .gt(at)
                .or(run::number.ge(number.saturating_add(beside))),
        ),
        Direction::Prev => runs.filter(run::started_at.le(at)).filter(
            run::started_at
                .lt(at)
                .or(run::number.le(number.saturating_sub(beside))),
        ),
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

//! The runs list.

use std::ops::Range;

use assay_domain::{
    merge_queue::{QUEUE_BRANCHES, RunKind},
    page::{Direction, RunPosition},
    project::Project,
    run::{RunPage, RunQuery, RunRow},
};
use diesel::{
    PgConnection, RunQueryDsl,
    dsl::{AsSelect, SqlTypeOf},
    pg::Pg,
    sql_types::{BigInt, Bool, Text},
};
use uuid::Uuid;

use crate::{
    db::{
        column::{At, can_be_stored, long_count},
        period::visible,
        pool::Read,
        sql_statement::{Part, SqlStatement},
    },
    read::{daily_counts, run::StoredRun},
};

/// The columns of [`StoredRun`], in its order.
const COLUMNS: &str = "run.number, run.id, run.sharded, run.branch, run.commit_sha, run.tested_revision, \
    run.pull_request_number, run.status, run.started_at, run.finished_at, run.duration_ms, run.shards_received, \
    run.shards_expected, run.suite, run.pull_request_title, run.commit_message, run.author_name, run.run_url, \
    run.counts_in_verdicts, run.total, run.passed, \
    run.failed, run.skipped, run.recovered";

/// One page of the runs list, in one statement wherever it has a run.
pub(crate) fn page(connection: &mut PgConnection, project: &Project, query: &RunQuery) -> Read<RunPage> {
    type Types = (SqlTypeOf<AsSelect<StoredRun, Pg>>, ListContextTypes);
    let list = List::new(project, query);
    let per_page = query.per_page.count();
    let statement = SqlStatement::<Types>::new("SELECT ").sql(COLUMNS).sql(", ");
    let page = list
        .with_context(statement, true)
        .sql(" FROM run WHERE ")
        .all(&list.matching)
        .all(&list.beyond());
    let page_rows: Vec<(StoredRun, ListContext)> = match query.direction {
        Direction::Next => page.sql(" ORDER BY run.started_at DESC, run.number DESC LIMIT "),
        Direction::Prev => page.sql(" ORDER BY run.started_at, run.number LIMIT "),
    }
    .bind(i64::from(per_page) + 1)
    .load(connection)?;
    let (mut rows, mut contexts): (Vec<_>, Vec<_>) = page_rows.into_iter().unzip();
    let (stable_branch, total, is_behind) = match contexts.pop() {
        Some(with_context) => with_context,
        None => list
            .with_context(SqlStatement::<ListContextTypes>::new("SELECT "), false)
            .get_result(connection)?,
    };
    let has_more = rows.len() > usize::try_from(per_page).unwrap_or(usize::MAX);
    if has_more {
        rows.pop();
    }
    let (has_older, has_newer) = match query.direction {
        Direction::Next => (has_more, is_behind),
        Direction::Prev => {
            rows.reverse();
            (is_behind, has_more)
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

/// The runs that match, the longest first and unknown durations last, at most one page of
/// them. The position does not count.
pub(crate) fn longest(
    connection: &mut PgConnection,
    project: &Project,
    query: &RunQuery,
) -> Read<Vec<RunRow>> {
    let list = List::new(project, query);
    let rows: Vec<StoredRun> = SqlStatement::<SqlTypeOf<AsSelect<StoredRun, Pg>>>::new("SELECT ")
        .sql(COLUMNS)
        .sql(" FROM run WHERE ")
        .all(&list.matching)
        .sql(" ORDER BY run.duration_ms DESC NULLS LAST, run.number DESC LIMIT ")
        .bind(i64::from(query.per_page.count()))
        .load(connection)?;
    Ok(rows.into_iter().map(StoredRun::row).collect::<Result<_, _>>()?)
}

/// The stable branch, the number of matching runs, and whether one is on the other side of the page.
type ListContext = (String, i64, bool);
type ListContextTypes = (Text, BigInt, Bool);

/// The list from which a page is cut. Its statement is raw SQL, because building it with diesel took a fifth of the
/// server's time for a page.
struct List<'a> {
    project: Uuid,
    /// Condition: a run is visible, in the period, and matches the filters.
    matching: Vec<Part<'a>>,
    /// The days of the period with daily counts; none if a filter is not part of the counts.
    days: Range<At>,
    /// Condition: a daily count has the requested outcome.
    day_matching: Vec<Part<'a>>,
    position: Option<RunPosition>,
    direction: Direction,
}

impl<'a> List<'a> {
    fn new(project: &Project, query: &'a RunQuery) -> Self {
        let (from, to) = visible(project, &query.period);
        let mut matching = vec![
            Part::Sql("run.project_id = "),
            Part::Uuid(project.id.0),
            Part::Sql(" AND run.started_at >= "),
            Part::At(from),
            Part::Sql(" AND run.started_at <= "),
            Part::At(to),
        ];
        let mut day_matching = Vec::new();
        let texts = [&query.branch, &query.sha];
        if !texts.into_iter().flatten().all(|text| can_be_stored(text)) {
            matching.push(Part::Sql(" AND false"));
        } else {
            if let Some(branch) = &query.branch {
                matching.extend([Part::Sql(" AND run.branch = "), Part::Text(branch)]);
            }
            if let Some(prefix) = &query.sha {
                matching.extend([
                    Part::Sql(" AND (starts_with(lower(run.commit_sha), "),
                    Part::Text(prefix),
                    Part::Sql(") OR starts_with(lower(run.tested_revision), "),
                    Part::Text(prefix),
                    Part::Sql("))"),
                ]);
            }
        }
        if let Some(number) = query.pull_request {
            // A merge queue tests several pull requests, which its branch or its title names.
            matching.extend([
                Part::Sql(" AND (run.pull_request_number = "),
                Part::BigInt(number),
                Part::Sql(
                    " OR run.branch LIKE 'mergify/merge-queue/%' AND run.pull_request_title ~ ('#' || ",
                ),
                Part::BigInt(number),
                Part::Sql(
                    " || '\\M') OR (run.branch LIKE 'trunk-merge/%' OR run.branch LIKE 'bors/pr-%') \
                     AND run.branch ~ ('pr-' || ",
                ),
                Part::BigInt(number),
                Part::Sql(" || '\\M'))"),
            ]);
        }
        if let Some(kind) = query.kind {
            matching.push(Part::Sql(match kind {
                RunKind::Queue => " AND coalesce(",
                RunKind::Branch => " AND NOT coalesce(",
            }));
            for (index, pattern) in QUEUE_BRANCHES.iter().enumerate() {
                let or = if index == 0 {
                    "run.branch LIKE "
                } else {
                    " OR run.branch LIKE "
                };
                matching.extend([Part::Sql(or), Part::Text(pattern)]);
            }
            matching.push(Part::Sql(", false)"));
        }
        if let Some(trusted) = query.trusted {
            matching.push(Part::Sql(match trusted {
                true => " AND run.counts_in_verdicts",
                false => " AND NOT run.counts_in_verdicts",
            }));
        }
        if let Some(number) = query.number {
            matching.extend([Part::Sql(" AND run.number = "), Part::BigInt(i64::from(number))]);
        }
        if let Some(status) = query.status {
            matching.extend([Part::Sql(" AND run.status = "), Part::Text(status.as_str())]);
            day_matching.extend([
                Part::Sql(" AND daily_count.status = "),
                Part::Text(status.as_str()),
            ]);
        }
        Self {
            project: project.id.0,
            matching,
            days: if texts == [&None, &None]
                && query.pull_request.is_none()
                && query.kind.is_none()
                && query.trusted.is_none()
                && query.number.is_none()
            {
                daily_counts::whole_days(from.0, to.0)
            } else {
                from..from
            },
            day_matching,
            position: query.position,
            direction: query.direction,
        }
    }

    /// Adds the columns of [`ListContext`]. None of them depends on the row, so Postgres computes each once.
    fn with_context<Row>(&self, statement: SqlStatement<'a, Row>, own: bool) -> SqlStatement<'a, Row> {
        statement
            .sql("(SELECT stable_branch FROM project WHERE project.id = ")
            .bind(self.project)
            .sql("), (SELECT count(*) FROM run WHERE ")
            .all(&self.matching)
            .sql(" AND run.started_at < ")
            .bind(self.days.start)
            .sql(") + (SELECT count(*) FROM run WHERE ")
            .all(&self.matching)
            .sql(" AND run.started_at >= ")
            .bind(self.days.end)
            .sql(
                ") + coalesce((SELECT sum(daily_count.runs) FROM daily_count WHERE daily_count.project_id = ",
            )
            .bind(self.project)
            .sql(" AND daily_count.day >= ")
            .bind(self.days.start)
            .sql(" AND daily_count.day < ")
            .bind(self.days.end)
            .all(&self.day_matching)
            .sql("), 0), EXISTS (SELECT FROM run WHERE ")
            .all(&self.matching)
            .all(&self.behind(own))
            .sql(")")
    }

    /// Condition: a run is past the position.
    fn beyond(&self) -> Vec<Part<'a>> {
        let Some(RunPosition { started_at, number }) = self.position else {
            return Vec::new();
        };
        // The first condition follows from the second. Postgres needs it to start the index scan at the position.
        let words = match self.direction {
            Direction::Next => [
                " AND run.started_at <= ",
                " AND (run.started_at < ",
                " OR run.number < ",
            ],
            Direction::Prev => [
                " AND run.started_at >= ",
                " AND (run.started_at > ",
                " OR run.number > ",
            ],
        };
        position(words, At(started_at), number)
    }

    /// Condition: a run is on the side from which the page was reached. With `own`, the position's own run is one of
    /// them.
    fn behind(&self, own: bool) -> Vec<Part<'a>> {
        let Some(RunPosition { started_at, number }) = self.position else {
            return vec![Part::Sql(" AND false")];
        };
        let beside = i32::from(!own);
        let (words, number) = match self.direction {
            Direction::Next => (
                [
                    " AND run.started_at >= ",
                    " AND (run.started_at > ",
                    " OR run.number >= ",
                ],
                number.saturating_add(beside),
            ),
            Direction::Prev => (
                [
                    " AND run.started_at <= ",
                    " AND (run.started_at < ",
                    " OR run.number <= ",
                ],
                number.saturating_sub(beside),
            ),
        };
        position(words, At(started_at), number)
    }
}

fn position<'a>([first, second, third]: [&'static str; 3], at: At, number: i32) -> Vec<Part<'a>> {
    vec![
        Part::Sql(first),
        Part::At(at),
        Part::Sql(second),
        Part::At(at),
        Part::Sql(third),
        Part::Integer(number),
        Part::Sql(")"),
    ]
}

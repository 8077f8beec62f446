//! The runs list.

use std::{ops::Range, sync::LazyLock};

use assay_domain::{
    merge_queue::{MERGE_QUEUES, NamedIn, RunKind},
    page::{Direction, RunPosition},
    project::Project,
    run::{Outcome, RunPage, RunQuery},
};
use diesel::PgConnection;

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
    run.base_branch, run.pull_request_number, run.status, run.started_at, run.finished_at, run.duration_ms, run.shards_received, \
    run.shards_expected, run.suite, run.pull_request_title, run.commit_message, run.author_name, run.run_url, \
    run.counts_in_verdicts, run.complete, run.total, run.passed, \
    run.failed, run.skipped, run.recovered";

/// The columns of [`ListContext`]. None of them depends on the row, so Postgres computes each once.
const CONTEXT: &str = "(SELECT stable_branch FROM project WHERE project.id = {project}), \
    (SELECT count(*) FROM run WHERE {matching} AND run.started_at < {start}) \
    + (SELECT count(*) FROM run WHERE {matching} AND run.started_at >= {end}) \
    + coalesce((SELECT sum(daily_count.runs) FROM daily_count WHERE daily_count.project_id = {project} \
    AND daily_count.day >= {start} AND daily_count.day < {end}{day_matching}), 0), \
    EXISTS (SELECT FROM run WHERE {matching}{behind})";

/// Condition: a run is older than the position. The first part follows from the second. Postgres needs it to start the
/// index scan at the position.
const OLDER: &str =
    " AND run.started_at <= {position} AND (run.started_at < {position} OR run.number < {older_than})";
/// Condition: a run is newer than the position.
const NEWER: &str =
    " AND run.started_at >= {position} AND (run.started_at > {position} OR run.number > {newer_than})";

/// The branches of all merge queues, and of those whose runs name several pull requests in the title and in the branch.
static QUEUES: LazyLock<Vec<&str>> = LazyLock::new(|| queues(|_| true));
static BY_TITLE: LazyLock<Vec<&str>> = LazyLock::new(|| queues(|named_in| named_in == NamedIn::Title));
static BY_BRANCH: LazyLock<Vec<&str>> =
    LazyLock::new(|| queues(|named_in| matches!(named_in, NamedIn::Branch(_))));

fn queues(is_wanted: impl Fn(NamedIn) -> bool) -> Vec<&'static str> {
    let wanted = MERGE_QUEUES.iter().filter(|(_, named_in)| is_wanted(*named_in));
    // In SQL, `_` is any character.
    let escaped = wanted.map(|(pattern, _)| pattern.replace('_', "\\_"));
    escaped.map(|pattern| &*pattern.leak()).collect()
}

/// One page of the runs list, in one statement wherever it has a run.
pub(crate) fn page(connection: &mut PgConnection, project: &Project, query: &RunQuery) -> Read<RunPage> {
    let list = List::new(project, query);
    let per_page = query.per_page.count();
    let page = SqlStatement::new("SELECT {columns}, {context} FROM run WHERE {matching}{beyond} ORDER BY ");
    let page = match query.direction {
        Direction::Next => page.sql("run.started_at DESC, run.number DESC LIMIT {limit}"),
        Direction::Prev => page.sql("run.started_at, run.number LIMIT {limit}"),
    };
    let page_rows: Vec<(StoredRun, ListContext)> = list
        .fill(page, true)
        .bind("limit", i64::from(per_page) + 1)
        .load(connection)?;
    let (mut rows, mut contexts): (Vec<_>, Vec<_>) = page_rows.into_iter().unzip();
    let (stable_branch, total, is_behind) = match contexts.pop() {
        Some(with_context) => with_context,
        None => list
            .fill(SqlStatement::new("SELECT {context}"), false)
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

/// The stable branch, the number of matching runs, and whether one is on the other side of the page.
type ListContext = (String, i64, bool);

/// The list from which a page is cut. Its statement is raw SQL, because building it with diesel took a fifth of the
/// server's time for a page.
struct List<'a> {
    /// The pieces of the condition that a run is visible, in the period, and matches the filters.
    matching: Vec<&'static str>,
    /// Their values.
    values: Vec<(&'static str, Part<'a>)>,
    /// The days of the period with daily counts; none if a filter is not part of the counts.
    days: Range<At>,
    query: &'a RunQuery,
}

impl<'a> List<'a> {
    fn new(project: &Project, query: &'a RunQuery) -> Self {
        let (from, to) = visible(project, &query.period);
        let RunQuery {
            branch,
            sha,
            pull_request,
            kind,
            trusted,
            number,
            ..
        } = query;
        let mut list = Self {
            matching: vec![
                "run.project_id = {project} AND run.started_at >= {from} AND run.started_at <= {to}",
            ],
            values: vec![
                ("project", project.id.0.into()),
                ("from", from.into()),
                ("to", to.into()),
            ],
            days: match (branch, sha, pull_request, kind, trusted, number) {
                (None, None, None, None, None, None) => daily_counts::whole_days(from.0, to.0),
                _ => from..from,
            },
            query,
        };
        if [branch, sha]
            .into_iter()
            .flatten()
            .all(|text| can_be_stored(text))
        {
            list.add(" AND run.branch = {branch}", "branch", branch.as_deref());
            list.add(
                " AND (starts_with(lower(run.commit_sha), {sha}) OR starts_with(lower(run.tested_revision), {sha}))",
                "sha",
                sha.as_deref(),
            );
        } else {
            list.matching.push(" AND false");
        }
        list.add(
            " AND (run.pull_request_number = {pull_request} OR run.branch LIKE ANY({by_title}) \
             AND run.pull_request_title ~ ('#' || {pull_request} || '\\M') \
             OR run.branch LIKE ANY({by_branch}) AND run.branch ~ ('pr-' || {pull_request} || '\\M'))",
            "pull_request",
            *pull_request,
        );
        list.add(
            match kind {
                Some(RunKind::Queue) => " AND coalesce(run.branch LIKE ANY({queues}), false)",
                Some(RunKind::Branch) => " AND NOT coalesce(run.branch LIKE ANY({queues}), false)",
                None => "",
            },
            "queues",
            kind.map(|_| QUEUES.as_slice()),
        );
        list.values.push(("by_title", BY_TITLE.as_slice().into()));
        list.values.push(("by_branch", BY_BRANCH.as_slice().into()));
        list.matching.extend(trusted.map(|trusted| match trusted {
            true => " AND run.counts_in_verdicts",
            false => " AND NOT run.counts_in_verdicts",
        }));
        list.add(" AND run.number = {number}", "number", *number);
        list.add(
            " AND run.status = {status}",
            "status",
            query.status.map(Outcome::as_str),
        );
        list
    }

    /// Adds a condition with one value, if there is one.
    fn add(&mut self, condition: &'static str, name: &'static str, value: Option<impl Into<Part<'a>>>) {
        if let Some(value) = value {
            self.matching.push(condition);
            self.values.push((name, value.into()));
        }
    }

    /// Puts the columns and the conditions of the list into a statement. The runs behind the page are those on the side
    /// from which it was reached. With `own`, the position's own run is one of them.
    fn fill<Row>(&self, statement: SqlStatement<'a, Row>, own: bool) -> SqlStatement<'a, Row> {
        let (direction, own) = (self.query.direction, i32::from(own));
        let (beyond, behind) = match (self.query.position, direction) {
            (None, _) => ("", " AND false"),
            (Some(_), Direction::Next) => (OLDER, NEWER),
            (Some(_), Direction::Prev) => (NEWER, OLDER),
        };
        let day_matching = match self.query.status {
            Some(_) => " AND daily_count.status = {status}",
            None => "",
        };
        let mut statement = statement
            .text("columns", COLUMNS)
            .text("context", CONTEXT)
            .text("day_matching", day_matching)
            .text("beyond", beyond)
            .text("behind", behind)
            .texts("matching", &self.matching)
            .bind("start", self.days.start)
            .bind("end", self.days.end);
        if let Some(RunPosition { started_at, number }) = self.query.position {
            let (older_than, newer_than) = match direction {
                Direction::Next => (number, number.saturating_sub(own)),
                Direction::Prev => (number.saturating_add(own), number),
            };
            statement = statement
                .bind("position", At(started_at))
                .bind("older_than", older_than)
                .bind("newer_than", newer_than);
        }
        let values = self.values.iter();
        values.fold(statement, |statement, (name, value)| statement.bind(name, *value))
    }
}

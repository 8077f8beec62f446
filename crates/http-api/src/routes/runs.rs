//! Runs: the list of a period, and one run with every test's final attempt.

use assay_answers::cursor;
use assay_domain::{
    page::{Direction, RunPosition},
    period::Period,
    project::{Project, ProjectTag},
    run::{RunDetail, RunPage, RunQuery, RunRest, RunRow},
    store::Store,
};
use assay_http::Unanswerable;
use serde::Serialize;

use crate::{
    answer::{Answer, NextEntries, entries},
    call::Call,
    error::ApiError,
    route::route,
};

route! {
    /// List the runs of a period
    ///
    /// Runs in the period, newest first, one row per run. A cursor is only a position: runs that arrive while paging
    /// neither repeat nor hide others. A page without runs still has a cursor back.
    ///
    /// Cost: cheap to moderate (one bounded scan).
    LIST {
        path: "/projects/{projectId}/runs",
        handler: list,
        id: "listRuns",
        tag: "Runs",
        query: ["days", "branch", "sha", "pullRequest", "runKind", "runStatus", "trusted", "perPage", "cursor", "direction"],
        large: false,
        tagged: false,
        answer: RunList,
        example: "runs",
    }
}

fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let query = call.query();
    let period = query.period()?;
    let (branch, sha) = (query.text("branch")?, query.sha()?);
    let pull_request = query.parse("pullRequest", "must be a whole number from 1", |text| {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|number| is_number && *number >= 1)
    })?;
    let (kind, status) = (query.word("kind")?, query.word("status")?);
    let trusted = query.parse("trusted", "must be true or false", |word| word.parse().ok())?;
    let per_page = query.per_page()?;
    let (position, direction) = query.position()?;
    let query = RunQuery {
        period,
        branch,
        sha,
        pull_request,
        kind,
        trusted,
        number: None,
        status,
        per_page,
        position,
        direction,
    };
    let project = call.project()?;
    let page = call.store.runs(&project, &query)?;
    Answer::of(&RunList::new(&project, &query, page))
}

route! {
    /// Show a run and every test's final attempt
    ///
    /// One run, by the id of any of its shards. A test that passed on retry has no error here; its attempts have one.
    ///
    /// Cost: moderate (reads every result of the run).
    DETAIL {
        path: "/projects/{projectId}/runs/{runId}",
        handler: detail,
        id: "getRun",
        tag: "Runs",
        query: [],
        large: true,
        tagged: true,
        answer: RunAnswer,
        example: "run",
    }
}

fn detail(call: &Call<'_>) -> Result<Answer, ApiError> {
    let project = call.project()?;
    let mut run = call
        .store
        .run(&project, call.run_id()?)?
        .ok_or(Unanswerable::RunNotFound)?;
    let rest = run.rest.take();
    let answer = Answer::tagged(&RunAnswer {
        project: project.tag(),
        run,
    })?;
    match rest {
        Some(rest) => {
            let version = rest.version;
            answer.with_further_entries(Box::new(FurtherTests { project, rest }), version)
        }
        None => Ok(answer),
    }
}

/// The tests beyond those of the first read.
struct FurtherTests {
    project: Project,
    rest: RunRest,
}

impl NextEntries for FurtherTests {
    fn next(&mut self, store: &dyn Store) -> Result<Option<Vec<u8>>, ApiError> {
        let Some(part) = self.rest.parts.pop_front() else {
            return Ok(None);
        };
        let tests = store.run_part(&self.project, &self.rest, &part)?;
        entries(&tests.ok_or(ApiError::Changed)?).map(Some)
    }

    fn bytes(&self) -> usize {
        self.rest.bytes()
    }
}

/// The runs of a period.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunList {
    /// The project.
    project: ProjectTag,
    /// The period.
    #[serde(rename = "window")]
    period: Period,
    /// The stable branch.
    stable_branch: String,
    /// Newest first.
    runs: Vec<RunRow>,
    /// Runs of the filter in the whole period.
    total: u64,
    /// The cursor towards older runs; none if no older run matches.
    next_cursor: Option<String>,
    /// The cursor towards newer runs; none if no newer run matches.
    prev_cursor: Option<String>,
}

/// One run with every test's final attempt.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct RunAnswer {
    /// The project.
    project: ProjectTag,
    #[serde(flatten)]
    run: RunDetail,
}

impl RunList {
    fn new(project: &Project, query: &RunQuery, page: RunPage) -> Self {
        let oldest = page
            .runs
            .last()
            .map(position)
            .or_else(|| position_before(query, Direction::Next));
        let newest = page
            .runs
            .first()
            .map(position)
            .or_else(|| position_before(query, Direction::Prev));
        Self {
            project: project.tag(),
            period: query.period,
            next_cursor: oldest.filter(|_| page.has_older).map(cursor::encode),
            prev_cursor: newest.filter(|_| page.has_newer).map(cursor::encode),
            stable_branch: page.stable_branch,
            total: page.total,
            runs: page.runs,
        }
    }
}

fn position(run: &RunRow) -> RunPosition {
    RunPosition {
        started_at: run.started_at,
        number: run.run_number,
    }
}

/// For an empty page: a position from which reading in `direction` returns the requested position's run. Run numbers
/// are unique, so no other run lies between the two.
fn position_before(query: &RunQuery, direction: Direction) -> Option<RunPosition> {
    let position = query.position?;
    let number = match direction {
        Direction::Next => position.number.saturating_add(1),
        Direction::Prev => position.number.saturating_sub(1),
    };
    Some(RunPosition { number, ..position })
}

#[cfg(test)]
mod tests {
    use assay_domain::{
        id::{ProjectId, RunId},
        page::PerPage,
        period::Days,
        plan::Plan,
        run::Counts,
        timestamp::Timestamp,
    };

    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_ms(1_795_200_363_120);

    fn row(number: i32) -> RunRow {
        RunRow {
            id: RunId("019aa3f4-5b1c-7def-8a3b-0123456789ab".parse().unwrap()),
            run_number: number,
            branch: None,
            commit_sha: None,
            tested_revision: None,
            base_branch: None,
            pull_request_number: None,
            queue: None,
            status: None,
            started_at: NOW.plus_ms(i64::from(number)),
            finished_at: None,
            duration_ms: None,
            counts: Counts::default(),
            shards: None,
            suite: None,
            pull_request_title: None,
            commit_message: None,
            author_name: None,
            run_url: None,
            trusted: true,
            complete: true,
        }
    }

    fn cursors(
        runs: Vec<RunRow>,
        has_older: bool,
        has_newer: bool,
    ) -> (Option<RunPosition>, Option<RunPosition>) {
        let query = RunQuery {
            position: Some(RunPosition {
                started_at: NOW,
                number: 5,
            }),
            ..RunQuery::newest(Period::ending(NOW, Days::Seven), PerPage::Ten)
        };
        let id = ProjectId("019aa3f4-5b1c-7def-8a3b-0123456789ab".parse().unwrap());
        let project = Project::of_row(id, "shop".to_owned(), Plan::Pro, NOW);
        let list = RunList::new(
            &project,
            &query,
            RunPage {
                stable_branch: "main".to_owned(),
                runs,
                total: 9,
                has_older,
                has_newer,
            },
        );
        let decode = |cursor: Option<String>| cursor.map(|text| cursor::decode(&text).unwrap());
        (decode(list.next_cursor), decode(list.prev_cursor))
    }

    #[test]
    fn cursors_point_to_the_ends_of_the_page() {
        let (next, prev) = cursors(vec![row(4), row(3)], true, true);
        assert_eq!(next, Some(position(&row(3))));
        assert_eq!(prev, Some(position(&row(4))));
        assert_eq!(cursors(vec![row(4)], false, false), (None, None));
    }

    #[test]
    fn from_an_empty_page_the_way_back_includes_the_run_of_the_cursor() {
        let (next, prev) = cursors(Vec::new(), false, true);
        assert_eq!(next, None);
        assert_eq!(
            prev,
            Some(RunPosition {
                started_at: NOW,
                number: 4
            })
        );
    }
}

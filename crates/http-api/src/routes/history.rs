//! A test's history.

use assay_domain::{
    history::{HistoryRest, Occurrence},
    period::Period,
    project::{Project, ProjectTag},
    store::Store,
    test::TestName,
};
use assay_http::single_test;
use serde::Serialize;

use crate::{
    answer::{Answer, NextEntries, entries},
    call::Call,
    error::ApiError,
    route::route,
};

route! {
    /// Show the history of a test
    ///
    /// The results of the test in the runs of the period, on every branch, newest first. The oldest occurrence with
    /// `anyFailedAttempt` is its first failure. A test that passed on retry has the `status` `passed` there.
    ///
    /// Cost: moderate.
    LIST {
        path: "/projects/{projectId}/tests/{testName}",
        handler: list,
        id: "getTestHistory",
        tag: "Tests",
        query: ["filePath", "days"],
        large: true,
        tagged: false,
        answer: HistoryAnswer,
        example: "history",
    }
}

fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let query = call.query();
    let file = query.file()?;
    let period = query.period()?;
    let project = call.project()?;
    let history = single_test(call.store.history(&project, &call.test(file), &period)?)?;
    let answer = Answer::of(&HistoryAnswer {
        project: project.tag(),
        test: history.test,
        written_name: history.written_name,
        period,
        stable_branch: history.stable_branch,
        occurrences: history.occurrences,
    })?;
    match history.rest {
        Some(rest) => {
            let rest = Some(rest);
            answer.with_further_entries(Box::new(OlderOccurrences { project, rest }), [0; 32])
        }
        None => Ok(answer),
    }
}

/// The occurrences beyond those of the first read.
struct OlderOccurrences {
    project: Project,
    rest: Option<HistoryRest>,
}

impl NextEntries for OlderOccurrences {
    fn next(&mut self, store: &dyn Store) -> Result<Option<Vec<u8>>, ApiError> {
        let Some(rest) = self.rest.take() else {
            return Ok(None);
        };
        let (occurrences, rest) = store.history_part(&self.project, rest)?;
        self.rest = rest;
        entries(&occurrences).map(Some)
    }

    fn bytes(&self) -> usize {
        self.rest.as_ref().map_or(0, |rest| rest.revisions.bytes())
    }
}

/// The results of a test in the runs of a period.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct HistoryAnswer {
    /// The project.
    project: ProjectTag,
    /// The test.
    test: TestName,
    /// The name in the newest report, if the stored one lacks the parts that change from run to run.
    written_name: Option<String>,
    /// The period.
    #[serde(rename = "window")]
    period: Period,
    /// The stable branch.
    stable_branch: String,
    /// One entry per run, newest first.
    occurrences: Vec<Occurrence>,
}

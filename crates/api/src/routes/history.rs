//! A test's history.

use assay_domain::{
    history::{HistoryRest, Occurrence},
    project::{Project, ProjectTag},
    store::Store,
    test::TestName,
    window::Window,
};
use serde::Serialize;

use crate::{
    answer::{Answer, NextEntries, entries},
    call::{Call, found},
    error::ApiError,
};

/// `GET /projects/{projectId}/tests/{testName}`: how the test ended in each run of the period, newest first.
pub(crate) fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let query = call.query();
    let file = query.file()?;
    let window = query.window()?;
    let project = call.project()?;
    let history = found(call.store.history(&project, &call.test(file), &window)?)?;
    let answer = Answer::of(&HistoryAnswer {
        project: project.tag(),
        test: history.test,
        window,
        stable_branch: history.stable_branch,
        occurrences: history.occurrences,
    })?;
    match history.rest {
        Some(rest) => {
            let rest = Some(rest);
            answer.and_then(Box::new(OlderOccurrences { project, rest }), [0; 32])
        }
        None => Ok(answer),
    }
}

/// The occurrences that are too many to be read at once.
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
}

/// How a test ended in each run of a period.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct HistoryAnswer {
    /// The project.
    project: ProjectTag,
    /// The test.
    test: TestName,
    /// The period.
    window: Window,
    /// The branch that releases are made from.
    stable_branch: String,
    /// One a run, newest first.
    occurrences: Vec<Occurrence>,
}

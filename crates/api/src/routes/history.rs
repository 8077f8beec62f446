//! A test's history.

use assay_domain::{history::Occurrence, project::ProjectTag, test::TestName, window::Window};
use serde::Serialize;

use crate::{
    answer::Answer,
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
    Answer::of(&HistoryAnswer {
        project: project.tag(),
        test: history.test,
        window,
        stable_branch: history.stable_branch,
        occurrences: history.occurrences,
    })
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

//! The branches that a project has runs on.

use assay_domain::project::ProjectTag;
use serde::Serialize;

use crate::{answer::Answer, call::Call, error::ApiError};

/// `GET /projects/{projectId}/branches`: every branch with a visible run, in alphabetical order. Tagged.
pub(crate) fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let project = call.project()?;
    let branches = call.store.branches(&project)?;
    Answer::tagged(&BranchList {
        project: project.tag(),
        branches: branches.names,
        truncated: branches.truncated,
    })
}

/// The branches of a project.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct BranchList {
    /// The project.
    project: ProjectTag,
    /// In alphabetical order without regard to case.
    branches: Vec<String>,
    /// Whether there are more: of more than 10,000 branches those with the newest runs are listed.
    truncated: bool,
}

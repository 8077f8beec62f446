//! The branches of a project's runs.

use assay_domain::project::ProjectTag;
use serde::Serialize;

#[cfg(test)]
use crate::openapi::{Operation, register};
use crate::{answer::Answer, call::Call, error::ApiError, route::Route};

/// `GET /projects/{projectId}/branches`.
pub(super) const LIST: Route = Route {
    path: "/projects/{projectId}/branches",
    handler: list,
    is_large: true,
    #[cfg(test)]
    operation: Some(Operation {
        id: "listBranches",
        tag: "Projects",
        cost: "cheap",
        summary: "List the branches of a project",
        description: "Every branch with visible runs, in alphabetical order ignoring case. Branches that differ only in case are ordered by code point.",
        query: &[],
        tagged: true,
        answer: register::<BranchList>,
        example: include_str!("../openapi/examples/branches.json"),
    }),
};

/// Every branch with a visible run, in alphabetical order. Tagged.
fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
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
    /// In alphabetical order, ignoring case.
    branches: Vec<String>,
    /// Whether there are more. Of more than 10,000 branches, those with the newest runs are listed.
    truncated: bool,
}

//! The branches of a project's runs.

use assay_domain::project::ProjectTag;
use serde::Serialize;

use crate::{answer::Answer, call::Call, error::ApiError, route::route};

route! {
    /// List the branches of a project
    ///
    /// Every branch with visible runs, in alphabetical order ignoring case. Branches that differ only in case are
    /// ordered by code point.
    ///
    /// Cost: cheap.
    LIST {
        path: "/projects/{projectId}/branches",
        handler: list,
        id: "listBranches",
        tag: "Projects",
        query: [],
        large: true,
        tagged: true,
        answer: BranchList,
        example: "branches",
    }
}

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

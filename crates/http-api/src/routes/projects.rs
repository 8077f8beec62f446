//! The projects of the key's organization.

use assay_domain::project::ProjectEntry;
use serde::Serialize;

use crate::{answer::Answer, call::Call, error::ApiError, route::route};

/// The projects of an organization.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct ProjectList {
    /// Oldest first.
    projects: Vec<ProjectEntry>,
}

route! {
    /// List the projects
    ///
    /// Every project of the key's organization, oldest first. Start here: every other route needs one of these ids.
    ///
    /// Cost: cheap.
    LIST {
        path: "/projects",
        handler: list,
        id: "listProjects",
        tag: "Projects",
        query: [],
        large: false,
        tagged: false,
        answer: ProjectList,
        example: "projects",
    }
}

fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let projects = call.store.projects(&call.caller)?;
    Answer::of(&ProjectList { projects })
}

//! The projects of the key's organization.

use assay_domain::project::ProjectEntry;
use serde::Serialize;

#[cfg(test)]
use crate::openapi::{Operation, register};
use crate::{answer::Answer, call::Call, error::ApiError, route::Route};

/// The projects of an organization.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct ProjectList {
    /// Oldest first.
    projects: Vec<ProjectEntry>,
}

/// `GET /projects`.
pub(super) const LIST: Route = Route {
    path: "/projects",
    handler: list,
    is_large: false,
    #[cfg(test)]
    operation: Some(Operation {
        id: "listProjects",
        tag: "Projects",
        cost: "cheap",
        summary: "List the projects",
        description: "Every project of the key's organization, oldest first. Start here: every other route needs one of these ids.",
        query: &[],
        tagged: false,
        answer: register::<ProjectList>,
        example: include_str!("../openapi/examples/projects.json"),
    }),
};

/// Every project of the organization, oldest first.
fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let projects = call.store.projects(&call.caller)?;
    Answer::of(&ProjectList { projects })
}

//! The projects of the key's organization.

use assay_domain::project::ProjectEntry;
use serde::Serialize;

use crate::{answer::Answer, call::Call, error::ApiError};

/// The projects of an organization.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct ProjectList {
    /// Oldest first.
    projects: Vec<ProjectEntry>,
}

/// `GET /projects`: every project of the organization, oldest first.
pub(crate) fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let projects = call.store.projects(&call.caller)?;
    Answer::of(&ProjectList { projects })
}

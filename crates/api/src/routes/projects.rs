//! The projects of the key's organization.

use assay_domain::project::ProjectEntry;
use serde::Serialize;

use crate::{answer::Answer, call::Call, error::ApiError};

#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct ProjectList {
    projects: Vec<ProjectEntry>,
}

/// `GET /projects`: every project of the organization, oldest first.
pub(crate) fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let projects = call.store.projects(&call.caller)?;
    Answer::of(&ProjectList { projects })
}

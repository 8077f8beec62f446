//! The reports that keys sent.

use assay_domain::{ingest::ProjectUpload, project::ProjectTag};
use serde::Serialize;

#[cfg(test)]
use crate::openapi::{Operation, register};
use crate::{answer::Answer, call::Call, error::ApiError, route::Route};

/// `GET /projects/{projectId}/uploads`.
pub(super) const LIST: Route = Route {
    path: "/projects/{projectId}/uploads",
    handler: list,
    is_large: false,
    #[cfg(test)]
    operation: Some(Operation {
        id: "listUploads",
        tag: "Projects",
        cost: "cheap",
        summary: "List the reports that keys sent",
        description: "The newest reports over HTTP, the newest first, of runs that the plan keeps. Each is recorded for 90 days with its key, and with the gate's decision on it. A key is named by its id and the name that the operators gave it; no part of its text is shown. Reports of `assay-admin import` are not uploads.",
        query: &["uploadLimit"],
        tagged: false,
        answer: register::<UploadList>,
        example: include_str!("../openapi/examples/uploads.json"),
    }),
};

/// The newest uploads of visible runs.
fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let limit = call.query().limit()?;
    let project = call.project()?;
    let uploads = call.store.project_uploads(&project, limit)?;
    Answer::of(&UploadList {
        project: project.tag(),
        uploads,
    })
}

/// The uploads of a project.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct UploadList {
    /// The project.
    project: ProjectTag,
    /// The newest first.
    uploads: Vec<ProjectUpload>,
}

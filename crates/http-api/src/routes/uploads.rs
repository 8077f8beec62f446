//! The reports that keys sent.

use assay_domain::{ingest::ProjectUpload, project::ProjectTag};
use serde::Serialize;

use crate::{answer::Answer, call::Call, error::ApiError, route::route};

route! {
    /// List the reports that keys sent
    ///
    /// The newest reports over HTTP, the newest first, of runs that the plan keeps. Each is recorded for 90 days with
    /// its key, and with the gate's decision on it. A key is named by its id and the name that the operators gave it;
    /// no part of its text is shown. Reports of `assay-admin import` are not uploads.
    ///
    /// Cost: cheap.
    LIST {
        path: "/projects/{projectId}/uploads",
        handler: list,
        id: "listUploads",
        tag: "Projects",
        query: ["uploadLimit"],
        large: false,
        tagged: false,
        answer: UploadList,
        example: "uploads",
    }
}

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

//! Composes the comment that a CI job posts to its code host.

use std::sync::Arc;

use actix_web::web::Payload;
use assay_access::check::IngestGrant;
use assay_answers::comment::{Comment, comment};
use assay_domain::{decision::DecisionError, id::RunId, store::RecordError};
use serde::Deserialize;

use crate::{app::AppState, body, error::IngestError, parts::Shape};

/// The run whose commit a comment describes.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CommentRequest {
    /// The run, from the answer to an upload.
    run_id: RunId,
}

/// Receives the request and composes the comment. A key for pull requests only gets comments on runs of such keys.
pub(crate) async fn compose(
    app: &Arc<AppState>,
    grant: IngestGrant,
    shape: Shape,
    payload: Payload,
    body_is_read: impl FnOnce(),
) -> Result<Comment, IngestError> {
    let work = |app: &AppState, grant: &IngestGrant, request: CommentRequest| {
        let now = (app.clock)();
        let project = app
            .keys
            .project_of_key(grant.project, now)?
            .ok_or(RecordError::NoProject(grant.project))?;
        let composed = comment(
            &*app.store,
            &*app.judge,
            app.pages.as_ref().filter(|pages| pages.is_reached_elsewhere()),
            &project,
            (request.run_id, grant.terms.pull_requests_only),
            now,
        )?;
        composed.ok_or_else(|| DecisionError::NoRun.into())
    };
    body::with_json(app, grant, shape, payload, body_is_read, work).await
}

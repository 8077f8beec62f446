//! Composes the comment that a CI job posts to its code host.

use std::sync::Arc;

use actix_web::web::Payload;
use assay_access::check::IngestGrant;
use assay_answers::comment::{Comment, comment};
use assay_domain::{decision::DecisionError, id::RunId, store::RecordError};
use serde::Deserialize;

use crate::{
    app::{self, AppState},
    body,
    error::IngestError,
    limits::DECISION_BYTES,
    parts::Shape,
};

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
    let holder = app::holder(&grant);
    let received = body::receive(app, holder, payload, DECISION_BYTES, None).await?;
    body_is_read();
    let (project, reading) = (grant.project, Arc::clone(app));
    let work = move || {
        let bytes = shape.unpacked(&received.file, DECISION_BYTES)?;
        let request: CommentRequest =
            serde_json::from_slice(&bytes).map_err(|error| IngestError::bad("the body", error))?;
        let now = (reading.clock)();
        let project = reading
            .keys
            .project_of_key(grant.project, now)?
            .ok_or(RecordError::NoProject(grant.project))?;
        let composed = comment(
            &*reading.store,
            &*reading.judge,
            reading
                .pages
                .as_ref()
                .filter(|pages| pages.is_reached_elsewhere()),
            &project,
            (request.run_id, grant.terms.pull_requests_only),
            now,
        )?;
        composed.ok_or_else(|| DecisionError::NoRun.into())
    };
    app.explanations
        .run_after(project, holder.precedence, work)
        .await?
}

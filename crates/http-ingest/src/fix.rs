//! Stores a fix of a test.

use std::sync::Arc;

use actix_web::web::Payload;
use assay_access::check::IngestGrant;
use assay_domain::fix::NewFix;
use serde::Serialize;

use crate::{
    answer::ProjectName,
    app::{self, AppState},
    body,
    error::IngestError,
    limits::DECISION_BYTES,
    parts::Shape,
};

/// The answer to a fix.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct FixAnswer {
    project: ProjectName,
}

/// Receives, checks and stores a fix.
pub(crate) async fn store(
    app: &Arc<AppState>,
    grant: IngestGrant,
    shape: Shape,
    payload: Payload,
    body_is_read: impl FnOnce(),
) -> Result<FixAnswer, IngestError> {
    let holder = app::holder(&grant);
    let received = body::receive(app, holder, payload, DECISION_BYTES, None).await?;
    body_is_read();
    let (project, storing) = (grant.project, Arc::clone(app));
    let work = move || {
        let bytes = shape.unpacked(&received.file, DECISION_BYTES)?;
        let fix: NewFix =
            serde_json::from_slice(&bytes).map_err(|error| IngestError::bad("the body", error))?;
        fix.check_fields()
            .map_err(|(field, rule)| IngestError::bad(field, rule))?;
        let now = (storing.clock)();
        storing.keys.record_fix(grant.project, &fix, grant.rules(), now)?;
        Ok(FixAnswer {
            project: ProjectName::of(&grant),
        })
    };
    app.explanations
        .run_after(project, holder.precedence, work)
        .await?
}

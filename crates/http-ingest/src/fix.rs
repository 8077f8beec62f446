//! Stores a fix of a test.

use std::sync::Arc;

use actix_web::web::Payload;
use assay_access::check::IngestGrant;
use assay_domain::fix::NewFix;
use serde::Serialize;

use crate::{answer::ProjectName, app::AppState, body, error::IngestError, parts::Shape};

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
    let work = |app: &AppState, grant: &IngestGrant, fix: NewFix| {
        fix.check_fields()
            .map_err(|(field, rule)| IngestError::bad(field, rule))?;
        let now = (app.clock)();
        app.keys.record_fix(grant.project, &fix, grant.rules(), now)?;
        Ok(FixAnswer {
            project: ProjectName::of(grant),
        })
    };
    body::with_json(app, grant, shape, payload, body_is_read, work).await
}

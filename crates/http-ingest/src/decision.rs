//! Stores the decision of a gate on an upload.

use std::sync::Arc;

use actix_web::{
    http::{StatusCode, header::HeaderMap},
    web::Payload,
};
use assay_access::check::IngestGrant;
use assay_domain::{
    decision::{DecisionReceipt, GateDecision},
    id::RunId,
    plain::plain,
    recording::Effect,
};
use serde::Serialize;

use crate::{answer::ProjectName, app::AppState, body, error::IngestError, parts::Shape, upload::status_of};

/// The answer to a decision.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct DecisionAnswer {
    project: ProjectName,
    /// The run.
    run_id: RunId,
    /// The run's number in the project.
    run_number: i32,
    effect: Effect,
}

/// The encoding of a JSON body, as the request's head declares it.
pub(crate) fn shape(headers: &HeaderMap, query: Option<&str>) -> Result<Shape, IngestError> {
    if query.is_some_and(|query| !query.is_empty()) {
        return Err(IngestError::bad(
            "the query",
            "the request is the JSON body alone",
        ));
    }
    let shape = Shape::of(headers)?;
    match shape.is_raw() {
        true => Ok(shape),
        false => Err(IngestError::bad("Content-Type", "expected application/json")),
    }
}

/// Receives, checks and stores a decision.
pub(crate) async fn store(
    app: &Arc<AppState>,
    grant: IngestGrant,
    shape: Shape,
    payload: Payload,
    body_is_read: impl FnOnce(),
) -> Result<(StatusCode, DecisionAnswer), IngestError> {
    let work = |app: &AppState, grant: &IngestGrant, mut decision: GateDecision| {
        for excused in &mut decision.excused {
            excused.reason = plain(&excused.reason).into_owned();
        }
        decision
            .check()
            .map_err(|(field, rule)| IngestError::bad(field, rule))?;
        let now = (app.clock)();
        let DecisionReceipt {
            run_id,
            run_number,
            effect,
        } = app
            .keys
            .record_decision(grant.project, &decision, grant.rules(), now)?;
        let answer = DecisionAnswer {
            project: ProjectName::of(grant),
            run_id,
            run_number,
            effect,
        };
        Ok((status_of(effect), answer))
    };
    body::with_json(app, grant, shape, payload, body_is_read, work).await
}

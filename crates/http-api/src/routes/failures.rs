//! The causes of a run's failures.

use assay_answers::failures::{FailuresQuery, ListedFailures, run_failures};
use assay_domain::{cause::Knowledge, owners::OwnerFilter};

#[cfg(test)]
use crate::openapi::{Operation, register};
use crate::{answer::Answer, call::Call, error::ApiError, route::Route};

/// `GET /projects/{projectId}/runs/{runId}/failures`.
pub(super) const LIST: Route = Route {
    path: "/projects/{projectId}/runs/{runId}/failures",
    handler: list,
    is_large: true,
    #[cfg(test)]
    operation: Some(Operation {
        id: "listRunFailures",
        tag: "Runs",
        cost: "moderate (runs the flakiness engine on the failed tests)",
        summary: "Explain the failures of a run",
        description: "The cause of each failed or recovered test of the run: the test itself, the environment, an earlier breakage, or this branch. Failed tests come first, those most probably broken by this branch at the top. `gate` is the action for the run: pass, rerun or block. By default only runs that started before this one or with it count.",
        query: &["causeMode", "owner", "page", "limit"],
        tagged: false,
        answer: register::<assay_answers::failures::RunFailures>,
        example: include_str!("../openapi/examples/failures.json"),
    }),
};

/// The failed and recovered tests of a run, each with its cause, and the gate of the run.
fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let parameters = call.query();
    let knowledge = parameters.word("mode")?.unwrap_or(Knowledge::AtTheTime);
    let owner = parameters.text("owner")?.as_deref().map(OwnerFilter::of);
    let page = parameters.page()?;
    let per_page = parameters.limit()?;
    let project = call.project()?;
    let query = FailuresQuery {
        run: call.run_id()?,
        knowledge,
        page,
        per_page,
        listed: ListedFailures::All,
        owner,
    };
    let failures = run_failures(call.store, call.engine, &project, &query, call.now)?;
    Answer::of(&failures.ok_or(ApiError::RunNotFound)?)
}

//! What a run changed in its suite.

use assay_answers::changes::run_changes;

#[cfg(test)]
use crate::openapi::{Operation, register};
use crate::{answer::Answer, call::Call, error::ApiError, route::Route};

/// `GET /projects/{projectId}/runs/{runId}/changes`.
pub(super) const LIST: Route = Route {
    path: "/projects/{projectId}/runs/{runId}/changes",
    handler: list,
    is_large: false,
    #[cfg(test)]
    operation: Some(Operation {
        id: "listRunChanges",
        tag: "Runs",
        cost: "moderate (compares the run with the runs of 14 days)",
        summary: "Show what a run changed in its suite",
        description: "The tests that a run broke, repaired, skips, no longer reports, renamed and added, against the newest complete run of the same suite on the stable branch that started before it. A missing test is listed only if the run is complete, other tests of its file ran, it ran in at least 9 of the last 10 complete runs of the stable branch, and the oldest run of the stable branch in the 14 days has it. `missingNotJudged` tells why none is listed.",
        query: &[],
        tagged: false,
        answer: register::<assay_answers::changes::RunChanges>,
        example: include_str!("../openapi/examples/changes.json"),
    }),
};

/// The changes of one run, by the id of any of its shards.
fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let project = call.project()?;
    let changes = run_changes(call.store, call.engine, &project, call.run_id()?, call.now)?;
    Answer::of(&changes.ok_or(ApiError::RunNotFound)?)
}

//! What a run changed in its suite.

use assay_answers::changes::run_changes;
use assay_http::Unanswerable;

use crate::{answer::Answer, call::Call, error::ApiError, route::route};

route! {
    /// Show what a run changed in its suite
    ///
    /// The tests that a run broke, repaired, skips, no longer reports, renamed and added, against the newest complete
    /// run of the same suite on the stable branch that started before it. A missing test is listed only if the run is
    /// complete, other tests of its file ran, it ran in at least 9 of the last 10 complete runs of the stable branch,
    /// and the oldest run of the stable branch in the 14 days has it. `missingNotJudged` tells why none is listed.
    ///
    /// Cost: moderate (compares the run with the runs of 14 days).
    LIST {
        path: "/projects/{projectId}/runs/{runId}/changes",
        handler: list,
        id: "listRunChanges",
        tag: "Runs",
        query: [],
        large: false,
        tagged: false,
        answer: assay_answers::changes::RunChanges,
        example: "changes",
    }
}

fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let project = call.project()?;
    let changes = run_changes(call.store, call.engine, &project, call.run_id()?, call.now)?;
    Answer::of(&changes.ok_or(Unanswerable::RunNotFound)?)
}

//! The causes of a run's failures.

use assay_answers::failures::{FailuresQuery, ListedFailures, run_failures};
use assay_domain::{cause::Knowledge, owners::OwnerFilter};
use assay_http::Unanswerable;

use crate::{answer::Answer, call::Call, error::ApiError, route::route};

route! {
    /// Explain the failures of a run
    ///
    /// The cause of each failed or recovered test of the run: the test itself, the environment, an earlier breakage,
    /// or this branch. Failed tests come first, those most probably broken by this branch at the top. `gate` is the
    /// action for the run: pass, rerun or block. By default only runs that started before this one or with it count.
    ///
    /// Cost: moderate (runs the flakiness engine on the failed tests).
    LIST {
        path: "/projects/{projectId}/runs/{runId}/failures",
        handler: list,
        id: "listRunFailures",
        tag: "Runs",
        query: ["causeMode", "owner", "page", "limit"],
        large: true,
        tagged: false,
        answer: assay_answers::failures::RunFailures,
        example: "failures",
    }
}

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
    Answer::of(&failures.ok_or(Unanswerable::RunNotFound)?)
}

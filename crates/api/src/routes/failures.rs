//! Why the tests of a run failed.

use assay_domain::cause::Knowledge;
use assay_explain::failures::{FailuresQuery, run_failures};

use crate::{answer::Answer, call::Call, error::ApiError};

/// `GET /projects/{projectId}/runs/{runId}/failures`: the failed and recovered tests of a run, each with its cause, and what
/// to do about the run.
pub(crate) fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let parameters = call.query();
    let knowledge = parameters.word("mode")?.unwrap_or(Knowledge::AtTheTime);
    let page = parameters.page()?;
    let per_page = parameters.limit()?;
    let project = call.project()?;
    let query = FailuresQuery {
        run: call.run_id()?,
        knowledge,
        page,
        per_page,
    };
    let failures = run_failures(call.store, call.engine, &project, &query, call.now)?;
    Answer::of(&failures.ok_or(ApiError::RunNotFound)?)
}

//! The attempts of one test in one run.

use assay_domain::{
    attempt::{AttemptStatus, ErrorDetail, ShardTag, StoredAttempt, TestAttempts},
    project::ProjectTag,
    run::RunTag,
    test::TestName,
};
use serde::Serialize;

use crate::{
    answer::Answer,
    call::{Call, found},
    error::ApiError,
    prompt,
};

/// `GET /projects/{projectId}/runs/{runId}/tests/{testName}`: the test's attempts, oldest first. Tagged.
pub(crate) fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let file = call.query().file()?;
    let project = call.project()?;
    let lookup = call.store.attempts(&project, call.run_id()?, &call.test(file))?;
    let attempts = found(lookup.ok_or(ApiError::RunNotFound)?)?;
    Answer::tagged(&AttemptList::new(project.tag(), &attempts))
}

#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct AttemptList<'a> {
    project: ProjectTag,
    run: &'a RunTag,
    test: &'a TestName,
    attempts: Vec<AttemptEntry<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
struct AttemptEntry<'a> {
    retry: u32,
    label: String,
    status: AttemptStatus,
    duration_ms: Option<u64>,
    browser_name: Option<&'a str>,
    errors: &'a [ErrorDetail],
    copy_prompt: Option<String>,
    shard: Option<ShardTag>,
}

impl<'a> AttemptList<'a> {
    fn new(project: ProjectTag, found: &'a TestAttempts) -> Self {
        let entry = |attempt: &'a StoredAttempt| AttemptEntry {
            retry: attempt.retry,
            label: prompt::label(attempt.retry),
            status: attempt.status,
            duration_ms: attempt.duration_ms,
            browser_name: attempt.browser_name.as_deref(),
            errors: &attempt.errors,
            copy_prompt: prompt::of(&project.name, found, attempt),
            shard: attempt.shard,
        };
        Self {
            attempts: found.attempts.iter().map(entry).collect(),
            run: &found.run,
            test: &found.test,
            project,
        }
    }
}

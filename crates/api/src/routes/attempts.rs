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

/// The attempts of one test in one run.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct AttemptList<'a> {
    /// The project.
    project: ProjectTag,
    /// The run.
    run: &'a RunTag,
    /// The test.
    test: &'a TestName,
    /// Oldest first, never empty.
    attempts: Vec<AttemptEntry<'a>>,
}

/// One attempt.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttemptEntry<'a> {
    /// Its place among the attempts, from 0.
    retry: u32,
    /// The same in words: `first try`, `retry #1`, and so on.
    label: String,
    /// How it ended.
    status: AttemptStatus,
    /// How long it took in milliseconds.
    duration_ms: Option<u64>,
    /// The browser or Playwright project that it ran in.
    browser_name: Option<&'a str>,
    /// What went wrong, the first error first.
    errors: &'a [ErrorDetail],
    /// A ready-made prompt for an assistant that has the repository open; none for an attempt that did not fail.
    copy_prompt: Option<String>,
    /// The shard that ran it; none in a run without shards.
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

//! The stored attempts of a test in a run.

use crate::{
    attempt::{AttemptOutput, AttemptStatus, ErrorDetail, ShardTag},
    run::RunTag,
    test::TestName,
    timestamp::Timestamp,
    verdict::StoredVerdict,
};

/// The attempts of one test in one run, and the facts about the run that the prompt names.
#[derive(Debug, Clone, PartialEq)]
pub struct TestAttempts {
    /// The run: id, number, branch.
    pub run: RunTag,
    /// The run's start.
    pub started_at: Timestamp,
    /// The run's commit, for the prompt.
    pub commit_sha: Option<String>,
    /// The run's tested revision, for the prompt.
    pub tested_revision: Option<String>,
    /// The test.
    pub test: TestName,
    /// Its stored verdict for the prompt, if there is one and an attempt failed.
    pub verdict: Option<StoredVerdict>,
    /// Grouped by execution, the worst outcome last; within an execution oldest first. Never empty.
    pub attempts: Vec<StoredAttempt>,
    /// Number of omitted attempts between the oldest and the newest. Attempts are omitted if their errors are too long
    /// for one answer.
    pub omitted: u32,
}

/// A stored attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAttempt {
    /// Its execution, from 0.
    pub execution: u32,
    /// Its index among the attempts of its execution, from 0.
    pub retry: u32,
    /// Its status.
    pub status: AttemptStatus,
    /// Its duration in milliseconds, if the report has it.
    pub duration_ms: Option<u64>,
    /// The browser or Playwright project that it ran in.
    pub browser_name: Option<String>,
    /// Its errors, the first error first.
    pub errors: Vec<ErrorDetail>,
    /// Why it was skipped, if the report says so.
    pub skip_reason: Option<String>,
    /// The shard that ran it; none in a run without shards.
    pub shard: Option<ShardTag>,
    /// What the report has beside its errors.
    pub output: AttemptOutput,
}

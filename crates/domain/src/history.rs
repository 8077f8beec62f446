//! A test's history: its results in the runs of a period.

use std::{collections::HashSet, sync::Arc};

use serde::Serialize;

use crate::{
    attempt::{AttemptStatus, ErrorDetail},
    id::RunId,
    period::Period,
    revision::{RevisionOrigin, Revisions},
    run::RunTag,
    signature::TestSignature,
    test::TestName,
    timestamp::Timestamp,
    verdict::StoredVerdict,
};

/// A test's occurrences in a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestHistory {
    /// The test.
    pub test: TestName,
    /// The name in the newest report, if the stored one lacks the parts that change from run to run.
    pub written_name: Option<String>,
    /// The stable branch.
    pub stable_branch: String,
    /// One entry per run, newest first by (startedAt, runNumber).
    pub occurrences: Vec<Occurrence>,
    /// The occurrences still to be read, if there are too many for one read.
    pub rest: Option<HistoryRest>,
}

/// The older occurrences of a test that are still to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRest {
    /// The test's number.
    pub test: i32,
    /// The numbers under which its results may be stored: its own, and those of its former names.
    pub stored_as: Vec<i32>,
    /// The period.
    pub period: Period,
    /// The revisions by the engine's rules, read once.
    pub revisions: Arc<Revisions>,
    /// Start and number of the last run that was read.
    pub after: (Timestamp, i32),
    /// The runs that were read. Each may have a different start by now.
    pub runs: HashSet<i32>,
}

/// The result of a test in one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Occurrence {
    /// The run.
    pub run_id: RunId,
    /// Its number.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub run_number: i32,
    /// Its branch.
    pub branch: Option<String>,
    /// Its tested revision.
    pub tested_revision: Option<String>,
    /// Its commit.
    pub commit_sha: Option<String>,
    /// Its suite. Suites separate variants.
    pub suite: Option<String>,
    /// Its start.
    pub started_at: Timestamp,
    /// The final attempt's status.
    pub status: AttemptStatus,
    /// The final attempt's duration in milliseconds.
    pub duration_ms: Option<u64>,
    /// The largest number of attempts of one execution: 1 without a retry.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub attempts: u32,
    /// Milliseconds of the attempts before the final one of each execution.
    pub wasted_ms: u64,
    /// Milliseconds of the attempts that failed or timed out; none if no attempt reported a duration.
    pub lost_ms: Option<u64>,
    /// Whether any attempt failed or timed out.
    pub any_failed_attempt: bool,
    /// The branch and time under which the engine counts the run's revision; none outside of its window, and none for
    /// a run that does not count in verdicts.
    #[serde(flatten)]
    pub revision: RevisionOrigin,
}

/// A test in short, over a period and as of one state of the project.
#[derive(Debug, Clone, PartialEq)]
pub struct TestSummary {
    /// The test.
    pub test: TestName,
    /// The stored verdict; none before the first one.
    pub verdict: Option<StoredVerdict>,
    /// The outcomes in the newest runs of the period, at most a thousand, newest first.
    pub outcomes: Vec<RunOutcome>,
    /// The oldest run of the period with a failed attempt, and its start.
    pub first_failure: Option<(RunTag, Timestamp)>,
    /// The newest runs of the period with a failed attempt, newest first.
    pub last_failures: Vec<FailedOccurrence>,
    /// Its most frequent error signatures in the period, at most 20.
    pub signatures: Vec<TestSignature>,
}

/// The outcome of a test in a run, in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOutcome {
    /// The run's branch.
    pub branch: Option<String>,
    /// The final attempt's status.
    pub status: AttemptStatus,
    /// Whether any attempt failed or timed out.
    pub any_failed_attempt: bool,
}

/// A run in which an attempt of a test failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedOccurrence {
    /// The run.
    pub run: RunTag,
    /// Its start.
    pub started_at: Timestamp,
    /// The final attempt's status.
    pub status: AttemptStatus,
    /// The errors of the last failed attempt.
    pub errors: Vec<ErrorDetail>,
}

//! A test's history: how it ended in each run of a period.

use serde::Serialize;

use crate::{attempt::AttemptStatus, id::RunId, test::TestName, timestamp::Timestamp};

/// A test's occurrences in a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestHistory {
    /// The test.
    pub test: TestName,
    /// One a run, newest first by (startedAt, runNumber).
    pub occurrences: Vec<Occurrence>,
}

/// How a test ended in one run.
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
    /// Its suite, which tells variants apart.
    pub suite: Option<String>,
    /// When it started.
    pub started_at: Timestamp,
    /// The final attempt's status.
    pub status: AttemptStatus,
    /// The final attempt's duration in milliseconds.
    pub duration_ms: Option<u64>,
    /// How many attempts there were.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub attempts: u32,
    /// Milliseconds of the attempts before the final one.
    pub wasted_ms: u64,
    /// Whether any attempt failed or timed out.
    pub any_failed_attempt: bool,
}

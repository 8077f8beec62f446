//! The usual durations of tests, as the read API writes them.

use assay_domain::timestamp::Timestamp;
use serde::Deserialize;

/// The usual durations of a project's tests: the answer of `GET …/timings`, as far as a plan needs it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timings {
    /// The stable branch.
    pub stable_branch: String,
    /// The runs that the durations are of, newest first.
    pub runs: Vec<TimedRun>,
    /// The tests.
    pub tests: Vec<Timing>,
}

/// A run that durations are of.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimedRun {
    /// Its start.
    pub started_at: Timestamp,
}

/// The usual duration of a test.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timing {
    /// Its stored name.
    pub test_name: String,
    /// Its stored file.
    pub file_path: Option<String>,
    /// In milliseconds.
    pub duration_ms: u64,
}

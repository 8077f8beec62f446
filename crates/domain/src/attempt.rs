//! Attempts of a test in a run, and their errors.

use serde::{Deserialize, Serialize};

use crate::{id::RunId, timestamp::Timestamp, vocabulary::vocabulary};

vocabulary!(
    /// The status of an attempt. A test's status in a run is that of its final attempt.
    AttemptStatus {
        /// It passed, or failed as it was expected to.
        Passed = "passed",
        /// It failed, or passed although it was expected to fail.
        Failed = "failed",
        /// It ran out of time: a failure.
        TimedOut = "timedOut",
        /// It did not run.
        Skipped = "skipped",
        /// It was interrupted from outside: no evidence for or against the test.
        Interrupted = "interrupted",
    }
);

impl AttemptStatus {
    /// Whether this counts as a failure: failed or timed out.
    pub const fn is_failure(self) -> bool {
        match self {
            Self::Failed | Self::TimedOut => true,
            Self::Passed | Self::Skipped | Self::Interrupted => false,
        }
    }

    /// Orders executions by the severity of their final status. The execution with the highest severity comes last, so
    /// that it has the test's final attempt.
    pub const fn severity(self) -> u8 {
        match self {
            Self::Skipped => 0,
            Self::Interrupted => 1,
            Self::Passed => 2,
            Self::Failed | Self::TimedOut => 3,
        }
    }

    /// Whether this counts as skipped: skipped or interrupted.
    pub const fn is_skip(self) -> bool {
        match self {
            Self::Skipped | Self::Interrupted => true,
            Self::Passed | Self::Failed | Self::TimedOut => false,
        }
    }
}

/// One error of an attempt. Text without ANSI codes or control characters other than line breaks and tabs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorDetail {
    /// The error message of the framework.
    pub message: Option<String>,
    /// The stack trace.
    pub stack: Option<String>,
    /// The code frame.
    pub snippet: Option<String>,
    /// Where it was raised.
    pub location: Option<Location>,
}

impl ErrorDetail {
    /// Whether the error has any text to recognize it by.
    pub fn has_text(&self) -> bool {
        [&self.message, &self.stack]
            .into_iter()
            .flatten()
            .any(|text| !text.trim().is_empty())
    }
}

/// A place in a source file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
// Generated clients for browsers already have a `Location`.
#[cfg_attr(feature = "openapi", schema(as = SourceLocation))]
pub struct Location {
    /// The file, relative to the checkout if it is known.
    pub file: String,
    /// The line, from 1.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub line: Option<u32>,
    /// The column, from 1.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub column: Option<u32>,
}

/// One attempt of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Its status.
    pub status: AttemptStatus,
    /// Its duration in milliseconds, if the report has it.
    pub duration_ms: Option<u64>,
    /// Its start, if the report has it.
    pub started_at: Option<Timestamp>,
    /// The browser or Playwright project that it ran in.
    pub browser: Option<String>,
    /// Its errors, the first error first.
    pub errors: Vec<ErrorDetail>,
    /// Why it was skipped, if the report says so.
    pub skip_reason: Option<String>,
    /// What the report has beside the errors of a failed attempt, if anything.
    pub output: Option<Box<AttemptOutput>>,
}

/// What a report has beside the errors of a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AttemptOutput {
    /// The files that the report names.
    pub attachments: Vec<Attachment>,
    /// What the test printed; of a long text the end.
    pub console: Option<String>,
    /// The most milliseconds that the attempt may take, if the report has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// A file that a report names, such as a screenshot or a trace. Its content is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Attachment {
    /// Its name, such as `screenshot`.
    pub name: String,
    /// Its media type, if the report has it.
    pub kind: Option<String>,
    /// Its path, relative to the checkout if it is known; null if the report does not say where it is.
    pub path: Option<String>,
    /// Its address of http or https, from the report or by the upload's `artifactsUrl`.
    pub url: Option<String>,
}

impl Attempt {
    /// The attempt with the reason why it was skipped. Ignored if it was not skipped.
    #[must_use]
    pub fn skipped_because(mut self, reason: Option<String>) -> Self {
        if self.status == AttemptStatus::Skipped {
            self.skip_reason = reason;
        }
        self
    }
}

/// The shard that ran a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ShardTag {
    /// Its index, from 1.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub index: u32,
    /// Its id.
    pub run_id: RunId,
}

//! Jest's and Vitest's JSON, every field optional.

use serde::Deserialize;

use crate::json;

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Run {
    pub(super) start_time: json::Number,
    pub(super) success: json::Flag,
    pub(super) was_interrupted: json::Flag,
    pub(super) num_failed_tests: json::Number,
    /// The files that did not load.
    pub(super) num_runtime_error_test_suites: json::Number,
    pub(super) test_results: json::List<TestFile>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct TestFile {
    // Other names come from Jest's in-memory result, which some custom reporters write unchanged.
    #[serde(alias = "testFilePath")]
    pub(super) name: json::Text,
    pub(super) status: json::Text,
    #[serde(alias = "failureMessage")]
    pub(super) message: json::Text,
    pub(super) start_time: json::Number,
    pub(super) end_time: json::Number,
    #[serde(alias = "testResults")]
    pub(super) assertion_results: json::List<Assertion>,
}

/// A test, which both tools call an assertion here.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Assertion {
    pub(super) ancestor_titles: json::Texts,
    pub(super) title: json::Text,
    pub(super) status: json::Text,
    pub(super) duration: json::Number,
    pub(super) start_at: json::Number,
    pub(super) failure_messages: json::Texts,
    /// The number of attempts, including the final one.
    pub(super) invocations: json::Number,
    /// The stack of each earlier attempt.
    pub(super) retry_reasons: json::Texts,
    /// The same text as printed, with a code frame.
    pub(super) retry_messages: json::Texts,
}

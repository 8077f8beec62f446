//! Jest's and Vitest's JSON, every field optional.

use serde::Deserialize;

use crate::json;

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Run {
    #[serde(deserialize_with = "json::number")]
    pub(super) start_time: Option<f64>,
    #[serde(deserialize_with = "json::flag")]
    pub(super) success: Option<bool>,
    #[serde(deserialize_with = "json::flag")]
    pub(super) was_interrupted: Option<bool>,
    #[serde(deserialize_with = "json::number")]
    pub(super) num_failed_tests: Option<f64>,
    /// The files that did not load.
    #[serde(deserialize_with = "json::number")]
    pub(super) num_runtime_error_test_suites: Option<f64>,
    #[serde(deserialize_with = "json::list")]
    pub(super) test_results: Vec<TestFile>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct TestFile {
    // Other names come from Jest's in-memory result, which some custom reporters write unchanged.
    #[serde(alias = "testFilePath", deserialize_with = "json::text")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) status: Option<String>,
    #[serde(alias = "failureMessage", deserialize_with = "json::text")]
    pub(super) message: Option<String>,
    #[serde(deserialize_with = "json::number")]
    pub(super) start_time: Option<f64>,
    #[serde(deserialize_with = "json::number")]
    pub(super) end_time: Option<f64>,
    #[serde(alias = "testResults", deserialize_with = "json::list")]
    pub(super) assertion_results: Vec<Assertion>,
}

/// A test, which both tools call an assertion here.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Assertion {
    #[serde(deserialize_with = "json::texts")]
    pub(super) ancestor_titles: Vec<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) title: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "json::number")]
    pub(super) duration: Option<f64>,
    #[serde(deserialize_with = "json::number")]
    pub(super) start_at: Option<f64>,
    #[serde(deserialize_with = "json::texts")]
    pub(super) failure_messages: Vec<String>,
    /// The number of attempts, including the final one.
    #[serde(deserialize_with = "json::number")]
    pub(super) invocations: Option<f64>,
    /// The stack of each earlier attempt.
    #[serde(deserialize_with = "json::texts")]
    pub(super) retry_reasons: Vec<String>,
    /// The same text as printed, with a code frame.
    #[serde(deserialize_with = "json::texts")]
    pub(super) retry_messages: Vec<String>,
}

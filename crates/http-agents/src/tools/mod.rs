//! The list of tools with their descriptions. Each tool has its own file.

mod call;
mod errors;
mod explain_failures;
mod explain_test;
mod fix;
mod flaky;
mod project;
mod runs;
mod selection;
mod show_failure;
mod test_list;

use serde_json::{Map, Value, json};

pub(crate) use self::call::Call;
use self::call::Properties;
use crate::{budget::Draft, error::ToolError};

/// One tool.
pub(crate) struct ToolEntry {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    properties: fn() -> Properties,
    required: &'static [&'static str],
    answer: fn(&Call<'_>) -> Result<Draft, ToolError>,
}

/// All tools in the order of the list.
pub(crate) const TOOLS: [ToolEntry; 9] = [
    ToolEntry {
        name: "explain_failures",
        description: "Explains the failures of a CI run, or of a run on your machine: for each failed test the probable \
            cause (flake, environment, broken_before, earlier_on_branch, this_change, unclear), with `mine`: the \
            probability that this branch broke it. `gate` is pass, rerun or block for all of them.",
        properties: explain_failures::properties,
        required: &[],
        answer: explain_failures::answer,
    },
    ToolEntry {
        name: "explain_test",
        description: "Is this test flaky, broken or fine? Its verdict with the evidence, its outcomes by branch (newest \
            last: P passed, R passed on retry, F failed, S skipped), its error signatures and its last failures.",
        properties: explain_test::properties,
        required: &["test"],
        answer: explain_test::answer,
    },
    ToolEntry {
        name: "show_failure",
        description: "The attempts of one test in one run, with messages, code frames and stacks, and a prompt that asks \
            for the root cause.",
        properties: show_failure::properties,
        required: &["run", "test"],
        answer: show_failure::answer,
    },
    ToolEntry {
        name: "list_flaky",
        description: "The flaky and broken tests of the last 14 days, ten a page, each with the reason.",
        properties: flaky::properties,
        required: &[],
        answer: flaky::answer,
    },
    ToolEntry {
        name: "next_flake",
        description: "The flaky test to fix next: the one that costs the most time, and what proves a fix.",
        properties: fix::next_properties,
        required: &[],
        answer: fix::next,
    },
    ToolEntry {
        name: "check_fix",
        description: "Is a flaky test fixed? What proves it, the command for that, and what it showed so far.",
        properties: fix::check_properties,
        required: &["test"],
        answer: fix::check,
    },
    ToolEntry {
        name: "list_tests",
        description: "Every test of the last 14 days with its verdict and figures, ten a page, the worst first.",
        properties: test_list::properties,
        required: &[],
        answer: test_list::answer,
    },
    ToolEntry {
        name: "list_errors",
        description: "The errors of a period, grouped by signature, ten a page. With a fingerprint: the tests and the \
            newest runs that have this error.",
        properties: errors::properties,
        required: &[],
        answer: errors::answer,
    },
    ToolEntry {
        name: "list_runs",
        description: "The newest CI runs of a project. Without a project, if the key has access to several: the \
            projects.",
        properties: runs::properties,
        required: &[],
        answer: runs::answer,
    },
];

impl ToolEntry {
    /// The JSON schema of the arguments.
    pub(crate) fn schema(&self) -> Map<String, Value> {
        let fields = [
            ("type", json!("object")),
            ("properties", Value::Object(self.properties())),
            ("required", json!(self.required)),
            ("additionalProperties", json!(false)),
        ];
        fields
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect()
    }

    /// The properties of the schema: the tool's own and the shared ones.
    pub(crate) fn properties(&self) -> Map<String, Value> {
        let shared = [
            (
                "project",
                json!({"type": "string", "description": "id or name; needed if the key has access to several"}),
            ),
            (
                "maxBytes",
                json!({"type": "integer", "minimum": 1_000, "maximum": 32_000, "default": 8_000}),
            ),
            ("skip", json!({"type": "integer", "minimum": 0})),
        ];
        let own = (self.properties)();
        own.into_iter()
            .chain(shared)
            .map(|(name, property)| (name.to_owned(), property))
            .collect()
    }

    /// The tool's answer.
    pub(crate) fn answer(&self, call: &Call<'_>) -> Result<Draft, ToolError> {
        (self.answer)(call)
    }
}

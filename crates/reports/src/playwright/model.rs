//! The fields of Playwright's JSON report, all optional: 1.20 lacks half of them.

use serde::Deserialize;

use super::git::Metadata;
use crate::{
    json::{self, RareList},
    text,
};

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct File {
    pub(super) config: Option<Config>,
    #[serde(deserialize_with = "json::list")]
    pub(super) suites: Vec<Suite>,
    #[serde(deserialize_with = "json::list")]
    pub(super) errors: Vec<Error>,
    pub(super) stats: Option<Stats>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Config {
    #[serde(deserialize_with = "json::text")]
    pub(super) root_dir: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) config_file: Option<String>,
    pub(super) shard: Option<Shard>,
    /// Metadata of the user and of Playwright.
    #[serde(deserialize_with = "json::object")]
    pub(super) metadata: Metadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Shard {
    #[serde(deserialize_with = "json::positive_integer")]
    pub(super) current: Option<u32>,
    #[serde(deserialize_with = "json::positive_integer")]
    pub(super) total: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Stats {
    #[serde(deserialize_with = "json::text")]
    pub(super) start_time: Option<String>,
    #[serde(deserialize_with = "json::number")]
    pub(super) duration: Option<f64>,
    /// The number of tests that failed.
    #[serde(deserialize_with = "json::number")]
    pub(super) unexpected: Option<f64>,
}

/// A file, or a `describe` in it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Suite {
    #[serde(deserialize_with = "json::text")]
    pub(super) title: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) file: Option<String>,
    #[serde(deserialize_with = "json::list")]
    pub(super) specs: Vec<Spec>,
    #[serde(deserialize_with = "json::list")]
    pub(super) suites: Vec<Suite>,
}

/// A test in the source.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Spec {
    #[serde(deserialize_with = "json::text")]
    pub(super) title: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) file: Option<String>,
    #[serde(deserialize_with = "json::list")]
    pub(super) tests: Vec<Test>,
}

/// An execution of a test in one project; `--repeat-each` makes several.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Test {
    #[serde(deserialize_with = "json::text")]
    pub(super) project_name: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) expected_status: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "json::list")]
    pub(super) annotations: Vec<Annotation>,
    #[serde(deserialize_with = "json::list")]
    pub(super) results: Vec<TestResult>,
}

impl Test {
    /// The reason that the test gives to `test.skip()` or `test.fixme()`.
    pub(super) fn skip_reason(&self) -> Option<String> {
        let skips = self
            .annotations
            .iter()
            .filter(|annotation| matches!(annotation.kind.as_deref(), Some("skip" | "fixme")));
        skips
            .filter_map(|annotation| annotation.description.as_deref())
            .find_map(text::skip_reason)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Annotation {
    #[serde(rename = "type", deserialize_with = "json::text")]
    pub(super) kind: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) description: Option<String>,
}

/// An attempt.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct TestResult {
    /// Only in a blob report: connects the events of an attempt's beginning and end.
    #[serde(deserialize_with = "json::text")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "json::number")]
    pub(super) duration: Option<f64>,
    #[serde(deserialize_with = "json::text")]
    pub(super) start_time: Option<String>,
    /// The first error, in parts.
    pub(super) error: Option<Error>,
    /// All errors, each with message, code frame and stack in one text.
    #[serde(deserialize_with = "json::list")]
    pub(super) errors: Vec<Error>,
    pub(super) error_location: Option<SourceLocation>,
    #[serde(deserialize_with = "json::rare_list")]
    pub(super) attachments: RareList<Attachment>,
    #[serde(deserialize_with = "json::rare_list")]
    pub(super) stdout: RareList<Printed>,
    #[serde(deserialize_with = "json::rare_list")]
    pub(super) stderr: RareList<Printed>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Attachment {
    #[serde(deserialize_with = "json::text")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) content_type: Option<String>,
    /// None if the report holds the content itself.
    #[serde(deserialize_with = "json::text")]
    pub(super) path: Option<String>,
}

/// A piece of the output of a test. Bytes that are no text are left out.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Printed {
    #[serde(deserialize_with = "json::text")]
    pub(super) text: Option<String>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(super) struct Error {
    #[serde(deserialize_with = "json::text")]
    pub(super) message: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) stack: Option<String>,
    /// The thrown value if it is not an `Error`.
    #[serde(deserialize_with = "json::text")]
    pub(super) value: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) snippet: Option<String>,
    pub(super) location: Option<SourceLocation>,
    pub(super) cause: Option<Box<Error>>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(super) struct SourceLocation {
    #[serde(deserialize_with = "json::text")]
    pub(super) file: Option<String>,
    #[serde(deserialize_with = "json::positive_integer")]
    pub(super) line: Option<u32>,
    #[serde(deserialize_with = "json::positive_integer")]
    pub(super) column: Option<u32>,
}

//! The fields of Playwright's JSON report, all optional: 1.20 lacks half of them.

use serde::Deserialize;

use super::git::Metadata;
use crate::{json, text};

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct File {
    pub(super) config: Option<Config>,
    pub(super) suites: json::List<Suite>,
    pub(super) errors: json::List<Error>,
    pub(super) stats: Option<Stats>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Config {
    pub(super) root_dir: json::Text,
    pub(super) config_file: json::Text,
    pub(super) shard: Option<Shard>,
    pub(super) fail_on_flaky_tests: json::Flag,
    /// Metadata of the user and of Playwright.
    pub(super) metadata: json::Object<Metadata>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Shard {
    pub(super) current: json::Positive,
    pub(super) total: json::Positive,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Stats {
    pub(super) start_time: json::Text,
    pub(super) duration: json::Number,
    /// The number of tests that failed.
    pub(super) unexpected: json::Number,
    /// How the run ended; of a blob report only.
    pub(super) status: json::Text,
}

/// A file, or a `describe` in it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Suite {
    pub(super) title: json::Text,
    pub(super) file: json::Text,
    pub(super) specs: json::List<Spec>,
    pub(super) suites: json::List<Suite>,
}

/// A test in the source.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Spec {
    pub(super) title: json::Text,
    pub(super) file: json::Text,
    pub(super) tests: json::List<Test>,
}

/// An execution of a test in one project; `--repeat-each` makes several.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Test {
    pub(super) project_name: json::Text,
    pub(super) expected_status: json::Text,
    /// The most milliseconds that an attempt may take; 0 without a limit.
    pub(super) timeout: json::Number,
    pub(super) status: json::Text,
    pub(super) annotations: json::List<Annotation>,
    pub(super) results: json::List<TestResult>,
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
    #[serde(rename = "type")]
    pub(super) kind: json::Text,
    pub(super) description: json::Text,
}

/// An attempt.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct TestResult {
    /// Only in a blob report: connects the events of an attempt's beginning and end.
    pub(super) id: json::Text,
    pub(super) status: json::Text,
    pub(super) duration: json::Number,
    pub(super) start_time: json::Text,
    /// The first error, in parts.
    pub(super) error: Option<Error>,
    /// All errors, each with message, code frame and stack in one text.
    pub(super) errors: json::List<Error>,
    pub(super) error_location: Option<SourceLocation>,
    pub(super) attachments: json::RareList<Attachment>,
    pub(super) stdout: json::RareList<Printed>,
    pub(super) stderr: json::RareList<Printed>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Attachment {
    pub(super) name: json::Text,
    pub(super) content_type: json::Text,
    /// None if the report holds the content itself.
    pub(super) path: json::Text,
}

/// A piece of the output of a test. Bytes that are no text are left out.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Printed {
    pub(super) text: json::Text,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(super) struct Error {
    pub(super) message: json::Text,
    pub(super) stack: json::Text,
    /// The thrown value if it is not an `Error`.
    pub(super) value: json::Text,
    pub(super) snippet: json::Text,
    pub(super) location: Option<SourceLocation>,
    pub(super) cause: Option<Box<Error>>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(super) struct SourceLocation {
    pub(super) file: json::Text,
    pub(super) line: json::Positive,
    pub(super) column: json::Positive,
}

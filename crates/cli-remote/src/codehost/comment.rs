//! The comment as the server composes it.

use serde::Deserialize;
use serde_json::Value;

use crate::codehost::post::Outcome;

/// What the server composed for a commit. Fields that this program does not need are ignored.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Comment {
    /// Whether the project's settings allow comments.
    pub enabled: bool,
    /// The tested revision.
    pub revision: Option<String>,
    /// The time of the text in milliseconds since 1970.
    pub state: i64,
    /// Whether every run passed and is complete.
    pub clean: bool,
    /// `pass`, `rerun` or `block`.
    pub action: String,
    /// The sums over the runs of the commit.
    pub counts: Counts,
    /// One sentence for a log.
    pub headline: String,
    /// The page of the commit.
    pub url: Option<String>,
    /// The beginning of the hidden first line.
    pub marker: String,
    /// The text with its hidden first line.
    pub markdown: String,
    /// Failures at lines of files.
    #[serde(default)]
    pub annotations: Vec<Annotation>,
}

/// The numbers of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Counts {
    /// Tests.
    pub total: u32,
    /// Those that failed.
    pub failed: u32,
    /// Those that were skipped.
    pub skipped: u32,
    /// Those that passed on retry.
    pub recovered: u32,
}

/// A failure at a line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotation {
    /// The run of the failure.
    pub run_id: String,
    /// The file, if it is known.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The test's name.
    pub title: String,
    /// The explanation and the error.
    pub message: String,
    /// Whether this branch may have caused it.
    pub is_mine: bool,
}

impl Comment {
    /// Reads the server's answer.
    pub fn of_answer(answer: &Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(answer)
    }

    /// Whether another text says the same, whatever the state in its first line.
    pub(crate) fn says_the_same_as(&self, body: &str) -> bool {
        text(&self.markdown) == text(body)
    }

    /// Why an earlier text stays: it says the same, or it has a newer state. None if it is to be replaced.
    pub(crate) fn reason_to_keep(&self, body: &str) -> Option<Outcome> {
        if self.says_the_same_as(body) {
            return Some(Outcome::Unchanged);
        }
        self.is_older_than(body).then_some(Outcome::Newer)
    }

    /// Whether another text has a newer state.
    pub(crate) fn is_older_than(&self, body: &str) -> bool {
        self.state_of(body).is_some_and(|state| state > self.state)
    }

    /// The id of the project, as the hidden first line has it.
    pub(crate) fn project(&self) -> &str {
        let id = self.marker.split_once("project=").map(|(_, id)| id.trim());
        id.unwrap_or_default()
    }

    /// Whether the change probably broke a test now, and did not when `body` was written.
    pub(crate) fn begins_to_block(&self, body: &str) -> bool {
        let first = body.lines().next().unwrap_or_default();
        self.action == "block" && !first.split_whitespace().any(|word| word == "action=block")
    }

    /// The state in the first line of a comment of this project; none for another comment.
    pub(crate) fn state_of(&self, body: &str) -> Option<i64> {
        let first = body.lines().next()?.strip_prefix(&*self.marker)?;
        let mut words = first.split_whitespace();
        words.find_map(|word| word.strip_prefix("state="))?.parse().ok()
    }
}

/// The lines after the first, with the line ends that a code host may have changed.
fn text(body: &str) -> String {
    let body = body.replace("\r\n", "\n");
    let (_, text) = body.split_once('\n').unwrap_or_default();
    text.trim_end().to_owned()
}

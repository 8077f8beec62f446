//! The content of a message, independent of the service that shows it. Every text is plain, on one line and bounded.

use assay_answers::markdown::one_line;
use assay_domain::settings::ChatEvent;
use serde::{Deserialize, Serialize};

/// Longest name of a test in a message, in characters.
pub(crate) const NAME_CHARS: usize = 120;
/// Longest sentence and error in a message, in characters.
pub(crate) const SENTENCE_CHARS: usize = 200;

/// The mood of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// Something fails.
    Bad,
    /// Something is good again.
    Good,
    /// Neither.
    Neutral,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Content {
    /// The project's id.
    pub project_id: String,
    /// The project's name.
    pub project: String,
    /// The name of its organization.
    pub organization: String,
    /// One sentence without a full stop.
    pub headline: String,
    /// The mood.
    pub tone: Tone,
    /// The events that it is about.
    pub events: Vec<ChatEvent>,
    /// The changes by their causes, the largest first.
    pub groups: Vec<Group>,
    /// The number of further groups.
    pub more: usize,
    /// The page to open; none without a public address.
    pub url: Option<String>,
}

/// Changes with one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// One sentence without a full stop.
    pub sentence: String,
    /// The title of the error.
    pub error: Option<String>,
    /// The names of the tests with the most evidence.
    pub tests: Vec<String>,
    /// The number of further tests.
    pub more: usize,
}

/// A text of a report on one line, cut to a number of characters.
pub(crate) fn bounded(text: &str, chars: usize) -> String {
    let line = one_line(text);
    match line.chars().count() > chars {
        true => line.chars().take(chars.saturating_sub(1)).chain(['…']).collect(),
        false => line,
    }
}

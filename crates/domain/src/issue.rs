//! Issues of a code host.

use serde::Deserialize;

use crate::vocabulary::vocabulary;

vocabulary!(
    /// What is done with an issue, the most urgent first.
    IssueAction {
        /// A comment says that the state changed, then the text is brought up to date.
        Comment = "comment",
        /// The same, and it is closed.
        Close = "close",
        /// It is opened.
        Create = "create",
        /// Its text is brought up to date.
        Edit = "edit",
    }
);

/// An issue as GitHub or GitLab answers it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Issue {
    /// Its number in the repository.
    #[serde(alias = "iid")]
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its text, which a person may have deleted.
    #[serde(alias = "description")]
    pub body: Option<String>,
    /// `open`, `opened` or `closed`.
    pub state: String,
}

impl Issue {
    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.state.starts_with("open")
    }

    /// Its text; empty without one.
    pub fn text(&self) -> &str {
        self.body.as_deref().unwrap_or_default()
    }
}

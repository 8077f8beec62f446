//! The part of an issue's text that is written here. All other text is a person's, and stays.

use serde::{Deserialize, Serialize};

use super::problem::{Problem, State, Subject};

/// The beginning and the end of the first line, with a section as JSON between them.
const BEGIN: (&str, &str) = ("<!-- assay:begin ", " -->");
/// The last line. Names are on one line each, so none begins with it.
const END: &str = "\n<!-- assay:end -->";

/// What the section of an issue's text remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// What the issue is about.
    pub(super) subject: Subject,
    /// The state that the newest comment has, or the issue began with.
    pub(super) state: State,
    /// How often the state changed.
    edges: u32,
}

impl Section {
    /// The section of a problem's issue in this state, after its earlier one.
    pub(super) fn of(problem: &Problem, state: State, earlier: Option<&Self>) -> Self {
        let edges = earlier.map(|earlier| earlier.edges.saturating_add(u32::from(state != earlier.state)));
        Self {
            subject: problem.subject.clone(),
            state,
            edges: edges.unwrap_or(0),
        }
    }

    /// The section of an issue's text.
    pub(super) fn find(body: &str) -> Option<Self> {
        let (_, rest) = body.split_once(BEGIN.0)?;
        let (json, _) = rest.split_once(BEGIN.1)?;
        serde_json::from_str(json).ok()
    }

    /// The hidden line of the comment about the last change of state. It shows that the comment was written. It has the state,
    /// because a call that ended after the comment may be followed by another change.
    pub fn mark(&self) -> String {
        format!("<!-- assay:edge {} {:?} -->", self.edges, self.state)
    }

    /// The text of an issue with this section in place of its own. Text before and after it is kept.
    pub fn written_into(&self, body: &str, problem: &Problem) -> String {
        // Within JSON, these characters are in texts only. So no name ends the hidden line, or mentions somebody.
        let json = serde_json::to_string(self).unwrap_or_default();
        let json = ['-', '<', '>', '@'].into_iter().fold(json, |json, char| {
            json.replace(char, &format!("\\u{:04x}", u32::from(char)))
        });
        let (before, rest) = body.split_once(BEGIN.0).unwrap_or((body, ""));
        // If a person removed its end, it is the hidden line only.
        let after = [END, BEGIN.1].iter().find_map(|end| rest.split_once(end));
        let after = after.map_or("", |(_, after)| after);
        format!(
            "{before}{}{json}{}\n{}{END}{after}",
            BEGIN.0, BEGIN.1, problem.text
        )
    }
}

//! What a crate says of its routes and errors.

use serde_json::Value;

use crate::schemas::Register;

/// The documentation of a route. Its errors follow from its path and parameters.
pub struct Operation {
    pub id: &'static str,
    pub tag: &'static str,
    /// The lines of its doc comment: the summary, the description and the cost, with an empty line between them.
    pub docs: &'static [&'static str],
    /// Names of the parameter components without those of the path, in the order of their checks.
    pub query: &'static [&'static str],
    /// Whether answers have an `ETag`.
    pub tagged: bool,
    pub answer: Register,
    /// A real answer.
    pub example: &'static str,
}

impl Operation {
    /// The summary, the description with the cost, and the cost without its reason.
    pub(crate) fn texts(&self) -> (String, String, &str) {
        let text = self.docs.iter().map(|line| line.trim());
        let text = text.map(|line| if line.is_empty() { "\n\n" } else { line });
        let text = text.collect::<Vec<_>>().join(" ").replace(" \n\n ", "\n\n");
        let (summary, description) = text.split_once("\n\n").unwrap();
        let cost = self.docs.last().unwrap().trim().strip_prefix("Cost: ").unwrap();
        let cost = cost.split(['(', '.']).next().unwrap().trim_end();
        (summary.to_owned(), description.to_owned(), cost)
    }
}

/// An error that a route may answer.
pub struct Failure {
    pub status: u16,
    pub code: &'static str,
    /// An answer with it.
    pub body: Value,
    pub when: &'static str,
    pub action: &'static str,
}

/// The description of each tag.
pub(crate) const TAGS: [(&str, &str); 5] = [
    (
        "Projects",
        "The projects of the key's organization and their configuration.",
    ),
    (
        "Runs",
        "Runs, their tests and their attempts. All shards of one CI build and suite are one run.",
    ),
    ("Tests", "One test over time, and the stored verdict on it."),
    (
        "Errors",
        "Error signatures: failures with the same fingerprint of their error text.",
    ),
    (
        "Flakiness",
        "The engine's live verdicts over its fixed window of 14 days.",
    ),
];

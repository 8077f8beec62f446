//! The documentation of a route in the document, without its path.

use super::schemas::Register;

/// The documentation of a route. Its errors follow from its path and parameters.
pub(crate) struct Operation {
    pub(crate) id: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) cost: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) description: &'static str,
    /// Names of the parameter components without those of the path, in the order of their checks.
    pub(crate) query: &'static [&'static str],
    /// Whether answers have an `ETag`.
    pub(crate) tagged: bool,
    pub(crate) answer: Register,
    /// A real answer.
    pub(crate) example: &'static str,
}

/// The description of each tag.
pub(super) const TAGS: [(&str, &str); 5] = [
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

//! The branches of a project.

/// The branches that a project has visible runs on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Branches {
    /// Their names, in the order of the API.
    pub names: Vec<String>,
    /// Whether there are more branches. The names are then those with the newest runs.
    pub truncated: bool,
}

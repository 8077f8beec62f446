//! Release branches: stable branches beside the main one. Each has a history and a state of its own.

use std::str::FromStr;

use serde::Serialize;

use crate::{project::NAME_CHARS, vocabulary::vocabulary};

vocabulary!(
    /// Whether a release may be cut from a branch.
    ReleaseAnswer {
        /// Every suite ran completely there, and no test fails there that passes on the stable branch.
        Yes = "yes",
        /// A test fails there and not on the stable branch.
        No = "no",
        /// A run is missing or incomplete, or failed outside of its tests.
        Unknown = "unknown",
    }
);

/// The name of a release branch, or a pattern of several: one `*` stands for any text, as in `release/*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct BranchPattern(String);

/// The error of text that is no branch pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a branch, or a pattern with one * after its first character, such as release/*")]
pub struct BadBranchPattern;

impl FromStr for BranchPattern {
    type Err = BadBranchPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_pattern = !text.is_empty()
            && text.chars().count() <= NAME_CHARS
            && !text.contains(|c: char| c.is_control() || c.is_whitespace())
            && !text.starts_with('*')
            && text.matches('*').count() <= 1;
        is_pattern.then(|| Self(text.to_owned())).ok_or(BadBranchPattern)
    }
}

impl BranchPattern {
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn matches(&self, branch: &str) -> bool {
        match self.0.split_once('*') {
            None => branch == self.0,
            // The `*` stands for one character at least.
            Some((start, end)) => {
                branch.len() >= self.0.len() && branch.starts_with(start) && branch.ends_with(end)
            }
        }
    }
}

/// The release branch to which a run belongs: its own branch, or the branch into which its change is merged. `None` for a
/// run of the main stable branch, and for a change that goes there.
pub fn release_branch_of<'b>(
    patterns: &[BranchPattern],
    branch: Option<&'b str>,
    base: Option<&'b str>,
) -> Option<&'b str> {
    let is_release = |name: &&str| patterns.iter().any(|pattern| pattern.matches(name));
    branch.filter(is_release).or_else(|| base.filter(is_release))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_belongs_to_its_own_release_branch_or_to_that_of_its_change() {
        let patterns = ["release/*", "lts"].map(|pattern| pattern.parse().unwrap());
        for (branch, base, expected) in [
            (Some("release/1.2"), None, Some("release/1.2")),
            (Some("release/1.2"), Some("main"), Some("release/1.2")),
            (Some("fix"), Some("lts"), Some("lts")),
            (Some("fix"), Some("main"), None),
            (Some("main"), None, None),
            (Some("release/"), None, None),
            (Some("ada:release/1.2"), None, None),
            (Some("lts2"), None, None),
            (None, None, None),
        ] {
            assert_eq!(release_branch_of(&patterns, branch, base), expected, "{branch:?}");
        }
        for bad in ["", "*", "*/1.2", "a*b*", "a b"] {
            assert_eq!(bad.parse::<BranchPattern>(), Err(BadBranchPattern), "{bad}");
        }
    }
}

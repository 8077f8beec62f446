//! The revision that a run tested, and the branch to which a revision belongs.

use crate::timestamp::Timestamp;

/// The revision of a run's code, if one is known: the tested revision, else the commit.
pub fn tested_or_commit<T>(tested_revision: Option<T>, commit_sha: Option<T>) -> Option<T> {
    tested_revision.or(commit_sha)
}

/// Whether two names of a commit agree on their common length: one may be abbreviated.
pub fn is_same_revision(one: &str, other: &str) -> bool {
    let length = one.len().min(other.len());
    match (one.get(..length), other.get(..length)) {
        (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
        (None, _) | (_, None) => false,
    }
}

/// The stable branch of a set of runs.
#[derive(Debug, Clone, Copy)]
pub struct StableBranch<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether any of the runs names its branch. If none does, all count as on the stable branch.
    pub any_branch_named: bool,
}

impl<'a> StableBranch<'a> {
    /// The stable branch of runs with these branches.
    pub fn among(name: &'a str, mut branches: impl Iterator<Item = Option<&'a str>>) -> Self {
        Self {
            name,
            any_branch_named: branches.any(|branch| branch.is_some()),
        }
    }

    /// Whether a run's branch is the stable one.
    pub fn is(self, branch: Option<&str>) -> bool {
        !self.any_branch_named || branch == Some(self.name)
    }
}

/// The first run of a revision, and the branch to which the revision belongs. Ordered by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RevisionStart<'a> {
    /// The start of the first run.
    pub at: Timestamp,
    /// The number of the first run.
    pub number: i32,
    /// The branch of the revision.
    pub branch: Option<&'a str>,
}

impl<'a> RevisionStart<'a> {
    /// The revision with one more run. A revision that ever ran on the stable branch belongs to it, and any other to
    /// the branch of its first run. The order of the runs does not matter. The caller must add the first run too: if no
    /// run names a branch, only this assigns the revision to the stable branch.
    #[must_use]
    pub fn with_run(self, run: Self, stable: StableBranch<'a>) -> Self {
        let on_stable = stable.is(self.branch) || stable.is(run.branch);
        let first = self.min(run);
        Self {
            branch: if on_stable {
                Some(stable.name)
            } else {
                first.branch
            },
            ..first
        }
    }
}

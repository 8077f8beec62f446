//! The revision that a run tested, and the branch to which a revision belongs.

use std::{collections::HashMap, sync::Arc};

use serde::Serialize;

use crate::timestamp::Timestamp;

/// The revision of a run's code, if one is known: the tested revision, else the commit.
pub fn tested_or_commit<T>(tested_revision: Option<T>, commit_sha: Option<T>) -> Option<T> {
    tested_revision.or(commit_sha)
}

/// The commit that a run checked out, if it is a merge of the tested revision and not that revision itself.
pub fn checked_out_merge<T: AsRef<str>>(tested_revision: Option<&str>, commit_sha: Option<T>) -> Option<T> {
    let tested = tested_revision?;
    commit_sha.filter(|commit| !is_same_revision(commit.as_ref(), tested))
}

/// The fewest characters of a commit's id that name it.
pub const SHORTEST_COMMIT: usize = 7;
/// The most: those of SHA-256.
const LONGEST_COMMIT: usize = 64;

/// Whether a text is the id of a commit or enough of its beginning.
pub fn is_commit(text: &str) -> bool {
    (SHORTEST_COMMIT..=LONGEST_COMMIT).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether two names of a commit agree on their common length: one may be abbreviated.
pub fn is_same_revision(one: &str, other: &str) -> bool {
    let length = one.len().min(other.len());
    match (one.get(..length), other.get(..length)) {
        (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
        (None, _) | (_, None) => false,
    }
}

/// The place of a run in the order of revisions: the start and number of the first run of its revision, and its own.
pub type RevisionOrder = ((Timestamp, i32), (Timestamp, i32));

/// The places of runs with these revisions, starts and numbers in the order of revisions. A later run of an older revision
/// stays before the runs of newer code. A run without a revision has one of its own.
pub fn revision_order<'a>(
    runs: impl Iterator<Item = (Option<&'a str>, (Timestamp, i32))> + Clone,
) -> Vec<RevisionOrder> {
    let mut first: HashMap<&str, (Timestamp, i32)> = HashMap::new();
    for (revision, own) in runs.clone() {
        if let Some(revision) = revision {
            let start = first.entry(revision).or_insert(own);
            *start = own.min(*start);
        }
    }
    let first_of = |revision: Option<&str>| first.get(revision?).copied();
    runs.map(|(revision, own)| (first_of(revision).unwrap_or(own), own))
        .collect()
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

/// The branch and the time by which the engine orders a revision. Runs without the test may determine them: a chain
/// belongs to a branch and orders its revisions by their first run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RevisionOrigin {
    /// The stable branch if a run of the window tested the revision there, else the branch of its first run; none for a
    /// run that does not count in verdicts, or arrived while a long history was sent.
    pub revision_branch: Option<String>,
    /// The start of the window's first run that tested the revision; none for a run that does not count in verdicts, or
    /// arrived while a long history was sent.
    pub revision_seen_at: Option<Timestamp>,
}

/// A run of the engine's window, as [`Revisions`] need it.
#[derive(Debug, Clone)]
pub struct TestedRevision {
    /// The number of the run.
    pub run: i32,
    /// Its start.
    pub started_at: Timestamp,
    /// The revision of its code, if it is known.
    pub revision: Option<String>,
    /// Its branch.
    pub branch: Option<String>,
}

/// Identifies the code of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Code {
    Named(Box<str>),
    /// A run without a revision shares it with no other.
    Own(i32),
}

impl Code {
    fn of(run: i32, revision: Option<&str>) -> Self {
        revision.map_or(Self::Own(run), |revision| Self::Named(revision.into()))
    }
}

/// The revisions that the runs of a window tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revisions {
    window: (Timestamp, Timestamp),
    origins: HashMap<Code, (Option<Arc<str>>, Timestamp)>,
}

impl Revisions {
    /// The revisions of these runs, by the engine's rules.
    pub fn of(window: (Timestamp, Timestamp), stable_branch: &str, runs: &[TestedRevision]) -> Self {
        let stable = StableBranch::among(stable_branch, runs.iter().map(|run| run.branch.as_deref()));
        let mut starts: HashMap<Code, RevisionStart<'_>> = HashMap::new();
        for run in runs {
            let start = RevisionStart {
                at: run.started_at,
                number: run.run,
                branch: run.branch.as_deref(),
            };
            let first = starts
                .entry(Code::of(run.run, run.revision.as_deref()))
                .or_insert(start);
            *first = first.with_run(start, stable);
        }
        let mut branches: HashMap<&str, Arc<str>> = HashMap::new();
        let mut shared = |branch| Arc::clone(branches.entry(branch).or_insert_with(|| Arc::from(branch)));
        let origins = starts
            .into_iter()
            .map(|(code, start)| (code, (start.branch.map(&mut shared), start.at)));
        Self {
            window,
            origins: origins.collect(),
        }
    }

    /// The branch and the time by which the engine orders the revision of a run that counts in verdicts. Empty for a run
    /// outside of the window.
    pub fn origin(&self, run: i32, revision: Option<&str>, started_at: Timestamp) -> RevisionOrigin {
        let (from, to) = self.window;
        if !(from..=to).contains(&started_at) {
            return RevisionOrigin::default();
        }
        let origin = self.origins.get(&Code::of(run, revision));
        origin.map_or_else(RevisionOrigin::default, |(branch, at)| RevisionOrigin {
            revision_branch: branch.as_deref().map(str::to_owned),
            revision_seen_at: Some(*at),
        })
    }

    /// Their approximate memory use in bytes.
    pub fn bytes(&self) -> usize {
        /// An entry, and a commit's name.
        const REVISION: usize = size_of::<(Code, (Option<Arc<str>>, Timestamp))>() + 48;
        self.origins.capacity() * REVISION
    }
}

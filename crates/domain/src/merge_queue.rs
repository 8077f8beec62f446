//! Merge queues: services that test the result of a merge on a branch of their own, before they merge.
//!
//! The branch of a run decides its kind, so that old runs have one, too.

use serde::Serialize;

use crate::vocabulary::vocabulary;

vocabulary!(
    /// The kind of a run.
    RunKind {
        /// It tested a branch or a pull request.
        Branch = "branch",
        /// A merge queue tested the result of a merge.
        Queue = "queue",
    }
);

/// Where a merge queue names what it tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedIn {
    /// The part of the branch is the base, `/pr-`, the pull request, `-` and the commit of the run ahead.
    Base,
    /// The branch has this before each number.
    Branch(&'static str),
    /// Neither the branch nor the title has a documented form.
    Nothing,
    /// The title of its pull request, such as `merge queue: checking main (ee7d5da), #12012 and #12017 together`.
    Title,
}

/// The branches of merge queues, with `%` for any text: of GitHub, GitLab, Mergify, Trunk, Bors, Graphite and Aviator.
///
/// Bors tests each batch on one branch. The reader of CI's variables names it after the pull requests.
pub const MERGE_QUEUES: [(&str, NamedIn); 7] = [
    ("gh-readonly-queue/%", NamedIn::Base),
    ("merge-requests/%/train", NamedIn::Branch("merge-requests/")),
    ("mergify/merge-queue/%", NamedIn::Title),
    ("trunk-merge/%", NamedIn::Branch("pr-")),
    ("bors/pr-%", NamedIn::Branch("pr-")),
    ("gtmq_%", NamedIn::Nothing),
    ("mq-bot-%", NamedIn::Nothing),
];

/// The part of a queue's branch that varies, and where the queue names what it tests.
fn convention(branch: &str) -> Option<(&str, NamedIn)> {
    MERGE_QUEUES.iter().find_map(|(pattern, named_in)| {
        let (start, end) = pattern.split_once('%')?;
        Some((branch.strip_prefix(start)?.strip_suffix(end)?, *named_in))
    })
}

/// Whether a branch is one of a merge queue. The changes on it are those of several branches, it is tested once, and its
/// state is no history of a branch.
pub fn is_queue_branch(branch: &str) -> bool {
    convention(branch).is_some()
}

/// What a merge queue tests in a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct MergeQueue {
    /// The branch that it merges into; null if neither the run's branch nor its title names it.
    pub base: Option<String>,
    /// The pull requests that the branch or the title names, in the order of merging.
    pub pull_requests: Vec<i64>,
    /// The commit on which the merge is tested, if the branch names it: that of the run ahead in the queue, or of the base.
    #[serde(skip)]
    pub base_revision: Option<String>,
}

impl MergeQueue {
    /// What a run of this branch tests. `title` is that of its pull request. `None` for a branch of no merge queue.
    pub fn of(branch: &str, title: Option<&str>) -> Option<Self> {
        let (part, named_in) = convention(branch)?;
        let mut queue = Self::default();
        match named_in {
            NamedIn::Base => {
                if let Some((base, change)) = part.rsplit_once("/pr-") {
                    let (number, revision) = change.split_once('-').unwrap_or((change, ""));
                    queue.base = Some(base.to_owned());
                    queue.pull_requests = number.parse().into_iter().collect();
                    queue.base_revision = (!revision.is_empty()).then(|| revision.to_owned());
                }
            }
            NamedIn::Nothing => {}
            NamedIn::Branch(mark) => queue.pull_requests = numbers_after(branch, mark),
            NamedIn::Title => {
                let title = title.unwrap_or_default();
                let words = title.split_once(" (").map(|(words, _)| words);
                queue.base = words
                    .and_then(|words| words.rsplit(' ').next())
                    .map(str::to_owned);
                queue.pull_requests = numbers_after(title, "#");
            }
        }
        Some(queue)
    }
}

/// The pull requests that a run tests: its own, or those that a merge queue merges.
pub fn tested_pull_requests(branch: Option<&str>, title: Option<&str>, own: Option<i64>) -> Vec<i64> {
    let queue = branch.and_then(|branch| MergeQueue::of(branch, title));
    queue.map_or_else(|| own.into_iter().collect(), |queue| queue.pull_requests)
}

/// The whole numbers from 1 that follow a mark, in their order, each once.
pub fn numbers_after(text: &str, mark: &str) -> Vec<i64> {
    let mut numbers = Vec::new();
    for part in text.split(mark).skip(1) {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        let number = part.get(..end).and_then(|digits| digits.parse().ok());
        if let Some(number) = number.filter(|number| *number > 0 && !numbers.contains(number)) {
            numbers.push(number);
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_or_a_branch_may_say_more_or_less() {
        let of = |branch: &str, title: &str| {
            let queue = MergeQueue::of(branch, Some(title)).unwrap();
            (queue.base, queue.pull_requests)
        };
        let mergify = "mergify/merge-queue/213aadd020";
        let embarked = of(mergify, "merge queue: embarking main (efb27e3) and #317 together");
        assert_eq!(embarked, (Some("main".to_owned()), vec![317]));
        assert_eq!(of(mergify, ""), (None, vec![]));
        assert_eq!(of("gh-readonly-queue/main", ""), (None, vec![]));
        let github = MergeQueue::of("gh-readonly-queue/main/pr-5-0123abcd", None).unwrap();
        assert_eq!(github.base_revision.as_deref(), Some("0123abcd"));
    }

    #[test]
    fn other_branches_are_none_of_a_queue() {
        for branch in [
            "main",
            "staging",
            "merge-requests/5/head",
            "gh-readonly-queue",
            "me:trunk-merge/pr-5",
        ] {
            assert_eq!(
                MergeQueue::of(branch, Some("merge queue: checking main (a) and #3")),
                None,
                "{branch}"
            );
        }
    }
}

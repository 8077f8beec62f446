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

/// The branches of merge queues, as patterns of SQL's `LIKE` with one `%`: of GitHub, GitLab, Mergify, Trunk and Bors.
///
/// Bors tests each batch on one branch. The reader of CI's variables names it after the pull requests.
pub const QUEUE_BRANCHES: [&str; 5] = [
    "gh-readonly-queue/%",
    "merge-requests/%/train",
    "mergify/merge-queue/%",
    "trunk-merge/%",
    "bors/pr-%",
];

/// Whether a branch is one of a merge queue. The changes on it are those of several branches, it is tested once, and its
/// state is no history of a branch.
pub fn is_queue_branch(branch: &str) -> bool {
    QUEUE_BRANCHES.iter().any(|pattern| {
        let (start, end) = pattern.split_once('%').unwrap_or((pattern, ""));
        let rest = branch.strip_prefix(start);
        rest.is_some_and(|rest| rest.ends_with(end))
    })
}

/// What a merge queue tests in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
        if !is_queue_branch(branch) {
            return None;
        }
        // `gh-readonly-queue/release/2.0/pr-17-<commit>`
        if let Some((base, change)) = branch
            .strip_prefix("gh-readonly-queue/")
            .and_then(|rest| rest.rsplit_once("/pr-"))
        {
            let (number, revision) = change.split_once('-').unwrap_or((change, ""));
            return Some(Self {
                base: Some(base.to_owned()),
                pull_requests: number.parse().into_iter().collect(),
                base_revision: (!revision.is_empty()).then(|| revision.to_owned()),
            });
        }
        // `merge queue: checking main (ee7d5da), #12012 and #12017 together`
        if branch.starts_with("mergify/") {
            let title = title.unwrap_or_default();
            let base = title
                .split_once(" (")
                .and_then(|(words, _)| words.rsplit(' ').next());
            return Some(Self {
                base: base.map(str::to_owned),
                pull_requests: numbers_after(title, "#"),
                base_revision: None,
            });
        }
        let pull_requests = match branch.strip_prefix("merge-requests/") {
            Some(of_train) => numbers_after(&format!("#{of_train}"), "#"),
            None => numbers_after(branch, "pr-"),
        };
        Some(Self {
            base: None,
            pull_requests,
            base_revision: None,
        })
    }
}

/// The pull requests that a run tests: its own, or those that a merge queue merges.
pub fn tested_pull_requests(branch: Option<&str>, title: Option<&str>, own: Option<i64>) -> Vec<i64> {
    match branch.and_then(|branch| MergeQueue::of(branch, title)) {
        Some(queue) => queue.pull_requests,
        None => own.into_iter().collect(),
    }
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

    fn read(branch: &str, title: &str) -> Option<(Option<String>, Vec<i64>)> {
        MergeQueue::of(branch, Some(title)).map(|queue| (queue.base, queue.pull_requests))
    }

    #[test]
    fn the_branches_of_five_queues_name_what_they_merge() {
        let main = || Some("main".to_owned());
        let mergify = "mergify/merge-queue/213aadd020";
        for (branch, title, expected) in [
            ("gh-readonly-queue/main/pr-5-0123abcd", "", (main(), vec![5])),
            (
                "gh-readonly-queue/release/2.0/pr-17-0123abcd",
                "",
                (Some("release/2.0".to_owned()), vec![17]),
            ),
            ("merge-requests/59/train", "", (None, vec![59])),
            (
                mergify,
                "merge queue: checking main (ee7d5da), #12 and #17 together",
                (main(), vec![12, 17]),
            ),
            (
                mergify,
                "merge queue: embarking main (efb27e3) and #317 together",
                (main(), vec![317]),
            ),
            (mergify, "", (None, vec![])),
            (
                "trunk-merge/pr-89245/99a0aad9-5c0c-4468-b3ab-8e573425abee",
                "",
                (None, vec![89245]),
            ),
            ("bors/pr-12-pr-13", "Merge #12 #13", (None, vec![12, 13])),
        ] {
            assert_eq!(read(branch, title), Some(expected), "{branch}");
        }
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

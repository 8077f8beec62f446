//! The earlier results of a failure's test on other branches, on the failure's variant.

use std::collections::BTreeSet;

use assay_domain::{observation::History, timestamp::Timestamp};
use assay_flakiness::FailureCause;

/// The earlier results of a failure's test on other branches than its own and the stable one.
#[derive(Debug, Default)]
pub(super) struct Elsewhere<'a> {
    /// Runs with a result.
    pub(super) runs: u32,
    /// Those of them in which the test failed finally.
    pub(super) failed: u32,
    /// The branches with such a failure.
    pub(super) branches: BTreeSet<&'a str>,
    /// The start of the first such failure.
    pub(super) first_failed: Option<Timestamp>,
}

impl<'a> Elsewhere<'a> {
    pub(super) fn of(history: &'a History, failure: &FailureCause) -> Self {
        let mut elsewhere = Self::default();
        let Some(here) = history.runs.get(failure.run_index).map(|observed| &observed.run) else {
            return elsewhere;
        };
        for observed in &history.runs {
            let run = &observed.run;
            let Some(branch) = run.branch.as_deref() else {
                continue;
            };
            let is_elsewhere = branch != &*history.stable_branch
                && here.branch.as_deref() != Some(branch)
                && here.variant == run.variant;
            let ran = observed.ran(failure.test);
            if !is_elsewhere || !ran || run.started_at > here.started_at {
                continue;
            }
            elsewhere.runs += 1;
            if observed.failed(failure.test) {
                elsewhere.failed += 1;
                elsewhere.branches.insert(branch);
                let first = elsewhere.first_failed.get_or_insert(run.started_at);
                *first = run.started_at.min(*first);
            }
        }
        elsewhere
    }

    /// For example "Failed in 5 of 275 runs of other branches"; none if it never ran there.
    pub(super) fn in_words(&self) -> Option<String> {
        match (self.runs, self.failed) {
            (0, _) => None,
            (1, 0) => Some("Passed in the only run of another branch".to_owned()),
            (1, _) => Some("Failed in the only run of another branch".to_owned()),
            (all, 0) => Some(format!("Passed in all {all} runs of other branches")),
            (all, failed) => Some(format!("Failed in {failed} of {all} runs of other branches")),
        }
    }
}

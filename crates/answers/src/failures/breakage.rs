//! When the failures of a run on the stable branch began.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use assay_domain::{observation::History, test::TestOrdinal, verdict::FailingSince};
use assay_flakiness::FailureCause;
use serde::Serialize;

use super::RevertAdvice;
use crate::stable_branch::since;

/// When a test began to fail on the stable branch. The revision that broke it is that of the first failed run, or one after
/// the revision of the last passed run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Breakage {
    /// The first run since which every result of the test failed, until this failure.
    pub first_failed: FailingSince,
    /// The last run before it in which the test passed; null if there is none in the window.
    pub last_passed: Option<FailingSince>,
    /// Whether to revert a commit; null if no run of the window passed before, a run has no revision, or the test passed at
    /// the revision with which its failures began.
    pub revert: Option<RevertAdvice>,
}

/// The tests with one error, by the revision with which their failures began.
pub(super) type Together<'h> = BTreeMap<&'h str, BTreeSet<TestOrdinal>>;

/// The beginnings of the failures of a run on the stable branch.
pub struct Beginnings<'h> {
    history: &'h History,
    /// The runs of each suite on the stable branch, the oldest first.
    stable_runs: BTreeMap<Arc<str>, Vec<usize>>,
    /// By the text of the error.
    together: HashMap<u32, Together<'h>>,
}

impl<'h> Beginnings<'h> {
    /// Those of all failures of a run.
    pub fn of<'c>(history: &'h History, failures: impl Iterator<Item = &'c FailureCause>) -> Self {
        let mut beginnings = Self {
            history,
            stable_runs: history.stable_runs(),
            together: HashMap::new(),
        };
        for failure in failures.filter(|failure| has_beginning(failure)) {
            let streak = beginnings.streak(failure);
            let first = streak.and_then(|(failed, _)| beginnings.revision(*failed.last()?));
            if let (Some(text), Some(revision)) = (failure.text, first) {
                let together = beginnings.together.entry(text).or_default();
                together.entry(revision).or_default().insert(failure.test);
            }
        }
        beginnings
    }

    /// The runs up to that of a failure in which every result of its test failed, the newest first, and the run before them
    /// in which it passed.
    fn streak(&self, failure: &FailureCause) -> Option<(Vec<usize>, Option<usize>)> {
        let suite = &self.history.runs.get(failure.run_index)?.run.variant;
        let newest_first = self.stable_runs.get(suite)?.iter().rev();
        let mut failed = Vec::new();
        for index in newest_first.skip_while(|index| **index != failure.run_index) {
            let observed = self.history.runs.get(*index)?;
            if observed.failed(failure.test) {
                failed.push(*index);
            } else if observed.ran(failure.test) {
                return Some((failed, Some(*index)));
            }
        }
        Some((failed, None))
    }

    fn revision(&self, index: usize) -> Option<&'h str> {
        self.history.runs.get(index)?.run.revision.as_deref()
    }

    /// The beginning of a failure on the stable branch; none on other branches, and for a test that passed on retry.
    pub fn breakage(&self, failure: &FailureCause) -> Option<Breakage> {
        if !has_beginning(failure) {
            return None;
        }
        let (failed, last_passed) = self.streak(failure)?;
        let revisions = failed.iter().rev().map(|index| self.revision(*index));
        let revisions: Option<Vec<&str>> = revisions.collect();
        // A revision at which the test passed did not break it: something outside of the code did.
        let is_broken_by = |revisions: &Vec<&str>| {
            last_passed.is_some_and(|passed| self.revision(passed) != revisions.first().copied())
        };
        let revisions = revisions.filter(is_broken_by);
        let together = failure.text.and_then(|text| self.together.get(&text));
        Some(Breakage {
            revert: revisions.and_then(|revisions| RevertAdvice::of(failure, &revisions, together)),
            first_failed: since(self.history, *failed.last()?)?,
            last_passed: last_passed.and_then(|index| since(self.history, index)),
        })
    }
}

/// Whether it is a failure on the stable branch, and not of a test that passed on retry.
fn has_beginning(failure: &FailureCause) -> bool {
    failure.facts.on_stable && !failure.recovered
}

//! When the failures of a run on the stable branch began.

use std::collections::{BTreeMap, BTreeSet, HashMap};

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
    /// The runs up to that of a failure on its branch and variant, the newest first, by the index of its run.
    earlier: HashMap<usize, Vec<usize>>,
    /// By the text of the error.
    together: HashMap<u32, Together<'h>>,
}

/// The runs in which every result of a test failed, the newest first, and the run before them in which it passed.
struct Streak {
    failed: Vec<usize>,
    last_passed: Option<usize>,
}

impl<'h> Beginnings<'h> {
    /// Those of all failures of a run.
    pub fn of<'c>(history: &'h History, failures: impl Iterator<Item = &'c FailureCause>) -> Self {
        let on_stable: Vec<&FailureCause> = failures.filter(|failure| has_beginning(failure)).collect();
        let mut beginnings = Self {
            history,
            earlier: HashMap::new(),
            together: HashMap::new(),
        };
        if on_stable.is_empty() {
            return beginnings;
        }
        let order = history.revision_order();
        for failure in &on_stable {
            let place = failure.run_index;
            let earlier = || earlier(history, place, |index| order.get(index));
            beginnings.earlier.entry(place).or_insert_with(earlier);
        }
        for failure in on_stable {
            let first = beginnings
                .streak(failure)
                .and_then(|streak| streak.failed.last().copied());
            let first = first.and_then(|first| history.runs.get(first)?.run.revision.as_deref());
            if let (Some(text), Some(revision)) = (failure.text, first) {
                let together = beginnings.together.entry(text).or_default();
                together.entry(revision).or_default().insert(failure.test);
            }
        }
        beginnings
    }

    fn streak(&self, failure: &FailureCause) -> Option<Streak> {
        let mut streak = Streak {
            failed: Vec::new(),
            last_passed: None,
        };
        for index in self.earlier.get(&failure.run_index)? {
            let observed = self.history.runs.get(*index)?;
            if observed.failed(failure.test) {
                streak.failed.push(*index);
            } else if observed.ran(failure.test) {
                streak.last_passed = Some(*index);
                break;
            }
        }
        Some(streak)
    }

    /// The beginning of a failure on the stable branch; none on other branches, and for a test that passed on retry.
    pub fn breakage(&self, failure: &FailureCause) -> Option<Breakage> {
        if !has_beginning(failure) {
            return None;
        }
        let Streak { failed, last_passed } = self.streak(failure)?;
        let runs = failed.iter().rev().map(|index| self.history.runs.get(*index));
        let revisions: Option<Vec<&str>> = runs.map(|run| run?.run.revision.as_deref()).collect();
        // A revision at which the test passed did not break it: something outside of the code did.
        let passed = last_passed.and_then(|index| self.history.runs.get(index));
        let passed_at = passed.map(|observed| observed.run.revision.as_deref());
        let is_broken_by =
            |revisions: &Vec<&str>| passed_at.is_some_and(|at| at != revisions.first().copied());
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

fn earlier<'o, O: Ord + 'o>(
    history: &History,
    place: usize,
    order: impl Fn(usize) -> Option<&'o O>,
) -> Vec<usize> {
    let Some(here) = history.runs.get(place) else {
        return Vec::new();
    };
    let is_earlier = |index: &usize| *index == place || order(*index) < order(place);
    let of_chain = history.runs.iter().enumerate().filter(|(_, observed)| {
        observed.run.branch == here.run.branch && observed.run.variant == here.run.variant
    });
    let mut earlier: Vec<usize> = of_chain.map(|(index, _)| index).filter(is_earlier).collect();
    earlier.sort_unstable_by_key(|index| std::cmp::Reverse(order(*index)));
    earlier
}

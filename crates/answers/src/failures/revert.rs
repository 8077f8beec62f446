//! Whether to revert a commit, after a failure on the stable branch.
//!
//! The engine says whether the code is broken. The arithmetic of a search for a culprit divides that probability among the
//! revisions since the last pass, by the runs that are stored.

use std::collections::BTreeSet;

use assay_domain::cause::RevertAction;
use assay_flakiness::{
    FailureCause,
    plan::bisection::{Bisection, NextStep},
};
use serde::Serialize;

use super::breakage::Together;
use crate::numbers::short;

/// A commit is exonerated or named from this probability on.
const CERTAIN: f64 = 0.95;
/// P(a breakage shows at its first revision), by one test. Some broken code fails only sometimes, and then a later revision
/// looks guilty. One test cannot show that, so it never names a commit.
const SHOWS_AT_ONCE: f64 = 0.94;
/// The same by several tests that began to fail at one revision with one error, and that failed in several runs. One or two
/// runs with such failures are as often those of a bad machine.
const SHOWS_TOGETHER: f64 = 0.995;
/// The numbers of such tests and runs.
const TOGETHER: usize = 3;
const LASTING: usize = 3;
/// A suspect is named in the sentence from this probability on.
const LIKELY: f64 = 0.5;

/// Whether to revert a commit, by the runs since the test last passed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RevertAdvice {
    /// What to do with the commit of this run.
    pub action: RevertAction,
    /// The revision that most probably broke the test. Commits between it and the tested revision before it count as
    /// this one.
    pub suspect: String,
    /// P(the suspect broke the test).
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub probability: f64,
    /// The revision of which a further run teaches most.
    pub next_run: String,
    /// P(the test was broken before the revision of this run).
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub red_before: f64,
}

impl RevertAdvice {
    /// The advice for a failure. `revisions` are those of the failed runs since the last pass, the oldest first; the last
    /// one is that of the failure. `together` are the tests of its run with its error. None without a revision.
    pub(super) fn of(
        failure: &FailureCause,
        revisions: &[&str],
        together: Option<&Together<'_>>,
    ) -> Option<Self> {
        // The runs are in the order of revisions.
        let mut distinct = revisions.to_vec();
        distinct.dedup();
        let here = distinct.len().checked_sub(1)?;
        let facts = &failure.facts;
        let rate = (f64::from(facts.good_failed) + 0.5) / (f64::from(facts.good_runs) + 1.0);
        let mut search = Bisection::new(distinct.len(), rate);
        for revision in revisions {
            search.add(distinct.iter().position(|own| own == revision)?, true);
        }
        let probabilities = &failure.probabilities;
        let broken = (probabilities.mine() + probabilities.broken_before).clamp(0.0, 1.0);
        let posterior = search.posterior().of_commit;
        let any: f64 = posterior.iter().sum();
        let shares: Vec<f64> = posterior.iter().map(|share| broken * share / any).collect();
        let likeliest = shares.iter().zip(&distinct);
        let (probability, own) = likeliest.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
        let began = |revision: &str| together.and_then(|of| of.get(revision)).map_or(0, BTreeSet::len);
        let most = together.and_then(|of| of.keys().max_by_key(|revision| began(revision)));
        let (suspect, shows) = match most {
            _ if began(own) >= TOGETHER && revisions.len() >= LASTING => (*own, SHOWS_TOGETHER),
            Some(revision) if began(revision) >= TOGETHER => (*revision, SHOWS_AT_ONCE),
            Some(_) | None => (*own, SHOWS_AT_ONCE),
        };
        let probability = shows * probability;
        let is_here = revisions.last() == Some(&suspect);
        let next = match search.next_step() {
            NextStep::Run { commit, .. } | NextStep::Found(commit) => commit,
            NextStep::NotBroken | NextStep::Stuck => here,
        };
        // The sum of no number is -0.
        let red_before = shares.iter().take(here).fold(0.0, |sum, share| sum + share);
        Some(Self {
            action: if is_here && probability >= CERTAIN {
                RevertAction::Revert
            } else if red_before >= CERTAIN && !is_here {
                RevertAction::Keep
            } else if broken <= 1.0 - CERTAIN {
                RevertAction::Nothing
            } else {
                RevertAction::Run
            },
            suspect: suspect.to_owned(),
            probability,
            next_run: (*distinct.get(next)?).to_owned(),
            red_before,
        })
    }

    /// The commit to revert with its probability, such as `3fa9c1d2 (99 %)`; none below 0.95.
    pub fn candidate(&self) -> Option<String> {
        let percent = (self.probability * 100.0).round();
        (self.probability >= CERTAIN).then(|| format!("{} ({percent} %)", short(&self.suspect)))
    }

    /// The advice on the page of a run of this commit.
    pub fn sentence(&self) -> String {
        let percent = |probability: f64| (probability * 100.0).round();
        let (likely, red) = (percent(self.probability), percent(self.red_before));
        let advice = match self.action {
            RevertAction::Keep => format!("Do not revert this commit: the test was broken before ({red} %)."),
            RevertAction::Revert => {
                return format!("Revert this commit: most probably it broke the test ({likely} %).");
            }
            RevertAction::Nothing => "Revert nothing: most probably no commit broke the test.".to_owned(),
            RevertAction::Run => format!("Before you revert a commit, run {} again.", short(&self.next_run)),
        };
        match self.probability >= LIKELY {
            true => format!("{advice} The suspect is {} ({likely} %).", short(&self.suspect)),
            false => advice,
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_flakiness::{CauseFacts, Probabilities};

    use super::*;

    /// The advice if this number of tests began to fail with the error at a revision.
    fn advice(broken: f64, revisions: &[&str], (began, tests): (&str, u32)) -> RevertAdvice {
        let failure = FailureCause {
            run_index: 0,
            test: 0,
            text: None,
            recovered: false,
            in_mass_failure: false,
            probabilities: Probabilities {
                flake: 1.0 - broken,
                environment: 0.0,
                broken_before: broken / 2.0,
                earlier_on_branch: 0.0,
                this_change: broken / 2.0,
            },
            unreliable: 0.0,
            facts: CauseFacts {
                good_runs: 99,
                ..CauseFacts::default()
            },
        };
        let together = Together::from([(began, (0..tests).collect())]);
        RevertAdvice::of(&failure, revisions, Some(&together)).unwrap()
    }

    #[test]
    fn the_first_failed_revision_is_the_suspect_and_later_ones_are_kept() {
        let alone = ("a", 1);
        let (first, later) = (advice(0.97, &["a"], alone), advice(0.98, &["a", "b", "c"], alone));
        assert_eq!((first.action, first.suspect.as_str()), (RevertAction::Run, "a"));
        assert_eq!(
            first.sentence(),
            "Before you revert a commit, run a again. The suspect is a (91 %)."
        );
        assert_eq!((later.action, later.suspect.as_str()), (RevertAction::Keep, "a"));
        assert_eq!(
            later.sentence(),
            "Do not revert this commit: the test was broken before (98 %). The suspect is a (92 %)."
        );
    }

    #[test]
    fn three_tests_that_broke_together_name_the_commit_in_their_third_run() {
        let seldom = advice(0.99, &["a", "a"], ("a", 3));
        assert_eq!((seldom.action, seldom.candidate()), (RevertAction::Run, None));
        let named = advice(0.99, &["a"; 3], ("a", 3));
        assert_eq!(
            (named.action, named.suspect.as_str()),
            (RevertAction::Revert, "a")
        );
        assert_eq!(
            named.sentence(),
            "Revert this commit: most probably it broke the test (99 %)."
        );
        assert_eq!(advice(0.99, &["a"; 3], ("a", 2)).action, RevertAction::Run);
        let later = advice(0.99, &["a", "b"], ("a", 3));
        assert_eq!((later.action, later.suspect.as_str()), (RevertAction::Keep, "a"));
        // A test that failed only sometimes began later than the others.
        let sometimes = advice(0.99, &["b"], ("a", 3));
        assert_eq!(
            (sometimes.action, sometimes.suspect.as_str()),
            (RevertAction::Run, "a")
        );
        assert!(sometimes.probability < CERTAIN);
    }

    #[test]
    fn without_a_breakage_nothing_is_reverted() {
        assert_eq!(advice(0.6, &["a", "b"], ("a", 1)).action, RevertAction::Run);
        let nothing = advice(0.03, &["a", "b"], ("a", 3));
        assert_eq!(nothing.action, RevertAction::Nothing);
        assert_eq!(
            nothing.sentence(),
            "Revert nothing: most probably no commit broke the test."
        );
    }
}

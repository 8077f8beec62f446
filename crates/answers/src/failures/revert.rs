//! Whether to revert a commit, after a failure on the stable branch.
//!
//! The engine says whether the code is broken. The arithmetic of a search for a culprit divides that probability among the
//! revisions since the last pass, by the runs that are stored.

use assay_domain::cause::RevertAction;
use assay_flakiness::{
    FailureCause,
    plan::bisection::{Bisection, NextStep},
};
use serde::Serialize;

use crate::numbers::short;

/// A commit is exonerated from this probability on.
const CERTAIN: f64 = 0.95;
/// P(a breakage shows at its first revision). Some broken code fails only sometimes, and then a later revision looks guilty.
const SHOWS_AT_ONCE: f64 = 0.97;
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
    /// one is that of the failure. None without a revision.
    pub(super) fn of(failure: &FailureCause, revisions: &[&str]) -> Option<Self> {
        let mut distinct: Vec<&str> = Vec::new();
        for revision in revisions {
            if !distinct.contains(revision) {
                distinct.push(revision);
            }
        }
        let here = distinct
            .iter()
            .position(|revision| revisions.last() == Some(revision))?;
        let facts = &failure.facts;
        let rate = (f64::from(facts.good_failed) + 0.5) / (f64::from(facts.good_runs) + 1.0);
        let mut search = Bisection::new(distinct.len(), rate);
        for revision in revisions {
            if let Some(commit) = distinct.iter().position(|other| other == revision) {
                search.add(commit, true);
            }
        }
        let probabilities = &failure.probabilities;
        let broken = (probabilities.mine() + probabilities.broken_before).clamp(0.0, 1.0);
        let posterior = search.posterior();
        let any: f64 = posterior.of_commit.iter().sum();
        let shares: Vec<f64> = posterior
            .of_commit
            .iter()
            .map(|share| broken * share / any)
            .collect();
        let (likeliest, probability) = shares
            .iter()
            .copied()
            .enumerate()
            .max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let next = match search.next_step() {
            NextStep::Run { commit, .. } | NextStep::Found(commit) => commit,
            NextStep::NotBroken | NextStep::Stuck => here,
        };
        // The sum of no number is -0.
        let red_before = shares.iter().take(here).fold(0.0, |sum, share| sum + share);
        Some(Self {
            action: if red_before >= CERTAIN {
                RevertAction::Keep
            } else if broken <= 1.0 - CERTAIN {
                RevertAction::Nothing
            } else {
                RevertAction::Run
            },
            suspect: (*distinct.get(likeliest)?).to_owned(),
            probability: SHOWS_AT_ONCE * probability,
            next_run: (*distinct.get(next)?).to_owned(),
            red_before,
        })
    }

    /// The advice on the page of a run of this commit.
    pub fn sentence(&self) -> String {
        let percent = |probability: f64| (probability * 100.0).round();
        let advice = match self.action {
            RevertAction::Keep => format!(
                "Do not revert this commit: the test was broken before ({} %).",
                percent(self.red_before)
            ),
            RevertAction::Nothing => "Revert nothing: most probably no commit broke the test.".to_owned(),
            RevertAction::Run => format!("Before you revert a commit, run {} again.", short(&self.next_run)),
        };
        let suspect = format!(
            " The suspect is {} ({} %).",
            short(&self.suspect),
            percent(self.probability)
        );
        advice + if self.probability >= LIKELY { &suspect } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use assay_flakiness::{CauseFacts, Probabilities};

    use super::*;

    fn advice(broken: f64, revisions: &[&str]) -> RevertAdvice {
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
        RevertAdvice::of(&failure, revisions).unwrap()
    }

    #[test]
    fn the_first_failed_revision_is_the_suspect_and_later_ones_are_kept() {
        let (first, later) = (advice(0.97, &["a"]), advice(0.98, &["a", "b", "c"]));
        assert_eq!((first.action, first.suspect.as_str()), (RevertAction::Run, "a"));
        assert_eq!(
            first.sentence(),
            "Before you revert a commit, run a again. The suspect is a (94 %)."
        );
        assert_eq!((later.action, later.suspect.as_str()), (RevertAction::Keep, "a"));
        assert_eq!(
            later.sentence(),
            "Do not revert this commit: the test was broken before (98 %). The suspect is a (95 %)."
        );
    }

    #[test]
    fn without_a_breakage_nothing_is_reverted() {
        assert_eq!(advice(0.6, &["a", "b"]).action, RevertAction::Run);
        let nothing = advice(0.03, &["a", "b"]);
        assert_eq!(nothing.action, RevertAction::Nothing);
        assert_eq!(
            nothing.sentence(),
            "Revert nothing: most probably no commit broke the test."
        );
    }
}

//! Decisions of the gate: whether a run passes, and which of its failed tests are excused.
//!
//! A client decides with its own rules and sends the [`GateDecision`]. The store keeps it with the upload that it is
//! about.

use serde::{Deserialize, Serialize};

use crate::{
    cause::Cause, id::RunId, recording::Effect, rules::RuleViolation, store::StoreError,
    timestamp::Timestamp, vocabulary::vocabulary,
};

/// Most excused tests of a decision.
pub const MOST_EXCUSED: usize = 200;
/// Longest reason of an excuse, in characters.
pub const LONGEST_REASON: usize = 1_000;

vocabulary!(
    /// How a gate decided on a run.
    GateOutcome {
        /// No test failed, and nothing else is wrong.
        Clean = "clean",
        /// Every failed test is excused, and the run is valid.
        Excused = "excused",
        /// A further run of the same revision may excuse the failures.
        Rerun = "rerun",
        /// The run does not pass.
        Blocked = "blocked",
    }
);

impl GateOutcome {
    /// Whether the gate lets the run through.
    pub const fn passes(self) -> bool {
        matches!(self, Self::Clean | Self::Excused)
    }
}

/// A failed test that a gate excused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExcusedTest {
    /// Its name.
    pub test_name: String,
    /// Its file, if the report has one.
    #[serde(default)]
    pub file_path: Option<String>,
    /// The most probable cause of the failure.
    pub cause: Cause,
    /// The probability that the branch broke it.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub mine: f64,
    /// Why the gate excused it, one sentence of at most 1,000 characters.
    #[cfg_attr(feature = "openapi", schema(max_length = 1000))]
    pub reason: String,
}

/// A decision, as a client sends it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct GateDecision {
    /// The run.
    pub run_id: RunId,
    /// The shard whose report the gate judged, or the run itself if it is not sharded. Null if the gate judged all shards
    /// together.
    #[serde(default)]
    pub shard_id: Option<RunId>,
    /// The outcome.
    pub outcome: GateOutcome,
    /// The number of failed tests that the gate judged.
    pub failed: u32,
    /// The excused ones, at most 200.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(max_items = 200))]
    pub excused: Vec<ExcusedTest>,
}

impl GateDecision {
    /// Checks that the fields agree. An error names the field and the expected value.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let (excused, failed) = (
            self.excused.len(),
            usize::try_from(self.failed).unwrap_or(usize::MAX),
        );
        if excused > MOST_EXCUSED {
            return Err(("excused", format!("expected at most {MOST_EXCUSED} tests")));
        }
        if excused > failed {
            return Err((
                "failed",
                "expected at least the number of excused tests".to_owned(),
            ));
        }
        match self.outcome {
            GateOutcome::Clean if failed > 0 => {
                return Err(("failed", "expected 0, because the outcome is clean".to_owned()));
            }
            GateOutcome::Excused if failed == 0 => {
                return Err((
                    "failed",
                    "expected at least 1, because the outcome is excused".to_owned(),
                ));
            }
            GateOutcome::Excused if excused < failed => {
                return Err((
                    "excused",
                    "expected every failed test, because the outcome is excused".to_owned(),
                ));
            }
            GateOutcome::Clean | GateOutcome::Excused | GateOutcome::Rerun | GateOutcome::Blocked => {}
        }
        if !self.excused.iter().all(|test| (0.0..=1.0).contains(&test.mine)) {
            return Err(("mine", "expected a probability from 0 to 1".to_owned()));
        }
        let is_too_long = |test: &ExcusedTest| test.reason.chars().count() > LONGEST_REASON;
        if self.excused.iter().any(is_too_long) {
            return Err(("reason", format!("expected at most {LONGEST_REASON} characters")));
        }
        Ok(())
    }
}

/// A decision that was stored, or was already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecisionReceipt {
    /// The run's id.
    pub run_id: RunId,
    /// The run's number.
    pub run_number: i32,
    /// The effect of the decision.
    pub effect: Effect,
}

/// The reason why a decision is not stored.
#[derive(Debug, thiserror::Error)]
pub enum DecisionError {
    /// The project has no run with this id, or the run no such shard.
    #[error(
        "the project has no such run, or the run has no such shard; send the runId and shardId of an upload's answer"
    )]
    NoRun,
    /// No upload of the run is recorded.
    #[error(
        "no upload of run {run_number} is recorded; `assay-admin import` records none, so send the report with `assay run` or `assay upload`"
    )]
    NoUpload {
        /// The run's number.
        run_number: i32,
    },
    /// An excused test did not run.
    #[error("run {run_number} has no result of the test {test_name:?}; excuse only tests of this run")]
    NoTest {
        /// The run's number.
        run_number: i32,
        /// The beginning of the test's name.
        test_name: String,
    },
    /// The key may not change the run.
    #[error(transparent)]
    NotAllowed(#[from] RuleViolation),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A stored decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct StoredDecision {
    /// The time at which it was stored.
    pub decided_at: Timestamp,
    /// Whether the gate judged all shards of the run together.
    pub whole_run: bool,
    /// The outcome.
    pub outcome: GateOutcome,
    /// The number of failed tests that the gate judged.
    pub failed: u32,
    /// The excused ones.
    pub excused: Vec<ExcusedTest>,
}

impl StoredDecision {
    /// Whether this is the same decision, at any time.
    pub fn is_same_as(&self, other: &Self) -> bool {
        let at_once = Self {
            decided_at: other.decided_at,
            ..self.clone()
        };
        at_once == *other
    }
}

/// A decision on a stored run or on one of its stored shards.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunDecision {
    /// The number of the shard that it is about; null for a whole run.
    pub shard: Option<u32>,
    /// The decision.
    #[serde(flatten)]
    pub decision: StoredDecision,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(outcome: GateOutcome, failed: u32, excused: usize) -> GateDecision {
        let test = ExcusedTest {
            test_name: "pays".to_owned(),
            file_path: None,
            cause: Cause::Flake,
            mine: 0.01,
            reason: "Failed in 4 of 120 runs on good code".to_owned(),
        };
        GateDecision {
            run_id: "019aa3f4-5b1c-7def-8a3b-000000000812".parse().unwrap(),
            shard_id: None,
            outcome,
            failed,
            excused: vec![test; excused],
        }
    }

    #[test]
    fn the_fields_of_a_decision_agree() {
        use GateOutcome::{Blocked, Clean, Excused, Rerun};
        for (outcome, failed, excused) in [
            (Clean, 0, 0),
            (Excused, 2, 2),
            (Rerun, 3, 1),
            (Blocked, 0, 0),
            (Blocked, 300, 200),
        ] {
            assert_eq!(decision(outcome, failed, excused).check(), Ok(()));
        }
        for (outcome, failed, excused, field) in [
            (Clean, 1, 0, "failed"),
            (Excused, 0, 0, "failed"),
            (Excused, 2, 1, "excused"),
            (Rerun, 1, 2, "failed"),
            (Blocked, 300, 201, "excused"),
        ] {
            assert_eq!(decision(outcome, failed, excused).check().unwrap_err().0, field);
        }
        for mine in [-0.1, 1.1, f64::NAN] {
            let mut wrong = decision(Excused, 1, 1);
            wrong.excused[0].mine = mine;
            assert_eq!(wrong.check().unwrap_err().0, "mine");
        }
        let mut long = decision(Excused, 1, 1);
        long.excused[0].reason = "é".repeat(LONGEST_REASON);
        assert_eq!(long.check(), Ok(()));
        long.excused[0].reason.push('x');
        assert_eq!(long.check().unwrap_err().0, "reason");
    }

    #[test]
    fn only_a_clean_or_excused_run_passes() {
        let passing = GateOutcome::ALL.iter().filter(|outcome| outcome.passes());
        assert_eq!(
            passing.collect::<Vec<_>>(),
            [&GateOutcome::Clean, &GateOutcome::Excused]
        );
    }
}

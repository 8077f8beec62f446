//! Causes of failures, the actions for them, and the store's data about a run's failures.

use serde::Serialize;

use crate::{
    attempt::AttemptStatus,
    id::RunId,
    run::{RunStatus, ShardDurations},
    signature::ErrorClass,
    test::TestOrdinal,
    timestamp::Timestamp,
    verdict::{Signal, VerdictStatus},
    vocabulary::vocabulary,
};

vocabulary!(
    /// The cause of a test's failure in a run.
    Cause {
        /// The test is flaky: it failed on good code.
        Flake = "flake",
        /// Many tests failed together, or something outside of the code changed.
        Environment = "environment",
        /// The code was broken before this branch.
        BrokenBefore = "broken_before",
        /// An earlier revision of this branch broke it.
        EarlierOnBranch = "earlier_on_branch",
        /// This revision broke it.
        ThisChange = "this_change",
        /// No cause is probable enough.
        Unclear = "unclear",
    }
);

vocabulary!(
    /// The action for a failure, or for a run with failures.
    Action {
        /// This branch hardly caused it: continue.
        Pass = "pass",
        /// Run the same revision again, and judge with the new result.
        Rerun = "rerun",
        /// This branch broke it: stop.
        Block = "block",
    }
);

vocabulary!(
    /// Whether to revert the commit of a run in which a test fails on the stable branch.
    RevertAction {
        /// Revert it: with a probability of at least 0.95 it broke the test.
        Revert = "revert",
        /// Do not revert it: with a probability of at least 0.95 the test was broken before.
        Keep = "keep",
        /// Revert nothing: with a probability of at least 0.95 no commit broke the test.
        Nothing = "nothing",
        /// Run the named commit first.
        Run = "run",
    }
);

vocabulary!(
    /// The knowledge for judging a failure.
    Knowledge {
        /// The runs that started before the failure's run or with it.
        AtTheTime = "at_the_time",
        /// Later runs as well.
        Hindsight = "hindsight",
    }
);

vocabulary!(
    /// The contribution of an evidence run.
    EvidenceWord {
        /// The test passed in it, on the stable branch.
        PassedOnStable = "passed_on_stable",
        /// The test failed in it, on good code.
        FailedOnGoodCode = "failed_on_good_code",
        /// The test passed in it, on the same revision.
        PassedOnRevision = "passed_on_revision",
        /// The failures of this branch began with it.
        FailingSince = "failing_since",
        /// The failures of the stable branch began with it.
        FailingOnStableSince = "failing_on_stable_since",
        /// The test failed in it, on another branch.
        FailedElsewhere = "failed_elsewhere",
    }
);

/// The band of a probability, for people to read instead of the number. Unlikely is what the gate lets pass.
pub const fn band(probability: f64) -> &'static str {
    match probability {
        ..0.05 => "unlikely",
        0.05..0.5 => "possible",
        0.5..0.9 => "likely",
        _ => "near certain",
    }
}

/// A run with explained failures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FailedRun {
    /// Its id.
    pub id: RunId,
    /// Its number within the project, from 1, in the order of arrival.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub run_number: i32,
    /// Its branch.
    pub branch: Option<String>,
    /// The commit that CI checked out.
    pub commit_sha: Option<String>,
    /// Its outcome.
    pub status: RunStatus,
    /// False for a run that was sent with a key for pull requests only, which may be public.
    pub trusted: bool,
    /// The number of its tests.
    pub tests: u32,
    /// The earliest start of its shards.
    #[serde(skip)]
    pub started_at: Timestamp,
    /// Why it may lack results, such as a missing shard; `None` if it is complete.
    #[serde(skip)]
    pub incomplete: Option<String>,
    /// How long its shards took; `None` if fewer than two shards have an end.
    #[serde(skip)]
    pub shard_durations: Option<ShardDurations>,
}

/// The status of a test in a run, with its number of attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinalStatus {
    /// The final attempt's status.
    pub status: AttemptStatus,
    /// The largest number of attempts of one execution: 1 without a retry.
    pub attempts: u32,
}

/// A short form of a test's stored verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct VerdictTag {
    /// The status.
    pub status: VerdictStatus,
    /// The primary signal.
    pub status_reason: Option<Signal>,
    /// The time of the judgement.
    pub evaluated_at: Timestamp,
}

/// The stored facts about a failed test, in addition to the runs of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoredFacts {
    /// The stored verdict in short; `None` before the first one.
    pub verdict: Option<VerdictTag>,
    /// The start of the first visible run in which it failed.
    pub first_failed_at: Option<Timestamp>,
}

/// The error signatures of a window that a run's failures need. Each text is represented by a signature's number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WindowErrors {
    /// The text of the last failed attempt of each failure of the requested tests: run number, test and text.
    pub failures: Vec<(i32, TestOrdinal, u32)>,
    /// The number of tests per text in the window.
    pub tests: Vec<(u32, u32)>,
    /// Fingerprint and title of the texts in the requested run.
    pub names: Vec<(u32, ErrorName)>,
}

/// The fingerprint and title of an error signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorName {
    /// Its fingerprint.
    pub fingerprint: String,
    /// Its title.
    pub title: String,
}

impl From<&ErrorClass> for ErrorName {
    fn from(class: &ErrorClass) -> Self {
        Self {
            fingerprint: class.fingerprint.clone(),
            title: class.title.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_begin_at_their_documented_bounds() {
        let bands = [0.0, 0.05, 0.5, 0.9].map(band);
        assert_eq!(bands, ["unlikely", "possible", "likely", "near certain"]);
        assert_eq!(band(0.049), "unlikely");
    }
}

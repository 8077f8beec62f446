//! Whose failure it is: causes, what to do, and what a store says of a run's failures.

use serde::Serialize;

use crate::{
    attempt::AttemptStatus,
    id::RunId,
    run::RunStatus,
    signature::ErrorClass,
    test::TestOrdinal,
    timestamp::Timestamp,
    verdict::{Signal, VerdictStatus},
    vocabulary::vocabulary,
};

vocabulary!(
    /// Why a test failed in a run.
    Cause {
        /// The test failed of itself, on good code.
        Flake = "flake",
        /// Many tests failed together, or something outside of the code changed.
        Environment = "environment",
        /// The code was broken before this branch.
        BrokenBefore = "broken_before",
        /// An earlier revision of this branch broke it.
        EarlierOnBranch = "earlier_on_branch",
        /// This revision broke it.
        ThisChange = "this_change",
        /// No cause is likely enough.
        Unclear = "unclear",
    }
);

vocabulary!(
    /// What to do about a failure, or about a run with failures.
    Action {
        /// It is hardly this branch's: go on.
        Pass = "pass",
        /// Run the same revision again, and judge with that result.
        Rerun = "rerun",
        /// This branch broke it: stop.
        Block = "block",
    }
);

vocabulary!(
    /// What is known when a failure is judged.
    Knowledge {
        /// The runs that started until the failure's run.
        AtTheTime = "at_the_time",
        /// Later runs as well.
        Hindsight = "hindsight",
    }
);

vocabulary!(
    /// What a run of the evidence says.
    EvidenceWord {
        /// The test passed there, on the stable branch.
        PassedOnStable = "passed_on_stable",
        /// The test failed there, on good code.
        FailedOnGoodCode = "failed_on_good_code",
        /// The test passed there, on the same revision.
        PassedOnRevision = "passed_on_revision",
        /// The failures of this branch began there.
        FailingSince = "failing_since",
        /// The failures of the stable branch began there.
        FailingOnStableSince = "failing_on_stable_since",
        /// The test failed there, on another branch.
        FailedElsewhere = "failed_elsewhere",
    }
);

/// The band of a probability. People read it instead of the number.
pub const fn band(probability: f64) -> &'static str {
    match probability {
        ..0.1 => "unlikely",
        0.1..0.5 => "possible",
        0.5..0.9 => "likely",
        _ => "near certain",
    }
}

/// A run whose failures are explained.
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
    /// How it ended.
    pub status: RunStatus,
    /// The earliest start of its shards.
    #[serde(skip)]
    pub started_at: Timestamp,
}

/// How a test ended in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinalStatus {
    /// The final attempt's status.
    pub status: AttemptStatus,
    /// How many attempts there were.
    pub attempts: u32,
}

/// The stored verdict on a test, in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct VerdictTag {
    /// What the engine said.
    pub status: VerdictStatus,
    /// The signal that decided.
    pub status_reason: Option<Signal>,
    /// When it was judged.
    pub evaluated_at: Timestamp,
}

/// The error signatures of a window, as far as a run's failures need them. A text is a signature's number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WindowErrors {
    /// The text of the last failed attempt of each failure of the tests asked for: run number, test and text.
    pub failures: Vec<(i32, TestOrdinal, u32)>,
    /// How many tests showed each text of the window.
    pub tests: Vec<(u32, u32)>,
    /// Fingerprint and title of the texts that occurred in the run asked for.
    pub names: Vec<(u32, ErrorName)>,
}

/// What an error signature is called.
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
    fn bands_begin_where_they_are_said_to() {
        let bands = [0.0, 0.1, 0.5, 0.9].map(band);
        assert_eq!(bands, ["unlikely", "possible", "likely", "near certain"]);
        assert_eq!(band(0.099), "unlikely");
    }
}

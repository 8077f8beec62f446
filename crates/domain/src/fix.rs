//! Fixes of flaky tests: what a job found when it repeated a test, and the claim that a commit fixed it.

mod watch;

use serde::{Deserialize, Serialize};

pub use self::watch::{FixRun, ShownFix, TestFixes, WatchedFix};

use crate::{
    revision::{SHORTEST_COMMIT, is_commit},
    store::StoreError,
    timestamp::Timestamp,
    vocabulary::vocabulary,
};

/// Most fixes of a test that are stored, the newest ones.
pub const MOST_FIXES: u32 = 20;

vocabulary!(
    /// With which tests a test runs. Later modes have more of them.
    RunMode {
        /// Alone.
        Alone = "alone",
        /// With the tests of its file, class or package.
        WithFile = "with_file",
        /// With its whole suite, by the unchanged command.
        InSuite = "in_suite",
    }
);

vocabulary!(
    /// What repetitions of a test after a fix show.
    FixOutcome {
        /// Its rate is low enough with a probability of .95.
        Proved = "proved",
        /// It failed with an error of before.
        StillFlaky = "still_flaky",
        /// It failed with another error.
        Differs = "differs",
        /// It did not fail, and ran too seldom, in a run that proves nothing, or much longer than before.
        NotProvable = "not_provable",
    }
);

impl FixOutcome {
    /// The outcome for people.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::StillFlaky => "still flaky",
            Self::Differs => "differs",
            Self::NotProvable => "not provable",
        }
    }
}

vocabulary!(
    /// What the stable branch shows of a fix.
    FixState {
        /// Repetitions did not prove it, or others of the same commit failed, so nothing is claimed.
        Unproved = "unproved",
        /// The stable branch has not tested the commit.
        Waiting = "waiting",
        /// The stable branch has tested it, and too few runs are clean so far.
        Watching = "watching",
        /// Enough runs are clean.
        Held = "held",
        /// A run failed with an error of before.
        DidNotHold = "did_not_hold",
        /// A run failed with another error, and too few runs are clean so far.
        FailsDifferently = "fails_differently",
    }
);

/// Whether a text is the id of a commit, or enough of its beginning, as it is stored.
pub fn is_stored_commit(text: &str) -> bool {
    is_commit(text) && !text.contains(|c: char| c.is_ascii_uppercase())
}

/// What a job found when it repeated a test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FixCheck {
    /// The outcome.
    pub outcome: FixOutcome,
    /// With which tests it ran.
    pub mode: RunMode,
    /// How often it ran.
    pub runs: u32,
    /// How often it has to run without a failure.
    pub needed: u32,
    /// The rate below which it is with a probability of .95, by these runs.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub largest_rate: f64,
    /// The seconds that they took.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub seconds: f64,
}

/// A fix, as a client sends it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewFix {
    /// The test's name.
    pub test_name: String,
    /// Its file, if it has one.
    #[serde(default)]
    pub file_path: Option<String>,
    /// The commit with the fix.
    pub revision: String,
    /// The rate at which the test failed before.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub rate_before: Option<f64>,
    /// What repetitions show; null if a person claims the fix.
    #[serde(default)]
    pub check: Option<FixCheck>,
}

impl NewFix {
    /// Checks the fields. An error names the field and the expected value.
    pub fn check_fields(&self) -> Result<(), (&'static str, String)> {
        if !is_stored_commit(&self.revision) {
            let expected = format!(
                "expected the id of a commit, at least {SHORTEST_COMMIT} of its hexadecimal digits, in lower case"
            );
            return Err(("revision", expected));
        }
        let rates = [self.rate_before, self.check.map(|check| check.largest_rate)];
        if !rates.iter().flatten().all(|rate| (0.0..=1.0).contains(rate)) {
            return Err(("rateBefore", "expected rates from 0 to 1".to_owned()));
        }
        let is_time = |check: FixCheck| check.seconds.is_finite() && check.seconds >= 0.0;
        if !self.check.is_none_or(is_time) {
            return Err(("seconds", "expected at least 0".to_owned()));
        }
        Ok(())
    }
}

/// A stored fix of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct StoredFix {
    /// When it was stored.
    pub stored_at: Timestamp,
    /// The commit with the fix.
    pub revision: String,
    /// The rate at which the test failed before, if known.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub rate_before: Option<f64>,
    /// What repetitions of a job show; null if a person or a commit's message claims the fix.
    pub check: Option<FixCheck>,
}

/// The reason why a fix is not stored.
#[derive(Debug, thiserror::Error)]
pub enum FixError {
    /// The test is unknown.
    #[error("the project has no test {test_name:?}; send its stored name and file")]
    NoTest {
        /// The beginning of its name.
        test_name: String,
    },
    /// The key is for pull requests only. A public key would speak for the project's own jobs.
    #[error("this key is for pull requests only, and may store no fix; use another key")]
    NotAllowed,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

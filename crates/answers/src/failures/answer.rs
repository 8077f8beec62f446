//! The answer about the failures of a run.

use assay_domain::{
    attempt::AttemptStatus,
    cause::{Action, Cause, ErrorName, EvidenceWord, FailedRun, Knowledge, StoredFacts, VerdictTag},
    decision::RunDecision,
    observation::History,
    owners::{Lookup, Ownership},
    page::Page,
    project::ProjectTag,
    test::TestOrdinal,
    timestamp::Timestamp,
};
use assay_flakiness::FailureCause;
use serde::Serialize;

use super::{Actions, Beginnings, Breakage, Gate, JudgedFailure, evidence, explanation, gate};
use crate::changes::NotRun;

/// The failures of a run, each with its cause.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunFailures {
    /// The project.
    pub project: ProjectTag,
    /// The run.
    pub run: FailedRun,
    /// Whether later runs count.
    pub mode: Knowledge,
    /// The action for the run. On the stable branch there is nothing to merge: see `breakage` of each failure.
    pub gate: Gate,
    /// Whether the run is on the stable branch.
    pub on_stable: bool,
    /// Why the run may lack results, such as a missing shard; null if it is complete.
    pub incomplete: Option<String>,
    /// What usually runs and did not run here; empty without a failed test.
    pub not_run: NotRun,
    /// What gates decided on the run in CI, the newest first, unless a later report replaced the results.
    pub decisions: Vec<RunDecision>,
    /// The position of this page in the list.
    pub page: Page,
    /// The failed and recovered tests of this page. The failures that this branch most probably caused come first.
    pub failures: Vec<ExplainedFailure>,
}

/// A test that failed or recovered in the run.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExplainedFailure {
    /// The test, for pages.
    #[serde(skip)]
    pub test: TestOrdinal,
    /// The full stored name.
    pub test_name: String,
    /// The stored file of the test.
    pub file_path: Option<String>,
    /// The final attempt's status: `passed` where a retry passed.
    pub status: AttemptStatus,
    /// The largest number of attempts of one execution in this run: 1 without a retry.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub attempts: u32,
    /// The most probable cause, or `unclear` if none reaches 0.6.
    pub cause: Cause,
    /// The probability of each cause. They add up to 1.
    pub probabilities: CauseProbabilities,
    /// P(this branch broke it): `thisChange` + `earlierOnBranch`.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub mine: f64,
    /// The action for this failure, with those that this branch caused no more probably. The strongest action of a run's
    /// failures is that of its gate.
    pub action: Action,
    /// Whether many tests failed together in its run. Such failures have one cause, so `gate` counts them once.
    pub in_mass_failure: bool,
    /// One sentence with the counts that support the cause.
    pub explanation: String,
    /// The runs behind the sentence.
    pub evidence: CauseEvidence,
    /// Where the same error occurred in the window, besides this failure.
    pub same_error: SameErrors,
    /// The stored verdict on the test; null before the first one.
    pub verdict: Option<VerdictTag>,
    /// The state of the test on the stable branch, as far as it was known.
    pub stable: StableState,
    /// For a failure on the stable branch, when the test began to fail; null on other branches.
    pub breakage: Option<Breakage>,
    /// The fingerprint of its error, if it has one.
    pub fingerprint: Option<String>,
    /// The title of its error.
    pub title: Option<String>,
    /// The number of runs on other branches in which the test ran before. For a failure on the stable branch, all
    /// earlier runs count.
    pub runs_elsewhere: u32,
    /// The start of the first stored run in which the test failed.
    pub first_failed_at: Option<Timestamp>,
    /// The owners of the test.
    #[serde(flatten)]
    pub ownership: Ownership,
}

impl ExplainedFailure {
    pub(super) fn of(
        history: &History,
        failure: &JudgedFailure,
        knowledge: Knowledge,
        stored: StoredFacts,
        (error, owners, actions, beginnings): (
            Option<&ErrorName>,
            &mut Lookup<'_>,
            &Actions,
            &Beginnings<'_>,
        ),
    ) -> Self {
        let JudgedFailure {
            cause,
            final_status,
            name,
            runs_elsewhere,
        } = failure;
        Self {
            explanation: explanation(history, cause, knowledge),
            evidence: evidence::of(history, cause),
            test: cause.test,
            test_name: name.name.clone(),
            file_path: name.file_path.clone(),
            status: final_status.status,
            attempts: final_status.attempts,
            cause: gate::cause(cause),
            probabilities: cause.probabilities.into(),
            mine: cause.probabilities.mine().clamp(0.0, 1.0),
            action: actions.of_failure(cause.probabilities.mine()),
            in_mass_failure: cause.in_mass_failure,
            same_error: cause.facts.same_error.into(),
            verdict: stored.verdict,
            stable: StableState::of(cause),
            breakage: beginnings.breakage(cause),
            fingerprint: error.map(|error| error.fingerprint.clone()),
            title: error.map(|error| error.title.clone()),
            runs_elsewhere: *runs_elsewhere,
            first_failed_at: stored.first_failed_at,
            ownership: owners.of(name.file_path.as_deref()).clone(),
        }
    }
}

/// The probability of each cause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CauseProbabilities {
    /// The test is flaky: it failed on good code.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub flake: f64,
    /// Many tests failed together, or something outside of the code changed.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub environment: f64,
    /// The code was broken before this branch.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub broken_before: f64,
    /// An earlier revision of this branch broke it.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub earlier_on_branch: f64,
    /// This revision broke it.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub this_change: f64,
}

impl CauseProbabilities {
    /// The probabilities with their causes: this branch's first.
    pub const fn by_cause(&self) -> [(Cause, f64); 5] {
        [
            (Cause::ThisChange, self.this_change),
            (Cause::EarlierOnBranch, self.earlier_on_branch),
            (Cause::BrokenBefore, self.broken_before),
            (Cause::Flake, self.flake),
            (Cause::Environment, self.environment),
        ]
    }
}

impl From<assay_flakiness::Probabilities> for CauseProbabilities {
    fn from(of: assay_flakiness::Probabilities) -> Self {
        let share = |share: f64| share.clamp(0.0, 1.0);
        Self {
            flake: share(of.flake),
            environment: share(of.environment),
            broken_before: share(of.broken_before),
            earlier_on_branch: share(of.earlier_on_branch),
            this_change: share(of.this_change),
        }
    }
}

/// The runs behind a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CauseEvidence {
    /// The newest of them, at most 20.
    #[cfg_attr(feature = "openapi", schema(max_items = 20))]
    pub runs: Vec<EvidenceRun>,
    /// The total number of them.
    pub runs_total: u32,
}

/// A run of the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EvidenceRun {
    /// The run's id.
    pub run_id: String,
    /// Its contribution to the evidence.
    pub says: EvidenceWord,
    /// The run's number, for pages.
    #[serde(skip)]
    pub run_number: i32,
}

/// How often the error of a failure occurred elsewhere in the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SameErrors {
    /// Other failures of the test.
    pub here: u32,
    /// Those of them that are most probably flakes.
    pub as_flake: u32,
    /// Those of them on the stable branch.
    pub on_stable: u32,
    /// Those of them on other branches than the run's and the stable one.
    pub other_branches: u32,
    /// Other tests.
    pub other_tests: u32,
    /// Other tests of this run.
    pub in_this_run: u32,
}

impl From<assay_flakiness::SameError> for SameErrors {
    fn from(of: assay_flakiness::SameError) -> Self {
        Self {
            here: of.here,
            as_flake: of.as_flake,
            on_stable: of.on_stable,
            other_branches: of.other_branches,
            other_tests: of.other_tests,
            in_this_run: of.in_this_run,
        }
    }
}

/// The state of a test on the stable branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct StableState {
    /// The status in the newest run of the stable branch: `passed` or `failed`; null if it never ran there.
    pub last_status: Option<AttemptStatus>,
    /// The number of failed runs at the end of the history of the stable branch.
    pub failure_streak: u32,
}

impl StableState {
    /// The state of a failure's test on the stable branch.
    pub fn of(failure: &FailureCause) -> Self {
        Self {
            last_status: failure.facts.stable_last_failed.map(|failed| match failed {
                true => AttemptStatus::Failed,
                false => AttemptStatus::Passed,
            }),
            failure_streak: failure.facts.stable_streak,
        }
    }
}

//! Verdicts on tests, with their signals and their evidence.

use serde::{Deserialize, Serialize};

use crate::{
    attempt::AttemptStatus,
    observation::History,
    owners::Ownership,
    test::{TestName, TestOrdinal},
    timestamp::Timestamp,
    vocabulary::vocabulary,
};

/// The engine's fixed window in days.
pub const ENGINE_WINDOW_DAYS: i64 = 14;

vocabulary!(
    /// The engine's conclusion about a test, over the runs of all branches in its window.
    VerdictStatus {
        /// It has too few runs for a verdict.
        InsufficientData = "insufficient_data",
        /// It has no problem, or no longer one.
        Healthy = "healthy",
        /// Its newest runs failed. They do not show yet whether the test or the code is the cause.
        Failing = "failing",
        /// It fails although the code is good.
        Flaky = "flaky",
        /// The code under test is broken.
        Broken = "broken",
    }
);

impl VerdictStatus {
    /// All of them in the order of lists and stored figures.
    pub const LISTED: [Self; 5] = [
        Self::Broken,
        Self::Failing,
        Self::Flaky,
        Self::Healthy,
        Self::InsufficientData,
    ];
}

vocabulary!(
    /// A reason for a verdict. The order is the fixed order of `alsoActive`.
    Signal {
        /// It failed in the last two or more runs of a stable chain.
        ConsecutiveFailures = "consecutive_failures",
        /// The code under test is very probably broken on a stable chain.
        FailureRateBroken = "failure_rate_broken",
        /// It both passed and failed on one revision.
        SameShaFlip = "same_sha_flip",
        /// It passed on retry.
        RetryRate = "retry_rate",
        /// Its failures form episodes that a breakage and its fix do not explain.
        FailureRateFlaky = "failure_rate_flaky",
        /// It alternates between passing and failing.
        FlipRate = "flip_rate",
        /// It failed in one episode, and no other signal explains it.
        IsolatedFailure = "isolated_failure",
        /// It failed in runs in which many tests failed together.
        MassFailure = "mass_failure",
        /// It fails on a branch other than the stable one.
        FailingOffStable = "failing_off_stable",
        /// All its failures are on one variant of several.
        VariantSpecific = "variant_specific",
        /// It failed on several branches, one after the other, and passed in between.
        UnrelatedBranches = "unrelated_branches",
        /// It fails on weekends or in one hour of the day, and at no other time.
        Calendar = "calendar",
        /// It was flaky and has passed long enough since then.
        Resolved = "resolved",
    }
);

impl Signal {
    /// The signal in words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::ConsecutiveFailures => "Failing several runs in a row",
            Self::FailureRateBroken => "Code under test probably broken",
            Self::SameShaFlip => "Passed and failed on the same revision",
            Self::RetryRate => "Passed on retry",
            Self::FailureRateFlaky => "Failures that a breakage and its fix do not explain",
            Self::FlipRate => "Flips between passing and failing",
            Self::IsolatedFailure => "One isolated episode of failures",
            Self::MassFailure => "Failed together with many other tests",
            Self::FailingOffStable => "Failing off the stable branch",
            Self::VariantSpecific => "Fails on one variant only",
            Self::UnrelatedBranches => "Failed on unrelated branches",
            Self::Calendar => "Fails at certain times only",
            Self::Resolved => "Flaky before, passing since",
        }
    }
}

vocabulary!(
    /// Short labels in lists.
    Label {
        /// The flip rate is active.
        Flips = "flips",
        /// The retry rate is active.
        Retries = "retries",
    }
);

/// The engine's verdict on one test.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The test.
    pub test: TestOrdinal,
    /// The status.
    pub status: VerdictStatus,
    /// The primary signal; none for a test without signals.
    pub reason: Option<Signal>,
    /// One sentence with the counts behind the verdict.
    pub explanation: String,
    /// Every active signal, including the primary one, in their fixed order.
    pub signals: Vec<Signal>,
    /// Short labels for a list.
    pub labels: Vec<Label>,
    /// The branches other than the stable one on which it currently fails.
    pub failing_on: Vec<FailingOn>,
    /// The figures.
    pub figures: Figures,
    /// The newest run of the window in which the test was not skipped, as an index into [`History::runs`].
    pub last_run: Option<usize>,
}

impl Verdict {
    /// Its approximate memory use in bytes.
    pub fn bytes(&self) -> usize {
        let branches = self.failing_on.iter();
        let branches = branches.map(|on| size_of_val(on) + on.branch.as_ref().map_or(0, String::len));
        size_of_val(self)
            + self.explanation.len()
            + size_of_val(&*self.signals)
            + size_of_val(&*self.labels)
            + branches.sum::<usize>()
    }
}

/// A branch other than the stable one whose newest runs failed a test. At most 20 are listed for each test, the longest
/// streak first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FailingOn {
    /// The branch; null for runs that report none.
    pub branch: Option<String>,
    /// The number of its newest runs that failed, without mass failures.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub streak: u32,
    /// The number of the first of these runs.
    pub since_run: i32,
}

/// The figures of a verdict. Rates and scores lie within 0..=1.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Milliseconds of failed attempts in the window; none where no attempt reported a duration.
    pub time_lost_ms: Option<u64>,
    /// Score from 0 to 1 for an unreliable test: low below 0.5, likely below 0.9, else near certain.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub flake_score: f64,
    /// The expected rate at which it fails although the code is good.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub flake_rate: f64,
    /// Changes between neighbouring runs of a chain, as a share of the neighbours.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub flip_rate: f64,
    /// Share of the considered runs with a failed attempt; none if no run was considered.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub failure_rate: Option<f64>,
    /// Probability that the code is broken on the worst live stable chain; none without such a chain.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub broken_probability: Option<f64>,
    /// Runs of the window that contain the test, without skips.
    pub runs_in_window: u32,
    /// Those of them that were not mass failures.
    pub runs_considered: u32,
    /// Failed runs at the end of the stable branch's history, or of all branches' history if the test never ran there.
    pub failure_streak: u32,
    /// The test's share of the stable branch's failed runs: 1 divided by the number of failed tests for each run in
    /// which it failed, and 0.1 for each in which it passed on retry.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub impact: f64,
}

/// The numbers behind a verdict. A reader can repeat the calculation from the test's history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// The version of the engine.
    pub engine: String,
    /// The time of the judgement.
    pub now: Timestamp,
    /// The length of the window in days.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub window_days: i64,
    /// Runs of the window that contain the test, without skips.
    pub runs_seen: u32,
    /// Runs of the window in which it was skipped or interrupted.
    pub runs_skipped: u32,
    /// Runs that were excluded as mass failures.
    pub runs_dropped: u32,
    /// The newest of the excluded runs, at most 20.
    pub dropped: Vec<DroppedRun>,
    /// Every active signal, in their fixed order.
    pub signals: Vec<SignalEvidence>,
}

/// A run that was excluded as a mass failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DroppedRun {
    /// The run.
    pub run_id: String,
    /// Probability that a test failed in it because of the mass failure; at least 0.1.
    #[cfg_attr(feature = "openapi", schema(minimum = 0.1, maximum = 1))]
    pub beta: f64,
}

/// The evidence of one active signal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SignalEvidence {
    /// The signal.
    pub signal: Signal,
    /// The signal in words.
    pub label: String,
    /// Its value: a count, rate or probability.
    pub value: f64,
    /// Its threshold: it is active from this value on.
    pub threshold: f64,
    /// One sentence with the counts.
    pub detail: String,
    /// The runs behind it, newest first, at most 20. For a flip this is the later run.
    pub runs: Vec<String>,
    /// The total number of such runs.
    pub runs_total: u32,
}

/// A verdict with its evidence, in the stored form.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The evidence.
    pub evidence: Evidence,
}

/// Port of the engine, so that a store can judge a history within its transaction.
///
/// An engine may override the other methods to skip work whose result they discard.
pub trait Judge: Send + Sync {
    /// The verdicts on every test that has a result in the engine's window, ascending by test.
    fn judge(&self, history: &History, now: Timestamp) -> Vec<Judgement>;

    /// The same without evidence.
    fn verdicts(&self, history: &History, now: Timestamp) -> Vec<Verdict> {
        let judgements = self.judge(history, now).into_iter();
        judgements.map(|judgement| judgement.verdict).collect()
    }

    /// The verdicts on those of `tests` that have a result in the window, ascending by test.
    fn judge_tests(&self, history: &History, now: Timestamp, tests: &[TestOrdinal]) -> Vec<Judgement> {
        let mut judgements = self.judge(history, now);
        judgements.retain(|judgement| tests.contains(&judgement.verdict.test));
        judgements
    }

    /// The clean builds that prove a fix of a test that failed at this rate before; none if the rate is not known.
    fn builds_needed(&self, rate_before: Option<f64>) -> u32;

    /// The flaky and broken tests of the window.
    fn suspects(&self, history: &History, now: Timestamp) -> Suspects {
        let mut suspects = Suspects::default();
        for Judgement { verdict, .. } in self.judge(history, now) {
            suspects.add(verdict.status, || verdict);
        }
        suspects
    }
}

/// The tests of a window that need attention.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Suspects {
    /// The verdicts on the flaky and broken tests, ascending by test.
    pub verdicts: Vec<Verdict>,
    /// The number of tests that currently fail without being flaky or broken.
    pub failing: u64,
    /// The number of tests with too few runs for a verdict.
    pub gathering: u64,
}

impl Suspects {
    /// Counts a test with this status. `verdict` is called only for a flaky or broken test.
    pub fn add(&mut self, status: VerdictStatus, verdict: impl FnOnce() -> Verdict) {
        match status {
            VerdictStatus::Flaky | VerdictStatus::Broken => self.verdicts.push(verdict()),
            VerdictStatus::Failing => self.failing += 1,
            VerdictStatus::InsufficientData => self.gathering += 1,
            VerdictStatus::Healthy => {}
        }
    }

    /// Adds the counts, and appends the verdicts of `more`.
    #[must_use]
    pub fn and(mut self, mut more: Self) -> Self {
        self.verdicts.append(&mut more.verdicts);
        self.failing += more.failing;
        self.gathering += more.gathering;
        self
    }
}

/// A test in the flaky list, and of an offline analysis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct VerdictEntry {
    /// The full stored name.
    pub test_name: String,
    /// The stored file of the test.
    pub file_path: Option<String>,
    /// The other names under which a branch may report the test, by the renames file of the project.
    #[cfg_attr(feature = "openapi", schema(max_items = 10))]
    pub former_names: Vec<TestName>,
    /// The verdict.
    pub status: VerdictStatus,
    /// The primary signal.
    pub status_reason: Option<Signal>,
    /// One sentence with the counts behind the verdict.
    pub explanation: String,
    /// Every other active signal.
    pub also_active: Vec<Signal>,
    /// Short labels.
    pub labels: Vec<Label>,
    /// The branches other than the stable one on which it currently fails.
    pub failing_on: Vec<FailingOn>,
    /// The first run of its present failures on the stable branch; null if its newest result there did not fail.
    pub failing_since: Option<FailingSince>,
    /// The start of the first run of the window in which an attempt failed.
    pub first_failed_at: Option<Timestamp>,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
    /// The final attempt's start in the newest run that did not skip the test.
    pub last_seen_at: Option<Timestamp>,
    /// That run.
    pub last_run: Option<LastRun>,
    /// The numbers behind the verdict, if the caller requested them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The owners of the test.
    #[serde(flatten)]
    pub ownership: Ownership,
}

impl VerdictEntry {
    /// The test.
    pub fn test(&self) -> TestName {
        TestName {
            name: self.test_name.clone(),
            file_path: self.file_path.clone(),
        }
    }

    /// The entry of a verdict on the named test, without owners and former names.
    pub fn new(
        test: TestName,
        verdict: Verdict,
        failing_since: Option<FailingSince>,
        first_failed_at: Option<Timestamp>,
        last: Option<(Timestamp, LastRun)>,
        evidence: Option<Evidence>,
    ) -> Self {
        let also_active = verdict.also_active();
        let (last_seen_at, last_run) = last.unzip();
        Self {
            test_name: test.name,
            file_path: test.file_path,
            former_names: Vec::new(),
            status: verdict.status,
            status_reason: verdict.reason,
            explanation: verdict.explanation,
            also_active,
            labels: verdict.labels,
            failing_on: verdict.failing_on,
            failing_since,
            first_failed_at,
            figures: verdict.figures,
            last_seen_at,
            last_run,
            evidence,
            ownership: Ownership::default(),
        }
    }
}

impl Verdict {
    /// Every active signal except the primary one, in their fixed order.
    pub fn also_active(&self) -> Vec<Signal> {
        self.signals
            .iter()
            .copied()
            .filter(|signal| Some(*signal) != self.reason)
            .collect()
    }
}

/// The run of the stable branch with which a test's present failures began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FailingSince {
    /// Its id.
    pub run_id: String,
    /// Its number.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub run_number: i32,
    /// Its start.
    pub started_at: Timestamp,
    /// The revision that it tested, if known.
    pub revision: Option<String>,
}

/// The newest run that did not skip a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct LastRun {
    /// Its id.
    pub run_id: String,
    /// Its number.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub run_number: i32,
    /// The test's final status in it.
    pub status: AttemptStatus,
    /// The run's start.
    pub started_at: Timestamp,
}

/// A test with its stored verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct TestVerdict {
    /// The test.
    pub test: TestName,
    /// The verdict as of the last import; none if none was ever stored.
    pub stored: Option<StoredVerdict>,
}

/// A verdict as of the last import.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredVerdict {
    /// The status.
    pub status: VerdictStatus,
    /// The primary signal.
    pub reason: Option<Signal>,
    /// One sentence with the counts.
    pub explanation: String,
    /// Every active signal, in their fixed order.
    pub signals: Vec<Signal>,
    /// Short labels.
    pub labels: Vec<Label>,
    /// The branches other than the stable one on which it failed.
    pub failing_on: Vec<FailingOn>,
    /// The figures.
    pub figures: Figures,
    /// The time of the judgement.
    pub evaluated_at: Timestamp,
    /// The final attempt's start in the newest run that did not skip the test, and that run.
    pub last: Option<(Timestamp, LastRun)>,
    /// The numbers behind the verdict.
    pub evidence: Evidence,
}

vocabulary!(
    /// The order of the list of all tests: largest first, unknown last.
    TestSort {
        /// By verdict, the worst first, then by time lost.
        Verdict = "verdict",
        /// By time lost.
        TimeLost = "timeLost",
        /// By flake score.
        Score = "score",
        /// By failure rate.
        Rate = "rate",
        /// By impact on the stable branch.
        Impact = "impact",
        /// By name, then by file.
        Name = "name",
    }
);

vocabulary!(
    /// The order of the flaky list: largest first, unknown last.
    FlakySort {
        /// By time lost.
        TimeLost = "timeLost",
        /// By failure rate.
        Rate = "rate",
        /// By impact on the stable branch.
        Impact = "impact",
    }
);

impl From<FlakySort> for TestSort {
    fn from(sort: FlakySort) -> Self {
        match sort {
            FlakySort::TimeLost => Self::TimeLost,
            FlakySort::Rate => Self::Rate,
            FlakySort::Impact => Self::Impact,
        }
    }
}

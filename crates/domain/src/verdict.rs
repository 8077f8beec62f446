//! Verdicts on tests, with their signals and their evidence.

use serde::{Deserialize, Serialize};

use crate::{
    attempt::AttemptStatus,
    observation::History,
    test::{TestName, TestOrdinal},
    timestamp::Timestamp,
    vocabulary::vocabulary,
};

/// The engine's fixed window in days.
pub const ENGINE_WINDOW_DAYS: i64 = 14;

vocabulary!(
    /// What the engine says of a test, over the runs of all branches in its window.
    VerdictStatus {
        /// Too few runs to say.
        InsufficientData = "insufficient_data",
        /// Nothing wrong, or no longer.
        Healthy = "healthy",
        /// Its newest runs failed, and they do not show yet whether the test or the code is at fault.
        Failing = "failing",
        /// It fails although the code is good.
        Flaky = "flaky",
        /// The code that it tests is broken.
        Broken = "broken",
    }
);

vocabulary!(
    /// A signal that a verdict rests on. The order is the fixed order of `alsoActive`.
    Signal {
        /// It failed the last two or more runs of a stable chain.
        ConsecutiveFailures = "consecutive_failures",
        /// The code it tests is very probably broken there.
        FailureRateBroken = "failure_rate_broken",
        /// It both passed and failed on one revision.
        SameShaFlip = "same_sha_flip",
        /// It passed on retry.
        RetryRate = "retry_rate",
        /// It fails in episodes that a break and its fix do not explain.
        FailureRateFlaky = "failure_rate_flaky",
        /// It changes between passing and failing.
        FlipRate = "flip_rate",
        /// It failed once, with nothing that says why.
        IsolatedFailure = "isolated_failure",
        /// It failed in runs in which many tests failed together.
        MassFailure = "mass_failure",
        /// It fails on another branch than the stable one.
        FailingOffStable = "failing_off_stable",
        /// All its failures are on one variant of several.
        VariantSpecific = "variant_specific",
        /// It was flaky and has passed long enough since.
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
            Self::FailureRateFlaky => "Failures that a break and its fix do not explain",
            Self::FlipRate => "Flips between passing and failing",
            Self::IsolatedFailure => "One isolated failure",
            Self::MassFailure => "Failed together with many other tests",
            Self::FailingOffStable => "Failing off the stable branch",
            Self::VariantSpecific => "Fails on one variant only",
            Self::Resolved => "Flaky before, passing since",
        }
    }
}

vocabulary!(
    /// A short label for a list.
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
    /// The signal that decided; none for a test without signals.
    pub reason: Option<Signal>,
    /// One sentence with the counts behind the verdict.
    pub explanation: String,
    /// Every active signal, in their fixed order, the deciding one included.
    pub signals: Vec<Signal>,
    /// Short labels for a list.
    pub labels: Vec<Label>,
    /// The branches other than the stable one on which it fails now.
    pub failing_on: Vec<FailingOn>,
    /// The figures.
    pub figures: Figures,
    /// The newest run of the window in which the test was not skipped: its place in [`History::runs`].
    pub last_run: Option<usize>,
}

/// A branch other than the stable one whose newest runs failed a test. At most 20 are listed for each test, the longest
/// streak first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FailingOn {
    /// The branch; null for runs that report none.
    pub branch: Option<String>,
    /// How many of its newest runs failed, without mass failures.
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
    /// Probability-like score that the test itself is unreliable: low below 0.5, likely below 0.9, else near certain.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub flake_score: f64,
    /// The expected rate at which it fails although the code is good.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub flake_rate: f64,
    /// Changes between neighbouring runs of a chain, as a share of the neighbours.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub flip_rate: f64,
    /// Share of the considered runs with a failed attempt; none where no run was considered.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub failure_rate: Option<f64>,
    /// Probability that the code is broken on the worst live stable chain; none without such a chain.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub broken_probability: Option<f64>,
    /// Runs of the window that contain the test, without skips.
    pub runs_in_window: u32,
    /// Those of them that were no mass failure.
    pub runs_considered: u32,
    /// Failed runs at the end of the stable branch's history (of all, where it never ran there).
    pub failure_streak: u32,
    /// Red runs of the stable branch owed to the test, by fair share.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub impact: f64,
}

/// The numbers behind a verdict, so that a reader can redo the arithmetic from the test's history.
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
    /// Runs seen that were dropped as mass failures.
    pub runs_dropped: u32,
    /// The newest of the dropped runs, at most 20.
    pub dropped: Vec<DroppedRun>,
    /// Every active signal, in their fixed order.
    pub signals: Vec<SignalEvidence>,
}

/// A run dropped as a mass failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DroppedRun {
    /// The run.
    pub run_id: String,
    /// Probability that a test failed in it because many failed together; at least 0.1.
    #[cfg_attr(feature = "openapi", schema(minimum = 0.1, maximum = 1))]
    pub beta: f64,
}

/// What one active signal rests on.
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
    /// The value at or above which it is active.
    pub threshold: f64,
    /// One sentence with the counts.
    pub detail: String,
    /// The runs that it rests on, newest first, at most 20; of a flip the later run.
    pub runs: Vec<String>,
    /// How many such runs there are.
    pub runs_total: u32,
}

/// A verdict with its evidence, as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The evidence.
    pub evidence: Evidence,
}

/// Port of the engine, so that a store can judge a history within its transaction.
///
/// An engine may override the other methods to leave out work whose result they drop.
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

    /// The flaky and broken tests of the window.
    fn suspects(&self, history: &History, now: Timestamp) -> Suspects {
        let mut suspects = Suspects::default();
        for Judgement { verdict, .. } in self.judge(history, now) {
            suspects.add(verdict.status, || verdict);
        }
        suspects
    }
}

/// The tests of a window that somebody should look at.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Suspects {
    /// The verdicts on the flaky and broken tests, ascending by test.
    pub verdicts: Vec<Verdict>,
    /// How many tests fail now without being flaky or broken.
    pub failing: u64,
    /// How many tests have too few runs for a verdict.
    pub gathering: u64,
}

impl Suspects {
    /// Counts a test with this status. `verdict` is called for a flaky or broken test alone.
    pub fn add(&mut self, status: VerdictStatus, verdict: impl FnOnce() -> Verdict) {
        match status {
            VerdictStatus::Flaky | VerdictStatus::Broken => self.verdicts.push(verdict()),
            VerdictStatus::Failing => self.failing += 1,
            VerdictStatus::InsufficientData => self.gathering += 1,
            VerdictStatus::Healthy => {}
        }
    }

    /// Both, those of the later tests last.
    #[must_use]
    pub fn and(mut self, mut more: Self) -> Self {
        self.verdicts.append(&mut more.verdicts);
        self.failing += more.failing;
        self.gathering += more.gathering;
        self
    }
}

/// A test in the flaky list, and of an offline analysis.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct VerdictEntry {
    /// The full stored name.
    pub test_name: String,
    /// The stored spec file.
    pub file_path: Option<String>,
    /// The verdict.
    pub status: VerdictStatus,
    /// The signal that decided.
    pub status_reason: Option<Signal>,
    /// One sentence with the counts behind the verdict.
    pub explanation: String,
    /// Every other active signal.
    pub also_active: Vec<Signal>,
    /// Short labels.
    pub labels: Vec<Label>,
    /// The branches other than the stable one on which it fails now.
    pub failing_on: Vec<FailingOn>,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
    /// The final attempt's start in the newest run that did not skip the test.
    pub last_seen_at: Option<Timestamp>,
    /// That run.
    pub last_run: Option<LastRun>,
    /// The numbers behind the verdict, if the caller asked for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

impl VerdictEntry {
    /// The entry of a verdict on the named test.
    pub fn new(
        test: TestName,
        verdict: Verdict,
        last: Option<(Timestamp, LastRun)>,
        evidence: Option<Evidence>,
    ) -> Self {
        let also_active = verdict.also_active();
        let (last_seen_at, last_run) = last.unzip();
        Self {
            test_name: test.name,
            file_path: test.file_path,
            status: verdict.status,
            status_reason: verdict.reason,
            explanation: verdict.explanation,
            also_active,
            labels: verdict.labels,
            failing_on: verdict.failing_on,
            figures: verdict.figures,
            last_seen_at,
            last_run,
            evidence,
        }
    }
}

impl Verdict {
    /// Every active signal but the deciding one, in their fixed order.
    pub fn also_active(&self) -> Vec<Signal> {
        self.signals
            .iter()
            .copied()
            .filter(|signal| Some(*signal) != self.reason)
            .collect()
    }
}

/// The newest run that did not skip a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    /// When the run started.
    pub started_at: Timestamp,
}

/// A test with its stored verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct TestVerdict {
    /// The test.
    pub test: TestName,
    /// The verdict as of the last import; none where none was ever stored.
    pub stored: Option<StoredVerdict>,
}

/// A verdict as of the last import.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredVerdict {
    /// The status.
    pub status: VerdictStatus,
    /// The signal that decided.
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
    /// When it was judged.
    pub evaluated_at: Timestamp,
    /// The final attempt's start in the newest run that did not skip the test, and that run.
    pub last: Option<(Timestamp, LastRun)>,
    /// The numbers behind the verdict.
    pub evidence: Evidence,
}

vocabulary!(
    /// The order of the flaky list; the largest first, unknown last.
    FlakySort {
        /// By time lost.
        TimeLost = "timeLost",
        /// By failure rate.
        Rate = "rate",
        /// By impact on the stable branch.
        Impact = "impact",
    }
);

//! A test's history: its results in the runs of a period.

use std::{collections::HashSet, sync::Arc};

use serde::Serialize;

use crate::{
    attempt::{AttemptStatus, ErrorDetail},
    id::RunId,
    period::Period,
    revision::{RevisionOrigin, Revisions},
    run::RunTag,
    signature::TestSignature,
    test::TestName,
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, Evidence, StoredVerdict},
    vocabulary::vocabulary,
};

/// A test's occurrences in a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestHistory {
    /// The test.
    pub test: TestName,
    /// The name in the newest report, if the stored one lacks the parts that change from run to run.
    pub written_name: Option<String>,
    /// The stable branch.
    pub stable_branch: String,
    /// One entry per run, newest first by (startedAt, runNumber).
    pub occurrences: Vec<Occurrence>,
    /// The occurrences still to be read, if there are too many for one read.
    pub rest: Option<HistoryRest>,
}

/// The older occurrences of a test that are still to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRest {
    /// The test's number.
    pub test: i32,
    /// The numbers under which its results may be stored: its own, and those of its former names.
    pub stored_as: Vec<i32>,
    /// The period.
    pub period: Period,
    /// The revisions by the engine's rules, read once.
    pub revisions: Arc<Revisions>,
    /// Start and number of the last run that was read.
    pub after: (Timestamp, i32),
    /// The runs that were read. Each may have a different start by now.
    pub runs: HashSet<i32>,
}

/// The result of a test in one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Occurrence {
    /// The run.
    pub run_id: RunId,
    /// Its number.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub run_number: i32,
    /// Its branch.
    pub branch: Option<String>,
    /// Its tested revision.
    pub tested_revision: Option<String>,
    /// Its commit.
    pub commit_sha: Option<String>,
    /// Its suite. Suites separate variants.
    pub suite: Option<String>,
    /// Its start.
    pub started_at: Timestamp,
    /// The final attempt's status.
    pub status: AttemptStatus,
    /// The final attempt's duration in milliseconds.
    pub duration_ms: Option<u64>,
    /// The largest number of attempts of one execution: 1 without a retry.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub attempts: u32,
    /// Milliseconds of the attempts before the final one of each execution.
    pub wasted_ms: u64,
    /// Milliseconds of the attempts that failed or timed out; none if no attempt reported a duration.
    pub lost_ms: Option<u64>,
    /// Whether any attempt failed or timed out.
    pub any_failed_attempt: bool,
    /// False for a run that was sent with a key for pull requests only. Such a run counts in no verdict.
    pub trusted: bool,
    /// The branch and time under which the engine counts the run's revision; none outside of its window, and none for
    /// a run that does not count in verdicts.
    #[serde(flatten)]
    pub revision: RevisionOrigin,
}

vocabulary!(
    /// Why a result does not count in its test's verdict.
    NotCounted {
        /// The run started before the 14 days of the verdict.
        OutOfWindow = "out_of_window",
        /// The run was sent with a key for pull requests only.
        Untrusted = "untrusted",
        /// The test was skipped, or interrupted from outside.
        Skipped = "skipped",
        /// So many tests failed in the run that their failures have a cause outside of the tests, such as an outage.
        MassFailure = "mass_failure",
    }
);

/// Tells, of the results of a test, which ones count in its verdict.
#[derive(Debug, Clone, Default)]
pub struct Counting {
    /// The start of the window; none before the first verdict.
    from: Option<Timestamp>,
    /// The runs that are named as mass failures and were not met yet.
    dropped: HashSet<String>,
    /// Whether there are older mass failures that the evidence does not name.
    has_unnamed: bool,
}

impl Counting {
    /// By the evidence of the verdict; none before the first one.
    pub fn by(evidence: Option<&Evidence>) -> Self {
        let Some(evidence) = evidence else {
            return Self::default();
        };
        Self {
            from: Some(evidence.now.plus_days(-ENGINE_WINDOW_DAYS)),
            dropped: evidence.dropped.iter().map(|run| run.run_id.clone()).collect(),
            has_unnamed: u32::try_from(evidence.dropped.len())
                .is_ok_and(|named| named < evidence.runs_dropped),
        }
    }

    /// Whether the next older result counts, and why not. Both are none if the verdict does not say it.
    pub fn next(&mut self, result: &Occurrence) -> (Option<bool>, Option<NotCounted>) {
        let is_old = self.from.is_some_and(|from| result.started_at < from);
        let reason = match result {
            Occurrence { trusted: false, .. } => Some(NotCounted::Untrusted),
            _ if is_old => Some(NotCounted::OutOfWindow),
            _ if result.status.is_skip() => Some(NotCounted::Skipped),
            _ => {
                let is_dropped = self.dropped.remove(&result.run_id.to_string());
                is_dropped.then_some(NotCounted::MassFailure)
            }
        };
        let is_unknown = self.from.is_none() || self.has_unnamed && self.dropped.is_empty();
        match reason {
            Some(_) => (Some(false), reason),
            None => ((!is_unknown).then_some(true), None),
        }
    }
}

/// A test in short, over a period and as of one state of the project.
#[derive(Debug, Clone, PartialEq)]
pub struct TestSummary {
    /// The test.
    pub test: TestName,
    /// The stored verdict; none before the first one.
    pub verdict: Option<StoredVerdict>,
    /// The outcomes in the newest runs of the period, at most a thousand, newest first.
    pub outcomes: Vec<RunOutcome>,
    /// The oldest run of the period with a failed attempt, and its start.
    pub first_failure: Option<(RunTag, Timestamp)>,
    /// The newest runs of the period with a failed attempt, newest first.
    pub last_failures: Vec<FailedOccurrence>,
    /// Its most frequent error signatures in the period, at most 20.
    pub signatures: Vec<TestSignature>,
}

/// The outcome of a test in a run, in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOutcome {
    /// The run's branch.
    pub branch: Option<String>,
    /// The final attempt's status.
    pub status: AttemptStatus,
    /// Whether any attempt failed or timed out.
    pub any_failed_attempt: bool,
}

/// A run in which an attempt of a test failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedOccurrence {
    /// The run.
    pub run: RunTag,
    /// Its start.
    pub started_at: Timestamp,
    /// The final attempt's status.
    pub status: AttemptStatus,
    /// The errors of the last failed attempt.
    pub errors: Vec<ErrorDetail>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::DroppedRun;

    const NOW: Timestamp = Timestamp::from_unix_ms(1_764_000_000_000);

    fn result(number: u32, days_ago: i64, status: AttemptStatus, trusted: bool) -> Occurrence {
        Occurrence {
            run_id: run_id(number).parse().unwrap(),
            run_number: 1,
            branch: None,
            tested_revision: None,
            commit_sha: None,
            suite: None,
            started_at: NOW.plus_days(-days_ago),
            status,
            duration_ms: None,
            attempts: 1,
            wasted_ms: 0,
            lost_ms: None,
            any_failed_attempt: status.is_failure(),
            trusted,
            revision: RevisionOrigin::default(),
        }
    }

    fn run_id(number: u32) -> String {
        format!("019aa3f4-5b1c-7def-8a3b-{number:012}")
    }

    #[test]
    fn a_result_counts_or_says_why_not() {
        use AttemptStatus::{Failed, Passed, Skipped};
        use NotCounted::{MassFailure, OutOfWindow, Untrusted};
        let results = [
            (result(1, 0, Failed, true), Some(MassFailure)),
            (result(2, 0, Failed, false), Some(Untrusted)),
            (result(3, 1, Skipped, true), Some(NotCounted::Skipped)),
            (result(4, 14, Passed, true), None),
            (result(5, 15, Passed, true), Some(OutOfWindow)),
        ];
        let mut evidence = Evidence {
            engine: String::new(),
            now: NOW,
            window_days: 14,
            runs_seen: 3,
            runs_skipped: 1,
            runs_dropped: 1,
            dropped: vec![DroppedRun {
                run_id: run_id(1),
                beta: 0.9,
            }],
            signals: Vec::new(),
        };
        let counted = |evidence: Option<&Evidence>| {
            let mut counting = Counting::by(evidence);
            let counted = results.iter().map(|(result, _)| counting.next(result));
            counted.collect::<Vec<_>>()
        };
        let expected: Vec<_> = results
            .iter()
            .map(|(_, reason)| (Some(reason.is_none()), *reason))
            .collect();
        assert_eq!(counted(Some(&evidence)), expected);
        // A mass failure that is not named may be any older result.
        evidence.runs_dropped = 2;
        assert_eq!(counted(Some(&evidence))[3], (None, None));
        assert_eq!(counted(None)[0], (None, None));
    }
}

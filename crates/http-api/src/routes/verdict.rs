//! The stored verdict of one test.

use assay_domain::{
    project::ProjectTag,
    test::TestName,
    timestamp::Timestamp,
    verdict::{Evidence, FailingOn, Label, LastRun, Signal, StoredVerdict, TestVerdict, VerdictStatus},
};
use assay_http::single_test;
use serde::Serialize;

use crate::{answer::Answer, call::Call, error::ApiError, route::route};

route! {
    /// Show the stored verdict on a test
    ///
    /// The verdict as of the last import. `awaitingFirstWrite` is true for a known test without a stored verdict: its
    /// status is then `insufficient_data` and the figures are null. `failing` means that the newest runs failed, but
    /// do not show yet whether the test or the code is the cause. The verdict covers all branches; `failingOn` has
    /// those besides the stable one on which the test fails. The attempts in a run of `evidence` have its errors.
    ///
    /// Cost: cheap (a single look-up, no engine pass).
    STATUS {
        path: "/projects/{projectId}/tests/{testName}/status",
        handler: status,
        id: "getTestStatus",
        tag: "Tests",
        query: ["filePath"],
        large: false,
        tagged: false,
        answer: VerdictAnswer,
        example: "verdict",
    }
}

fn status(call: &Call<'_>) -> Result<Answer, ApiError> {
    let file = call.query().file()?;
    let project = call.project()?;
    let verdict = single_test(call.store.verdict(&project, &call.test(file))?)?;
    Answer::of(&VerdictAnswer::new(project.tag(), verdict))
}

/// The verdict on a test as of the last import.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct VerdictAnswer {
    /// The project.
    project: ProjectTag,
    /// The test.
    test: TestName,
    /// The verdict.
    status: VerdictStatus,
    /// Whether no verdict was ever stored for the test. The figures are then null.
    awaiting_first_write: bool,
    /// Every active signal, in their fixed order.
    active_signals: Vec<ActiveSignal>,
    /// Short labels.
    labels: Vec<Label>,
    /// The branches other than the stable one on which it failed, as of the last import.
    failing_on: Vec<FailingOn>,
    /// The primary signal; none for a test without signals.
    status_reason: Option<Signal>,
    /// One sentence with the counts behind the verdict.
    explanation: Option<String>,
    /// Score from 0 to 1 for an unreliable test: low below 0.5, likely below 0.9, else near certain.
    #[cfg_attr(test, schema(minimum = 0, maximum = 1))]
    flake_score: Option<f64>,
    /// Changes between neighbouring runs of a chain, as a share of the neighbours.
    #[cfg_attr(test, schema(minimum = 0, maximum = 1))]
    flip_rate: Option<f64>,
    /// Share of the considered runs with a failed attempt.
    #[cfg_attr(test, schema(minimum = 0, maximum = 1))]
    failure_rate: Option<f64>,
    /// Runs of the window that contain the test, without skips and mass failures.
    runs_considered: Option<u32>,
    /// Failed runs at the end of the stable branch's history.
    failure_streak: Option<u32>,
    /// The time of the judgement.
    evaluated_at: Option<Timestamp>,
    /// The newest run that did not skip the test.
    last_run: Option<LastRun>,
    /// The numbers behind the verdict.
    evidence: Option<Evidence>,
}

/// A signal of the verdict.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct ActiveSignal {
    /// The signal.
    signal: Signal,
    /// The signal in words.
    label: &'static str,
}

impl VerdictAnswer {
    fn new(project: ProjectTag, verdict: TestVerdict) -> Self {
        match verdict.stored {
            Some(stored) => Self::stored(project, verdict.test, stored),
            None => Self::awaited(project, verdict.test),
        }
    }

    const fn awaited(project: ProjectTag, test: TestName) -> Self {
        Self {
            project,
            test,
            status: VerdictStatus::InsufficientData,
            awaiting_first_write: true,
            active_signals: Vec::new(),
            labels: Vec::new(),
            failing_on: Vec::new(),
            status_reason: None,
            explanation: None,
            flake_score: None,
            flip_rate: None,
            failure_rate: None,
            runs_considered: None,
            failure_streak: None,
            evaluated_at: None,
            last_run: None,
            evidence: None,
        }
    }

    fn stored(project: ProjectTag, test: TestName, stored: StoredVerdict) -> Self {
        let active = |signal: Signal| ActiveSignal {
            signal,
            label: signal.label(),
        };
        Self {
            project,
            test,
            status: stored.status,
            awaiting_first_write: false,
            active_signals: stored.signals.into_iter().map(active).collect(),
            labels: stored.labels,
            failing_on: stored.failing_on,
            status_reason: stored.reason,
            explanation: Some(stored.explanation),
            flake_score: Some(stored.figures.flake_score),
            flip_rate: Some(stored.figures.flip_rate),
            failure_rate: stored.figures.failure_rate,
            runs_considered: Some(stored.figures.runs_considered),
            failure_streak: Some(stored.figures.failure_streak),
            evaluated_at: Some(stored.evaluated_at),
            last_run: stored.last.map(|(_, run)| run),
            evidence: Some(stored.evidence),
        }
    }
}

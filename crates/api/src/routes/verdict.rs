//! The stored verdict of one test.

use assay_domain::{
    project::ProjectTag,
    test::TestName,
    timestamp::Timestamp,
    verdict::{Evidence, Label, LastRun, Signal, StoredVerdict, TestVerdict, VerdictStatus},
};
use serde::Serialize;

use crate::{
    answer::Answer,
    call::{Call, found},
    error::ApiError,
};

/// `GET /projects/{projectId}/tests/{testName}/status`: the verdict as of the last import, without an engine pass.
pub(crate) fn status(call: &Call<'_>) -> Result<Answer, ApiError> {
    let file = call.query().file()?;
    let project = call.project()?;
    let verdict = found(call.store.verdict(&project, &call.test(file))?)?;
    Answer::of(&VerdictAnswer::new(project.tag(), verdict))
}

#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
struct VerdictAnswer {
    project: ProjectTag,
    test: TestName,
    status: VerdictStatus,
    /// True for a test of which no verdict was ever stored; the figures are null then.
    awaiting_first_write: bool,
    active_signals: Vec<ActiveSignal>,
    labels: Vec<Label>,
    status_reason: Option<Signal>,
    explanation: Option<String>,
    #[cfg_attr(test, schema(minimum = 0, maximum = 1))]
    flake_score: Option<f64>,
    #[cfg_attr(test, schema(minimum = 0, maximum = 1))]
    flip_rate: Option<f64>,
    #[cfg_attr(test, schema(minimum = 0, maximum = 1))]
    failure_rate: Option<f64>,
    runs_considered: Option<u32>,
    failure_streak: Option<u32>,
    evaluated_at: Option<Timestamp>,
    last_run: Option<LastRun>,
    evidence: Option<Evidence>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct ActiveSignal {
    signal: Signal,
    /// The signal in words.
    label: &'static str,
}

impl VerdictAnswer {
    fn new(project: ProjectTag, verdict: TestVerdict) -> Self {
        match verdict.stored {
            Some(stored) => Self::stored(project, verdict.test, stored),
            None => Self {
                project,
                test: verdict.test,
                status: VerdictStatus::InsufficientData,
                awaiting_first_write: true,
                active_signals: Vec::new(),
                labels: Vec::new(),
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
            },
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

//! `explain_test`: the verdict on one test, with its evidence.

use std::collections::BTreeMap;

use assay_domain::{
    attempt::AttemptStatus,
    history::Occurrence,
    project::Project,
    signature::{Classifier as _, TestSignature},
    test::{FileSelector, TestLookup, TestName, TestSelector},
    verdict::{ENGINE_WINDOW_DAYS, SignalEvidence, StoredVerdict, TestVerdict, VerdictStatus},
    window::{Days, Window},
};
use assay_fingerprint::Fingerprinter;
use serde_json::{Map, Value, json};

use super::{Call, Properties};
use crate::{budget::Draft, error::ToolError};

/// Most outcomes per branch, newest first.
const OUTCOMES: usize = 60;
/// Most branches with outcomes.
const BRANCHES: usize = 12;
/// Most failures, newest first.
const FAILURES: usize = 3;

pub(super) fn properties() -> Properties {
    vec![
        (
            "test",
            json!({"type": "string", "description": "the test's name, or a part that only one test has"}),
        ),
        (
            "file",
            json!({"type": "string", "description": "where several files have a test of this name"}),
        ),
        (
            "days",
            json!({"enum": Days::ALL.map(Days::count), "default": Days::Thirty.count()}),
        ),
    ]
}

pub(super) fn answer(call: &Call<'_>) -> Result<Draft, ToolError> {
    let window = Window::ending(call.now, call.days(Days::Thirty)?);
    let selector = call.test()?;
    let project = call.project()?;
    let verdict = verdict(call, &project, &selector)?;
    let selector = TestSelector {
        name: verdict.test.name.clone(),
        file: FileSelector::Exactly(verdict.test.file_path.clone()),
    };
    let history = match call.store.history(&project, &selector, &window)? {
        TestLookup::Found(history) => history,
        TestLookup::Missing | TestLookup::Ambiguous(_) => {
            return Err(ToolError::new(
                "The test was deleted while it was read. Ask again.",
            ));
        }
    };
    let signatures = match call.store.test_signatures(&project, &selector, &window)? {
        TestLookup::Found(signatures) => signatures,
        TestLookup::Missing | TestLookup::Ambiguous(_) => Vec::new(),
    };
    let failed = history
        .occurrences
        .iter()
        .rfind(|occurrence| occurrence.any_failed_attempt);
    let draft = Draft::default()
        .fact("project", project.name.as_str())
        .fact("test", verdict.test.name.as_str())
        .fact("file", verdict.test.file_path.as_deref());
    Ok(with_verdict(draft, verdict.stored.as_ref())
        .fact("days", window.days)
        .fact("firstFailure", json!(failed.map(first_failure)))
        .fact("outcomes", outcomes(&history.occurrences))
        .fact("signatures", signatures.iter().map(signature).collect::<Vec<_>>())
        .entries(
            "lastFailures",
            failures(call, &project, &verdict.test, &history.occurrences)?,
        ))
}

/// The verdict on the test of this name, or on the only test whose name contains it.
fn verdict(call: &Call<'_>, project: &Project, selector: &TestSelector) -> Result<TestVerdict, ToolError> {
    let lookup = call.store.verdict(project, selector)?;
    if !matches!(lookup, TestLookup::Missing) {
        return call.single_test(project, selector, lookup);
    }
    let names = call.tests_with(project, &selector.name)?;
    match names.as_slice() {
        [] => Err(ToolError::new(format!(
            "No test of the project {:?} has a name that contains {:?} and ran in the last {ENGINE_WINDOW_DAYS} days.",
            project.name, selector.name
        ))
        .with_call(json!({"tool": "list_runs", "arguments": {}}))),
        [only] => {
            let selector = TestSelector {
                name: only.name.clone(),
                file: FileSelector::Exactly(only.file_path.clone()),
            };
            let lookup = call.store.verdict(project, &selector)?;
            call.single_test(project, &selector, lookup)
        }
        several => Err(ToolError::new(format!(
            "{} tests have a name that contains {:?}.",
            several.len(),
            selector.name
        ))
        .with_candidates(several.iter().map(|test| test.name.clone()).collect())),
    }
}

fn with_verdict(draft: Draft, stored: Option<&StoredVerdict>) -> Draft {
    let Some(stored) = stored else {
        return draft
            .fact("verdict", json!(VerdictStatus::InsufficientData))
            .fact("why", "It was not judged yet.");
    };
    let failing_on: Vec<_> = stored
        .failing_on
        .iter()
        .map(|on| json!({"branch": on.branch, "runs": on.streak, "sinceRun": on.since_run}))
        .collect();
    draft
        .fact("verdict", json!(stored.status))
        .fact("why", stored.explanation.as_str())
        .fact("judgedAt", json!(stored.evaluated_at))
        .fact("flakeScore", stored.figures.flake_score)
        .fact("failureRate", stored.figures.failure_rate)
        .fact("runsConsidered", stored.figures.runs_considered)
        .fact("failureStreak", stored.figures.failure_streak)
        .fact(
            "failingOnBranches",
            if failing_on.is_empty() {
                Value::Null
            } else {
                failing_on.into()
            },
        )
        .fact(
            "signals",
            stored.evidence.signals.iter().map(signal).collect::<Vec<_>>(),
        )
}

fn signal(signal: &SignalEvidence) -> Value {
    json!({
        "signal": signal.signal,
        "says": signal.detail,
        "value": signal.value,
        "threshold": signal.threshold,
        "runs": signal.runs_total,
    })
}

/// The run of the test's first failure in the period.
fn first_failure(occurrence: &Occurrence) -> Value {
    json!({"number": occurrence.run_number, "branch": occurrence.branch, "startedAt": occurrence.started_at})
}

/// An error of the test in the period, with its counts.
fn signature(signature: &TestSignature) -> Value {
    json!({
        "fingerprint": signature.fingerprint,
        "error": signature.title,
        "occurrences": signature.occurrences,
        "runs": signature.runs,
        "lastRun": signature.last_run,
    })
}

/// The outcomes of the branches with the newest runs, the newest outcome last.
fn outcomes(newest_first: &[Occurrence]) -> Value {
    let mut order: Vec<&str> = Vec::new();
    let mut branches: BTreeMap<&str, String> = BTreeMap::new();
    for occurrence in newest_first {
        let branch = occurrence.branch.as_deref().unwrap_or("(no branch)");
        let known = branches.entry(branch).or_insert_with(|| {
            order.push(branch);
            String::new()
        });
        if known.len() < OUTCOMES {
            known.push(letter(occurrence));
        }
    }
    let shown = order.iter().take(BRANCHES).filter_map(|branch| {
        let text = branches.get(branch)?.chars().rev().collect::<String>();
        Some(((*branch).to_owned(), Value::String(text)))
    });
    let mut shown: Map<String, Value> = shown.collect();
    let others = order.len().saturating_sub(BRANCHES);
    if others > 0 {
        shown.insert("(other branches)".to_owned(), others.into());
    }
    Value::Object(shown)
}

const fn letter(occurrence: &Occurrence) -> char {
    match occurrence.status {
        AttemptStatus::Passed if occurrence.any_failed_attempt => 'R',
        AttemptStatus::Passed => 'P',
        AttemptStatus::Failed | AttemptStatus::TimedOut => 'F',
        AttemptStatus::Skipped | AttemptStatus::Interrupted => 'S',
    }
}

/// The newest runs with a failed attempt, each with its last error.
fn failures(
    call: &Call<'_>,
    project: &Project,
    test: &TestName,
    newest_first: &[Occurrence],
) -> Result<Vec<Value>, ToolError> {
    let selector = TestSelector {
        name: test.name.clone(),
        file: FileSelector::Exactly(test.file_path.clone()),
    };
    let failed = newest_first
        .iter()
        .filter(|occurrence| occurrence.any_failed_attempt);
    let mut shown = Vec::new();
    for occurrence in failed.take(FAILURES) {
        let Some(TestLookup::Found(found)) = call.store.attempts(project, occurrence.run_id, &selector)?
        else {
            continue;
        };
        let attempt = found
            .attempts
            .iter()
            .rev()
            .find(|attempt| attempt.status.is_failure());
        let errors = attempt.map_or(&[][..], |attempt| &attempt.errors);
        let class = Fingerprinter.classify(errors);
        shown.push(json!({
            "run": occurrence.run_id,
            "number": occurrence.run_number,
            "branch": occurrence.branch,
            "startedAt": occurrence.started_at,
            "finalStatus": occurrence.status,
            "error": class.as_ref().map(|class| class.title.as_str()),
            "fingerprint": class.as_ref().map(|class| class.fingerprint.as_str()),
            "message": errors.iter().find_map(|error| error.message.as_deref()),
        }));
    }
    Ok(shown)
}

//! `explain_test`: the verdict on one test, with its evidence.

use std::collections::BTreeMap;

use assay_domain::{
    attempt::AttemptStatus,
    folding::{contains_folded, fold},
    history::{FailedOccurrence, RunOutcome, TestSummary},
    period::{Days, Period},
    project::Project,
    run::RunTag,
    signature::{Classifier as _, TestSignature},
    store::in_snapshot,
    test::{FileSelector, TestLookup, TestSelector},
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, SignalEvidence, StoredVerdict, VerdictStatus},
};
use assay_fingerprint::Fingerprinter;
use serde_json::{Map, Value, json};

use super::call::{Call, Properties, owners, rounded};
use crate::{budget::Draft, error::ToolError};

/// Most outcomes per branch: the newest ones.
const OUTCOMES: usize = 60;
/// Most branches with outcomes.
const BRANCHES: usize = 12;
/// Most failures, newest first.
const FAILURES: u32 = 3;

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
    let period = Period::ending(call.now, call.days(Days::Thirty)?);
    let selector = call.arguments.test()?;
    let project = call.project()?;
    let summary = summary(call, &project, &selector, &period)?;
    let owned = in_snapshot(call.store, &project, |snapshot| {
        let owners = assay_answers::owners::owners(snapshot, call.now)?;
        Ok(owners.of(summary.test.file_path.as_deref()))
    })?;
    let draft = Draft::default()
        .fact("project", project.name.as_str())
        .fact("test", summary.test.name)
        .fact("file", summary.test.file_path)
        .fact("owners", owners(&owned));
    Ok(with_verdict(draft, summary.verdict.as_ref())
        .fact("days", period.days.count())
        .fact("firstFailure", json!(summary.first_failure.map(first_failure)))
        .fact("outcomes", outcomes(&summary.outcomes))
        .fact(
            "signatures",
            summary.signatures.iter().map(signature).collect::<Vec<_>>(),
        )
        .entries(
            "lastFailures",
            summary.last_failures.iter().map(failure).collect(),
        ))
}

/// The summary of the test of this name, or of the only test whose name contains it.
fn summary(
    call: &Call<'_>,
    project: &Project,
    selector: &TestSelector,
    period: &Period,
) -> Result<TestSummary, ToolError> {
    let find = |selector: &TestSelector| call.store.test_summary(project, selector, period, FAILURES);
    let lookup = find(selector)?;
    if !matches!(lookup, TestLookup::Missing) {
        return call.single_test(project, selector, lookup);
    }
    let tests = call.window_tests(project)?;
    let part = fold(&selector.name);
    let matching: Vec<_> = tests
        .iter()
        .filter(|test| contains_folded(test.name, &part))
        .collect();
    match matching.as_slice() {
        [] => Err(ToolError::new(format!(
            "No test of the project {:?} has a name that contains {:?} and ran in the last {ENGINE_WINDOW_DAYS} days.",
            project.name, selector.name
        ))
        .with_candidates(tests.nearest(&selector.name))),
        [only] => {
            let selector = TestSelector {
                name: only.name.to_owned(),
                file: FileSelector::Exactly(only.file_path.map(str::to_owned)),
            };
            call.single_test(project, &selector, find(&selector)?)
        }
        several => Err(ToolError::new(format!(
            "{} tests have a name that contains {:?}.",
            several.len(),
            selector.name
        ))
        .with_candidates(several.iter().map(|test| test.name.to_owned()).collect())),
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
        .map(|failing| json!({"branch": failing.branch, "runs": failing.streak, "sinceRun": failing.since_run}))
        .collect();
    draft
        .fact("verdict", json!(stored.status))
        .fact("why", stored.explanation.as_str())
        .fact("judgedAt", json!(stored.evaluated_at))
        .fact("flakeScore", rounded(stored.figures.flake_score))
        .fact("failureRate", json!(stored.figures.failure_rate.map(rounded)))
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
        "value": rounded(signal.value),
        "threshold": rounded(signal.threshold),
        "runs": signal.runs_total,
    })
}

/// The run of the test's first failure in the period.
fn first_failure((run, started_at): (RunTag, Timestamp)) -> Value {
    json!({"number": run.run_number, "branch": run.branch, "startedAt": started_at})
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
fn outcomes(newest_first: &[RunOutcome]) -> Value {
    let mut order: Vec<&str> = Vec::new();
    let mut branches: BTreeMap<&str, String> = BTreeMap::new();
    for outcome in newest_first {
        let branch = outcome.branch.as_deref().unwrap_or("(no branch)");
        let letters = branches.entry(branch).or_insert_with(|| {
            order.push(branch);
            String::new()
        });
        if letters.len() < OUTCOMES {
            letters.push(letter(outcome));
        }
    }
    let by_branch = order.iter().take(BRANCHES).filter_map(|branch| {
        let text = branches.get(branch)?.chars().rev().collect::<String>();
        Some(((*branch).to_owned(), Value::String(text)))
    });
    let mut by_branch: Map<String, Value> = by_branch.collect();
    let others = order.len().saturating_sub(BRANCHES);
    if others > 0 {
        by_branch.insert("(other branches)".to_owned(), others.into());
    }
    Value::Object(by_branch)
}

const fn letter(outcome: &RunOutcome) -> char {
    match outcome.status {
        AttemptStatus::Passed if outcome.any_failed_attempt => 'R',
        AttemptStatus::Passed => 'P',
        AttemptStatus::Failed | AttemptStatus::TimedOut => 'F',
        AttemptStatus::Skipped | AttemptStatus::Interrupted => 'S',
    }
}

/// A run with a failed attempt, and its last error.
fn failure(failed: &FailedOccurrence) -> Value {
    let class = Fingerprinter.classify(&failed.errors);
    json!({
        "run": failed.run.id,
        "number": failed.run.run_number,
        "branch": failed.run.branch,
        "startedAt": failed.started_at,
        "finalStatus": failed.status,
        "error": class.as_ref().map(|class| class.title.as_str()),
        "fingerprint": class.as_ref().map(|class| class.fingerprint.as_str()),
        "message": failed.errors.iter().find_map(|error| error.message.as_deref()),
    })
}

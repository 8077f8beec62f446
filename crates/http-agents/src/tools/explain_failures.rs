//! `explain_failures`: the causes of a run's failures, for a stored or a local run.

use assay_answers::{
    changes::{changes_of_runs, summary},
    commit::{CommitSelector, Trust, newest_commit},
    failures::{
        ExplainedFailure, FailureFilter, Gate, JoinedRun, LocalFailure, LocalFailures, LocalRun,
        joined_failures, local_failures,
    },
};
use assay_domain::{
    attempt::ErrorDetail, id::RunId, owners::OwnerFilter, project::Project, signature::Classifier as _,
};
use assay_fingerprint::Fingerprinter;
use serde_json::{Value, json};

use super::call::{Call, Properties, owners, rounded};
use crate::{arguments::Arguments, budget::Draft, error::ToolError};

/// The page size that holds all failures of a run.
const FAILURES: u32 = u32::MAX;
/// Most failures of a local run in one call.
const LOCAL_FAILURES: usize = 100;
/// Most unknown tests of a local run for which the answer has similar names.
const TESTS_WITH_CANDIDATES: usize = 5;
/// Most similar names of one unknown test.
const CANDIDATES_PER_TEST: usize = 3;
/// Longest message and stack of a local failure, in characters.
const ERROR_TEXT: usize = 8_000;

pub(super) fn properties() -> Properties {
    vec![
        (
            "run",
            json!({"type": ["string", "integer"], "description": "a run's id or number; commit, pullRequest or branch mean the newest run of each suite"}),
        ),
        (
            "commit",
            json!({"type": "string", "description": "or its beginning, at least 4 digits"}),
        ),
        ("pullRequest", json!({"type": "integer", "minimum": 1})),
        ("branch", json!({"type": "string"})),
        (
            "test",
            json!({"type": "string", "description": "only tests whose name contains this"}),
        ),
        ("owner", json!({"type": "string"})),
        (
            "failures",
            json!({
                "type": "array", "maxItems": LOCAL_FAILURES,
                "description": "failures of a run on your machine; give message and stack as the framework prints them, and `branch` where its earlier runs should count",
                "items": {
                    "type": "object", "properties": local_properties(), "required": ["test"],
                    "additionalProperties": false,
                },
            }),
        ),
    ]
}

fn local_properties() -> Value {
    json!({
        "test": {"type": "string"}, "file": {"type": "string"},
        "message": {"type": "string", "description": "at most 8,000 characters are used"}, "stack": {"type": "string"},
        "attempts": {"type": "integer", "minimum": 1},
    })
}

pub(super) fn answer(call: &Call<'_>) -> Result<Draft, ToolError> {
    let filter = FailureFilter {
        name_part: call.arguments.text("test")?,
        owner: call.arguments.text("owner")?.map(|owner| OwnerFilter::of(&owner)),
    };
    let local = call
        .arguments
        .list("failures", LOCAL_FAILURES, &local_properties())?;
    let project = call.project()?;
    if let Some(local) = local {
        return of_local(call, &project, &local);
    }
    let runs = selected_runs(call, &project)?;
    let ids: Vec<RunId> = runs.iter().map(|(id, _)| *id).collect();
    let requested = (&filter, (1, FAILURES));
    let joined = joined_failures(call.store, call.engine, &project, &ids, requested, call.now)?;
    let mut run_entries: Vec<Value> = joined.runs.iter().map(|joined| run(joined, &runs)).collect();
    if run_entries.is_empty() {
        return Err(ToolError::new("There is no such run in this project.")
            .with_call(call.arguments.other_call("list_runs", &[])));
    }
    let several = run_entries.len() > 1;
    let changes = changes_of_runs(call.store, call.engine, &project, &ids, call.now)?;
    let failures = &joined.failures;
    let is_incomplete = joined.runs.iter().any(|joined| joined.run.incomplete.is_some());
    let empty_note = failures
        .is_empty()
        .then_some(match (joined.total, is_incomplete) {
            (0, false) => "No test failed.",
            (0, true) => "No test failed, but a run may lack results: see `incomplete`.",
            (_, _) => "No failed test has this name or owner.",
        });
    Ok(Draft::default()
        .fact("project", project.name.as_str())
        .fact(
            if several { "runs" } else { "run" },
            if several {
                run_entries.into()
            } else {
                run_entries.pop().unwrap_or_default()
            },
        )
        .fact("gate", gate(joined.gate))
        .fact("failedOrRecovered", joined.total)
        .fact("says", empty_note)
        .fact("againstStableBranch", summary(&changes))
        .entries(
            "failures",
            failures
                .iter()
                .map(|(place, failure)| {
                    let of_run = joined.runs.get(*place).filter(|_| several);
                    entry(of_run.map(|joined| joined.run.run_number), failure)
                })
                .collect(),
        ))
}

/// The runs in the arguments: one run by its id, or the newest run of each suite of the newest matching commit.
fn selected_runs(call: &Call<'_>, project: &Project) -> Result<Vec<(RunId, Option<String>)>, ToolError> {
    let arguments = &call.arguments;
    let (has_run, sha, branch) = (arguments.has("run"), call.commit()?, arguments.text("branch")?);
    let pull_request = arguments.number("pullRequest", 1..=i64::MAX)?;
    let selectors = [has_run, sha.is_some(), branch.is_some(), pull_request.is_some()];
    if selectors.iter().filter(|is_given| **is_given).count() != 1 {
        return Err(ToolError::new(
            "Name one of `run`, `commit`, `pullRequest` and `branch`, or give `failures`.",
        )
        .with_call(arguments.other_call("list_runs", &[])));
    }
    if has_run {
        return Ok(vec![(call.run_id(project)?, None)]);
    }
    let selector = match (sha, pull_request, branch) {
        (Some(sha), _, _) => CommitSelector::Sha(sha),
        (None, Some(number), _) => CommitSelector::PullRequest(number),
        (None, None, branch) => CommitSelector::Branch(branch.unwrap_or_default()),
    };
    let commit = newest_commit(call.store, project, &selector, Trust::Preferred, call.now)?;
    let Some(commit) = commit else {
        return Err(
            ToolError::new("No run of this commit, pull request or branch is stored.")
                .with_call(arguments.other_call("list_runs", &[])),
        );
    };
    let runs = commit.runs.into_iter().map(|run| (run.id, run.suite));
    Ok(runs.collect())
}

fn run(joined: &JoinedRun, selected: &[(RunId, Option<String>)]) -> Value {
    let run = &joined.run;
    let suite = selected
        .iter()
        .find(|(id, _)| *id == run.id)
        .and_then(|(_, suite)| suite.as_deref());
    json!({
        "run": run.id,
        "number": run.run_number,
        "suite": suite,
        "status": run.status,
        "incomplete": run.incomplete,
        "branch": run.branch,
        "commit": run.commit_sha,
        "trusted": (!run.trusted).then_some(false),
        "startedAt": run.started_at,
    })
}

fn gate(gate: Gate) -> Value {
    json!({"action": gate.action, "mine": rounded(gate.mine), "byCause": gate.by_cause})
}

fn entry(run: Option<i32>, failure: &ExplainedFailure) -> Value {
    let shares = &failure.probabilities;
    let probable = [
        ("flake", shares.flake),
        ("environment", shares.environment),
        ("brokenBefore", shares.broken_before),
        ("earlierOnBranch", shares.earlier_on_branch),
        ("thisChange", shares.this_change),
    ];
    let probable = probable.into_iter().filter(|(_, share)| *share >= 0.005);
    let probabilities: serde_json::Map<String, Value> = probable
        .map(|(name, share)| (name.to_owned(), rounded(share)))
        .collect();
    json!({
        "test": failure.test_name,
        "file": failure.file_path,
        "inRun": run,
        "status": failure.status,
        "cause": failure.cause,
        "mine": rounded(failure.mine),
        "action": failure.action,
        "why": failure.explanation,
        "probabilities": probabilities,
        "failingSince": failure.breakage.as_ref().map(|breakage| json!({"run": breakage.first_failed.run_number, "commit": breakage.first_failed.revision, "revert": breakage.revert})),
        "verdict": failure.verdict.map(|verdict| verdict.status),
        "error": failure.title,
        "fingerprint": failure.fingerprint,
        "sameError": failure.same_error,
        "owners": owners(&failure.ownership),
    })
}

fn of_local(call: &Call<'_>, project: &Project, failures: &[Arguments]) -> Result<Draft, ToolError> {
    let others = ["run", "commit", "pullRequest", "test"];
    if let Some(other) = others.into_iter().find(|name| call.arguments.has(name)) {
        return Err(ToolError::new(format!(
            "`failures` are of a local run: leave out `{other}`."
        )));
    }
    let failures = failures
        .iter()
        .map(local_failure)
        .collect::<Result<Vec<_>, _>>()?;
    let texts_cut: usize = failures.iter().map(|(_, cut)| cut).sum();
    let failures: Vec<LocalFailure> = failures.into_iter().map(|(failure, _)| failure).collect();
    if failures.is_empty() {
        return Err(ToolError::new("`failures` is empty: name the tests that failed."));
    }
    let local = LocalRun {
        branch: call.arguments.text("branch")?,
        failures,
    };
    let LocalFailures {
        gate: of_known,
        failures,
        unknown,
        ambiguous,
    } = local_failures(call.store, call.engine, project, &local, call.now)?;
    let unknown: Vec<_> = unknown.into_iter().map(|test| test.name).collect();
    let similar = similar(call, project, &unknown)?;
    let ambiguous: Vec<_> = ambiguous
        .into_iter()
        .map(|(test, files)| json!({"test": test.name, "files": files.named.iter().take(5).collect::<Vec<_>>()}))
        .collect();
    let unknown_note = (!unknown.is_empty()).then_some(
        if failures.is_empty() {
            "No result of these tests is stored: they are new, or their whole names differ. Nothing was judged, so there is no action."
        } else {
            "No result of the tests in `unknown` is stored: they are new, or their whole names differ. They are not in the gate."
        },
    );
    Ok(Draft::default()
        .fact("project", project.name.as_str())
        .fact("gate", (!failures.is_empty()).then(|| gate(of_known)))
        .fact("says", unknown_note)
        .fact("argumentTextsCut", (texts_cut > 0).then_some(texts_cut))
        .fact("unknown", some(unknown.into_iter().map(Value::String).collect()))
        .fact("similar", some(similar))
        .fact("ambiguous", some(ambiguous))
        .entries(
            "failures",
            failures.iter().map(|failure| entry(None, failure)).collect(),
        ))
}

/// For the first unknown names, the stored names that are most similar.
fn similar(call: &Call<'_>, project: &Project, unknown: &[String]) -> Result<Vec<Value>, ToolError> {
    if unknown.is_empty() {
        return Ok(Vec::new());
    }
    let tests = call.window_tests(project)?;
    let similar = unknown.iter().take(TESTS_WITH_CANDIDATES).filter_map(|name| {
        let mut nearest = tests.nearest(name);
        nearest.truncate(CANDIDATES_PER_TEST);
        (!nearest.is_empty()).then(|| json!({"test": name, "stored": nearest}))
    });
    Ok(similar.collect())
}

/// The list, or null if it is empty.
fn some(list: Vec<Value>) -> Value {
    if list.is_empty() { Value::Null } else { list.into() }
}

/// A local failure, and the number of its texts that were cut.
fn local_failure(arguments: &Arguments) -> Result<(LocalFailure, usize), ToolError> {
    let (message, message_cut) = arguments.pasted("message", ERROR_TEXT)?;
    let (stack, stack_cut) = arguments.pasted("stack", ERROR_TEXT)?;
    let error = ErrorDetail {
        message,
        stack,
        snippet: None,
        location: None,
    };
    let attempts = arguments.number("attempts", 1..=1_000)?.unwrap_or(1);
    let failure = LocalFailure {
        test: arguments.test()?,
        error: Fingerprinter.classify(&[error]),
        attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
    };
    Ok((failure, usize::from(message_cut) + usize::from(stack_cut)))
}

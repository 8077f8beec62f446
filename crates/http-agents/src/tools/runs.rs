//! `list_runs`: the newest runs of a project.

use assay_domain::{
    merge_queue::RunKind,
    page::PerPage,
    project::ProjectEntry,
    run::{Outcome, RunQuery, RunRow, RunStatus},
};
use serde_json::{Value, json};

use super::call::{Call, Properties};
use crate::{budget::Draft, error::ToolError};

/// Number of runs unless the call sets it.
const RUNS: i64 = 10;

pub(super) fn properties() -> Properties {
    vec![
        ("branch", json!({"type": "string"})),
        (
            "commit",
            json!({"type": "string", "description": "a commit or the beginning of one, at least 4 digits"}),
        ),
        ("pullRequest", json!({"type": "integer", "minimum": 1})),
        ("kind", json!({"enum": RunKind::ALL})),
        ("status", json!({"enum": Outcome::ALL})),
        (
            "trusted",
            json!({"type": "boolean", "description": "false: only runs of public keys"}),
        ),
        (
            "limit",
            json!({"type": "integer", "minimum": 1, "maximum": 50, "default": RUNS}),
        ),
    ]
}

pub(super) fn answer(call: &Call<'_>) -> Result<Draft, ToolError> {
    let limit = call.arguments.number("limit", 1..=50)?.unwrap_or(RUNS);
    let project = match call.project_if_one()? {
        Ok(project) => project,
        Err(projects) => {
            let entry = |project: ProjectEntry| json!({"project": project.name, "id": project.id, "stableBranch": project.stable_branch});
            return Ok(Draft::default().entries("projects", projects.into_iter().map(entry).collect()));
        }
    };
    let per_page = PerPage::of(if limit <= 10 { 10 } else { 50 }).unwrap_or(PerPage::Fifty);
    let query = RunQuery {
        branch: call.arguments.text("branch")?,
        sha: call.commit()?,
        pull_request: call.arguments.number("pullRequest", 1..=i64::MAX)?,
        kind: call.arguments.word("kind", RunKind::ALL)?,
        trusted: call.arguments.flag("trusted")?,
        status: call.arguments.word("status", Outcome::ALL)?,
        ..RunQuery::newest(call.longest_period(), per_page)
    };
    let page = call.store.runs(&project, &query)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let runs = page.runs.iter().take(limit).map(run).collect();
    Ok(Draft::default()
        .fact("project", project.name.as_str())
        .fact("stableBranch", page.stable_branch)
        .fact("days", query.period.days.count())
        .fact("total", page.total)
        .entries("runs", runs))
}

fn run(run: &RunRow) -> Value {
    let shards = run.shards.map(|shards| match shards.expected {
        Some(expected) => format!("{} of {expected}", shards.received),
        None => shards.received.to_string(),
    });
    json!({
        "run": run.id,
        "number": run.run_number,
        "suite": run.suite,
        "status": RunStatus::from(run.status),
        "branch": run.branch,
        "commit": run.revision(),
        "pullRequest": run.pull_request_number,
        "queue": run.queue,
        "startedAt": run.started_at,
        "trusted": (!run.trusted).then_some(false),
        "complete": (!run.complete).then_some(false),
        "tests": run.counts.total,
        "failed": run.counts.failed,
        "passedOnRetry": run.counts.recovered,
        "shards": shards,
    })
}

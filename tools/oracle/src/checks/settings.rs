//! `GET /projects/{projectId}/settings` and `/branches`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::ProjectChecks;
use crate::{
    comparison::{BOOL, Comparison},
    oracle,
    texts::folded,
};

/// Checks the configuration, which must contain no secret.
pub fn settings(comparison: &mut Comparison, checks: &ProjectChecks<'_>) {
    let path = checks.path(&["settings"]);
    let answer = checks.get(comparison, &path);
    let project = checks.project;
    comparison.matches(
        &format!("GET {path}"),
        &answer,
        &json!({
            "project": {"id": project.id, "name": project.name},
            "settings": {
                "stableBranch": project.stable,
                "releaseBranches": [],
                "retentionDays": checks.organization.plan.retention(),
                "chat": {"configured": project.chat_events.is_some()},
                "repohost": {"prCommentsEnabled": project.pr_comments.map_or(json!(BOOL), |on| json!(on))},
                "stableNames": true,
                "flakeBudget": null,
            },
        }),
    );
    let events = |value: &Value| -> BTreeSet<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|event| event.as_str().map(str::to_owned))
            .collect()
    };
    let wanted: BTreeSet<String> = project
        .chat_events
        .iter()
        .flatten()
        .map(|event| (*event).to_owned())
        .collect();
    comparison.same(
        &format!("GET {path}: chat.events"),
        &events(&answer["settings"]["chat"]["events"]),
        &wanted,
    );
    let text = answer.to_string();
    comparison.holds(!text.contains("svc_") && !text.contains("http"), || {
        format!("GET {path} contains a secret")
    });
}

/// Every branch with a visible run, in alphabetical order ignoring case.
pub fn branches(comparison: &mut Comparison, checks: &ProjectChecks<'_>) {
    let path = checks.path(&["branches"]);
    let answer = checks.get(comparison, &path);
    let names: BTreeSet<(String, String)> =
        oracle::visible(checks.project, checks.organization.plan, checks.now)
            .into_iter()
            .filter_map(|run| run.branch.clone())
            .map(|name| (folded(&name), name))
            .collect();
    let expected: Vec<Value> = names.into_iter().map(|(_, name)| Value::String(name)).collect();
    comparison.matches(
        &format!("GET {path}"),
        &answer,
        &json!({"project": {"id": checks.project.id, "name": checks.project.name}, "branches": expected}),
    );
}

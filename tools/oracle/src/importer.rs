//! Sends a world's reports through `assay-admin import`, as a CI job would.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    comparison::{COUNT, Comparison, TEXT},
    oracle::{self, Outcome},
    playwright,
    stack::Stack,
    world::{CHECKOUT, Organization, Project, ReportSource, Run},
};

/// Creates the organization with its key.
pub fn create_organization(stack: &Stack, organization: &mut Organization, comparison: &mut Comparison) {
    let plan = organization.plan.name();
    let organization_json = stack.run_json(&["org", "create", &organization.name, "--plan", plan]);
    comparison.matches(
        "assay-admin org create",
        &organization_json,
        &json!({"id": TEXT, "name": organization.name, "plan": plan}),
    );
    organization.id = organization_json["id"].as_str().unwrap().to_owned();
    let key = stack.run_json(&["key", "create", "--org", &organization.id, "--days", "90"]);
    comparison.matches(
        "assay-admin key create",
        &key,
        &json!({"id": TEXT, "key": TEXT, "expiresAt": TEXT}),
    );
    organization.key = key["key"].as_str().unwrap().to_owned();
}

/// Creates the project in its organization.
pub fn create_project(stack: &Stack, organization: &str, project: &mut Project, comparison: &mut Comparison) {
    let project_json = stack.run_json(&[
        "project",
        "create",
        "--org",
        organization,
        &project.name,
        "--stable-branch",
        &project.stable,
    ]);
    comparison.matches(
        "assay-admin project create",
        &project_json,
        &json!({"id": TEXT, "name": project.name, "stableBranch": project.stable}),
    );
    project.id = project_json["id"].as_str().unwrap().to_owned();
    if let Some(events) = &project.chat_events {
        stack.run_json(&["project", "set", &project.id, "--chat-events", &events.join(",")]);
        stack.notify_once();
    }
    if let Some(on) = project.pr_comments {
        stack.run_json(&[
            "project",
            "set",
            &project.id,
            "--pr-comments",
            if on { "on" } else { "off" },
        ]);
    }
}

/// Imports every run, shard by shard, and checks the importer's output.
pub fn import_runs(stack: &Stack, project: &mut Project, comparison: &mut Comparison) {
    for place in 0..project.runs.len() {
        let mut run = project.runs[place].clone();
        let whole = run.shards.clone();
        run.shards.clear();
        for shard in whole {
            run.shards.push(shard);
            let newest = run.shards.len() - 1;
            let answer = send(stack, project, &run, newest);
            if run.id.is_empty() {
                run.id = answer["runId"].as_str().unwrap_or_default().to_owned();
                run.number = answer["runNumber"].as_i64().unwrap_or_default();
                comparison.same("assay-admin import: runNumber", &run.number, &(place as i64 + 1));
            }
            run.shards[newest].id = answer["shardId"].as_str().unwrap_or_default().to_owned();
            comparison.matches(
                &format!("assay-admin import of run {} shard {newest}", run.number),
                &answer,
                &json!({
                    "runId": run.id,
                    "runNumber": run.number,
                    "shardId": TEXT,
                    "status": match oracle::outcome(&run) {
                        Outcome::Passed => json!("passed"),
                        Outcome::Failed => json!("failed"),
                        Outcome::Unknown => json!(null),
                    },
                    "counts": oracle::counts(&run.tests()),
                    "tests": COUNT,
                }),
            );
            comparison.holds(answer["warnings"].is_array(), || {
                "assay-admin import: warnings is no list".to_owned()
            });
        }
        project.runs[place] = run;
    }
}

/// Imports one shard of a run. The report, CI's variables or a flag provides the shard's number.
fn send(stack: &Stack, project: &Project, run: &Run, shard: usize) -> Value {
    let is_sharded_by_playwright = project.source != ReportSource::Flags || run.number % 2 == 0;
    let report = playwright::report(run, &run.shards[shard], is_sharded_by_playwright);
    let file = stack.file(
        &format!("report-{}-{shard}.json", run.build),
        report.to_string().as_bytes(),
    );
    let mut arguments: Vec<String> = ["import", "--json", "--project", &project.id]
        .map(str::to_owned)
        .to_vec();
    let mut variables = BTreeMap::new();
    match project.source {
        ReportSource::Github => github(stack, run, &mut variables),
        ReportSource::Gitlab => gitlab(run, shard, &mut variables),
        ReportSource::Flags => flags(run, shard, &mut arguments),
    }
    arguments.push(file);
    let output = stack.assay(&arguments, &variables);
    assert_eq!(output.status, 0, "assay-admin import: {}", output.err);
    serde_json::from_str(&output.out).unwrap_or_else(|_| panic!("assay-admin import printed {}", output.out))
}

fn github(stack: &Stack, run: &Run, variables: &mut BTreeMap<String, String>) {
    let branch = run.branch.clone().unwrap_or_default();
    let event = match run.pr {
        Some(number) => json!({
            "action": "synchronize",
            "number": number,
            "pull_request": {
                "number": number,
                "title": run.pr_title,
                "head": {"sha": run.tested_revision, "ref": branch},
            },
        }),
        None => json!({"head_commit": {
            "id": run.commit,
            "message": run.message,
            "author": {"name": run.author, "email": "jo@example.org"},
        }}),
    };
    let event = stack.file(&format!("event-{}.json", run.build), event.to_string().as_bytes());
    for (name, value) in [
        ("CI", "true".to_owned()),
        ("GITHUB_ACTIONS", "true".to_owned()),
        ("GITHUB_SERVER_URL", "https://github.com".to_owned()),
        ("GITHUB_REPOSITORY", "acme/shop".to_owned()),
        ("GITHUB_SHA", run.commit.clone().unwrap_or_default()),
        ("GITHUB_RUN_ID", run.build.clone()),
        ("GITHUB_RUN_NUMBER", "77".to_owned()),
        ("GITHUB_RUN_ATTEMPT", "1".to_owned()),
        ("GITHUB_WORKSPACE", CHECKOUT.to_owned()),
        ("GITHUB_EVENT_PATH", event),
        (
            "GITHUB_EVENT_NAME",
            if run.pr.is_some() { "pull_request" } else { "push" }.to_owned(),
        ),
        (
            "GITHUB_REF_NAME",
            run.pr.map_or(branch.clone(), |number| format!("{number}/merge")),
        ),
        (
            "GITHUB_HEAD_REF",
            if run.pr.is_some() { branch } else { String::new() },
        ),
    ] {
        variables.insert(name.to_owned(), value);
    }
}

fn gitlab(run: &Run, shard: usize, variables: &mut BTreeMap<String, String>) {
    let branch = run.branch.clone().unwrap_or_default();
    let mut set = |name: &str, value: &str| variables.insert(name.to_owned(), value.to_owned());
    set("CI", "true");
    set("GITLAB_CI", "true");
    set("CI_PROJECT_DIR", CHECKOUT);
    set("CI_COMMIT_SHA", run.commit.as_deref().unwrap_or_default());
    set("CI_COMMIT_REF_NAME", &branch);
    set("CI_PIPELINE_ID", &run.build);
    set("CI_PIPELINE_IID", "12");
    if let (Some(message), Some(author)) = (&run.message, &run.author) {
        set("CI_COMMIT_MESSAGE", message);
        set("CI_COMMIT_AUTHOR", &format!("{author} <jo@example.org>"));
    }
    if let Some(number) = run.pr {
        set("CI_MERGE_REQUEST_IID", &number.to_string());
        set(
            "CI_MERGE_REQUEST_TITLE",
            run.pr_title.as_deref().unwrap_or_default(),
        );
        set("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", &branch);
        set(
            "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA",
            run.tested_revision.as_deref().unwrap_or_default(),
        );
    }
    if let Some(total) = run.expected {
        set("CI_NODE_INDEX", &run.shards[shard].index.to_string());
        set("CI_NODE_TOTAL", &total.to_string());
    }
}

fn flags(run: &Run, shard: usize, arguments: &mut Vec<String>) {
    let mut say = |flag: &str, value: &Option<String>| {
        if let Some(value) = value {
            arguments.push(format!("{flag}={value}"));
        }
    };
    say("--run-key", &Some(format!("build {}", run.build)));
    say("--branch", &run.branch);
    say("--commit", &run.commit);
    say("--message", &run.message);
    say("--author", &run.author);
    say("--tested-revision", &run.tested_revision);
    say("--pr", &run.pr.map(|number| number.to_string()));
    say("--pr-title", &run.pr_title);
    say("--ci", &run.ci.map(str::to_owned));
    say("--suite", &run.suite);
    say(
        "--shard",
        &run.expected
            .map(|total| format!("{}/{total}", run.shards[shard].index)),
    );
}

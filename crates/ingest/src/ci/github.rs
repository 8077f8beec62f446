//! GitHub Actions. Variables have one half of the context, the event file has the other.

use serde_json::Value;

use super::environment::EnvironmentReader;
use assay_reports::one_title;

pub(super) fn read(reader: &mut EnvironmentReader<'_>) {
    reader.branch(&["GITHUB_HEAD_REF", "GITHUB_REF_NAME"]);
    reader.commit(&["GITHUB_SHA"]);
    reader.run(&["GITHUB_RUN_ID"]);
    reader.attempt("GITHUB_RUN_ATTEMPT", 1);
    // All jobs of a matrix share this value. No variable has an id of the job.
    reader.job(&["GITHUB_JOB"]);
    reader.detected.runner = reader.get("RUNNER_NAME");
    reader.root(&["GITHUB_WORKSPACE"]);
    if let (Some(server), Some(repository), Some(run)) = (
        reader.get("GITHUB_SERVER_URL"),
        reader.get("GITHUB_REPOSITORY"),
        reader.get("GITHUB_RUN_ID"),
    ) {
        reader.record_source("page of the CI run", "GITHUB_RUN_ID");
        reader.detected.context.run_url = Some(format!("{server}/{repository}/actions/runs/{run}"));
    }
    let event = reader
        .get("GITHUB_EVENT_PATH")
        .and_then(|path| (reader.event_file)(&path))
        .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    if let Some(event) = event {
        from_event(reader, &event);
    }
    if reader.detected.context.pull_request_number.is_none() {
        // `refs/pull/118/merge`
        let reference = reader.get("GITHUB_REF").unwrap_or_default();
        let of_pull = reference
            .strip_prefix("refs/pull/")
            .and_then(|rest| rest.split('/').next());
        let number = of_pull.and_then(|number| number.parse().ok());
        if number.is_some() {
            reader.detected.context.pull_request_number = number;
            reader.record_source("pull request", "GITHUB_REF");
        }
    }
}

/// The event's name decides which fields of its file describe the commit under test.
fn from_event(reader: &mut EnvironmentReader<'_>, event: &Value) {
    const FILE: &str = "GITHUB_EVENT_PATH";
    let text = |path: &str| event.pointer(path).and_then(Value::as_str).and_then(one_title);
    let repository = reader.get("GITHUB_REPOSITORY");
    let fork_of = |head: &str| owner_of_fork(event.pointer(head)?, repository.as_deref()?);
    let context = &mut reader.detected.context;
    let (mut values_from_event, mut fork) = (Vec::new(), None);
    if event.pointer("/pull_request/head/sha").is_some() {
        context.tested_revision = text("/pull_request/head/sha");
        context.pull_request_title = text("/pull_request/title");
        // The event has no commit, but the account that opened the pull request.
        context.author_name = text("/pull_request/user/login");
        context.pull_request_number = ["/pull_request/number", "/number"]
            .iter()
            .find_map(|path| event.pointer(path)?.as_i64());
        context.branch = context.branch.take().or_else(|| text("/pull_request/head/ref"));
        fork = fork_of("/pull_request/head/repo");
        values_from_event.extend(["tested revision", "pull request title", "pull request", "author"]);
    } else if event.pointer("/workflow_run/head_sha").is_some() {
        // The variables describe the default branch; the event names the tested commit.
        context.commit_sha = text("/workflow_run/head_sha");
        context.tested_revision = None;
        context.branch = text("/workflow_run/head_branch").or_else(|| context.branch.take());
        context.commit_message = text("/workflow_run/head_commit/message");
        context.author_name = text("/workflow_run/head_commit/author/name");
        context.pull_request_number = event
            .pointer("/workflow_run/pull_requests/0/number")
            .and_then(Value::as_i64);
        context.base_branch = text("/workflow_run/pull_requests/0/base/ref");
        fork = fork_of("/workflow_run/head_repository");
        values_from_event.extend(["commit", "branch", "commit message"]);
    }
    if event.pointer("/merge_group/head_sha").is_some() {
        context.commit_message = text("/merge_group/head_commit/message");
        context.author_name = text("/merge_group/head_commit/author/name");
        values_from_event.push("commit message");
    }
    if event.pointer("/head_commit/message").is_some() {
        context.commit_message = text("/head_commit/message");
        context.author_name = text("/head_commit/author/name");
        values_from_event.extend(["commit message", "author"]);
    }
    for value in values_from_event {
        reader.record_source(value, FILE);
    }
    if let Some(owner) = fork {
        reader.branch_is_of_fork(owner);
    }
    // On `pull_request_target`, GITHUB_SHA is a commit of the base branch. The tested revision still is the head's.
}

/// The owner of the repository that the code is from, if it differs from the workflow's repository. That of a deleted fork
/// is null.
fn owner_of_fork<'a>(head: &'a Value, repository: &str) -> Option<&'a str> {
    const UNKNOWN: &str = "fork";
    match head.get("full_name").and_then(Value::as_str) {
        Some(name) => {
            let (owner, _) = name.split_once('/')?;
            (!name.eq_ignore_ascii_case(repository)).then_some(owner)
        }
        None => head.is_null().then_some(UNKNOWN),
    }
}

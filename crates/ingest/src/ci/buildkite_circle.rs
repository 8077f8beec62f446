//! Buildkite and CircleCI.

use super::environment::{EnvironmentReader, owner_and_name};

pub(super) fn circle(reader: &mut EnvironmentReader<'_>) {
    // A tag is built on no branch.
    reader.branch(&["CIRCLE_BRANCH", "CIRCLE_TAG"]);
    reader.commit(&["CIRCLE_SHA1"]);
    reader.pull_request(&["CIRCLE_PR_NUMBER"], &[]);
    if reader.detected.context.pull_request_number.is_none() {
        // The address of the pull request. The number alone is set on forks only.
        let address = reader.get("CIRCLE_PULL_REQUEST").unwrap_or_default();
        let number = address
            .trim_end_matches('/')
            .rsplit('/')
            .next()
            .and_then(|last| last.parse().ok());
        if number.is_some() {
            reader.record_source("pull request", "CIRCLE_PULL_REQUEST");
            reader.detected.context.pull_request_number = number;
        }
    }
    set_tested_revision(reader, "CIRCLE_SHA1");
    // "Rerun from failed" makes another workflow, which keeps the workspace of the first one.
    reader.run(&["CIRCLE_WORKFLOW_WORKSPACE_ID", "CIRCLE_WORKFLOW_ID"]);
    reader.job(&["CIRCLE_JOB"]);
    // The service numbers the jobs of a project in their order.
    reader.attempt("CIRCLE_BUILD_NUM", 1);
    reader.detected.job_id = reader.get("CIRCLE_WORKFLOW_JOB_ID");
    // A workflow that runs again has a new id. Jobs of one workflow have growing numbers, and are no attempts.
    reader.detected.runner = reader.get("CIRCLE_WORKFLOW_ID");
    reader.shard("CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0);
    let root = reader.get("CIRCLE_WORKING_DIRECTORY");
    // The variable holds `~/project`; reports hold the full path.
    let home = reader.get("HOME").unwrap_or_default();
    reader.detected.workspace_root = root.map(|root| match root.strip_prefix('~') {
        Some(rest) if !home.is_empty() => format!("{}{rest}", home.trim_end_matches('/')),
        _ => root,
    });
    if reader.detected.workspace_root.is_some() {
        reader.record_source("root", "CIRCLE_WORKING_DIRECTORY");
    }
    reader.detected.context.run_url = reader.first("page of the CI run", &["CIRCLE_BUILD_URL"]);
}

pub(super) fn buildkite(reader: &mut EnvironmentReader<'_>) {
    reader.branch(&["BUILDKITE_BRANCH"]);
    let repository = |variable| reader.get(variable).as_deref().and_then(owner_and_name);
    let (source, target) = (
        repository("BUILDKITE_PULL_REQUEST_REPO"),
        repository("BUILDKITE_REPO"),
    );
    if let (Some(source), Some(target)) = (source, target)
        && source != target
    {
        // With a setting of the pipeline, Buildkite itself writes `owner:branch`. Such a branch stays unchanged.
        reader.branch_is_of_fork(&source.0);
    }
    reader.commit(&["BUILDKITE_COMMIT"]);
    // The variable is `false` without a pull request.
    reader.pull_request(&["BUILDKITE_PULL_REQUEST"], &[]);
    set_tested_revision(reader, "BUILDKITE_COMMIT");
    reader.detected.context.commit_message = reader.first("commit message", &["BUILDKITE_MESSAGE"]);
    reader.detected.context.author_name = reader.first("author", &["BUILDKITE_BUILD_AUTHOR"]);
    reader.run(&["BUILDKITE_BUILD_ID"]);
    reader.attempt("BUILDKITE_RETRY_COUNT", 0);
    // All jobs of a matrix share the key. Their labels may differ, and a job that runs again keeps its label.
    reader.job(&["BUILDKITE_STEP_KEY"]);
    reader.detected.job = reader.get("BUILDKITE_LABEL").or(reader.detected.job.take());
    reader.detected.job_id = reader.get("BUILDKITE_JOB_ID");
    reader.shard("BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0);
    reader.root(&["BUILDKITE_BUILD_CHECKOUT_PATH"]);
    reader.detected.context.run_url = reader.first("page of the CI run", &["BUILDKITE_BUILD_URL"]);
}

/// Sets the tested revision of a pull request to its commit: these services check out the head, never a merge of it.
fn set_tested_revision(reader: &mut EnvironmentReader<'_>, variable: &'static str) {
    if reader.detected.context.pull_request_number.is_some() && reader.detected.context.commit_sha.is_some() {
        reader.detected.context.tested_revision = reader.detected.context.commit_sha.clone();
        reader.record_source("tested revision", variable);
    }
}

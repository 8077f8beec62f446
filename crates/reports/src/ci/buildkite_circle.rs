//! Buildkite and CircleCI.

use super::{EnvironmentReader, owner_and_name};

pub(super) fn circle(read: &mut EnvironmentReader<'_>) {
    read.branch(&["CIRCLE_BRANCH"]);
    read.commit(&["CIRCLE_SHA1"]);
    read.pull_request(&["CIRCLE_PR_NUMBER"], &[]);
    if read.detected.context.pull_request_number.is_none() {
        // The address of the pull request. The number alone is set on forks only.
        let address = read.get("CIRCLE_PULL_REQUEST").unwrap_or_default();
        let number = address
            .trim_end_matches('/')
            .rsplit('/')
            .next()
            .and_then(|last| last.parse().ok());
        if number.is_some() {
            read.record_source("pull request", "CIRCLE_PULL_REQUEST");
            read.detected.context.pull_request_number = number;
        }
    }
    own_commit_is_tested(read, "CIRCLE_SHA1");
    read.run(&["CIRCLE_WORKFLOW_ID"]);
    read.job(&["CIRCLE_JOB"]);
    read.shard("CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0);
    let root = read.get("CIRCLE_WORKING_DIRECTORY");
    // The variable holds `~/project`; reports hold the full path.
    let home = read.get("HOME").unwrap_or_default();
    read.detected.workspace_root = root.map(|root| match root.strip_prefix('~') {
        Some(rest) if !home.is_empty() => format!("{}{rest}", home.trim_end_matches('/')),
        _ => root,
    });
    if read.detected.workspace_root.is_some() {
        read.record_source("root", "CIRCLE_WORKING_DIRECTORY");
    }
    read.detected.context.run_url = read.first("page of the CI run", &["CIRCLE_BUILD_URL"]);
}

pub(super) fn buildkite(read: &mut EnvironmentReader<'_>) {
    read.branch(&["BUILDKITE_BRANCH"]);
    let repository = |variable| read.get(variable).as_deref().and_then(owner_and_name);
    let (source, target) = (
        repository("BUILDKITE_PULL_REQUEST_REPO"),
        repository("BUILDKITE_REPO"),
    );
    if let (Some(source), Some(target)) = (source, target)
        && source != target
    {
        // A pipeline setting has the same effect.
        read.branch_is_of_fork(&source.0);
    }
    read.commit(&["BUILDKITE_COMMIT"]);
    // The variable is `false` without a pull request.
    read.pull_request(&["BUILDKITE_PULL_REQUEST"], &[]);
    own_commit_is_tested(read, "BUILDKITE_COMMIT");
    read.detected.context.commit_message = read.first("commit message", &["BUILDKITE_MESSAGE"]);
    read.detected.context.author_name = read.first("author", &["BUILDKITE_BUILD_AUTHOR"]);
    read.run(&["BUILDKITE_BUILD_ID"]);
    read.attempt("BUILDKITE_RETRY_COUNT", 0);
    // All jobs of a matrix share this value. A job that runs again gets another id and another attempt.
    read.job(&["BUILDKITE_STEP_KEY"]);
    read.detected.runner = read.get("BUILDKITE_JOB_ID");
    read.shard("BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0);
    read.root(&["BUILDKITE_BUILD_CHECKOUT_PATH"]);
    read.detected.context.run_url = read.first("page of the CI run", &["BUILDKITE_BUILD_URL"]);
}

/// These services check out the head commit, never a merge of it.
fn own_commit_is_tested(read: &mut EnvironmentReader<'_>, variable: &'static str) {
    if read.detected.context.pull_request_number.is_some() && read.detected.context.commit_sha.is_some() {
        read.detected.context.tested_revision = read.detected.context.commit_sha.clone();
        read.record_source("tested revision", variable);
    }
}

//! Jenkins, Bitbucket Pipelines and TeamCity.

use super::EnvironmentReader;

pub(super) fn jenkins(read: &mut EnvironmentReader<'_>) {
    read.branch(&["CHANGE_BRANCH", "BRANCH_NAME", "GIT_BRANCH"]);
    // `owner`, or `owner/name` where the fork has another name.
    if let Some(fork) = read.get("CHANGE_FORK") {
        read.branch_is_of_fork(fork.split('/').next().unwrap_or(&fork));
    }
    // Jenkins can be configured to build a merge of the pull request. No variable names its head.
    read.commit(&["GIT_COMMIT"]);
    read.pull_request(&["CHANGE_ID"], &["CHANGE_TITLE"]);
    read.run(&["BUILD_TAG"]);
    read.job(&["STAGE_NAME"]);
    // The cells of a matrix share one stage name.
    read.detected.runner = match (read.get("NODE_NAME"), read.get("EXECUTOR_NUMBER")) {
        (Some(node), Some(executor)) => Some(format!("{node} #{executor}")),
        (node, _) => node,
    };
    read.root(&["WORKSPACE"]);
    read.detected.context.run_url = read.first("page of the CI run", &["BUILD_URL"]);
}

pub(super) fn bitbucket(read: &mut EnvironmentReader<'_>) {
    read.branch(&["BITBUCKET_BRANCH"]);
    read.commit(&["BITBUCKET_COMMIT"]);
    read.pull_request(&["BITBUCKET_PR_ID"], &[]);
    read.run(&["BITBUCKET_PIPELINE_UUID", "BITBUCKET_BUILD_NUMBER"]);
    // No variable holds a step's name.
    read.detected.runner = read.get("BITBUCKET_STEP_UUID");
    read.shard("BITBUCKET_PARALLEL_STEP", "BITBUCKET_PARALLEL_STEP_COUNT", 0);
    read.root(&["BITBUCKET_CLONE_DIR"]);
}

pub(super) fn teamcity(read: &mut EnvironmentReader<'_>) {
    // TeamCity exports the branch only if the build's settings define a variable. These are the usual names.
    read.branch(&["TEAMCITY_BUILD_BRANCH", "BUILD_BRANCH", "GIT_BRANCH"]);
    read.commit(&["BUILD_VCS_NUMBER"]);
    read.pull_request(&["TEAMCITY_PULLREQUEST_NUMBER"], &["TEAMCITY_PULLREQUEST_TITLE"]);
    read.run(&["TEAMCITY_BUILD_ID", "BUILD_URL"]);
    if read.run_id.is_none()
        && let (Some(configuration), Some(number)) =
            (read.get("TEAMCITY_BUILDCONF_NAME"), read.get("BUILD_NUMBER"))
    {
        read.run_id = Some(format!("{configuration}#{number}"));
        read.record_source("run key", "BUILD_NUMBER");
    }
    read.detected.context.run_url = read.first("page of the CI run", &["BUILD_URL"]);
}

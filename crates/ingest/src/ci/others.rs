//! Jenkins, Bitbucket Pipelines and TeamCity.

use super::environment::EnvironmentReader;

pub(super) fn jenkins(reader: &mut EnvironmentReader<'_>) {
    reader.branch(&["CHANGE_BRANCH", "BRANCH_NAME", "GIT_LOCAL_BRANCH", "GIT_BRANCH"]);
    // The word of the git plugin for a checkout of a commit.
    reader.branch_is_none_if("detached");
    // `owner`, or `owner/name` where the fork has another name.
    if let Some(fork) = reader.get("CHANGE_FORK") {
        reader.branch_is_of_fork(fork.split('/').next().unwrap_or(&fork));
    }
    // Jenkins can be configured to build a merge of the pull request. No variable names its head.
    reader.commit(&["GIT_COMMIT"]);
    reader.pull_request(&["CHANGE_ID"], &["CHANGE_TITLE"]);
    // A stage that is restarted begins another build. `retry` within a build leaves no trace in the variables. BUILD_TAG has
    // one text for the jobs `a/b` and `a-b`.
    reader.run_of_job("JOB_NAME", "BUILD_NUMBER");
    reader.job(&["STAGE_NAME"]);
    // All jobs of a matrix share one stage name.
    reader.detected.runner = match (reader.get("NODE_NAME"), reader.get("EXECUTOR_NUMBER")) {
        (Some(node), Some(executor)) => Some(format!("{node} #{executor}")),
        (node, _) => node,
    };
    reader.root(&["WORKSPACE"]);
    reader.detected.context.run_url = reader.first("page of the CI run", &["BUILD_URL"]);
}

pub(super) fn bitbucket(reader: &mut EnvironmentReader<'_>) {
    reader.branch(&["BITBUCKET_BRANCH"]);
    reader.commit(&["BITBUCKET_COMMIT"]);
    reader.pull_request(&["BITBUCKET_PR_ID"], &[]);
    reader.run(&["BITBUCKET_PIPELINE_UUID", "BITBUCKET_BUILD_NUMBER"]);
    // No variable holds a step's name. A step that runs again has a higher number.
    reader.attempt("BITBUCKET_STEP_RUN_NUMBER", 1);
    reader.detected.job_id = reader.get("BITBUCKET_STEP_UUID");
    reader.shard("BITBUCKET_PARALLEL_STEP", "BITBUCKET_PARALLEL_STEP_COUNT", 0);
    reader.root(&["BITBUCKET_CLONE_DIR"]);
}

pub(super) fn teamcity(reader: &mut EnvironmentReader<'_>) {
    // TeamCity exports the branch only if the build's settings define a variable. These are the usual names.
    reader.branch(&["TEAMCITY_BUILD_BRANCH", "BUILD_BRANCH", "GIT_BRANCH"]);
    // The word for the default branch unless the branch specification names it.
    reader.branch_is_none_if("<default>");
    reader.commit(&["BUILD_VCS_NUMBER"]);
    reader.pull_request(&["TEAMCITY_PULLREQUEST_NUMBER"], &["TEAMCITY_PULLREQUEST_TITLE"]);
    // A build that runs again is another build.
    reader.run(&["TEAMCITY_BUILD_ID", "BUILD_URL"]);
    if reader.run_id.is_none() {
        reader.run_of_job("TEAMCITY_BUILDCONF_NAME", "BUILD_NUMBER");
    }
    reader.detected.context.run_url = reader.first("page of the CI run", &["BUILD_URL"]);
}

//! GitLab CI and Azure Pipelines.

use super::{EnvironmentReader, owner_and_name};

pub(super) fn gitlab(read: &mut EnvironmentReader<'_>) {
    read.branch(&[
        "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME",
        "CI_COMMIT_BRANCH",
        "CI_COMMIT_REF_NAME",
    ]);
    let (source, target) = (
        read.get("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH"),
        read.get("CI_MERGE_REQUEST_PROJECT_PATH"),
    );
    if let (Some(source), Some(target)) = (source, target)
        && source != target
    {
        read.branch_is_of_fork(&source);
    }
    read.commit(&["CI_COMMIT_SHA"]);
    read.pull_request(&["CI_MERGE_REQUEST_IID"], &["CI_MERGE_REQUEST_TITLE"]);
    if read.detected.context.pull_request_number.is_some() {
        // The variable is empty in a plain merge request pipeline, which tests the head itself.
        let head = read.first(
            "tested revision",
            &["CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", "CI_COMMIT_SHA"],
        );
        read.detected.context.tested_revision = head;
    }
    read.detected.context.commit_message = read.first("commit message", &["CI_COMMIT_MESSAGE"]);
    let author = read.first("author", &["CI_COMMIT_AUTHOR"]);
    // `Jo Doe <jo@example.org>`
    read.detected.context.author_name = author
        .map(|author| author.split(" <").next().unwrap_or_default().trim().to_owned())
        .filter(|name| !name.is_empty());
    read.run(&["CI_PIPELINE_ID"]);
    read.shard("CI_NODE_INDEX", "CI_NODE_TOTAL", 1);
    read.job(&["CI_JOB_NAME"]);
    if read.detected.shard.is_some() {
        // Parallel jobs are named `rspec 1/3` or `rspec: [ruby, linux]`. They are parts of one suite, named by the text
        // before that.
        let group = read.get("CI_JOB_GROUP_NAME");
        read.detected.context.suite = group.or_else(|| read.detected.job.as_deref().map(group_name));
    }
    read.root(&["CI_PROJECT_DIR"]);
    read.detected.context.run_url = read.first("page of the CI run", &["CI_PIPELINE_URL"]);
}

/// A parallel job's name without its number.
fn group_name(job: &str) -> String {
    let is_place = |text: &str| {
        text.split_once('/')
            .is_some_and(|(index, total)| index.parse::<u32>().is_ok() && total.parse::<u32>().is_ok())
    };
    let group = match (job.rsplit_once(' '), job.find(": [")) {
        (Some((group, place)), _) if is_place(place) => group,
        (_, Some(end)) if job.ends_with(']') => job.get(..end).unwrap_or(job),
        (Some(_) | None, _) => job,
    };
    group.to_owned()
}

pub(super) fn azure(read: &mut EnvironmentReader<'_>) {
    read.branch(&["SYSTEM_PULLREQUEST_SOURCEBRANCH", "BUILD_SOURCEBRANCH"]);
    if read
        .get("SYSTEM_PULLREQUEST_ISFORK")
        .is_some_and(|is_fork| is_fork.eq_ignore_ascii_case("true"))
    {
        let address = read.get("SYSTEM_PULLREQUEST_SOURCEREPOSITORYURI");
        let owner = address
            .as_deref()
            .and_then(owner_and_name)
            .map(|(owner, _)| owner);
        read.branch_is_of_fork(owner.as_deref().unwrap_or("fork"));
    }
    read.commit(&["BUILD_SOURCEVERSION"]);
    read.pull_request(
        &[
            "SYSTEM_PULLREQUEST_PULLREQUESTNUMBER",
            "SYSTEM_PULLREQUEST_PULLREQUESTID",
        ],
        &[],
    );
    read.detected.context.tested_revision =
        read.first("tested revision", &["SYSTEM_PULLREQUEST_SOURCECOMMITID"]);
    read.detected.context.commit_message = read.first("commit message", &["BUILD_SOURCEVERSIONMESSAGE"]);
    read.detected.context.author_name = read.first("author", &["BUILD_SOURCEVERSIONAUTHOR"]);
    read.run(&["BUILD_BUILDID"]);
    read.attempt("SYSTEM_JOBATTEMPT", 1);
    read.shard("SYSTEM_JOBPOSITIONINPHASE", "SYSTEM_TOTALJOBSINPHASE", 1);
    // The phase is the job of the pipeline's file. The job is one of its copies, `__default` if there is only one.
    if read.detected.shard.is_some() || read.get("SYSTEM_JOBNAME").is_none_or(|name| name == "__default") {
        read.job(&["SYSTEM_PHASENAME", "SYSTEM_JOBNAME"]);
    } else {
        read.job(&["SYSTEM_JOBNAME"]);
    }
    // Each attempt of a job has its own id.
    read.detected.runner = read.get("SYSTEM_JOBID");
    read.root(&["BUILD_SOURCESDIRECTORY"]);
    if let (Some(server), Some(project), Some(build)) = (
        read.get("SYSTEM_TEAMFOUNDATIONSERVERURI")
            .or_else(|| read.get("SYSTEM_COLLECTIONURI")),
        read.get("SYSTEM_TEAMPROJECT"),
        read.get("BUILD_BUILDID"),
    ) {
        let server = server.trim_end_matches('/');
        read.record_source("page of the CI run", "BUILD_BUILDID");
        read.detected.context.run_url = Some(format!("{server}/{project}/_build/results?buildId={build}"));
    }
}

//! GitLab CI and Azure Pipelines.

use super::environment::{EnvironmentReader, owner_and_name};

pub(super) fn gitlab(reader: &mut EnvironmentReader<'_>) {
    reader.branch(&[
        "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME",
        "CI_COMMIT_BRANCH",
        "CI_COMMIT_REF_NAME",
    ]);
    let (source, target) = (
        reader.get("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH"),
        reader.get("CI_MERGE_REQUEST_PROJECT_PATH"),
    );
    if let (Some(source), Some(target)) = (source, target)
        && source != target
    {
        reader.branch_is_of_fork(&source);
    }
    reader.commit(&["CI_COMMIT_SHA"]);
    reader.pull_request(&["CI_MERGE_REQUEST_IID"], &["CI_MERGE_REQUEST_TITLE"]);
    if reader.detected.context.pull_request_number.is_some() {
        // The variable is empty in a plain merge request pipeline, which tests the head itself.
        let head = reader.first(
            "tested revision",
            &["CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", "CI_COMMIT_SHA"],
        );
        reader.detected.context.tested_revision = head;
    }
    let train = reader
        .detected
        .context
        .pull_request_number
        .filter(|_| reader.get("CI_MERGE_REQUEST_EVENT_TYPE").as_deref() == Some("merge_train"));
    if let Some(number) = train {
        // The commit contains the merge requests ahead in the train, too: it is not the head of the source branch.
        reader.record_source("branch", "CI_MERGE_REQUEST_EVENT_TYPE");
        reader.detected.context.branch = Some(format!("merge-requests/{number}/train"));
        reader.detected.context.tested_revision = None;
    }
    reader.detected.context.commit_message = reader.first("commit message", &["CI_COMMIT_MESSAGE"]);
    let author = reader.first("author", &["CI_COMMIT_AUTHOR"]);
    // `Jo Doe <jo@example.org>`
    reader.detected.context.author_name = author
        .map(|author| author.split(" <").next().unwrap_or_default().trim().to_owned())
        .filter(|name| !name.is_empty());
    reader.run(&["CI_PIPELINE_ID"]);
    // A job that runs again keeps its name, which is unique in a pipeline, and gets a new and larger id.
    reader.attempt("CI_JOB_ID", 1);
    reader.detected.job_id = reader.get("CI_JOB_ID");
    reader.shard("CI_NODE_INDEX", "CI_NODE_TOTAL", 1);
    reader.job(&["CI_JOB_NAME"]);
    if reader.detected.shard.is_some() {
        // Parallel jobs are named `rspec 1/3` or `rspec: [ruby, linux]`. They are parts of one suite, named by the text
        // before that.
        let group = reader.get("CI_JOB_GROUP_NAME");
        reader.detected.context.suite = group.or_else(|| reader.detected.job.as_deref().map(group_name));
    }
    reader.root(&["CI_PROJECT_DIR"]);
    reader.detected.context.run_url = reader.first("page of the CI run", &["CI_PIPELINE_URL"]);
}

/// A parallel job's name without its number.
fn group_name(job: &str) -> String {
    let is_index_of_total = |text: &str| {
        text.split_once('/')
            .is_some_and(|(index, total)| index.parse::<u32>().is_ok() && total.parse::<u32>().is_ok())
    };
    let group = match (job.rsplit_once(' '), job.find(": [")) {
        (Some((group, number)), _) if is_index_of_total(number) => group,
        (_, Some(end)) if job.ends_with(']') => job.get(..end).unwrap_or(job),
        (Some(_) | None, _) => job,
    };
    group.to_owned()
}

pub(super) fn azure(reader: &mut EnvironmentReader<'_>) {
    reader.branch(&["SYSTEM_PULLREQUEST_SOURCEBRANCH", "BUILD_SOURCEBRANCH"]);
    if reader
        .get("SYSTEM_PULLREQUEST_ISFORK")
        .is_some_and(|is_fork| is_fork.eq_ignore_ascii_case("true"))
    {
        let address = reader.get("SYSTEM_PULLREQUEST_SOURCEREPOSITORYURI");
        let owner = address
            .as_deref()
            .and_then(owner_and_name)
            .map(|(owner, _)| owner);
        reader.branch_is_of_fork(owner.as_deref().unwrap_or("fork"));
    }
    reader.commit(&["BUILD_SOURCEVERSION"]);
    reader.pull_request(
        &[
            "SYSTEM_PULLREQUEST_PULLREQUESTNUMBER",
            "SYSTEM_PULLREQUEST_PULLREQUESTID",
        ],
        &[],
    );
    reader.detected.context.tested_revision =
        reader.first("tested revision", &["SYSTEM_PULLREQUEST_SOURCECOMMITID"]);
    reader.detected.context.commit_message = reader.first("commit message", &["BUILD_SOURCEVERSIONMESSAGE"]);
    reader.detected.context.author_name = reader.first("author", &["BUILD_SOURCEVERSIONAUTHOR"]);
    reader.run(&["BUILD_BUILDID"]);
    reader.attempt("SYSTEM_JOBATTEMPT", 1);
    reader.shard("SYSTEM_JOBPOSITIONINPHASE", "SYSTEM_TOTALJOBSINPHASE", 1);
    // The phase is the job of the pipeline's file. The job is one of its copies, `__default` if there is only one.
    if reader.detected.shard.is_some()
        || reader
            .get("SYSTEM_JOBNAME")
            .is_none_or(|name| name == "__default")
    {
        reader.job(&["SYSTEM_PHASENAME", "SYSTEM_JOBNAME"]);
    } else {
        reader.job(&["SYSTEM_JOBNAME"]);
    }
    if let Some(stage) = reader.get("SYSTEM_STAGENAME").filter(|name| name != "__default") {
        // Jobs of one name in two stages are one suite, and none of them runs the other's tests again.
        let job = reader.detected.job.take();
        reader.detected.job = job.map(|job| format!("{stage}.{job}"));
    }
    reader.detected.job_id = reader.get("SYSTEM_JOBID");
    reader.root(&["BUILD_SOURCESDIRECTORY"]);
    if let (Some(server), Some(project), Some(build)) = (
        reader
            .get("SYSTEM_TEAMFOUNDATIONSERVERURI")
            .or_else(|| reader.get("SYSTEM_COLLECTIONURI")),
        reader.get("SYSTEM_TEAMPROJECT"),
        reader.get("BUILD_BUILDID"),
    ) {
        let server = server.trim_end_matches('/');
        reader.record_source("page of the CI run", "BUILD_BUILDID");
        reader.detected.context.run_url = Some(format!("{server}/{project}/_build/results?buildId={build}"));
    }
}

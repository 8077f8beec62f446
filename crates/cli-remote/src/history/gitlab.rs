//! GitLab CI: the routes of pipelines, their jobs, merge requests and test reports.

use serde_json::Value;

use super::{
    HostError, PastFile, PastReport, PastRun, Project, Service, Values,
    service::{Places, list, text, values},
};

/// GitLab.
pub(super) static GITLAB: Service = Service {
    name: "GitLab",
    form: "GROUP/PROJECT",
    url: ("CI_API_V4_URL", "https://gitlab.com/api/v4"),
    tokens: &["GITLAB_TOKEN"],
    header: ("PRIVATE-TOKEN", ""),
    scope: "has the scope read_api",
    base: |name| format!("/projects/{}", name.replace('/', "%2F")),
    default_branch: "/default_branch",
    roots: &["/builds/{name}"],
    results: ("/test_suites", "/test_cases"),
    runs: |project, since, _| {
        let path =
            format!("/pipelines?scope=finished&created_after={since}&order_by=id&sort=asc&per_page=100");
        let list = |path: &str| project.list(path, "", since, |pipeline| PastRun::of(pipeline, OF_PIPELINE));
        // Child pipelines are listed only by themselves.
        Ok([list(&path)?, list(&format!("{path}&source=parent_pipeline"))?].concat())
    },
    reports,
};

const OF_PIPELINE: &Places = &[
    ("id", "/id"),
    ("start", "/created_at"),
    ("GITLAB_CI", "true"),
    ("CI_PIPELINE_ID", "/id"),
    ("CI_PIPELINE_URL", "/web_url"),
    ("CI_COMMIT_SHA", "/sha"),
    ("ref", "/ref"),
];
const OF_JOB: &Places = &[
    ("id", "/id"),
    ("start", "/started_at"),
    ("CI_JOB_ID", "/id"),
    ("CI_JOB_NAME", "/name"),
    ("CI_COMMIT_REF_NAME", "/ref"),
    ("CI_COMMIT_BRANCH", "/ref"),
    ("CI_COMMIT_MESSAGE", "/commit/message"),
    ("CI_COMMIT_AUTHOR", "/commit/author_name"),
];
const OF_MERGE_REQUEST: &Places = &[
    ("CI_MERGE_REQUEST_TITLE", "/title"),
    ("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "/source_branch"),
    ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "/target_branch"),
    ("source", "/source_project_id"),
    ("target", "/target_project_id"),
    ("base", "/diff_refs/base_sha"),
    ("head", "/sha"),
];

fn reports(project: &Project, run: &PastRun) -> Result<Vec<PastReport>, HostError> {
    let path = format!(
        "{}/pipelines/{}/jobs?include_retried=true&per_page=100",
        project.base, run.id
    );
    let mut jobs = project.all(&path, "")?;
    jobs.retain(|job| has(job, "archive") || has(job, "junit"));
    // `refs/merge-requests/12/head`, `…/merge` or `…/train`
    let reference = run.value("ref").unwrap_or_default();
    let mut request = match reference.split('/').collect::<Vec<_>>().as_slice() {
        ["refs", "merge-requests", number, ..] if !jobs.is_empty() => merge_request(project, number)?,
        _ => Values::new(),
    };
    let is_merge = reference.ends_with("/merge") && !request.is_empty();
    if is_merge && let Some(sha) = run.value("CI_COMMIT_SHA") {
        // The first parent is the head of the target branch.
        let commit = project.get(&format!("{}/repository/commits/{sha}", project.base))?;
        let head = text(&commit, "/parent_ids/1");
        request.extend(head.map(|head| ("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", head)));
    }
    if reference.ends_with("/train") {
        request.insert("CI_MERGE_REQUEST_EVENT_TYPE", "merge_train".to_owned());
    }
    let report = |job| report(project, run, job, &request);
    let mut reports: Vec<_> = jobs.iter().filter_map(report).collect();
    if is_merge && !request.contains_key("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") {
        for report in &mut reports {
            report.ci.context.tested_revision = None;
        }
    }
    Ok(reports)
}

/// Whether a job has an artifact of this kind.
fn has(job: &Value, kind: &str) -> bool {
    list(job, "/artifacts").any(|file| text(file, "/file_type").as_deref() == Some(kind))
}

fn merge_request(project: &Project, number: &str) -> Result<Values, HostError> {
    let path = format!("{}/merge_requests/{number}", project.base);
    let mut found = values(&project.get(&path)?, OF_MERGE_REQUEST);
    found.insert("CI_MERGE_REQUEST_IID", number.to_owned());
    found.insert("CI_MERGE_REQUEST_PROJECT_PATH", project.name.clone());
    let source = found.get("source");
    if let Some(source) = source.filter(|_| source != found.get("target")) {
        let fork = project.get(&format!("/projects/{source}"))?;
        let fork = text(&fork, "/path_with_namespace").unwrap_or_else(|| "fork".to_owned());
        found.insert("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH", fork);
    }
    Ok(found)
}

fn report(project: &Project, run: &PastRun, job: &Value, request: &Values) -> Option<PastReport> {
    let mut of_job = values(job, OF_JOB);
    let name = text(job, "/name").unwrap_or_default();
    if !request.is_empty() || job.get("tag") == Some(&Value::Bool(true)) {
        of_job.remove("CI_COMMIT_BRANCH");
    }
    // A parallel job is named `NAME 1/3`.
    let place = name.rsplit(' ').next().and_then(|place| place.split_once('/'));
    if let Some((index, total)) = place.filter(|(a, b)| a.parse::<u32>().is_ok() && b.parse::<u32>().is_ok())
    {
        of_job.insert("CI_NODE_INDEX", index.to_owned());
        of_job.insert("CI_NODE_TOTAL", total.to_owned());
    }
    of_job.extend(request.clone());
    let archive = PastFile {
        url: format!("{}/jobs/{}/artifacts", project.base, of_job.get("id")?),
        is_archive: true,
        ..PastFile::of(job, ["/name", "", "/artifacts_file/size", "/artifacts_expire_at"])
    };
    let results = format!("{}/pipelines/{}/test_report", project.base, run.id);
    let mut report = PastReport {
        files: Vec::from_iter(has(job, "archive").then_some(archive)),
        results: has(job, "junit").then_some(results),
        ..run.report(&of_job)
    };
    let is_head = request.get("head") == run.values.get("CI_COMMIT_SHA");
    report.flags.context.merge_base = request.get("base").filter(|_| is_head).cloned();
    Some(report)
}

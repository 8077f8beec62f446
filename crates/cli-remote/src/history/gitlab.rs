//! GitLab CI: the routes of pipelines, their jobs, merge requests and test reports.

use assay_domain::timestamp::Timestamp;
use serde_json::Value;

use super::{
    Cases, HostError, PastFile, PastReport, PastRun, Places, Project, Service, Values, list, text, time,
    values,
};

/// GitLab.
pub static GITLAB: Service = Service {
    name: "GitLab",
    form: "GROUP/PROJECT",
    url: ("CI_API_V4_URL", "https://gitlab.com/api/v4"),
    tokens: &["GITLAB_TOKEN"],
    header: ("PRIVATE-TOKEN", ""),
    scope: "has the scope read_api",
    base: |name| format!("/projects/{}", name.replace('/', "%2F")),
    default_branch: "/default_branch",
    runs,
    reports,
};

const OF_PIPELINE: &Places = &[
    ("GITLAB_CI", "true"),
    ("CI_PIPELINE_ID", "/id"),
    ("CI_PIPELINE_URL", "/web_url"),
    ("CI_COMMIT_SHA", "/sha"),
    ("ref", "/ref"),
];
const OF_JOB: &Places = &[
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

fn runs(project: &Project, since: Timestamp, _: Timestamp) -> Result<Vec<PastRun>, HostError> {
    let path = format!(
        "{}/pipelines?scope=finished&created_after={since}&order_by=id&sort=asc&per_page=100",
        project.base
    );
    let mut runs = Vec::new();
    project.requests.each(&path, "", |pipeline| {
        let start = time(pipeline, "/created_at");
        runs.extend(PastRun::of(pipeline, "/id", start, OF_PIPELINE));
        true
    })?;
    Ok(runs)
}

fn reports(project: &Project, run: &PastRun) -> Result<Vec<PastReport>, HostError> {
    let path = format!(
        "{}/pipelines/{}/jobs?include_retried=true&per_page=100",
        project.base, run.id
    );
    let mut jobs = project.requests.all(&path, "")?;
    jobs.retain(|job| list(job, "/artifacts").any(|file| text(file, "/file_type").is_some()));
    // `refs/merge-requests/12/head`, `…/merge` or `…/train`
    let reference = run.value("ref").unwrap_or_default();
    let number = reference.strip_prefix("refs/merge-requests/");
    let number = number.and_then(|rest| rest.split('/').next());
    let mut request = match number.filter(|_| !jobs.is_empty()) {
        Some(number) => merge_request(project, number)?,
        None => Values::new(),
    };
    if reference.ends_with("/train") {
        request.insert("CI_MERGE_REQUEST_EVENT_TYPE", "merge_train".to_owned());
    }
    Ok(jobs
        .iter()
        .filter_map(|job| report(project, run, job, &request))
        .collect())
}

fn merge_request(project: &Project, number: &str) -> Result<Values, HostError> {
    let path = format!("{}/merge_requests/{number}", project.base);
    if let Some(known) = project.known.borrow().get(&path) {
        return Ok(known.clone());
    }
    let mut found = values(&project.requests.find(&path)?, OF_MERGE_REQUEST);
    found.insert("CI_MERGE_REQUEST_IID", number.to_owned());
    found.insert("CI_MERGE_REQUEST_PROJECT_PATH", project.name.clone());
    if let Some(source) = found
        .get("source")
        .filter(|source| Some(*source) != found.get("target"))
    {
        let fork = project.requests.find(&format!("/projects/{source}"))?;
        let fork = text(&fork, "/path_with_namespace").unwrap_or_else(|| "fork".to_owned());
        found.insert("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH", fork);
    }
    project.known.borrow_mut().insert(path, found.clone());
    Ok(found)
}

fn report(project: &Project, run: &PastRun, job: &Value, request: &Values) -> Option<PastReport> {
    let (id, name) = (text(job, "/id")?, text(job, "/name")?);
    let has =
        |kind: &str| list(job, "/artifacts").any(|file| text(file, "/file_type").as_deref() == Some(kind));
    let archive = PastFile {
        name: name.clone(),
        url: format!("{}/jobs/{id}/artifacts", project.base),
        is_archive: true,
        bytes: job.pointer("/artifacts_file/size").and_then(Value::as_u64),
        expires_at: time(job, "/artifacts_expire_at"),
        is_expired: false,
    };
    let mut of_job = values(job, OF_JOB);
    if !request.is_empty() || job.get("tag") == Some(&Value::Bool(true)) {
        of_job.remove("CI_COMMIT_BRANCH");
    }
    if let Some((index, total)) = parallel(&name) {
        of_job.extend([
            ("CI_NODE_INDEX", index.to_owned()),
            ("CI_NODE_TOTAL", total.to_owned()),
        ]);
    }
    of_job.extend(request.clone());
    let mut report = PastReport {
        started_at: time(job, "/started_at"),
        roots: vec![format!("/builds/{}", project.name)],
        files: Some(archive).filter(|_| has("archive")).into_iter().collect(),
        cases: has("junit").then(|| Cases {
            path: format!("{}/pipelines/{}/test_report", project.base, run.id),
            suites: "/test_suites",
            cases: "/test_cases",
            of_job: Some(name.clone()),
        }),
        ..PastReport::new(run, &id, &of_job, None)
    };
    let is_head = request.get("head") == run.values.get("CI_COMMIT_SHA");
    report.flags.context.merge_base = request.get("base").filter(|_| is_head).cloned();
    Some(report).filter(|report| !report.files.is_empty() || report.cases.is_some())
}

/// The place of a parallel job, which is named `NAME 1/3`.
fn parallel(job: &str) -> Option<(&str, &str)> {
    let (index, total) = job.rsplit(' ').next()?.split_once('/')?;
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    (is_number(index) && is_number(total)).then_some((index, total))
}

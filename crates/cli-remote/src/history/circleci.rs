//! CircleCI: the routes of pipelines, workflows and jobs, with the results and artifacts of each job.

use assay_domain::timestamp::Timestamp;
use serde_json::Value;

use super::{Cases, HostError, PastFile, PastReport, PastRun, Places, Project, Service, text, time, values};

/// CircleCI.
pub static CIRCLECI: Service = Service {
    name: "CircleCI",
    form: "gh/OWNER/REPO",
    url: ("", "https://circleci.com/api/v2"),
    tokens: &["CIRCLE_TOKEN"],
    header: ("Circle-Token", ""),
    scope: "may read the project",
    base: |name| format!("/project/{name}"),
    default_branch: "/vcs_info/default_branch",
    runs,
    reports,
};

const OF_PIPELINE: &Places = &[
    ("CIRCLECI", "true"),
    ("CIRCLE_BRANCH", "/vcs/branch"),
    ("CIRCLE_SHA1", "/vcs/revision"),
    ("CIRCLE_PULL_REQUEST", "/vcs/review_url"),
];
const OF_JOB: &Places = &[
    ("CIRCLE_JOB", "/name"),
    ("CIRCLE_BUILD_NUM", "/job_number"),
    ("CIRCLE_WORKFLOW_JOB_ID", "/id"),
];

fn runs(project: &Project, since: Timestamp, _: Timestamp) -> Result<Vec<PastRun>, HostError> {
    let mut runs = Vec::new();
    let path = format!("{}/pipeline", project.base);
    project.requests.each(&path, "/items", |pipeline| {
        let run = PastRun::of(pipeline, "/id", time(pipeline, "/created_at"), OF_PIPELINE);
        let is_new = run.as_ref().is_none_or(|run| run.started_at >= since);
        runs.extend(run.filter(|_| is_new));
        is_new
    })?;
    Ok(runs)
}

fn reports(project: &Project, run: &PastRun) -> Result<Vec<PastReport>, HostError> {
    let mut reports = Vec::new();
    let workflows = format!("/pipeline/{}/workflow", run.id);
    for workflow in project.requests.all(&workflows, "/items")? {
        let (Some(id), name) = (text(&workflow, "/id"), text(&workflow, "/name")) else {
            continue;
        };
        if project.workflow.is_some() && project.workflow != name {
            continue;
        }
        for job in project.requests.all(&format!("/workflow/{id}/job"), "/items")? {
            // An approval has no number.
            if let Some(number) = text(&job, "/job_number") {
                reports.push(report(project, run, &id, (&job, &number))?);
            }
        }
    }
    Ok(reports)
}

fn report(
    project: &Project,
    run: &PastRun,
    workflow: &str,
    (job, number): (&Value, &str),
) -> Result<PastReport, HostError> {
    let path = format!("{}/{number}", project.base);
    let artifacts = project.requests.all(&format!("{path}/artifacts"), "/items")?;
    let mut of_job = values(job, OF_JOB);
    of_job.insert("CIRCLE_WORKFLOW_ID", workflow.to_owned());
    let page = format!("https://app.circleci.com/jobs/{}/{number}", project.name);
    of_job.insert("CIRCLE_BUILD_URL", page);
    let file = |artifact| Some(PastFile::named(text(artifact, "/path")?, text(artifact, "/url")?));
    Ok(PastReport {
        started_at: time(job, "/started_at"),
        roots: vec!["/home/circleci/project".to_owned(), "/root/project".to_owned()],
        files: artifacts.iter().filter_map(file).collect(),
        cases: Some(Cases {
            path: format!("{path}/tests"),
            suites: "/items",
            cases: "",
            of_job: None,
        }),
        ..PastReport::new(run, number, &of_job, None)
    })
}

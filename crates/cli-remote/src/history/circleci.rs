//! CircleCI: the routes of pipelines, workflows and jobs, with the results and artifacts of each job.

use super::{
    HostError, PastFile, PastReport, PastRun, Project, Service,
    service::{Places, text, values},
};

/// CircleCI.
pub(super) static CIRCLECI: Service = Service {
    name: "CircleCI",
    form: "gh/OWNER/REPO",
    url: ("", "https://circleci.com/api/v2"),
    tokens: &["CIRCLE_TOKEN"],
    header: ("Circle-Token", ""),
    scope: "may read the project",
    base: |name| format!("/project/{name}"),
    default_branch: "/vcs_info/default_branch",
    roots: &["/home/circleci/project", "/root/project"],
    results: ("/items", ""),
    runs: |project, since, _| {
        project.list("/pipeline", "/items", since, |pipeline| {
            PastRun::of(pipeline, OF_PIPELINE)
        })
    },
    reports,
};

const OF_PIPELINE: &Places = &[
    ("id", "/id"),
    ("start", "/created_at"),
    ("CIRCLECI", "true"),
    ("CIRCLE_BRANCH", "/vcs/branch"),
    ("CIRCLE_TAG", "/vcs/tag"),
    ("CIRCLE_SHA1", "/vcs/revision"),
    ("CIRCLE_PULL_REQUEST", "/vcs/review_url"),
];
const OF_JOB: &Places = &[
    ("id", "/job_number"),
    ("start", "/started_at"),
    ("CIRCLE_JOB", "/name"),
    ("CIRCLE_BUILD_NUM", "/job_number"),
    ("CIRCLE_WORKFLOW_JOB_ID", "/id"),
];

fn reports(project: &Project, run: &PastRun) -> Result<Vec<PastReport>, HostError> {
    let base = &project.base;
    let mut reports = Vec::new();
    let mut workflows = project.all(&format!("/pipeline/{}/workflow", run.id), "/items")?;
    workflows.retain(|of| project.workflow.is_none() || project.workflow == text(of, "/name"));
    for workflow in workflows.iter().filter_map(|workflow| text(workflow, "/id")) {
        for job in project.all(&format!("/workflow/{workflow}/job"), "/items")? {
            let mut job = values(&job, OF_JOB);
            // An approval has no number.
            let Some(number) = job.get("id").cloned() else {
                continue;
            };
            let page = format!("https://app.circleci.com/jobs/{}/{number}", project.name);
            job.insert("CIRCLE_WORKFLOW_ID", workflow.clone());
            job.insert("CIRCLE_BUILD_URL", page);
            let artifacts = project.all(&format!("{base}/{number}/artifacts"), "/items")?;
            let file = |artifact| PastFile::of(artifact, ["/path", "/url", "", ""]);
            reports.push(PastReport {
                files: artifacts.iter().map(file).collect(),
                results: Some(format!("{base}/{number}/tests")),
                ..run.report(&job)
            });
        }
    }
    Ok(reports)
}

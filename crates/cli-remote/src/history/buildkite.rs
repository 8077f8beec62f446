//! Buildkite: the REST routes of builds and artifacts.

use assay_domain::timestamp::Timestamp;

use super::{HostError, PastFile, PastReport, PastRun, Places, Project, Service, list, text, time, values};

/// Buildkite.
pub static BUILDKITE: Service = Service {
    name: "Buildkite",
    form: "ORG/PIPELINE",
    url: ("", "https://api.buildkite.com/v2"),
    tokens: &["BUILDKITE_API_TOKEN"],
    header: ("Authorization", "Bearer "),
    scope: "may read_builds and read_artifacts",
    base: |name| {
        let (organization, pipeline) = name.split_once('/').unwrap_or((name, ""));
        format!("/organizations/{organization}/pipelines/{pipeline}")
    },
    default_branch: "/default_branch",
    runs,
    reports,
};

const OF_BUILD: &Places = &[
    ("BUILDKITE", "true"),
    ("BUILDKITE_BUILD_ID", "/id"),
    ("BUILDKITE_BUILD_URL", "/web_url"),
    ("BUILDKITE_BRANCH", "/branch"),
    ("BUILDKITE_COMMIT", "/commit"),
    ("BUILDKITE_MESSAGE", "/message"),
    ("BUILDKITE_BUILD_AUTHOR", "/author/name"),
    ("BUILDKITE_PULL_REQUEST", "/pull_request/id"),
    ("BUILDKITE_PULL_REQUEST_REPO", "/pull_request/repository"),
    ("BUILDKITE_REPO", "/pipeline/repository"),
];
const OF_JOB: &Places = &[
    ("BUILDKITE_STEP_KEY", "/step_key"),
    ("BUILDKITE_LABEL", "/name"),
    ("BUILDKITE_JOB_ID", "/id"),
    ("BUILDKITE_RETRY_COUNT", "/retries_count"),
    ("BUILDKITE_PARALLEL_JOB", "/parallel_group_index"),
    ("BUILDKITE_PARALLEL_JOB_COUNT", "/parallel_group_total"),
    ("start", "/started_at"),
];

fn runs(project: &Project, since: Timestamp, _: Timestamp) -> Result<Vec<PastRun>, HostError> {
    let path = format!(
        "{}/builds?state=finished&include_retried_jobs=true&created_from={since}&per_page=100",
        project.base
    );
    let mut runs = Vec::new();
    project.requests.each(&path, "", |build| {
        let start = time(build, "/started_at").or_else(|| time(build, "/created_at"));
        runs.extend(PastRun::of(build, "/number", start, OF_BUILD).map(|run| PastRun {
            parts: list(build, "/jobs").map(|job| values(job, OF_JOB)).collect(),
            ..run
        }));
        true
    })?;
    Ok(runs)
}

fn reports(project: &Project, run: &PastRun) -> Result<Vec<PastReport>, HostError> {
    let path = format!("{}/builds/{}/artifacts?per_page=100", project.base, run.id);
    let artifacts = project.requests.all(&path, "")?;
    let report = |job: &super::Values| {
        let id = job.get("BUILDKITE_JOB_ID")?;
        let own = artifacts
            .iter()
            .filter(|artifact| text(artifact, "/job_id").as_ref() == Some(id));
        let files = own.filter_map(|artifact| {
            let state = text(artifact, "/state")?;
            let file = PastFile {
                bytes: artifact.get("file_size").and_then(serde_json::Value::as_u64),
                is_expired: state == "expired" || state == "deleted",
                ..PastFile::named(text(artifact, "/path")?, text(artifact, "/download_url")?)
            };
            Some(file).filter(|_| state != "new" && state != "error")
        });
        Some(PastReport {
            started_at: job.get("start").and_then(|start| start.parse().ok()),
            files: files.collect(),
            ..PastReport::new(run, id, job, None)
        })
    };
    let reports = run.parts.iter().filter_map(report);
    Ok(reports.filter(|report| !report.files.is_empty()).collect())
}

//! Buildkite: the REST routes of builds and artifacts.

use serde::Deserialize;

use super::{
    PastFile, PastReport, PastRun, Service,
    service::{Places, list, values},
};

/// Buildkite.
pub(super) static BUILDKITE: Service = Service {
    name: "Buildkite",
    form: "ORG/PIPELINE",
    url: ("", "https://api.buildkite.com/v2"),
    tokens: &["BUILDKITE_API_TOKEN"],
    header: ("Authorization", "Bearer "),
    scope: "may read_builds and read_artifacts",
    base: |name| format!("/organizations/{}", name.replacen('/', "/pipelines/", 1)),
    default_branch: "/default_branch",
    runs: |project, since, _| {
        let path =
            format!("/builds?state=finished&include_retried_jobs=true&created_from={since}&per_page=100");
        project.list(&path, "", since, |build| {
            let jobs = list(build, "/jobs").map(|job| {
                let mut job = values(job, OF_JOB);
                // The count of a first attempt is null, and the job's own variable is 0.
                job.entry("BUILDKITE_RETRY_COUNT")
                    .or_insert_with(|| "0".to_owned());
                job
            });
            let parts = jobs.collect();
            PastRun::of(build, OF_BUILD).map(|run| PastRun { parts, ..run })
        })
    },
    reports: |project, run| {
        let path = format!("{}/builds/{}/artifacts?per_page=100", project.base, run.id);
        let artifacts: Vec<Artifact> = project.all(&path, "")?;
        let report = |job| {
            let mut report: PastReport = run.report(job, None);
            let is_own = |artifact: &&Artifact| job.get("id") == Some(&artifact.job_id);
            report.files = artifacts
                .iter()
                .filter(is_own)
                .filter_map(Artifact::file)
                .collect();
            report
        };
        Ok(run.parts.iter().map(report).collect())
    },
};

const OF_BUILD: &Places = &[
    ("id", "/number"),
    ("start", "/created_at"),
    ("start", "/started_at"),
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
    ("id", "/id"),
    ("start", "/started_at"),
    ("BUILDKITE_STEP_KEY", "/step_key"),
    ("BUILDKITE_LABEL", "/name"),
    ("BUILDKITE_JOB_ID", "/id"),
    ("BUILDKITE_RETRY_COUNT", "/retries_count"),
    ("BUILDKITE_PARALLEL_JOB", "/parallel_group_index"),
    ("BUILDKITE_PARALLEL_JOB_COUNT", "/parallel_group_total"),
];

#[derive(Deserialize)]
struct Artifact {
    job_id: String,
    state: String,
    #[serde(flatten)]
    file: PastFile,
}

impl Artifact {
    /// Its file, unless it was never stored.
    fn file(&self) -> Option<PastFile> {
        let mut file = self.file.clone();
        file.is_expired = matches!(self.state.as_str(), "expired" | "deleted");
        Some(file).filter(|_| !matches!(self.state.as_str(), "new" | "error"))
    }
}

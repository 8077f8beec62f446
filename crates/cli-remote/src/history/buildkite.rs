//! Buildkite: the REST routes of builds and artifacts.

use super::{
    PastFile, PastRun, Service,
    service::{Places, list, text, values},
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
    roots: &[],
    results: ("", ""),
    runs: |project, since, _| {
        let path =
            format!("/builds?state=finished&include_retried_jobs=true&created_from={since}&per_page=100");
        project.list(&path, "", since, |build| {
            let mut run = PastRun::of(build, OF_BUILD)?;
            let jobs = list(build, "/jobs").map(|job| run.report(&values(job, OF_JOB)));
            run.reports = jobs.collect();
            Some(run)
        })
    },
    reports: |project, run| {
        let path = format!("{}/builds/{}/artifacts?per_page=100", project.base, run.id);
        let mut reports = run.reports.clone();
        for artifact in project.all(&path, "")? {
            let job = text(&artifact, "/job_id");
            let state = text(&artifact, "/state").unwrap_or_default();
            let file = PastFile {
                is_expired: matches!(state.as_str(), "expired" | "deleted"),
                ..PastFile::of(&artifact, ["/path", "/download_url", "/file_size", ""])
            };
            let report = reports.iter_mut().find(|report| report.ci.job_id == job);
            // Some were never stored.
            if let (Some(report), false) = (report, matches!(state.as_str(), "new" | "error")) {
                report.files.push(file);
            }
        }
        Ok(reports)
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
    // The count of a first attempt is null, and the job's own variable is 0.
    ("BUILDKITE_RETRY_COUNT", "0"),
    ("BUILDKITE_RETRY_COUNT", "/retries_count"),
    ("BUILDKITE_PARALLEL_JOB", "/parallel_group_index"),
    ("BUILDKITE_PARALLEL_JOB_COUNT", "/parallel_group_total"),
];

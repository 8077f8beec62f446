//! Buildkite: the REST routes of builds and artifacts.

use assay_domain::timestamp::Timestamp;
use serde_json::{Value, json};

use super::{Host, HostError, PastFile, PastReport, PastRun, Requests, list, oldest_first, text, time};

/// A pipeline of Buildkite.
pub struct Buildkite {
    requests: Requests,
    /// `/organizations/ORGANIZATION/pipelines/PIPELINE`
    base: String,
}

impl Buildkite {
    /// The pipeline of an organization.
    pub fn new(requests: Requests, organization: &str, pipeline: &str) -> Self {
        Self {
            requests,
            base: format!("/organizations/{organization}/pipelines/{pipeline}"),
        }
    }
}

/// The values of a build that are needed later.
fn run(build: &Value) -> Option<PastRun> {
    let of = |pointer: &str| build.pointer(pointer).cloned().unwrap_or_default();
    let jobs: Vec<_> = list(build, "/jobs")
        .map(|job| {
            let of = |name: &str| job.get(name).cloned().unwrap_or_default();
            json!({
                "id": of("id"), "key": of("step_key"), "name": of("name"), "retries": of("retries_count"),
                "index": of("parallel_group_index"), "total": of("parallel_group_total"), "start": of("started_at"),
            })
        })
        .collect();
    Some(PastRun {
        id: text(build, "/number")?,
        started_at: time(build, "/started_at").or_else(|| time(build, "/created_at"))?,
        details: json!({
            "id": of("/id"), "branch": of("/branch"), "commit": of("/commit"), "message": of("/message"),
            "author": of("/author/name"), "url": of("/web_url"), "pull_request": of("/pull_request/id"),
            "fork": of("/pull_request/repository"), "repository": of("/pipeline/repository"), "jobs": jobs,
        }),
    })
}

impl Host for Buildkite {
    fn requests(&self) -> &Requests {
        &self.requests
    }

    fn stable_branch(&self) -> Result<Option<String>, HostError> {
        Ok(text(&self.requests.get(&self.base)?, "/default_branch"))
    }

    fn runs(&self, since: Timestamp, _: Timestamp) -> Result<Vec<PastRun>, HostError> {
        let path = format!(
            "{}/builds?state=finished&include_retried_jobs=true&created_from={since}&per_page=100",
            self.base
        );
        let mut runs = Vec::new();
        self.requests.pages(&path, |page| {
            runs.extend(list(page, "").filter_map(run));
            Ok(())
        })?;
        Ok(oldest_first(runs))
    }

    fn reports(&self, run: &PastRun) -> Result<Vec<PastReport>, HostError> {
        let mut artifacts = Vec::new();
        self.requests.pages(
            &format!("{}/builds/{}/artifacts?per_page=100", self.base, run.id),
            |page| {
                artifacts.extend(list(page, "").cloned());
                Ok(())
            },
        )?;
        let of_run = |pointer: &str| text(&run.details, pointer);
        let mut reports = Vec::new();
        for job in list(&run.details, "/jobs") {
            let Some(id) = text(job, "/id") else { continue };
            let own = artifacts
                .iter()
                .filter(|artifact| text(artifact, "/job_id").as_ref() == Some(&id));
            let files: Vec<_> = own.filter_map(file).collect();
            if files.is_empty() {
                continue;
            }
            let mut report = PastReport {
                id: format!("{}/{id}", run.id),
                started_at: time(job, "/start"),
                files,
                ..PastReport::default()
            };
            let total = text(job, "/total");
            for (variable, value) in [
                ("BUILDKITE", Some("true".to_owned())),
                ("BUILDKITE_BUILD_ID", of_run("/id")),
                ("BUILDKITE_BUILD_URL", of_run("/url")),
                ("BUILDKITE_BRANCH", of_run("/branch")),
                ("BUILDKITE_COMMIT", of_run("/commit")),
                ("BUILDKITE_MESSAGE", of_run("/message")),
                ("BUILDKITE_BUILD_AUTHOR", of_run("/author")),
                ("BUILDKITE_PULL_REQUEST", of_run("/pull_request")),
                ("BUILDKITE_PULL_REQUEST_REPO", of_run("/fork")),
                ("BUILDKITE_REPO", of_run("/repository")),
                ("BUILDKITE_STEP_KEY", text(job, "/key")),
                ("BUILDKITE_LABEL", text(job, "/name")),
                ("BUILDKITE_JOB_ID", Some(id)),
                ("BUILDKITE_RETRY_COUNT", text(job, "/retries")),
                ("BUILDKITE_PARALLEL_JOB", text(job, "/index")),
                ("BUILDKITE_PARALLEL_JOB_COUNT", total),
            ] {
                report.set(variable, value);
            }
            reports.push(report);
        }
        reports.sort_by_cached_key(|report| (report.started_at, report.id.clone()));
        Ok(reports)
    }
}

fn file(artifact: &Value) -> Option<PastFile> {
    let (name, state) = (text(artifact, "/path")?, text(artifact, "/state")?);
    Some(PastFile {
        url: text(artifact, "/download_url")?,
        is_archive: name.to_lowercase().ends_with(".zip"),
        name,
        bytes: artifact.get("file_size").and_then(Value::as_u64),
        expires_at: None,
        is_expired: state == "expired" || state == "deleted",
    })
    .filter(|_| state != "new" && state != "error")
}

//! CircleCI: the routes of pipelines, workflows and jobs, with the results and artifacts of each job.

use assay_domain::timestamp::Timestamp;
use serde_json::{Value, json};

use super::{
    Host, HostError, PastFile, PastReport, PastRun, Requests,
    cases::{Cases, Form},
    list, oldest_first, text, time,
};

/// A project of CircleCI.
pub struct CircleCi {
    requests: Requests,
    /// `gh/OWNER/NAME`
    slug: String,
    workflow: Option<String>,
}

impl CircleCi {
    /// The project with this slug, or one workflow of it by name.
    pub fn new(requests: Requests, slug: &str, workflow: Option<&str>) -> Self {
        Self {
            requests,
            slug: slug.to_owned(),
            workflow: workflow.map(str::to_owned),
        }
    }

    /// The entries of a list, page by page, until `each` has enough.
    fn items(&self, path: &str, mut each: impl FnMut(&Value) -> bool) -> Result<(), HostError> {
        let mut token = String::new();
        loop {
            let answer = self.requests.get(&format!("{path}{token}"))?;
            let mut goes_on = true;
            for item in list(&answer, "/items") {
                goes_on &= each(item);
            }
            match text(&answer, "/next_page_token").filter(|_| goes_on) {
                Some(next) => token = format!("?page-token={next}"),
                None => return Ok(()),
            }
        }
    }

    fn report(&self, run: &PastRun, workflow: &Value, job: &Value) -> Result<Option<PastReport>, HostError> {
        // An approval has no number.
        let Some(number) = text(job, "/job_number") else {
            return Ok(None);
        };
        let path = format!("/project/{}/{number}", self.slug);
        let mut files = Vec::new();
        self.items(&format!("{path}/artifacts"), |artifact| {
            files.extend(
                text(artifact, "/path")
                    .zip(text(artifact, "/url"))
                    .map(|(name, url)| PastFile {
                        is_archive: name.to_lowercase().ends_with(".zip"),
                        name,
                        url,
                        bytes: None,
                        expires_at: None,
                        is_expired: false,
                    }),
            );
            true
        })?;
        let mut report = PastReport {
            id: format!("{}/{number}", run.id),
            started_at: time(job, "/started_at"),
            roots: ["/home/circleci/project", "/root/project"]
                .map(str::to_owned)
                .to_vec(),
            files,
            cases: Some(Cases {
                path: format!("{path}/tests"),
                form: Form::CircleCi,
            }),
            ..PastReport::default()
        };
        let of_run = |pointer: &str| text(&run.details, pointer);
        for (variable, value) in [
            ("CIRCLECI", Some("true".to_owned())),
            ("CIRCLE_BRANCH", of_run("/branch")),
            ("CIRCLE_SHA1", of_run("/revision")),
            ("CIRCLE_PULL_REQUEST", of_run("/pull_request")),
            ("CIRCLE_WORKFLOW_ID", text(workflow, "/id")),
            ("CIRCLE_JOB", text(job, "/name")),
            ("CIRCLE_BUILD_NUM", Some(number.clone())),
            ("CIRCLE_WORKFLOW_JOB_ID", text(job, "/id")),
            (
                "CIRCLE_BUILD_URL",
                Some(format!("https://app.circleci.com/jobs/{}/{number}", self.slug)),
            ),
        ] {
            report.set(variable, value);
        }
        Ok(Some(report))
    }
}

impl Host for CircleCi {
    fn requests(&self) -> &Requests {
        &self.requests
    }

    fn stable_branch(&self) -> Result<Option<String>, HostError> {
        let project = self.requests.get(&format!("/project/{}", self.slug))?;
        Ok(text(&project, "/vcs_info/default_branch"))
    }

    fn runs(&self, since: Timestamp, _: Timestamp) -> Result<Vec<PastRun>, HostError> {
        let mut runs = Vec::new();
        self.items(&format!("/project/{}/pipeline", self.slug), |pipeline| {
            let of = |name: &str| pipeline.pointer(name).cloned().unwrap_or_default();
            let (Some(id), Some(started_at)) = (text(pipeline, "/id"), time(pipeline, "/created_at")) else {
                return true;
            };
            if started_at >= since {
                runs.push(PastRun {
                    id,
                    started_at,
                    details: json!({
                        "branch": of("/vcs/branch"), "revision": of("/vcs/revision"),
                        "pull_request": of("/vcs/review_url"),
                    }),
                });
            }
            started_at >= since
        })?;
        Ok(oldest_first(runs))
    }

    fn reports(&self, run: &PastRun) -> Result<Vec<PastReport>, HostError> {
        let mut workflows = Vec::new();
        self.items(&format!("/pipeline/{}/workflow", run.id), |workflow| {
            workflows.push(workflow.clone());
            true
        })?;
        let is_wanted = |workflow: &&Value| {
            let name = self.workflow.as_deref();
            name.is_none_or(|name| text(workflow, "/name").as_deref() == Some(name))
        };
        let mut reports = Vec::new();
        for workflow in workflows.iter().filter(is_wanted) {
            let mut jobs = Vec::new();
            self.items(
                &format!("/workflow/{}/job", text(workflow, "/id").unwrap_or_default()),
                |job| {
                    jobs.push(job.clone());
                    true
                },
            )?;
            for job in &jobs {
                reports.extend(self.report(run, workflow, job)?);
            }
        }
        reports.sort_by_cached_key(|report| (report.started_at, report.id.len(), report.id.clone()));
        Ok(reports)
    }
}

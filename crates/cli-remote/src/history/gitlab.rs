//! GitLab CI: the routes of pipelines, their jobs, merge requests and test reports.

use std::{cell::RefCell, collections::HashMap};

use assay_domain::timestamp::Timestamp;
use serde_json::{Value, json};

use super::{
    Host, HostError, PastFile, PastReport, PastRun, Requests,
    cases::{Cases, Form},
    list, oldest_first, text, time,
};

/// A project of GitLab.
pub struct GitLab {
    requests: Requests,
    project: String,
    /// `/projects/GROUP%2FNAME`
    base: String,
    /// Merge requests by their number in the project.
    merge_requests: RefCell<HashMap<String, Value>>,
}

impl GitLab {
    /// The project `GROUP/NAME`.
    pub fn new(requests: Requests, project: &str) -> Self {
        Self {
            requests,
            project: project.to_owned(),
            base: format!("/projects/{}", project.replace('/', "%2F")),
            merge_requests: RefCell::default(),
        }
    }

    fn merge_request(&self, number: &str) -> Result<Value, HostError> {
        if let Some(known) = self.merge_requests.borrow().get(number) {
            return Ok(known.clone());
        }
        let path = format!("{}/merge_requests/{number}", self.base);
        let mut found = self.requests.find(&path)?.unwrap_or_default();
        let (source, target) = (
            text(&found, "/source_project_id"),
            text(&found, "/target_project_id"),
        );
        if let Some(source) = source.filter(|source| Some(source) != target.as_ref()) {
            let fork = self
                .requests
                .find(&format!("/projects/{source}"))?
                .unwrap_or_default();
            let path = text(&fork, "/path_with_namespace").unwrap_or_else(|| "fork".to_owned());
            found = json!({"fork": path, "request": found});
        } else {
            found = json!({"request": found});
        }
        self.merge_requests
            .borrow_mut()
            .insert(number.to_owned(), found.clone());
        Ok(found)
    }

    fn report(
        &self,
        run: &PastRun,
        job: &Value,
        merge_request: Option<(&str, &Value)>,
    ) -> Option<PastReport> {
        let (id, name) = (text(job, "/id")?, text(job, "/name")?);
        let kinds: Vec<_> = list(job, "/artifacts")
            .filter_map(|file| text(file, "/file_type"))
            .collect();
        let has = |kind: &str| kinds.iter().any(|known| known == kind);
        let expires_at = time(job, "/artifacts_expire_at");
        let archive = PastFile {
            name: name.clone(),
            url: format!("{}/jobs/{id}/artifacts", self.base),
            is_archive: true,
            bytes: job.pointer("/artifacts_file/size").and_then(Value::as_u64),
            expires_at,
            is_expired: false,
        };
        let cases = Cases {
            path: format!("{}/pipelines/{}/test_report", self.base, run.id),
            form: Form::GitLab { job: name.clone() },
        };
        let mut report = PastReport {
            id: format!("{}/{id}", run.id),
            started_at: time(job, "/started_at"),
            roots: vec![format!("/builds/{}", self.project)],
            files: Some(archive).filter(|_| has("archive")).into_iter().collect(),
            cases: Some(cases).filter(|_| has("junit")),
            ..PastReport::default()
        };
        let (_, request) = merge_request.unzip();
        let of_request = |pointer: &str| text(request?, &format!("/request{pointer}"));
        let author = text(job, "/commit/author_name");
        let is_branch = merge_request.is_none() && job.get("tag") != Some(&Value::Bool(true));
        let sha = text(&run.details, "/sha");
        report.merge_base = of_request("/diff_refs/base_sha").filter(|_| of_request("/sha") == sha);
        let (index, total) = parallel(&name).unzip();
        for (variable, value) in [
            ("GITLAB_CI", Some("true".to_owned())),
            ("CI_PIPELINE_ID", Some(run.id.clone())),
            ("CI_PIPELINE_URL", text(&run.details, "/web_url")),
            ("CI_JOB_ID", Some(id)),
            ("CI_JOB_NAME", Some(name.clone())),
            ("CI_COMMIT_SHA", sha),
            ("CI_COMMIT_REF_NAME", text(job, "/ref")),
            ("CI_COMMIT_BRANCH", text(job, "/ref").filter(|_| is_branch)),
            ("CI_COMMIT_MESSAGE", text(job, "/commit/message")),
            ("CI_COMMIT_AUTHOR", author),
            ("CI_NODE_INDEX", index.map(str::to_owned)),
            ("CI_NODE_TOTAL", total.map(str::to_owned)),
            (
                "CI_MERGE_REQUEST_IID",
                merge_request.map(|(number, _)| number.to_owned()),
            ),
            ("CI_MERGE_REQUEST_TITLE", of_request("/title")),
            (
                "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME",
                of_request("/source_branch"),
            ),
            (
                "CI_MERGE_REQUEST_SOURCE_PROJECT_PATH",
                request.and_then(|request| text(request, "/fork")),
            ),
            (
                "CI_MERGE_REQUEST_PROJECT_PATH",
                merge_request.map(|_| self.project.clone()),
            ),
        ] {
            report.set(variable, value);
        }
        Some(report).filter(|report| !report.files.is_empty() || report.cases.is_some())
    }
}

/// The place of a parallel job, which is named `NAME 1/3`.
fn parallel(job: &str) -> Option<(&str, &str)> {
    let (index, total) = job.rsplit(' ').next()?.split_once('/')?;
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    (is_number(index) && is_number(total)).then_some((index, total))
}

impl Host for GitLab {
    fn requests(&self) -> &Requests {
        &self.requests
    }

    fn stable_branch(&self) -> Result<Option<String>, HostError> {
        Ok(text(&self.requests.get(&self.base)?, "/default_branch"))
    }

    fn runs(&self, since: Timestamp, _: Timestamp) -> Result<Vec<PastRun>, HostError> {
        let path = format!(
            "{}/pipelines?scope=finished&created_after={since}&order_by=id&sort=asc&per_page=100",
            self.base
        );
        let mut runs = Vec::new();
        self.requests.pages(&path, |page| {
            runs.extend(list(page, "").filter_map(|pipeline| {
                let of = |name: &str| pipeline.get(name).cloned().unwrap_or_default();
                Some(PastRun {
                    id: text(pipeline, "/id")?,
                    started_at: time(pipeline, "/created_at")?,
                    details: json!({"sha": of("sha"), "ref": of("ref"), "web_url": of("web_url")}),
                })
            }));
            Ok(())
        })?;
        Ok(oldest_first(runs))
    }

    fn reports(&self, run: &PastRun) -> Result<Vec<PastReport>, HostError> {
        let path = format!(
            "{}/pipelines/{}/jobs?include_retried=true&per_page=100",
            self.base, run.id
        );
        let mut jobs = Vec::new();
        self.requests.pages(&path, |page| {
            jobs.extend(
                list(page, "")
                    .filter(|job| list(job, "/artifacts").next().is_some())
                    .cloned(),
            );
            Ok(())
        })?;
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        // `refs/merge-requests/12/head` or `…/merge`
        let reference = text(&run.details, "/ref").unwrap_or_default();
        let number = reference.strip_prefix("refs/merge-requests/");
        let number = number.and_then(|rest| rest.split('/').next());
        let request = number.map(|number| self.merge_request(number)).transpose()?;
        jobs.sort_by_cached_key(|job| job.get("id").and_then(Value::as_u64));
        let request = number.zip(request.as_ref());
        Ok(jobs
            .iter()
            .filter_map(|job| self.report(run, job, request))
            .collect())
    }
}

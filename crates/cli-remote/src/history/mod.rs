//! The old runs of CI services: what they tested, and where their reports are.
//!
//! Each [`Service`] is a table of addresses with two functions, which list the runs and the reports of a run. A report
//! carries the variables that its job had, as far as the service still knows them, and its context is read from them as
//! from those of an upload. Nothing is downloaded until [`Project::download`] or [`Project::results`] is called.

mod buildkite;
mod cases;
mod circleci;
mod github;
mod gitlab;
mod jenkins;
mod report;
mod requests;

use std::{cell::RefCell, collections::BTreeMap, fs::File};

use assay_domain::timestamp::Timestamp;
use assay_ingest::Flags;
use assay_ingest::ci::{self, CiContext};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

pub use buildkite::BUILDKITE;
pub use cases::Cases;
pub use circleci::CIRCLECI;
pub use github::GITHUB;
pub use gitlab::GITLAB;
pub use jenkins::JENKINS;
pub use report::{JobReport, NoReport, read};
pub use requests::{HostError, Requests, Retries};

/// A CI service.
pub struct Service {
    /// Its name.
    pub name: &'static str,
    /// The form of a project's name.
    pub form: &'static str,
    /// The variable with the address of its API, for jobs of a host of one's own, and its public address.
    pub url: (&'static str, &'static str),
    /// The variables that may hold a token.
    pub tokens: &'static [&'static str],
    /// The header with the token, and the word before it.
    pub header: (&'static str, &'static str),
    /// What the token must be allowed.
    pub scope: &'static str,
    /// The path of a project, and where its answer has the default branch.
    base: fn(&str) -> String,
    default_branch: &'static str,
    runs: fn(&Project, since: Timestamp, now: Timestamp) -> Result<Vec<PastRun>, HostError>,
    reports: fn(&Project, &PastRun) -> Result<Vec<PastReport>, HostError>,
}

/// Values by the names of CI's variables. A name in lower case is of no variable.
pub type Values = BTreeMap<&'static str, String>;
/// The places of values in an answer.
type Places = [(&'static str, &'static str)];

/// A run, pipeline or build.
#[derive(Debug, Clone)]
pub struct PastRun {
    /// Its id at the service.
    pub id: String,
    /// Its start.
    pub started_at: Timestamp,
    /// What is known of it.
    pub values: Values,
    /// Its jobs or artifacts, if the service lists them with the run.
    pub parts: Vec<Values>,
}

/// What one job, or one artifact of it, may have reported.
#[derive(Debug, Default)]
pub struct PastReport {
    /// Its identity among all reports of the project.
    pub id: String,
    /// The context, as an upload of the job would have read it.
    pub ci: CiContext,
    /// What no variable tells.
    pub flags: Flags,
    /// The start of the job.
    pub started_at: Option<Timestamp>,
    /// The time for a report without one, if no start of a job is known.
    pub modified_at: Option<Timestamp>,
    /// Folders that the checkout may have had.
    pub roots: Vec<String>,
    /// Its files.
    pub files: Vec<PastFile>,
    /// The results that the service itself keeps, for jobs whose files contain no report.
    pub cases: Option<Cases>,
}

/// A file that a job left.
#[derive(Debug, Clone, Default)]
pub struct PastFile {
    /// Its path, or the artifact's name.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// Whether it is an archive of files.
    pub is_archive: bool,
    /// Its size in bytes, if known.
    pub bytes: Option<u64>,
    /// When the service deletes it, if known.
    pub expires_at: Option<Timestamp>,
    /// Whether the service has deleted it.
    pub is_expired: bool,
}

/// A project of a CI service.
pub struct Project {
    service: &'static Service,
    requests: Requests,
    name: String,
    base: String,
    workflow: Option<String>,
    /// Answers that several runs need, by their paths.
    known: RefCell<BTreeMap<String, Values>>,
}

impl Service {
    /// The header with a token, which Jenkins wants with the name of its user.
    pub fn authorization(&self, user: &str, token: &str) -> (&'static str, String) {
        let (name, word) = self.header;
        match word {
            "Basic " => (
                name,
                format!("{word}{}", STANDARD.encode(format!("{user}:{token}"))),
            ),
            _ => (name, format!("{word}{token}")),
        }
    }
}

impl Project {
    /// The project of this name, or one workflow of it.
    pub fn new(service: &'static Service, requests: Requests, name: &str, workflow: Option<&str>) -> Self {
        Self {
            service,
            requests,
            name: name.to_owned(),
            base: (service.base)(name),
            workflow: workflow.map(str::to_owned),
            known: RefCell::default(),
        }
    }

    /// The service and the project.
    pub fn name(&self) -> String {
        format!("{} {}", self.service.name.to_lowercase(), self.name)
    }

    /// The number of requests so far.
    pub fn requests(&self) -> u64 {
        self.requests.count()
    }

    /// The branch that releases are made from, if the service knows it.
    pub fn stable_branch(&self) -> Result<Option<String>, HostError> {
        match self.service.default_branch {
            "" => Ok(None),
            place => Ok(text(&self.requests.get(&self.base)?, place)),
        }
    }

    /// The finished runs that were created since a moment, oldest first.
    pub fn runs(&self, since: Timestamp, now: Timestamp) -> Result<Vec<PastRun>, HostError> {
        let mut runs = (self.service.runs)(self, since, now)?;
        runs.sort_by_cached_key(|run| (run.started_at, run.id.len(), run.id.clone()));
        runs.dedup_by(|a, b| a.id == b.id);
        Ok(runs)
    }

    /// What the jobs of a run may have reported, in the order of their attempts.
    pub fn reports(&self, run: &PastRun) -> Result<Vec<PastReport>, HostError> {
        let mut reports = (self.service.reports)(self, run)?;
        reports.sort_by_cached_key(|report| (report.started_at, report.id.len(), report.id.clone()));
        Ok(reports)
    }

    /// Downloads a file. Returns it, to be read from its start, and its size.
    pub fn download(&self, file: &PastFile) -> Result<(File, u64), HostError> {
        self.requests.download(&file.url)
    }

    /// The results that the service keeps, as a report.
    pub fn results(&self, cases: &Cases) -> Result<Option<Vec<u8>>, HostError> {
        cases.report(&self.requests)
    }
}

impl PastRun {
    /// A run without parts, from an answer with its values at these places.
    fn of(answer: &Value, id: &str, started_at: Option<Timestamp>, places: &Places) -> Option<Self> {
        Some(Self {
            id: text(answer, id)?,
            started_at: started_at?,
            values: values(answer, places),
            parts: Vec::new(),
        })
    }

    fn value(&self, name: &str) -> Option<String> {
        self.values.get(name).cloned()
    }
}

impl PastReport {
    /// The report of a job of a run with these values. `event` is the file that describes an event of GitHub.
    fn new(run: &PastRun, id: &str, values: &Values, event: Option<&Value>) -> Self {
        let value = |name: &str| values.get(name).or_else(|| run.values.get(name)).cloned();
        let event = event.map(|event| event.to_string().into_bytes());
        Self {
            id: format!("{}/{id}", run.id),
            ci: ci::detect(&value, &|_| event.clone()),
            ..Self::default()
        }
    }
}

impl PastFile {
    /// A file of a name, which is an archive if it is named so.
    fn named(name: String, url: String) -> Self {
        Self {
            is_archive: name.to_lowercase().ends_with(".zip"),
            name,
            url,
            ..Self::default()
        }
    }
}

/// The values at these places of an answer. A place without a slash is itself the value.
fn values(answer: &Value, places: &Places) -> Values {
    let found = places.iter().filter_map(|(name, place)| {
        let value = match place.starts_with('/') {
            true => text(answer, place)?,
            false => (*place).to_owned(),
        };
        Some((*name, value))
    });
    found.collect()
}

/// A text or a number of a JSON document, as text.
fn text(value: &Value, pointer: &str) -> Option<String> {
    match value.pointer(pointer)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A time of a JSON document.
fn time(value: &Value, pointer: &str) -> Option<Timestamp> {
    value.pointer(pointer)?.as_str()?.parse().ok()
}

/// The entries of an array of a JSON document; none if it has no such array.
fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    let entries = value.pointer(pointer).and_then(Value::as_array);
    entries.into_iter().flatten()
}

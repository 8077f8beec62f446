//! The old runs of CI services: what they tested, and where their reports are.
//!
//! Each service is a [`Host`]. It lists runs and the reports of a run; nothing is downloaded until [`Requests::download`]
//! or [`cases::report`] is called. A report carries the variables that its job had, as far as the service still knows them,
//! so that [`PastReport::ci`] describes the run as an upload of the job itself would have.

mod buildkite;
pub mod cases;
mod circleci;
mod github;
mod gitlab;
mod jenkins;
mod requests;

use std::collections::BTreeMap;

use assay_domain::timestamp::Timestamp;
use assay_reports::ci::{self, CiContext};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

pub use buildkite::Buildkite;
pub use circleci::CircleCi;
pub use github::GitHub;
pub use gitlab::GitLab;
pub use jenkins::Jenkins;
pub use requests::{HostError, Requests, Waiting};

/// A CI service.
pub trait Host {
    /// The client of its routes.
    fn requests(&self) -> &Requests;

    /// The branch that releases are made from, if the service knows it.
    fn stable_branch(&self) -> Result<Option<String>, HostError> {
        Ok(None)
    }

    /// The finished runs that were created since a moment, oldest first.
    fn runs(&self, since: Timestamp, now: Timestamp) -> Result<Vec<PastRun>, HostError>;

    /// What the jobs of a run may have reported, in the order of their attempts.
    fn reports(&self, run: &PastRun) -> Result<Vec<PastReport>, HostError>;
}

/// A run, pipeline or build.
#[derive(Debug, Clone)]
pub struct PastRun {
    /// Its id at the host.
    pub id: String,
    /// Its start.
    pub started_at: Timestamp,
    /// What the host's client needs of it.
    details: Value,
}

/// What one job, or one artifact of it, may have reported.
#[derive(Debug, Clone, Default)]
pub struct PastReport {
    /// Its identity among all reports of the host.
    pub id: String,
    /// The variables that the job had.
    variables: BTreeMap<&'static str, String>,
    /// The event that started a run of GitHub Actions.
    event: Option<Value>,
    /// The suite, if the job's variables do not tell the legs of a matrix apart.
    pub suite: Option<String>,
    /// The commit at which its branch left the stable one.
    pub merge_base: Option<String>,
    /// The start of the job.
    pub started_at: Option<Timestamp>,
    /// Folders that the checkout may have had.
    pub roots: Vec<String>,
    /// Its files.
    pub files: Vec<PastFile>,
    /// The results that the service itself keeps, for jobs whose files contain no report.
    pub cases: Option<cases::Cases>,
}

/// A file that a job left.
#[derive(Debug, Clone)]
pub struct PastFile {
    /// Its path, or the artifact's name.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// Whether it is an archive of files.
    pub is_archive: bool,
    /// Its size in bytes, if known.
    pub bytes: Option<u64>,
    /// When the host deletes it, if known.
    pub expires_at: Option<Timestamp>,
    /// Whether the host has deleted it.
    pub is_expired: bool,
}

impl PastReport {
    /// The context of the run, read from the job's variables as an upload reads it.
    pub fn ci(&self) -> CiContext {
        let event = self.event.as_ref().map(|event| event.to_string().into_bytes());
        ci::detect(&|name| self.variables.get(name).cloned(), &|_| event.clone())
    }

    /// Sets a variable that has a value.
    fn set(&mut self, name: &'static str, value: impl Into<Option<String>>) {
        if let Some(value) = value.into() {
            self.variables.insert(name, value);
        }
    }
}

/// The value of the header `Authorization` for a user with a token.
pub fn basic(user: &str, token: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{token}")))
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

/// Sorts runs by their start.
fn oldest_first(mut runs: Vec<PastRun>) -> Vec<PastRun> {
    let key = |run: &PastRun| (run.started_at, run.id.len(), run.id.clone());
    runs.sort_by_cached_key(key);
    runs.dedup_by(|a, b| a.id == b.id);
    runs
}

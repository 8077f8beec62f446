//! A CI service, and what it knows of old runs.

use std::collections::BTreeMap;

use assay_domain::timestamp::Timestamp;
use assay_ingest::Flags;
use assay_ingest::ci::{self, CiContext};
use serde_json::Value;

use super::{HostError, Project};

/// A CI service.
pub struct Service {
    /// Its name, of which its flag has the small letters.
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
    /// The path of a project.
    pub base: fn(&str) -> String,
    /// Where its answer has the default branch.
    pub(super) default_branch: &'static str,
    /// Folders that checkouts may have, with the project's name as `{name}` and the last part of it as `{folder}`.
    pub(super) roots: &'static [&'static str],
    /// The places of the list of suites and of the results in a suite, where the service keeps results of jobs. Without
    /// suites, the second one is empty.
    pub(super) results: (&'static str, &'static str),
    pub(super) runs: fn(&Project, since: Timestamp, now: Timestamp) -> Result<Vec<PastRun>, HostError>,
    pub(super) reports: fn(&Project, &PastRun) -> Result<Vec<PastReport>, HostError>,
}

/// Values by the names of CI's variables. A name in lower case is of no variable.
pub type Values = BTreeMap<&'static str, String>;
/// The places of values in an answer: JSON pointers, or the value itself. The names `id` and `start` are those of the run
/// or the job. Of several places of a name, the last one with a value counts.
pub(super) type Places = [(&'static str, &'static str)];

/// A run, pipeline or build.
#[derive(Debug, Clone)]
pub struct PastRun {
    /// Its id at the service.
    pub id: String,
    /// Its start.
    pub started_at: Timestamp,
    /// What is known of it.
    pub values: Values,
    /// What its jobs may have reported, as far as the service lists it with the run.
    pub reports: Vec<PastReport>,
}

/// What one job, or one artifact of it, may have reported.
#[derive(Debug, Clone, Default)]
pub struct PastReport {
    /// Its identity among all reports of the project.
    pub id: String,
    /// The context, as an upload of the job would have read it.
    pub ci: CiContext,
    /// What no variable tells.
    pub flags: Flags,
    /// The start of the job. Outside of a CI service, the time for a report without one.
    pub started_at: Option<Timestamp>,
    /// Folders that the checkout may have had.
    pub roots: Vec<String>,
    /// Its files.
    pub files: Vec<PastFile>,
    /// The path of the results that the service itself keeps, for jobs whose files contain no report.
    pub results: Option<String>,
}

/// A file that a job left.
#[derive(Debug, Clone, Default)]
pub struct PastFile {
    /// Its path, or the artifact's name.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// Its size in bytes, if known.
    pub bytes: Option<u64>,
    /// When the service deletes it, if known.
    pub expires_at: Option<Timestamp>,
    /// Whether the service has deleted it.
    pub is_expired: bool,
    /// Whether it is an archive of files.
    pub is_archive: bool,
}

impl Project {
    /// The branch that releases are made from, if the service knows it.
    pub fn stable_branch(&self) -> Result<Option<String>, HostError> {
        match self.service.default_branch {
            "" => Ok(None),
            place => Ok(text(&self.get(&self.base)?, place)),
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
        reports.retain(|report| !report.files.is_empty() || report.results.is_some());
        // The runs of a repository that was renamed have its new name.
        let renamed = run.value("GITHUB_REPOSITORY");
        let name = renamed.as_ref().unwrap_or(&self.name);
        let folder = name.rsplit('/').next().unwrap_or_default();
        let root = |root: &&str| root.replace("{name}", name).replace("{folder}", folder);
        for report in &mut reports {
            report.roots = self.service.roots.iter().map(root).collect();
            for file in &mut report.files {
                file.is_archive |= file.name.to_lowercase().ends_with(".zip");
            }
        }
        reports.sort_by_cached_key(|report| (report.started_at, report.id.len(), report.id.clone()));
        Ok(reports)
    }

    /// The runs of the list at a path below the project, until one that began before `since`.
    pub(super) fn list(
        &self,
        path: &str,
        pointer: &str,
        since: Timestamp,
        run: impl Fn(&Value) -> Option<PastRun>,
    ) -> Result<Vec<PastRun>, HostError> {
        let mut runs = Vec::new();
        self.each(&format!("{}{path}", self.base), pointer, |answer| {
            let run = run(answer);
            let is_new = run.as_ref().is_none_or(|run| run.started_at >= since);
            runs.extend(run.filter(|_| is_new));
            is_new
        })?;
        Ok(runs)
    }
}

impl PastRun {
    /// A run without reports, from an answer with its values at these places.
    pub(super) fn of(answer: &Value, places: &Places) -> Option<Self> {
        let mut values = values(answer, places);
        Some(Self {
            id: values.remove("id")?,
            started_at: values.remove("start")?.parse().ok()?,
            values,
            reports: Vec::new(),
        })
    }

    pub(super) fn value(&self, name: &str) -> Option<String> {
        self.values.get(name).cloned()
    }

    /// The report of a job with these values. The name of the file with GitHub's event is that of a value, too.
    pub(super) fn report(&self, job: &Values) -> PastReport {
        let value = |name: &str| job.get(name).cloned().or_else(|| self.value(name));
        let start = job.get("start").and_then(|start| start.parse().ok());
        PastReport {
            id: format!("{}/{}", self.id, job.get("id").map_or("", String::as_str)),
            ci: ci::detect(&value, &|file| value(file).map(String::into_bytes)),
            started_at: Some(start.unwrap_or(self.started_at)),
            ..PastReport::default()
        }
    }
}

impl PastFile {
    /// A file by the places of its name, address, size and end. A service without one of them has an empty place.
    pub(super) fn of(answer: &Value, [name, url, bytes, expires_at]: [&str; 4]) -> Self {
        Self {
            name: text(answer, name).unwrap_or_default(),
            url: text(answer, url).unwrap_or_default(),
            bytes: text(answer, bytes).and_then(|bytes| bytes.parse().ok()),
            expires_at: text(answer, expires_at).and_then(|at| at.parse().ok()),
            ..Self::default()
        }
    }
}

/// The values at these places of an answer.
pub(super) fn values(answer: &Value, places: &Places) -> Values {
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
pub(super) fn text(value: &Value, pointer: &str) -> Option<String> {
    match value.pointer(pointer)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The entries of an array of a JSON document; none if it has no such array.
pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    let entries = value.pointer(pointer).and_then(Value::as_array);
    entries.into_iter().flatten()
}

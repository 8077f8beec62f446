//! One call of a handler: the caller, the request and the store.

use std::time::Instant;

use assay_access::directory::ReadDirectory;
use assay_answers::{commit::sha_of, links::PublicPages};
use assay_domain::{
    id::{ProjectId, RunId},
    observation::History,
    project::{Caller, Project},
    store::Store,
    test::{FileSelector, TestSelector},
    timestamp::Timestamp,
    verdict::{Suspects, Verdict},
};
use assay_flakiness::Diagnose;
use assay_http::{Pairs, Unanswerable};

use crate::{
    error::ApiError,
    metrics::Metrics,
    request::{PathParameters, Query},
};

/// One request with a valid key. Only the dispatch creates one.
pub(crate) struct Call<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) directory: &'a ReadDirectory,
    pub(crate) engine: &'a dyn Diagnose,
    pub(crate) metrics: &'a Metrics,
    /// The pages, if the server has a public address.
    pub(crate) pages: Option<&'a PublicPages>,
    pub(crate) caller: Caller,
    /// The time of the request, the same for everything in its answer.
    pub(crate) now: Timestamp,
    pub(crate) path: &'a PathParameters,
    pub(crate) pairs: &'a Pairs,
    /// Whether the client prefers CSV to JSON, where a route has both.
    pub(crate) wants_csv: bool,
}

impl Call<'_> {
    /// The query's parameters.
    pub(crate) fn query(&self) -> Query<'_> {
        Query::new(self.pairs, self.caller.plan, self.now)
    }

    /// The project in the path, if the caller may read it.
    pub(crate) fn project(&self) -> Result<Project, ApiError> {
        let id: ProjectId = self.id("projectId").ok_or(Unanswerable::ProjectNotFound)?;
        let project = self.directory.project(&self.caller, id, self.now)?;
        Ok(project.ok_or(Unanswerable::ProjectNotFound)?)
    }

    /// The flaky and broken tests of a history at the time of the request.
    pub(crate) fn judge(&self, history: &History) -> Suspects {
        let started = Instant::now();
        let suspects = self.engine.suspects(history, self.now);
        self.metrics.judged(history.results(), started.elapsed());
        suspects
    }

    /// The verdicts on all tests of a history at a time.
    pub(crate) fn judge_all(&self, history: &History, at: Timestamp) -> Vec<Verdict> {
        let started = Instant::now();
        let verdicts = self.engine.verdicts(history, at);
        self.metrics.judged(history.results(), started.elapsed());
        verdicts
    }

    /// The run's id in the path.
    pub(crate) fn run_id(&self) -> Result<RunId, Unanswerable> {
        self.id("runId").ok_or(Unanswerable::RunNotFound)
    }

    /// The commit in the path, or its beginning, in lower case.
    pub(crate) fn commit(&self) -> Result<String, Unanswerable> {
        self.path
            .value("commitSha")
            .and_then(sha_of)
            .ok_or(Unanswerable::CommitNotFound)
    }

    /// The fingerprint in the path.
    pub(crate) fn fingerprint(&self) -> Result<String, Unanswerable> {
        self.path
            .value("fingerprint")
            .filter(|text| {
                text.len() <= 128
                    && text
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
            })
            .map(str::to_owned)
            .ok_or(Unanswerable::SignatureNotFound)
    }

    /// The test in the path, with the file from the query.
    ///
    /// For a name that cannot be stored, the selector matches no test, because no test has an empty file path. An error
    /// here would come before the 404 of a missing run.
    pub(crate) fn test(&self, file: FileSelector) -> TestSelector {
        match self.path.value("testName") {
            Some(name) => TestSelector {
                name: name.to_owned(),
                file,
            },
            None => TestSelector {
                name: String::new(),
                file: FileSelector::Exactly(Some(String::new())),
            },
        }
    }

    fn id<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.path.value(name)?.parse().ok()
    }
}

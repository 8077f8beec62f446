//! The comment for a pull request: the state of its newest commit, as Markdown for a code host.
//!
//! The jobs of a build post it one after another. The hidden first line has the project, the revision and a state that only
//! grows, so that each job finds the comment and no job replaces a newer state.

mod text;

use assay_domain::{
    cause::{Action, Cause},
    id::RunId,
    merge_queue::is_queue_branch,
    project::Project,
    revision::tested_or_commit,
    run::{Counts, SomeTests},
    store::{Store, StoreError},
    test_attempts::TestAttempts,
    timestamp::Timestamp,
};
use assay_flakiness::Diagnose;
use serde::Serialize;

use self::text::Text;
use crate::{
    changes::changes_of_runs,
    commit::{CommitFailure, CommitRuns, CommitSelector, Trust, commit_results, newest_commit},
    ejection::ejection,
    failed_error::{FailedError, attempts_of},
    failures::{ExplainedFailure, FailureFilter},
    links::PublicPages,
};

/// Most failures with their errors, and most annotations: GitHub shows ten errors of a step.
const WITH_ERRORS: u32 = 10;

/// What a CI job posts to its code host.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Comment {
    /// Whether the project's settings allow comments. If not, a job posts nothing.
    pub enabled: bool,
    /// The revision that the comment describes: the newest one of the pull request.
    pub revision: Option<String>,
    /// The pull request.
    pub pull_request_number: Option<i64>,
    /// The time of the comment in milliseconds since 1970. A job never replaces a comment that has a larger one.
    pub state: i64,
    /// Whether every run passed, is complete, and neither skips nor lacks a test that ran on the stable branch, and some
    /// test passed. Then a job only updates a comment that exists.
    pub clean: bool,
    /// The action for all runs together.
    pub action: Action,
    /// P(this branch broke at least one of the failed tests).
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub mine: f64,
    /// The sums over the runs.
    pub counts: Counts,
    /// One sentence for a log.
    pub headline: String,
    /// The page of the pull request or commit; null if the server has no public address.
    pub url: Option<String>,
    /// The beginning of the hidden first line, which is the same in all comments of the project.
    pub marker: String,
    /// The comment, with its hidden first line, of at most 60,000 characters.
    pub markdown: String,
    /// The failures with the highest `mine`, for annotations of lines.
    #[cfg_attr(feature = "openapi", schema(max_items = 10))]
    pub annotations: Vec<Annotation>,
}

/// A failure at a line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Annotation {
    /// The run of the failure.
    pub run_id: RunId,
    /// The file, if it is known.
    pub file: Option<String>,
    /// The line, from 1.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub line: Option<u32>,
    /// The test's name on one line.
    pub title: String,
    /// The explanation and the first line of the error.
    pub message: String,
    /// Whether this branch may have caused it: its action is not `pass`.
    pub is_mine: bool,
}

/// The comment for the commit of a run, or for the newest commit of its pull request. `None` if the project has no such run.
/// With `only_public`, only a run of a key for pull requests only is described.
pub fn comment(
    store: &dyn Store,
    engine: &dyn Diagnose,
    pages: Option<&PublicPages>,
    project: &Project,
    (run, only_public): (RunId, bool),
    now: Timestamp,
) -> Result<Option<Comment>, StoreError> {
    let Some(commit) = newest_runs(store, project, (run, only_public), now)? else {
        return Ok(None);
    };
    let ejection = ejection(store, engine, project, &commit, now)?;
    let runs = commit.runs;
    let requested = (&FailureFilter::default(), (1, WITH_ERRORS));
    let Some(results) = commit_results(store, engine, project, &runs, requested, now)? else {
        return Ok(None);
    };
    let errors = FailedError::of_failures(store, project, &results.failures)?;
    let described = results.failures.iter().zip(errors);
    let described = described.map(|(failure, error)| Described {
        failure,
        error,
        attempts: None,
    });
    let mut described: Vec<Described<'_>> = described.collect();
    if let Some(prompted) = described.iter_mut().find(|described| described.is_suspect()) {
        prompted.read_attempts(store, project)?;
    }
    let ids: Vec<RunId> = runs.iter().map(|run| run.id).collect();
    let changes = changes_of_runs(store, engine, project, &ids, now)?;
    let settings = store.settings(project)?;
    let text = Text {
        ejection: ejection.as_ref(),
        results: &results,
        changes: &changes,
        failures: &described,
        pages,
        project: project.id,
        project_name: &project.name,
    };
    Ok(Some(text.comment(settings.repohost.pr_comments_enabled, now)))
}

/// The runs of the commit of this run, or of the newest commit of its pull request, unless a merge queue tested the run. A
/// run never stands beside one of the other kind of key.
fn newest_runs(
    store: &dyn Store,
    project: &Project,
    (run, only_public): (RunId, bool),
    now: Timestamp,
) -> Result<Option<CommitRuns>, StoreError> {
    let detail = store.run_with(project, run, &SomeTests::Of(Vec::new()))?;
    let Some(run) = detail
        .map(|detail| detail.run)
        .filter(|run| !only_public || !run.trusted)
    else {
        return Ok(None);
    };
    let revision = tested_or_commit(run.tested_revision.as_ref(), run.commit_sha.as_ref());
    let is_queued = run.branch.as_deref().is_some_and(is_queue_branch);
    let selector = match (run.pull_request_number, revision) {
        (_, Some(revision)) if is_queued => CommitSelector::Sha(revision.to_lowercase()),
        (Some(number), _) => CommitSelector::PullRequest(number),
        (None, Some(revision)) => CommitSelector::Sha(revision.to_lowercase()),
        (None, None) => return Ok(None),
    };
    let mut commit = newest_commit(store, project, &selector, Trust::Only(run.trusted), now)?;
    if let Some(commit) = commit.as_mut().filter(|_| is_queued) {
        commit.queued.clone_from(&commit.runs);
    }
    Ok(commit)
}

/// A failure with its error. The failure that the prompt is about has its attempts, too.
struct Described<'a> {
    failure: &'a CommitFailure,
    error: FailedError,
    attempts: Option<TestAttempts>,
}

impl Described<'_> {
    fn read_attempts(&mut self, store: &dyn Store, project: &Project) -> Result<(), StoreError> {
        let ExplainedFailure {
            test_name, file_path, ..
        } = &self.failure.failure;
        let test = (test_name.as_str(), file_path.as_deref());
        self.attempts = attempts_of(store, project, self.failure.run_id, test)?;
        Ok(())
    }

    fn has_failed(&self) -> bool {
        self.failure.failure.status.is_failure()
    }

    /// Whether the change may have caused it, so that the comment describes it.
    fn is_suspect(&self) -> bool {
        let failure = &self.failure.failure;
        let may_be_mine = failure.action != Action::Pass || failure.cause == Cause::Unclear;
        self.has_failed() && (may_be_mine || failure.breakage.is_some())
    }

    fn file(&self) -> Option<&str> {
        let of_test = self.failure.failure.file_path.as_deref();
        self.error.file.as_deref().or(of_test)
    }
}

#[cfg(test)]
mod tests;

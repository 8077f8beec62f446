//! The comment for a pull request: the state of its newest commit, as Markdown for a code host.
//!
//! The jobs of a build post it one after another. The hidden first line has the project, the revision and a state that only
//! grows, so that each job finds the comment and no job replaces a newer state.

use std::{collections::BTreeSet, fmt::Write as _};

use assay_domain::{
    cause::{Action, Cause},
    id::{ProjectId, RunId},
    owners::Ownership,
    project::Project,
    revision::tested_or_commit,
    run::{Counts, RunRow, RunStatus, SomeTests},
    store::{Store, StoreError},
    test_attempts::TestAttempts,
    timestamp::Timestamp,
};
use assay_flakiness::Diagnose;
use serde::Serialize;

use crate::{
    changes::{self, ChangedTests, RunChanges, changes_of_runs},
    commit::{CommitFailure, CommitResults, CommitSelector, Trust, commit_results, newest_commit},
    failed_error::{FailedError, attempts_of},
    failures::{ExplainedFailure, FailureFilter},
    links::{self, PublicPages},
    markdown::{code, fenced, one_line},
    prompt::{self, Place},
};

/// Most failures with their errors, and most annotations: GitHub shows ten errors of a step.
const WITH_ERRORS: u32 = 10;
/// Longest comment, in characters: GitHub takes 65,536.
const LONGEST: usize = 60_000;
/// Longest prompt, in bytes.
const LONGEST_PROMPT: usize = 6_000;
/// Most tests of a change, and most owners of a failure, that the comment names.
const MOST_NAMED: usize = 5;
/// Most runs that lack results in the comment.
const MOST_INCOMPLETE: usize = 10;

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
    /// Whether every run passed, is complete, and neither skips nor lacks a test that ran on the stable branch. Then a job
    /// only updates a comment that exists.
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
    let Some(runs) = joined_runs(store, project, (run, only_public), now)? else {
        return Ok(None);
    };
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
    let text = Text {
        results: &results,
        changes: &changes,
        failures: &described,
        pages,
        project: project.id,
        project_name: &project.name,
    };
    let enabled = store.settings(project)?.repohost.pr_comments_enabled;
    Ok(Some(text.comment(enabled, now)))
}

/// The runs of the commit of this run, or of the newest commit of its pull request. A run never stands beside one of the
/// other kind of key.
fn joined_runs(
    store: &dyn Store,
    project: &Project,
    (run, only_public): (RunId, bool),
    now: Timestamp,
) -> Result<Option<Vec<RunRow>>, StoreError> {
    let detail = store.run_with(project, run, &SomeTests::Of(Vec::new()))?;
    let Some(run) = detail
        .map(|detail| detail.run)
        .filter(|run| !only_public || !run.trusted)
    else {
        return Ok(None);
    };
    let revision = tested_or_commit(run.tested_revision.as_ref(), run.commit_sha.as_ref());
    let selector = match (run.pull_request_number, revision) {
        (Some(number), _) => CommitSelector::PullRequest(number),
        (None, Some(revision)) => CommitSelector::Sha(revision.to_lowercase()),
        (None, None) => return Ok(None),
    };
    let found = newest_commit(store, project, &selector, Trust::Only(run.trusted), now)?;
    Ok(found.map(|commit| commit.runs))
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

/// Everything that the comment says.
struct Text<'a> {
    results: &'a CommitResults,
    changes: &'a [RunChanges],
    failures: &'a [Described<'a>],
    pages: Option<&'a PublicPages>,
    project: ProjectId,
    project_name: &'a str,
}

impl Text<'_> {
    fn comment(&self, enabled: bool, now: Timestamp) -> Comment {
        let of = &self.results.commit;
        let marker = format!("<!-- assay project={} ", self.project);
        let state = now.unix_ms();
        let headline = self.headline();
        Comment {
            enabled,
            revision: of.revision.clone(),
            pull_request_number: of.pull_request_number,
            state,
            clean: self.is_clean(),
            action: self.results.gate.action,
            mine: self.results.gate.mine,
            counts: self.results.counts,
            url: self.url(),
            markdown: self.markdown(&format!(
                "{marker}revision={} state={state} action={} -->",
                self.revision(),
                self.results.gate.action.as_str()
            )),
            marker,
            headline,
            annotations: self.annotations(),
        }
    }

    fn is_clean(&self) -> bool {
        let is_kept = |changes: &RunChanges| {
            let is_guessed = changes.renamed.tests.iter().any(|renamed| renamed.guessed);
            !is_guessed && changes.no_longer_reported.total == 0 && changes.newly_skipped.total == 0
        };
        self.results.status == RunStatus::Passed && self.changes.iter().all(is_kept)
    }

    /// The revision as hexadecimal digits for the hidden line, which a text of a report must not end.
    fn revision(&self) -> String {
        let revision = self.results.commit.revision.as_deref().unwrap_or_default();
        let digits: String = revision
            .chars()
            .filter(char::is_ascii_hexdigit)
            .take(64)
            .collect();
        if digits.is_empty() {
            "none".to_owned()
        } else {
            digits
        }
    }

    fn url(&self) -> Option<String> {
        let of = &self.results.commit;
        let path = match (of.pull_request_number, &of.revision) {
            (Some(number), _) => links::pull_request(self.project, number),
            (None, Some(revision)) => links::commit(self.project, revision),
            (None, None) => links::run(self.project, &self.results.runs.first()?.id),
        };
        Some(self.pages?.address(&path))
    }

    fn headline(&self) -> String {
        let results = self.results;
        let failed = count(results.counts.failed, "test failed", "tests failed");
        let revision = self.revision();
        let short = revision.get(..8).unwrap_or(&revision);
        let percent = (results.gate.mine * 100.0).round();
        if results.counts.failed == 0 {
            return match results.status {
                RunStatus::Passed => {
                    format!(
                        "{} passed on {short}",
                        count(results.counts.total, "test", "tests")
                    )
                }
                RunStatus::Failed => format!("A run of {short} failed with an error outside of its tests"),
                RunStatus::Incomplete => format!("No test failed on {short} so far, and results are missing"),
            };
        }
        if results.on_stable {
            return format!("{failed} on {short}");
        }
        match results.gate.action {
            Action::Pass => {
                format!("{failed} on {short}; this change most probably broke none of them ({percent} %)")
            }
            Action::Rerun => {
                format!("{failed} on {short}; this change may have broken some ({percent} %): run it again")
            }
            Action::Block => {
                format!("{failed} on {short}; this change broke at least one of them ({percent} %): fix it")
            }
        }
    }

    fn markdown(&self, first_line: &str) -> String {
        let mark = match (self.is_clean(), self.results.gate.action) {
            (true, _) => "✅ ",
            (false, Action::Block) => "❌ ",
            (false, Action::Pass | Action::Rerun) => "",
        };
        let mut text = format!("{first_line}\n### {mark}Assay: {}\n", self.headline());
        let end = self.end();
        let mut length = text.chars().count() + end.chars().count();
        let suspects: Vec<&Described<'_>> = self
            .failures
            .iter()
            .filter(|failure| failure.is_suspect())
            .collect();
        for failure in &suspects {
            let entry = self.entry(failure);
            length += entry.chars().count();
            if length > LONGEST {
                break;
            }
            text += &entry;
        }
        text + &end
    }

    /// A failure with its error and a link.
    fn entry(&self, described: &Described<'_>) -> String {
        let failure = &described.failure.failure;
        let name = code(&failure.test_name);
        let linked = match self.pages {
            Some(pages) => {
                let run = &described.failure.run_id;
                let file = failure.file_path.as_deref();
                format!(
                    "[{name}]({})",
                    pages.attempts(self.project, run, &failure.test_name, file)
                )
            }
            None => name,
        };
        let mut entry = format!("\n- {linked}");
        if let Some(suite) = described
            .failure
            .suite
            .as_deref()
            .filter(|_| self.results.runs.len() > 1)
        {
            let _ = write!(entry, " in suite {}", code(suite));
        }
        let _ = write!(entry, "\n  {}", code(&failure.explanation));
        if let Some(line) = described.error.line.as_deref().or(failure.title.as_deref()) {
            let _ = write!(entry, "\n  {}", code(line));
        }
        if let Some(file) = described.file() {
            let place = match described
                .error
                .line_number
                .filter(|_| described.error.file.is_some())
            {
                Some(number) => format!("{file}:{number}"),
                None => file.to_owned(),
            };
            let _ = write!(entry, " at {}", code(&place));
        }
        if let Some(owners) = owned_by(&failure.ownership) {
            let _ = write!(entry, "\n  {owners}");
        }
        entry + "\n"
    }

    /// The lines after the failures: the others by cause, missing results, the link, the prompt.
    fn end(&self) -> String {
        let mut end = String::new();
        let lines = [self.others(), self.not_suspect()].into_iter().flatten();
        let lines = lines.chain(self.changed());
        for line in lines.chain(self.incomplete()) {
            let _ = write!(end, "\n{line}\n");
        }
        if let Some(url) = self.url() {
            let _ = write!(end, "\n[All runs of this commit, with every failure]({url})\n");
        }
        if let Some(prompt) = self.prompt() {
            let _ = write!(
                end,
                "\n<details><summary>Prompt for an assistant</summary>\n\n{}\n\n</details>\n",
                fenced(&prompt)
            );
        }
        end
    }

    /// All failed tests by cause, and the recovered ones.
    fn others(&self) -> Option<String> {
        let by_cause = self.results.gate.by_cause.counts().into_iter();
        let named = by_cause.filter(|(_, tests)| *tests > 0).map(|(cause, tests)| {
            let words = match (cause, self.results.on_stable) {
                (Cause::ThisChange, false) => "broken by this change",
                (Cause::ThisChange, true) => "broken by this commit",
                (Cause::EarlierOnBranch, _) => "broken earlier on this branch",
                (Cause::BrokenBefore, false) => "broken before this branch",
                (Cause::BrokenBefore, true) => "broken before this commit",
                (Cause::Flake, _) => "flaky",
                (Cause::Environment, _) => "from the environment",
                (Cause::Unclear, _) => "unclear",
            };
            format!("{tests} {words}")
        });
        let recovered = self.results.counts.recovered;
        let recovered = (recovered > 0).then(|| format!("{recovered} passed on retry"));
        let parts: Vec<String> = named.chain(recovered).collect();
        (!parts.is_empty()).then(|| format!("By cause: {}.", parts.join(", ")))
    }

    /// The names of failed tests that the change most probably did not break.
    fn not_suspect(&self) -> Option<String> {
        let others = self
            .failures
            .iter()
            .filter(|described| described.has_failed() && !described.is_suspect());
        let named = others
            .take(MOST_NAMED)
            .map(|described| code(&described.failure.failure.test_name));
        let names: Vec<String> = named.collect();
        (!names.is_empty())
            .then(|| format!("Failed, most probably not by this change: {}.", names.join(", ")))
    }

    /// What changed against the stable branch, in numbers, and the names of skipped, missing and slower tests.
    fn changed(&self) -> Vec<String> {
        type List = fn(&RunChanges) -> &ChangedTests;
        let lists: [(&str, List); 2] = [
            ("newly skipped", |changes| &changes.newly_skipped),
            ("no longer reported", |changes| &changes.no_longer_reported),
        ];
        let summary = changes::summary(self.changes);
        let base = self.base();
        let mut lines: Vec<String> = summary
            .into_iter()
            .map(|summary| format!("Against {base}: {summary}."))
            .collect();
        for (words, list) in lists {
            let total: u64 = self.changes.iter().map(|changes| list(changes).total).sum();
            let tests = self.changes.iter().flat_map(|changes| &list(changes).tests);
            let names: Vec<String> = tests.take(MOST_NAMED).map(|test| code(&test.name)).collect();
            if !names.is_empty() {
                lines.push(format!("{total} {words}: {}.", names.join(", ")));
            }
        }
        let renamed = self.changes.iter().flat_map(|changes| &changes.renamed.tests);
        let guessed: Vec<String> = renamed
            .filter(|renamed| renamed.guessed)
            .take(MOST_NAMED)
            .map(|renamed| format!("{} is now {}", code(&renamed.from.name), code(&renamed.to.name)))
            .collect();
        if !guessed.is_empty() {
            lines.push(format!(
                "Probably renamed: {}. A line in `.assay/renames` joins them.",
                guessed.join(", ")
            ));
        }
        let total: u64 = self.changes.iter().map(|changes| changes.slower.total).sum();
        let tests = self.changes.iter().flat_map(|changes| &changes.slower.tests);
        let named = tests
            .take(MOST_NAMED)
            .map(|slower| format!("{} {:.1} times", code(&slower.test.name), slower.factor));
        let named: Vec<String> = named.collect();
        if !named.is_empty() {
            lines.push(format!("{total} slower: {}.", named.join(", ")));
        }
        lines
    }

    /// The stable branch, at its revision if all runs are compared with the same one.
    fn base(&self) -> String {
        let bases = self.changes.iter().filter_map(|changes| changes.base.as_ref());
        let revisions: BTreeSet<Option<&str>> = bases.map(|base| base.revision.as_deref()).collect();
        match revisions.into_iter().collect::<Vec<_>>().as_slice() {
            [Some(revision)] => {
                let short: String = revision.chars().take(8).collect();
                format!("the stable branch at {}", code(&short))
            }
            _ => "the stable branch".to_owned(),
        }
    }

    /// The runs that may lack results.
    fn incomplete(&self) -> impl Iterator<Item = String> {
        let runs = self.results.runs.iter();
        let incomplete = runs.filter_map(|run| Some((run, run.incomplete.as_deref()?)));
        incomplete.take(MOST_INCOMPLETE).map(|(run, reason)| {
            let suite = run
                .suite
                .as_deref()
                .map(|suite| format!(" of suite {}", code(suite)));
            format!(
                "Run {}{} may lack results: {}.",
                run.run_number,
                suite.unwrap_or_default(),
                code(reason)
            )
        })
    }

    /// The prompt for the failure that this change most probably caused.
    fn prompt(&self) -> Option<String> {
        let described = self.failures.iter().find(|failure| failure.is_suspect())?;
        let attempts = described.attempts.as_ref()?;
        let failed = attempts
            .attempts
            .iter()
            .rev()
            .find(|attempt| attempt.status.is_failure())?;
        let test = &attempts.test;
        let run = &described.failure.run_id;
        let page = self
            .pages
            .map(|pages| pages.attempts(self.project, run, &test.name, test.file_path.as_deref()));
        let place = Place {
            project: self.project_name,
            page: page.as_deref(),
        };
        prompt::of_size(
            place,
            attempts,
            failed,
            Some(&described.failure.failure),
            LONGEST_PROMPT,
        )
    }

    /// The failed tests with the highest `mine` first, which is their order.
    fn annotations(&self) -> Vec<Annotation> {
        let failed = self.failures.iter().filter(|failure| failure.has_failed());
        let annotation = |described: &Described<'_>| {
            let failure = &described.failure.failure;
            let error = described.error.line.as_deref().or(failure.title.as_deref());
            let error = error.map_or_else(String::new, |line| format!(". {}", one_line(line)));
            Annotation {
                run_id: described.failure.run_id,
                file: described.file().map(one_line),
                line: described
                    .error
                    .line_number
                    .filter(|_| described.error.file.is_some()),
                title: one_line(&failure.test_name),
                message: format!("{}{error}", one_line(&failure.explanation)),
                is_mine: failure.action != Action::Pass,
            }
        };
        failed.map(annotation).collect()
    }
}

/// The owners as code, which mentions and so notifies nobody.
fn owned_by(ownership: &Ownership) -> Option<String> {
    let owners: Vec<String> = ownership
        .owners
        .iter()
        .take(MOST_NAMED)
        .map(|owner| code(owner))
        .collect();
    match ownership.owners.len() {
        0 => None,
        all if all > MOST_NAMED => Some(format!("Owned by {} and others", owners.join(", "))),
        _ => Some(format!("Owned by {}", owners.join(", "))),
    }
}

fn count(number: u32, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}

#[cfg(test)]
mod tests;

//! A report in the form for storing.

use std::fmt;

use serde::Serialize;

use crate::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    execution::{Executions, TestOutcome},
    id::RunId,
    owners::OwnersFile,
    part::JobAttempt,
    release_branch::{BranchPattern, release_branch_of},
    renames::RenamesFile,
    revision::{checked_out_merge, is_same_revision, tested_or_commit},
    run::{CiProvider, Counts, Outcome, RunState},
    signature::ErrorClass,
    test::{ShownAs, TestName},
    timestamp::Timestamp,
    verdict::VerdictStatus,
    vocabulary::vocabulary,
};

/// The context of a run, from flags, the report and CI's variables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunContext {
    /// The branch.
    pub branch: Option<String>,
    /// The commit that CI checked out.
    pub commit_sha: Option<String>,
    /// That commit's message.
    pub commit_message: Option<String>,
    /// That commit's author.
    pub author_name: Option<String>,
    /// For a pull request, the head behind a merge commit.
    pub tested_revision: Option<String>,
    /// The pull request's number.
    pub pull_request_number: Option<i64>,
    /// The pull request's title.
    pub pull_request_title: Option<String>,
    /// The CI service.
    pub ci_provider: Option<CiProvider>,
    /// The suite or job, if several share one CI run.
    pub suite: Option<String>,
    /// The page of the CI run, an address of http or https.
    pub run_url: Option<String>,
    /// The commit of the target branch at which the tested code left it.
    pub merge_base: Option<String>,
    /// The branch into which its change is to be merged.
    pub base_branch: Option<String>,
}

impl RunContext {
    /// This context, with missing values filled from another one of the same run.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            branch: self.branch.or(other.branch),
            commit_sha: self.commit_sha.or(other.commit_sha),
            commit_message: self.commit_message.or(other.commit_message),
            author_name: self.author_name.or(other.author_name),
            tested_revision: self.tested_revision.or(other.tested_revision),
            pull_request_number: self.pull_request_number.or(other.pull_request_number),
            pull_request_title: self.pull_request_title.or(other.pull_request_title),
            ci_provider: self.ci_provider.or(other.ci_provider),
            suite: self.suite.or(other.suite),
            run_url: self.run_url.or(other.run_url),
            merge_base: self.merge_base.or(other.merge_base),
            base_branch: self.base_branch.or(other.base_branch),
        }
    }

    /// Whether both contexts may be of the same tested code: they name the same revision, or one names none. A commit may
    /// be abbreviated, and a merge commit stands for the head of its pull request where only one of them is known.
    pub fn may_have_revision_of(&self, other: &Self) -> bool {
        let known = |context: &Self| {
            let revisions = [&context.tested_revision, &context.commit_sha];
            revisions.into_iter().flatten().cloned().collect::<Vec<String>>()
        };
        if let (Some(own), Some(other)) = (&self.tested_revision, &other.tested_revision) {
            return is_same_revision(own, other);
        }
        let (own, other) = (known(self), known(other));
        let are_same = |own: &String| other.iter().any(|other| is_same_revision(own, other));
        own.is_empty() || other.is_empty() || own.iter().any(are_same)
    }

    /// The revision of the tested code, if one is known.
    pub fn revision(&self) -> Option<&str> {
        tested_or_commit(self.tested_revision.as_deref(), self.commit_sha.as_deref())
    }

    /// The same without a branch from which releases are made, if the run is of the merge of a pull request from there: the
    /// merge has the code of another branch, too. The branch is then `pull/118`.
    #[must_use]
    pub fn of_pull_request(self, stable_branch: &str, release_branches: &[BranchPattern]) -> Self {
        let own = self.branch.as_deref();
        let is_line = own == Some(stable_branch) || release_branch_of(release_branches, own, None).is_some();
        // Others have the number in builds of the branch, too, if it has an open pull request.
        let is_own_build = matches!(
            self.ci_provider,
            Some(CiProvider::Jenkins | CiProvider::BitbucketPipelines)
        );
        let is_merge = is_own_build || self.merge().is_some();
        match self.pull_request_number.filter(|_| is_line && is_merge) {
            None => self,
            Some(number) => Self {
                branch: Some(format!("pull/{number}")),
                ..self
            },
        }
    }

    /// The merge of the tested revision that was checked out, if it was one.
    pub fn merge(&self) -> Option<&str> {
        checked_out_merge(self.tested_revision.as_deref(), self.commit_sha.as_deref())
    }
}

/// A shard's index among its siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardIndex {
    /// From 1.
    pub index: u32,
    /// The expected number, if known; at least `index`.
    pub total: Option<u32>,
}

impl fmt::Display for ShardIndex {
    /// Writes `2/5`, or `2` without the total.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.total {
            Some(total) => write!(f, "{}/{total}", self.index),
            None => write!(f, "{}", self.index),
        }
    }
}

/// The instance of a CI job that sent a report. Outside of CI everything but the attempt is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Sender {
    /// The job's name.
    pub job: Option<String>,
    /// The CI service's id of this instance of the job.
    pub id: Option<String>,
    /// The machine, which separates jobs of one name where the service gives no id. With an id, the workflow run.
    pub runner: Option<String>,
    /// The attempt of the job, and of the command in it.
    pub attempt: JobAttempt,
    /// The path of its report file. Of several files, their common folder with a final `/`. It separates legs of a
    /// matrix that share a job's name.
    pub report_path: Option<String>,
    /// The number of its report files; 0 if it is unknown.
    pub report_files: u32,
}

impl Sender {
    /// Whether a job named itself.
    pub const fn is_known(&self) -> bool {
        self.job.is_some() || self.id.is_some() || self.runner.is_some()
    }

    /// Whether this is a later attempt of the same job, which CI repeated. Two instances in one workflow run are legs of a
    /// matrix, although their ids grow.
    pub fn is_later_job_than(&self, other: &Self) -> bool {
        let is_same_workflow = self.id.is_some() && self.runner.is_some() && self.runner == other.runner;
        let is_leg = is_same_workflow && self.id != other.id;
        self.job == other.job && self.attempt.of_job > other.attempt.of_job && !is_leg
    }

    /// Whether this is a later attempt of the same command in the same instance of a job.
    pub fn is_later_command_than(&self, other: &Self) -> bool {
        self.is_same_job(other)
            && self.attempt.of_job == other.attempt.of_job
            && self.attempt.of_command > other.attempt.of_command
    }

    /// Whether both are of the same attempt of the same instance of a job.
    pub fn is_same_instance(&self, other: &Self) -> bool {
        self.is_same_job(other) && self.attempt == other.attempt
    }

    /// Whether both are of the same instance of a job.
    pub fn is_same_job(&self, other: &Self) -> bool {
        self.job == other.job && self.id == other.id && self.runner == other.runner
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.job, self.runner.as_ref().filter(|_| self.id.is_none())) {
            (Some(job), Some(runner)) => write!(f, "the job {job:?} on {runner:?}"),
            (Some(job), None) => write!(f, "the job {job:?}"),
            (None, Some(runner)) => write!(f, "a job on {runner:?}"),
            (None, None) => f.write_str("an unknown job"),
        }
    }
}

/// One report of a run or of one of its shards, parsed, fingerprinted and ready for storing. It becomes a part of the
/// run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The key that all shards of one run share, at most 1,000 characters.
    pub run_key: String,
    /// Hash of the content. Importing the same content again changes nothing.
    pub content: [u8; 32],
    /// The shard's index; none for a run that is not sharded.
    pub shard: Option<ShardIndex>,
    /// The run's context.
    pub context: RunContext,
    /// The job that sent it.
    pub sender: Sender,
    /// Whether it takes the place of everything that is stored for its run and shard.
    pub replaces: bool,
    /// Whether somebody asked the CI service for it later. What its jobs sent themselves takes precedence.
    pub is_backfilled: bool,
    /// Its start.
    pub started_at: Timestamp,
    /// Its end, if known.
    pub finished_at: Option<Timestamp>,
    /// Whether the report is complete.
    pub state: RunState,
    /// Errors that belong to no test.
    pub report_errors: Vec<ErrorDetail>,
    /// The tests, each name and file once.
    pub tests: Vec<RecordedTest>,
    /// What passed and is a test only where it fails by itself, such as groups of subtests. No content of its own: it
    /// follows from the same files as the tests.
    pub passed_groups: Vec<TestName>,
    /// The files of its checkout that concern the whole project. They are no content of the report.
    pub checkout: CheckoutFiles,
}

/// A stored report of a CI run, as far as it identifies the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentReport {
    /// Its run's context.
    pub context: RunContext,
    /// Its shard.
    pub shard: Option<ShardIndex>,
    /// The job that sent it.
    pub sender: Sender,
    /// The hash of its content.
    pub content: Vec<u8>,
}

/// The files of a checkout that concern the whole project. They are stored only from trusted runs of the stable branch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckoutFiles {
    /// The owners file; none if the report says nothing of it.
    pub owners: Option<OwnersFile>,
    /// The renames file; none if the report says nothing of it.
    pub renames: Option<RenamesFile>,
}

impl Recording {
    /// Whether it is all that a CI service has of a run, without the jobs that sent reports.
    pub fn is_of_unknown_jobs(&self) -> bool {
        self.is_backfilled && !self.sender.is_known()
    }

    /// The reason why the report may lack results; none if it is complete.
    pub fn why_incomplete(&self, left_over: LeftOver) -> Option<String> {
        let is_interrupted = |test: &&RecordedTest| {
            let outcome = test.outcome();
            outcome.is_some_and(|outcome| outcome.status == AttemptStatus::Interrupted)
        };
        let interrupted = self.tests.iter().filter(is_interrupted).count();
        let gaps = Gaps {
            missing_shards: None,
            is_cut_short: self.state == RunState::Interrupted,
            report_error: self.report_errors.first(),
            interrupted_tests: u64::try_from(interrupted).unwrap_or(u64::MAX),
            left_over,
        };
        gaps.reason()
    }
}

/// Reasons why a report or a run may lack results.
#[derive(Debug, Clone, Copy)]
pub struct Gaps<'a> {
    /// The numbers of received and of expected shards, if shards are missing.
    pub missing_shards: Option<(u32, u32)>,
    /// Whether the run was interrupted, or a report is cut off.
    pub is_cut_short: bool,
    /// The first error that belongs to no test.
    pub report_error: Option<&'a ErrorDetail>,
    /// The number of tests that were interrupted.
    pub interrupted_tests: u64,
    /// What an earlier attempt left over.
    pub left_over: LeftOver,
}

/// What earlier attempts of a report's job left over, and the report does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOver {
    /// The number of tests that failed and did not run again.
    pub failed: u64,
    /// Whether an attempt was cut short or failed outside of its tests, and some of its tests did not run again.
    pub unfinished: bool,
}

impl Gaps<'_> {
    /// The first of these reasons, as a sentence without a full stop; none if there is no reason.
    pub fn reason(&self) -> Option<String> {
        if let Some((received, expected)) = self.missing_shards {
            return Some(format!("only {received} of {expected} shards have reported"));
        }
        if self.is_cut_short {
            return Some("the run or its report was cut short".to_owned());
        }
        if let Some(error) = self.report_error {
            let message = error.message.as_deref().unwrap_or("an error without a message");
            let line: String = message
                .lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(200)
                .collect();
            return Some(format!("the report has an error that belongs to no test: {line}"));
        }
        match (self.interrupted_tests, self.left_over.failed) {
            (0, 0) => self.left_over.unfinished.then(|| {
                "an earlier attempt was cut short or failed outside of its tests, and not all of its tests ran again"
                    .to_owned()
            }),
            (0, 1) => Some("a test that failed in an earlier attempt did not run again".to_owned()),
            (0, count) => Some(format!(
                "{count} tests that failed in an earlier attempt did not run again"
            )),
            (1, _) => Some("a test was interrupted".to_owned()),
            (count, _) => Some(format!("{count} tests were interrupted")),
        }
    }
}

/// One test of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedTest {
    /// Its name and file.
    pub test: TestName,
    /// How it is shown.
    pub shown_as: ShownAs,
    /// Its attempts by execution, the worst outcome last. Never empty.
    pub attempts: Executions<RecordedAttempt>,
}

impl RecordedTest {
    /// The outcome of the test.
    pub fn outcome(&self) -> Option<TestOutcome> {
        TestOutcome::of(self.attempts.executions().map(|execution| {
            execution
                .iter()
                .map(|recorded| (recorded.attempt.status, recorded.attempt.duration_ms))
        }))
    }
}

/// One attempt with the class of its error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedAttempt {
    /// The attempt.
    pub attempt: Attempt,
    /// The class of its first error with text; none without such an error.
    pub class: Option<ErrorClass>,
}

/// The result of importing a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportReceipt {
    /// The run's id.
    pub run_id: RunId,
    /// Its number within the project.
    pub run_number: i32,
    /// The shard's own id.
    pub shard_id: RunId,
    /// The run's outcome so far.
    pub status: Option<Outcome>,
    /// The counts of its tests.
    pub counts: Counts,
    /// The run's context, with the values of earlier reports of the run.
    pub context: RunContext,
    /// The effect of the import.
    pub effect: Effect,
    /// How the report relates to what was stored for its run and shard.
    pub standing: PartStanding,
    /// The verdicts that it changed.
    pub verdicts_changed: VerdictChanges,
}

/// How a part relates to the others of its slot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartStanding {
    /// Whether it continues what failed in earlier parts.
    pub continues: bool,
    /// The senders of other parts with some of the same tests, if nothing tells how they relate to this one.
    pub beside: Vec<Sender>,
    /// What it replaced on request.
    pub replaced: Option<ReplacedResults>,
    /// The names in `Assay-Fixes:` lines of its message that no test of the project has.
    pub unknown_claims: Vec<String>,
}

/// Results that a report replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReplacedResults {
    /// The number of tests.
    pub tests: u32,
    /// The number of them that failed.
    pub failed: u32,
}

/// The verdicts that an import changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerdictChanges {
    /// The number of changes.
    pub total: u64,
    /// The first of them, at most [`Self::MOST_LISTED`]: the worst verdicts first, then by name and file.
    pub listed: Vec<VerdictChange>,
}

impl VerdictChanges {
    /// Most changes in the list.
    pub const MOST_LISTED: usize = 1_000;
}

/// A test whose verdict changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct VerdictChange {
    /// The test's full stored name.
    pub test_name: String,
    /// Its stored file.
    pub file_path: Option<String>,
    /// The verdict before; a test without one had insufficient data.
    pub from: VerdictStatus,
    /// The verdict now.
    pub to: VerdictStatus,
}

vocabulary!(
    /// The effect of an import.
    Effect {
        /// It added a part to its run.
        Added = "added",
        /// It replaced what was stored for its run and shard.
        Replaced = "replaced",
        /// None: the same content was already stored.
        Unchanged = "unchanged",
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pull_request_from_a_branch_of_releases_is_none_of_its_runs() {
        let releases = ["release/*".parse().unwrap()];
        let branch = |ci_provider, branch: &str, merge: Option<&str>| {
            let context = RunContext {
                ci_provider: Some(ci_provider),
                branch: Some(branch.to_owned()),
                pull_request_number: Some(8),
                commit_sha: Some(merge.unwrap_or("aaaaaaaa").to_owned()),
                tested_revision: merge.map(|_| "aaaaaaaa".to_owned()),
                ..RunContext::default()
            };
            context.of_pull_request("main", &releases).branch.unwrap()
        };
        let merge = Some("bbbbbbbb");
        assert_eq!(branch(CiProvider::GithubActions, "main", merge), "pull/8");
        assert_eq!(branch(CiProvider::GithubActions, "release/1", merge), "pull/8");
        assert_eq!(branch(CiProvider::Jenkins, "main", None), "pull/8");
        assert_eq!(branch(CiProvider::BitbucketPipelines, "main", None), "pull/8");
        // Controls: a build of a branch that has a pull request, and one of another branch.
        assert_eq!(branch(CiProvider::Circleci, "main", None), "main");
        assert_eq!(branch(CiProvider::GithubActions, "topic", merge), "topic");
        assert_eq!(branch(CiProvider::Jenkins, "topic", None), "topic");
    }
}

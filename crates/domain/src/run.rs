//! Runs: all shards of one CI run and suite.

use std::collections::VecDeque;

use serde::Serialize;

use crate::{
    attempt::{AttemptStatus, ErrorDetail, ShardTag},
    execution::TestOutcome,
    id::RunId,
    merge_queue::{MergeQueue, RunKind},
    page::{Direction, PerPage, RunPosition},
    period::Period,
    revision::tested_or_commit,
    test::TestOrdinal,
    timestamp::Timestamp,
    vocabulary::vocabulary,
};

vocabulary!(
    /// The outcome of a run, once it is known.
    Outcome {
        /// No test failed and no report-level error was recorded.
        Passed = "passed",
        /// A test failed, or a report-level error was recorded.
        Failed = "failed",
    }
);

vocabulary!(
    /// The status in a run's detail, including unknown outcomes.
    RunStatus {
        /// No test failed and no report-level error was recorded.
        Passed = "passed",
        /// A test failed, or a report-level error was recorded.
        Failed = "failed",
        /// Shards are missing or were interrupted, and none failed.
        Incomplete = "incomplete",
    }
);

impl From<Option<Outcome>> for RunStatus {
    fn from(outcome: Option<Outcome>) -> Self {
        match outcome {
            Some(Outcome::Passed) => Self::Passed,
            Some(Outcome::Failed) => Self::Failed,
            None => Self::Incomplete,
        }
    }
}

vocabulary!(
    /// Why the missing tests of a run are not judged.
    MissingNotJudged {
        /// No complete run of the stable branch precedes the run.
        NoBase = "no_base",
        /// The stable branch has fewer than ten complete runs of the suite in the last 14 days.
        FewRuns = "few_runs",
        /// A shard is missing, or a report is cut off.
        Incomplete = "incomplete",
        /// The run lacks more than a tenth of the base's files, so it is a selection of the suite.
        Partial = "partial",
    }
);

vocabulary!(
    /// Whether a shard's report is complete.
    RunState {
        /// The report is complete.
        Completed = "completed",
        /// The run was interrupted or its report is cut off.
        Interrupted = "interrupted",
    }
);

vocabulary!(
    /// The CI service of a run.
    CiProvider {
        /// GitHub Actions.
        GithubActions = "github-actions",
        /// GitLab CI.
        GitlabCi = "gitlab-ci",
        /// CircleCI.
        Circleci = "circleci",
        /// Buildkite.
        Buildkite = "buildkite",
        /// Jenkins.
        Jenkins = "jenkins",
        /// Azure Pipelines.
        AzurePipelines = "azure-pipelines",
        /// Bitbucket Pipelines.
        BitbucketPipelines = "bitbucket-pipelines",
        /// TeamCity.
        Teamcity = "teamcity",
        /// Any other service.
        Other = "other",
    }
);

/// The number of tests by outcome: `total = passed + failed + skipped`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Counts {
    /// Tests.
    pub total: u32,
    /// Those whose final attempt passed.
    pub passed: u32,
    /// Those whose final attempt failed or timed out.
    pub failed: u32,
    /// Those whose final attempt was skipped or interrupted.
    pub skipped: u32,
    /// Those of `passed` with a failed attempt in some execution, passed on retry.
    pub recovered: u32,
}

impl Counts {
    /// Counts a test with this outcome.
    pub fn add(&mut self, outcome: &TestOutcome) {
        self.total += 1;
        if outcome.status.is_failure() {
            self.failed += 1;
        } else if outcome.status.is_skip() {
            self.skipped += 1;
        } else {
            self.passed += 1;
            self.recovered += u32::from(outcome.recovered);
        }
    }
}

/// Identifies a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunTag {
    /// Its id.
    pub id: RunId,
    /// Its number within the project, from 1, in the order of arrival; `startedAt` gives the order in time.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub run_number: i32,
    /// Its branch.
    pub branch: Option<String>,
}

/// A run in the runs list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunRow {
    /// Its id.
    pub id: RunId,
    /// Its number within the project, from 1, in the order of arrival; `startedAt` gives the order in time.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub run_number: i32,
    /// Its branch.
    pub branch: Option<String>,
    /// The commit that CI checked out.
    pub commit_sha: Option<String>,
    /// For a pull request, the head behind a merge commit.
    pub tested_revision: Option<String>,
    /// The branch into which its change is to be merged, if CI names it.
    #[serde(skip)]
    pub base_branch: Option<String>,
    /// The pull request's number.
    pub pull_request_number: Option<i64>,
    /// What its merge queue tests; null for a run of a branch or a pull request.
    pub queue: Option<MergeQueue>,
    /// Its outcome; none while it is unknown.
    pub status: Option<Outcome>,
    /// The earliest start of its shards.
    pub started_at: Timestamp,
    /// The latest end of its shards.
    pub finished_at: Option<Timestamp>,
    /// The time in which one of its parts ran.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub duration_ms: Option<i64>,
    /// The counts of its tests.
    pub counts: Counts,
    /// False for a run that was sent with a key for pull requests only, which may be public. Such a run counts in no
    /// verdict.
    pub trusted: bool,
    /// False if a shard is missing, or a part was cut off or interrupted, for example because CI cancelled it. The run may
    /// have failed, too.
    pub complete: bool,
    /// None for a run that was not sharded.
    pub shards: Option<ShardCount>,
    /// Its suite; none for the default one. The runs list of the API omits the message, the author and the CI run's page.
    pub suite: Option<String>,
    /// The title of its pull request.
    #[serde(skip)]
    pub pull_request_title: Option<String>,
    /// The message of its commit.
    #[serde(skip)]
    pub commit_message: Option<String>,
    /// The author of its commit.
    #[serde(skip)]
    pub author_name: Option<String>,
    /// The page of the CI run, an address of http or https.
    #[serde(skip)]
    pub run_url: Option<String>,
}

impl RunRow {
    /// The revision of the tested code, if one is known.
    pub fn revision(&self) -> Option<&str> {
        tested_or_commit(self.tested_revision.as_deref(), self.commit_sha.as_deref())
    }

    /// Its pull requests: several if a merge queue tested them together.
    pub fn pull_requests(&self) -> Vec<i64> {
        let of_queue = self.queue.as_ref().map(|queue| &queue.pull_requests);
        let numbers = of_queue.filter(|numbers| !numbers.is_empty()).cloned();
        numbers.unwrap_or_else(|| self.pull_request_number.into_iter().collect())
    }

    /// The first line of its commit's message, else the title of its pull request.
    pub fn subject(&self) -> Option<&str> {
        let message = self.commit_message.as_deref();
        message
            .and_then(|message| message.lines().next())
            .or(self.pull_request_title.as_deref())
    }
}

/// The number of shards that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShardCount {
    /// Those that arrived.
    pub received: u32,
    /// The expected number, if a report or CI provides it.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub expected: Option<u32>,
}

/// How evenly the shards of a run are divided: each takes the sum of the times, from start to end, of the reports of the
/// first attempt of its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ShardDurations {
    /// The shortest shard in milliseconds.
    pub shortest_ms: u64,
    /// The mean of the shards in milliseconds: no division ends earlier.
    pub mean_ms: u64,
    /// The longest shard in milliseconds.
    pub longest_ms: u64,
}

impl ShardDurations {
    /// Of the duration of each shard; none for fewer than two shards.
    pub fn of(shards: &[u64]) -> Option<Self> {
        let number = u64::try_from(shards.len()).ok().filter(|number| *number >= 2)?;
        Some(Self {
            shortest_ms: *shards.iter().min()?,
            mean_ms: shards.iter().sum::<u64>() / number,
            longest_ms: *shards.iter().max()?,
        })
    }

    /// The longest shard in relation to the mean, to two decimal places. It is 1 if the division is even.
    pub fn longest_in_means(&self) -> String {
        let hundredths = self
            .longest_ms
            .saturating_mul(100)
            .checked_div(self.mean_ms)
            .unwrap_or(100);
        format!("{}.{:02}", hundredths / 100, hundredths % 100)
    }
}

/// Filters and position of the runs list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunQuery {
    /// Only runs that started in this period.
    pub period: Period,
    /// Only runs of exactly this branch.
    pub branch: Option<String>,
    /// Only runs whose commit or tested revision begins with this, in lower case.
    pub sha: Option<String>,
    /// Only runs of this pull request, also those in which a merge queue tested it with others.
    pub pull_request: Option<i64>,
    /// Only runs of merge queues, or only the others.
    pub kind: Option<RunKind>,
    /// Only runs that were sent with a trusted key, or only the others.
    pub trusted: Option<bool>,
    /// Only the run with this number.
    pub number: Option<i32>,
    /// Only runs with this outcome.
    pub status: Option<Outcome>,
    /// Runs per page.
    pub per_page: PerPage,
    /// Only runs beyond this position, in the direction.
    pub position: Option<RunPosition>,
    /// Older or newer than the position.
    pub direction: Direction,
}

impl RunQuery {
    /// The newest runs of a period, without a filter.
    pub const fn newest(period: Period, per_page: PerPage) -> Self {
        Self {
            period,
            branch: None,
            sha: None,
            pull_request: None,
            kind: None,
            trusted: None,
            number: None,
            status: None,
            per_page,
            position: None,
            direction: Direction::Next,
        }
    }
}

/// One page of the runs list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPage {
    /// The stable branch.
    pub stable_branch: String,
    /// The runs.
    pub runs: Vec<RunRow>,
    /// Runs of the filter in the whole period.
    pub total: u64,
    /// Whether an older run matches.
    pub has_older: bool,
    /// Whether a newer run matches.
    pub has_newer: bool,
}

/// One run with every test's final attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunDetail {
    /// The run.
    pub run: Run,
    /// The counts of its tests.
    pub counts: Counts,
    /// One entry per test, ordered by file (none first), then name.
    pub tests: Vec<TestEntry>,
    /// The tests still to be read, if there are too many for one read.
    #[serde(skip)]
    pub rest: Option<RunRest>,
}

/// Some tests of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SomeTests {
    /// The tests with these ordinals.
    Of(Vec<TestOrdinal>),
    /// One page in the order of [`RunDetail::tests`].
    Page {
        /// The number of tests before it.
        offset: u64,
        /// The most tests on it.
        limit: u32,
    },
    /// One page in the order of their durations, the longest first and unknown ones last.
    Slowest {
        /// The number of tests before it.
        offset: u64,
        /// The most tests on it.
        limit: u32,
    },
}

/// The tests of a run that are still to be read, in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRest {
    /// The run.
    pub run: RunId,
    /// Hash of the contents of the run's shards.
    pub contents: [u8; 32],
    /// Hash over all tests of the run, including those already read.
    pub version: [u8; 32],
    /// The parts, in order.
    pub parts: VecDeque<RunPart>,
}

/// A part of a run's tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPart {
    /// Their results. Without names and errors they are small, so a run's results are read once. They are those of the
    /// run as long as its contents are the same.
    pub results: Vec<RunResult>,
    /// The hash of their error signatures.
    pub signatures: [u8; 32],
}

/// The final attempt of a test in a run, without texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunResult {
    /// The test.
    pub test: TestOrdinal,
    /// The status of the attempt.
    pub status: AttemptStatus,
    /// The largest number of attempts of one execution; 0 for a single one without errors and texts.
    pub attempts: u32,
    /// Its duration in milliseconds.
    pub duration_ms: Option<u64>,
    /// The number of its browser in the project; 0 where none is known.
    pub browser: i32,
    /// The number of its part in the run.
    pub part: i16,
}

impl RunRest {
    /// The approximate memory use of the results in bytes.
    pub fn bytes(&self) -> usize {
        let results: usize = self.parts.iter().map(|part| part.results.capacity()).sum();
        results * size_of::<RunResult>()
    }
}

/// The `run` object of the run detail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Its id, which is that of its first shard.
    pub id: RunId,
    /// Its number within the project, from 1, in the order of arrival; `startedAt` gives the order in time.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub run_number: i32,
    /// Its branch.
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
    /// The suite or job of the run, if several share one CI run.
    pub suite: Option<String>,
    /// The page of the CI run, an address of http or https.
    pub run_url: Option<String>,
    /// False for a run that was sent with a key for pull requests only, which may be public. Such a run counts in no
    /// verdict.
    pub trusted: bool,
    /// Its outcome.
    pub status: RunStatus,
    /// The earliest start of its shards.
    pub started_at: Timestamp,
    /// The latest end of its shards.
    pub finished_at: Option<Timestamp>,
    /// The time in which one of its parts ran.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub duration_ms: Option<i64>,
    /// None for a run that was not sharded.
    pub shards: Option<Shards>,
    /// Errors that belong to no test, such as a file that did not load.
    pub report_errors: Vec<ErrorDetail>,
    /// The number of further such errors: the list ends at about a megabyte.
    pub omitted_report_errors: u32,
}

impl Run {
    /// The first line of its commit's message.
    pub fn subject(&self) -> Option<&str> {
        self.commit_message
            .as_deref()
            .and_then(|message| message.lines().next())
    }
}

/// The shards of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Shards {
    /// The expected number, if a report or CI provides it.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub expected: Option<u32>,
    /// Those that arrived, by index.
    pub received: Vec<Shard>,
}

/// A shard of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Shard {
    /// Its id.
    pub run_id: RunId,
    /// Its index, from 1.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub index: u32,
    /// Whether its report is complete.
    pub run_state: RunState,
    /// Its outcome; none if it was interrupted before a failure.
    pub status: Option<Outcome>,
}

/// A test of a run, with the facts of its final attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TestEntry {
    /// The full stored name.
    pub test_name: String,
    /// The stored file of the test.
    pub file_path: Option<String>,
    /// The final attempt's status.
    pub status: AttemptStatus,
    /// The largest number of attempts of one execution: 1 without a retry.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub attempts: u32,
    /// The final attempt's duration in milliseconds.
    pub duration_ms: Option<u64>,
    /// The beginning of the final attempt's first error message, at most 2,000 characters. The attempts route has the
    /// whole message.
    pub error_message: Option<String>,
    /// The final attempt's error signature.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9A-Za-z_-]{1,128}$"))]
    pub fingerprint: Option<String>,
    /// The final attempt's browser or Playwright project.
    pub browser_name: Option<String>,
    /// The shard that ran the final attempt; none in a run without shards.
    pub shard: Option<ShardTag>,
}

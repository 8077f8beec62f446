//! A generated world: the contents of its reports and the expected results of importing them.

/// The plans with read access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plan {
    Standard,
    Pro,
}

impl Plan {
    /// Its name on the command line and in the contract.
    pub fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Pro => "pro",
        }
    }

    /// The retention in days.
    pub fn retention(self) -> i64 {
        match self {
            Self::Standard => 60,
            Self::Pro => 90,
        }
    }
}

/// An organization with its read key.
#[derive(Clone)]
pub struct Organization {
    pub id: String,
    pub name: String,
    pub plan: Plan,
    pub key: String,
    pub projects: Vec<Project>,
}

/// The way in which a project's reports reach the importer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportSource {
    /// From GitHub Actions: all values in variables and the event file. The checkout is known.
    Github,
    /// From GitLab CI, likewise.
    Gitlab,
    /// By flags only. The checkout is unknown.
    Flags,
}

/// A project.
#[derive(Clone)]
pub struct Project {
    pub id: String,
    pub name: String,
    pub stable: String,
    pub source: ReportSource,
    pub chat_events: Option<Vec<&'static str>>,
    pub pr_comments: Option<bool>,
    /// In the order of their first import.
    pub runs: Vec<Run>,
}

/// A run.
#[derive(Clone)]
pub struct Run {
    /// From the importer's output.
    pub id: String,
    /// From the importer's output.
    pub number: i64,
    /// The build's id in CI.
    pub build: String,
    pub branch: Option<String>,
    pub commit: Option<String>,
    pub message: Option<String>,
    pub author: Option<String>,
    pub tested_revision: Option<String>,
    pub pr: Option<i64>,
    pub pr_title: Option<String>,
    pub ci: Option<&'static str>,
    pub suite: Option<String>,
    /// The expected number of shards; none for a run that is not sharded.
    pub expected: Option<u32>,
    /// The shards that arrived, in order of arrival.
    pub shards: Vec<Shard>,
}

/// A report of a shard, or of an unsharded run.
#[derive(Clone)]
pub struct Shard {
    /// From the importer's output.
    pub id: String,
    pub index: u32,
    pub started: i64,
    pub duration: i64,
    pub cases: Vec<Case>,
    /// Errors that belong to no test.
    pub errors: Vec<String>,
}

/// A test of a report, under one Playwright project.
#[derive(Clone)]
pub struct Case {
    /// The Playwright project.
    pub browser: String,
    /// Relative to `config.rootDir`; also the first title.
    pub suite: String,
    pub describes: Vec<String>,
    pub title: String,
    pub manner: Manner,
    /// Several with `--repeat-each`; empty for a test that never started.
    pub executions: Vec<Vec<Attempt>>,
}

/// Playwright's expectation of a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    Plain,
    /// `test.fail()`, and it fails.
    ExpectedFailure,
    /// `test.fail()`, but it passes.
    UnexpectedPass,
    Skipped,
    NeverStarted,
}

/// One attempt.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub status: &'static str,
    pub duration: Option<i64>,
    pub started: Option<i64>,
    pub faults: Vec<Fault>,
}

/// One error of an attempt.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Equal for all errors that must get one fingerprint.
    pub class: String,
    pub message: String,
    pub frames: Vec<String>,
    pub snippet: Option<String>,
    pub spot: Option<Spot>,
    /// The thrown value is not an error.
    pub bare: bool,
}

/// A location in a source file, absolute as Playwright writes it.
#[derive(Clone, Debug)]
pub struct Spot {
    pub file: String,
    pub line: i64,
    pub column: i64,
}

/// A test of a run in its expected stored form.
#[derive(Clone)]
pub struct ExpectedTest {
    pub name: String,
    pub file: Option<String>,
    pub browser: Option<String>,
    /// By execution. The execution with the final attempt comes last.
    pub attempts: Vec<Attempt>,
    /// The number of attempts of each execution.
    pub lengths: Vec<usize>,
    /// The index of its shard in the run.
    pub shard: usize,
}

/// The folder of every report's checkout. GitHub's runners use it, so an importer knows it without a flag.
pub const CHECKOUT: &str = "/home/runner/work/shop/shop";
/// The folder of the tests in it.
pub const TEST_DIR: &str = "tests";

/// The class of the error of a test that was expected to fail and passed.
pub const UNEXPECTED_PASS_CLASS: &str = "expected to fail, but passed";

impl ExpectedTest {
    /// The attempts of each execution.
    pub fn executions(&self) -> Vec<&[Attempt]> {
        let mut rest = self.attempts.as_slice();
        let mut executions = Vec::new();
        for length in &self.lengths {
            let (execution, others) = rest.split_at(*length);
            executions.push(execution);
            rest = others;
        }
        executions
    }

    /// Each attempt with its execution and its index there.
    pub fn numbered(&self) -> Vec<(usize, usize, &Attempt)> {
        let executions = self.executions().into_iter().enumerate();
        let attempts = executions.flat_map(|(execution, attempts)| {
            let attempts = attempts.iter().enumerate();
            attempts.map(move |(retry, attempt)| (execution, retry, attempt))
        });
        attempts.collect()
    }

    /// The largest number of attempts of one execution.
    pub fn max_attempts(&self) -> usize {
        self.lengths.iter().copied().max().expect("at least one")
    }

    pub fn last(&self) -> &Attempt {
        let last = *self.executions().last().expect("at least one");
        &last[final_place(last)]
    }

    pub fn status(&self) -> &'static str {
        self.last().status
    }

    pub fn failed(&self) -> bool {
        is_failure(self.status())
    }

    pub fn skipped(&self) -> bool {
        matches!(self.status(), "skipped" | "interrupted")
    }

    pub fn recovered(&self) -> bool {
        self.status() == "passed" && self.attempts.iter().any(|attempt| is_failure(attempt.status))
    }

    /// Time of the failed attempts. None if no attempt reported a duration.
    pub fn lost_ms(&self) -> Option<i64> {
        let durations = || self.attempts.iter().filter(|attempt| attempt.duration.is_some());
        durations().next()?;
        let failed = durations().filter(|attempt| is_failure(attempt.status));
        Some(failed.filter_map(|attempt| attempt.duration).sum())
    }

    /// Time spent before the final attempt of each execution.
    pub fn wasted_ms(&self) -> i64 {
        let before = |attempts: &[Attempt]| -> i64 {
            let before = attempts[..final_place(attempts)].iter();
            before.filter_map(|attempt| attempt.duration).sum()
        };
        self.executions().into_iter().map(before).sum()
    }
}

/// The index of the final attempt of an execution: the last one that ran.
fn final_place(execution: &[Attempt]) -> usize {
    let ran = |attempt: &Attempt| !matches!(attempt.status, "skipped" | "interrupted");
    execution.iter().rposition(ran).unwrap_or(execution.len() - 1)
}

pub fn is_failure(status: &str) -> bool {
    matches!(status, "failed" | "timedOut")
}

impl Project {
    /// A path in its expected stored form.
    pub fn stored_path(&self, absolute: &str) -> String {
        match absolute.strip_prefix(CHECKOUT) {
            Some(rest) => rest.trim_start_matches('/').to_owned(),
            None => absolute.to_owned(),
        }
    }
}

impl Case {
    /// The framework's own title path.
    pub fn name(&self) -> String {
        let mut parts = vec![self.browser.as_str(), self.suite.as_str()];
        parts.extend(self.describes.iter().map(String::as_str));
        parts.push(&self.title);
        parts.retain(|part| !part.is_empty());
        parts.join(" > ")
    }

    /// The values that the importer should store for it.
    pub fn stored(&self, shard: usize) -> ExpectedTest {
        let file = format!("{TEST_DIR}/{}", self.suite);
        let executions = self.executions_as_stored();
        ExpectedTest {
            name: self.name(),
            file: Some(file),
            browser: (!self.browser.is_empty()).then(|| self.browser.clone()),
            lengths: executions.iter().map(Vec::len).collect(),
            attempts: executions.into_iter().flatten().collect(),
            shard,
        }
    }

    fn executions_as_stored(&self) -> Vec<Vec<Attempt>> {
        if self.executions.is_empty() {
            return vec![vec![Attempt {
                status: "skipped",
                duration: None,
                started: None,
                faults: Vec::new(),
            }]];
        }
        let mut executions = self.executions.clone();
        // Executions that passed come first, so that the last one decides the outcome; otherwise oldest first.
        executions.sort_by_key(|attempts| {
            let failed = is_failure(attempts[final_place(attempts)].status);
            (failed, attempts.first().and_then(|first| first.started))
        });
        for attempt in executions.iter_mut().flatten() {
            match self.manner {
                Manner::Plain | Manner::Skipped | Manner::NeverStarted => {}
                Manner::ExpectedFailure => {
                    attempt.status = "passed";
                    attempt.faults.clear();
                }
                Manner::UnexpectedPass => {
                    attempt.status = "failed";
                    attempt.faults = vec![Fault {
                        class: UNEXPECTED_PASS_CLASS.to_owned(),
                        message: UNEXPECTED_PASS_CLASS.to_owned(),
                        frames: Vec::new(),
                        snippet: None,
                        spot: None,
                        bare: false,
                    }];
                }
            }
        }
        executions
    }
}

impl Shard {
    pub fn ended(&self) -> i64 {
        self.started + self.duration
    }

    /// Whether the shard was interrupted.
    pub fn interrupted(&self) -> bool {
        self.cases.iter().any(|case| {
            case.manner == Manner::NeverStarted
                || case
                    .executions
                    .iter()
                    .flatten()
                    .any(|attempt| attempt.status == "interrupted")
        })
    }
}

impl Run {
    /// The commit that it checked out, if it is a merge of the tested revision.
    pub fn merge(&self) -> Option<&str> {
        self.commit.as_deref().filter(|_| self.tested_revision.is_some())
    }

    pub fn started(&self) -> i64 {
        self.shards
            .iter()
            .map(|shard| shard.started)
            .min()
            .expect("at least one shard")
    }

    pub fn ended(&self) -> i64 {
        self.shards
            .iter()
            .map(Shard::ended)
            .max()
            .expect("at least one shard")
    }

    /// The tests of all shards.
    pub fn tests(&self) -> Vec<ExpectedTest> {
        let shards = self.shards.iter().enumerate();
        let tests = shards.flat_map(|(place, shard)| shard.cases.iter().map(move |case| case.stored(place)));
        tests.collect()
    }

    /// The time in which a part ran.
    pub fn ran_ms(&self) -> i64 {
        let mut edges: Vec<i64> = self
            .shards
            .iter()
            .flat_map(|part| [part.started, part.ended()])
            .collect();
        edges.sort_unstable();
        edges
            .windows(2)
            .filter(|gap| {
                self.shards
                    .iter()
                    .any(|part| part.started <= gap[0] && gap[1] <= part.ended())
            })
            .map(|gap| gap[1] - gap[0])
            .sum()
    }

    /// The commits by which the `sha` filter finds the run.
    pub fn revisions(&self) -> Vec<&str> {
        [self.commit.as_deref(), self.tested_revision.as_deref()]
            .into_iter()
            .flatten()
            .collect()
    }

    pub fn incomplete(&self) -> bool {
        self.expected
            .is_some_and(|expected| (self.shards.len() as u32) < expected)
    }
}

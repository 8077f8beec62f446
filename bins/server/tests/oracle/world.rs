//! A made-up world: what its reports say, and what an importer is to make of them.

/// The plans that may read, and the one that may not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Plan {
    Free,
    Standard,
    Pro,
}

impl Plan {
    /// As the command line and the contract call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Standard => "standard",
            Self::Pro => "pro",
        }
    }

    /// Days.
    pub(crate) fn retention(self) -> i64 {
        match self {
            Self::Free | Self::Standard => 60,
            Self::Pro => 90,
        }
    }
}

/// An organization with its read key.
pub(crate) struct Organization {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) plan: Plan,
    pub(crate) key: String,
    pub(crate) key_id: String,
    pub(crate) projects: Vec<Project>,
}

/// How a project's reports reach the importer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// From GitHub Actions: everything in variables and the event file; the checkout is known.
    Github,
    /// From GitLab CI, likewise.
    Gitlab,
    /// By flags alone; nobody knows the checkout.
    Flags,
}

/// A project.
pub(crate) struct Project {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) stable: String,
    pub(crate) way: Way,
    pub(crate) chat_events: Option<Vec<&'static str>>,
    pub(crate) pr_comments: Option<bool>,
    /// In the order of their first import.
    pub(crate) runs: Vec<Run>,
}

/// A logical run.
#[derive(Clone)]
pub(crate) struct Run {
    /// As the importer answered.
    pub(crate) id: String,
    /// As the importer answered.
    pub(crate) number: i64,
    /// The build's id in CI.
    pub(crate) build: String,
    pub(crate) branch: Option<String>,
    pub(crate) commit: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) author: Option<String>,
    pub(crate) tested_revision: Option<String>,
    pub(crate) pr: Option<i64>,
    pub(crate) pr_title: Option<String>,
    pub(crate) ci: Option<&'static str>,
    pub(crate) suite: Option<String>,
    /// How many shards there should be; none for a run that is not sharded.
    pub(crate) expected: Option<u32>,
    /// Those that arrived, in the order of their arrival; the only one of a run that is not sharded.
    pub(crate) shards: Vec<Shard>,
}

/// A shard's report, or an unsharded run's only one.
#[derive(Clone)]
pub(crate) struct Shard {
    /// As the importer answered.
    pub(crate) id: String,
    pub(crate) index: u32,
    pub(crate) started: i64,
    pub(crate) duration: i64,
    pub(crate) cases: Vec<Case>,
    /// Errors that belong to no test.
    pub(crate) errors: Vec<String>,
}

/// A test of a report, under one Playwright project.
#[derive(Clone)]
pub(crate) struct Case {
    /// The Playwright project.
    pub(crate) browser: String,
    /// Relative to `config.rootDir`; also the first title.
    pub(crate) suite: String,
    pub(crate) describes: Vec<String>,
    pub(crate) title: String,
    pub(crate) manner: Manner,
    /// Several under `--repeat-each`; empty for a test that never started.
    pub(crate) executions: Vec<Vec<Attempt>>,
}

/// What Playwright expected of a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    Plain,
    /// `test.fail()`, and it does.
    ExpectedFailure,
    /// `test.fail()`, but it passes.
    Mended,
    Skipped,
    NeverStarted,
}

/// One attempt.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) status: &'static str,
    pub(crate) duration: Option<i64>,
    pub(crate) started: Option<i64>,
    pub(crate) faults: Vec<Fault>,
}

/// One error of an attempt.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// What it has in common with every other text of its kind.
    pub(crate) class: String,
    pub(crate) message: String,
    pub(crate) frames: Vec<String>,
    pub(crate) snippet: Option<String>,
    pub(crate) spot: Option<Spot>,
    /// Something was thrown that is no error.
    pub(crate) bare: bool,
}

/// A place in a source file, absolute as Playwright writes it.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) file: String,
    pub(crate) line: i64,
    pub(crate) column: i64,
}

/// A test of a run as it is to be stored.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) name: String,
    pub(crate) file: Option<String>,
    pub(crate) browser: Option<String>,
    /// Execution by execution, that with the final attempt last.
    pub(crate) attempts: Vec<Attempt>,
    /// How many attempts each execution has.
    pub(crate) lengths: Vec<usize>,
    /// The place of its shard among the run's.
    pub(crate) shard: usize,
}

/// Where every report's checkout lies. GitHub's runners check out there, so an importer knows it without being told.
pub(crate) const CHECKOUT: &str = "/home/runner/work/shop/shop";
/// Where the tests lie in it.
pub(crate) const TEST_DIR: &str = "tests";

/// The class of the error of a test that was expected to fail and passed.
pub(crate) const MENDED_CLASS: &str = "expected to fail, but passed";

impl Stored {
    /// The attempts of each execution.
    pub(crate) fn executions(&self) -> Vec<&[Attempt]> {
        let mut rest = self.attempts.as_slice();
        let mut executions = Vec::new();
        for length in &self.lengths {
            let (execution, others) = rest.split_at(*length);
            executions.push(execution);
            rest = others;
        }
        executions
    }

    /// Each attempt with its execution and its place there.
    pub(crate) fn numbered(&self) -> Vec<(usize, usize, &Attempt)> {
        let executions = self.executions().into_iter().enumerate();
        let attempts = executions.flat_map(|(execution, attempts)| {
            let attempts = attempts.iter().enumerate();
            attempts.map(move |(retry, attempt)| (execution, retry, attempt))
        });
        attempts.collect()
    }

    /// The most attempts of one execution.
    pub(crate) fn tries(&self) -> usize {
        self.lengths.iter().copied().max().expect("at least one")
    }

    pub(crate) fn last(&self) -> &Attempt {
        let last = *self.executions().last().expect("at least one");
        &last[final_place(last)]
    }

    pub(crate) fn status(&self) -> &'static str {
        self.last().status
    }

    pub(crate) fn failed(&self) -> bool {
        is_failure(self.status())
    }

    pub(crate) fn skipped(&self) -> bool {
        matches!(self.status(), "skipped" | "interrupted")
    }

    pub(crate) fn recovered(&self) -> bool {
        self.status() == "passed" && self.attempts.iter().any(|attempt| is_failure(attempt.status))
    }

    /// Time spent before the final attempt of each execution.
    pub(crate) fn wasted(&self) -> i64 {
        let before = |attempts: &[Attempt]| -> i64 {
            let before = attempts[..final_place(attempts)].iter();
            before.filter_map(|attempt| attempt.duration).sum()
        };
        self.executions().into_iter().map(before).sum()
    }
}

/// Where the attempt stands that an execution ended with: the last one that ran.
fn final_place(execution: &[Attempt]) -> usize {
    let ran = |attempt: &Attempt| !matches!(attempt.status, "skipped" | "interrupted");
    execution.iter().rposition(ran).unwrap_or(execution.len() - 1)
}

pub(crate) fn is_failure(status: &str) -> bool {
    matches!(status, "failed" | "timedOut")
}

impl Project {
    /// A path as it is to be stored.
    pub(crate) fn stored_path(&self, absolute: &str) -> String {
        match absolute.strip_prefix(CHECKOUT) {
            Some(rest) => rest.trim_start_matches('/').to_owned(),
            None => absolute.to_owned(),
        }
    }
}

impl Case {
    /// The framework's own title path.
    pub(crate) fn name(&self) -> String {
        let mut parts = vec![self.browser.as_str(), self.suite.as_str()];
        parts.extend(self.describes.iter().map(String::as_str));
        parts.push(&self.title);
        parts.retain(|part| !part.is_empty());
        parts.join(" > ")
    }

    /// What the importer is to store of it.
    pub(crate) fn stored(&self, shard: usize) -> Stored {
        let file = format!("{TEST_DIR}/{}", self.suite);
        let executions = self.presented();
        Stored {
            name: self.name(),
            file: Some(file),
            browser: (!self.browser.is_empty()).then(|| self.browser.clone()),
            lengths: executions.iter().map(Vec::len).collect(),
            attempts: executions.into_iter().flatten().collect(),
            shard,
        }
    }

    fn presented(&self) -> Vec<Vec<Attempt>> {
        if self.executions.is_empty() {
            return vec![vec![Attempt {
                status: "skipped",
                duration: None,
                started: None,
                faults: Vec::new(),
            }]];
        }
        let mut executions = self.executions.clone();
        // The executions that ended well go first, so that the last one tells the outcome; else oldest first.
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
                Manner::Mended => {
                    attempt.status = "failed";
                    attempt.faults = vec![Fault {
                        class: MENDED_CLASS.to_owned(),
                        message: MENDED_CLASS.to_owned(),
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
    pub(crate) fn ended(&self) -> i64 {
        self.started + self.duration
    }

    /// Whether the run was cut short.
    pub(crate) fn interrupted(&self) -> bool {
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
    pub(crate) fn started(&self) -> i64 {
        self.shards
            .iter()
            .map(|shard| shard.started)
            .min()
            .expect("at least one shard")
    }

    pub(crate) fn ended(&self) -> i64 {
        self.shards
            .iter()
            .map(Shard::ended)
            .max()
            .expect("at least one shard")
    }

    pub(crate) fn tests(&self) -> Vec<Stored> {
        self.shards
            .iter()
            .enumerate()
            .flat_map(|(place, shard)| shard.cases.iter().map(move |case| case.stored(place)))
            .collect()
    }

    /// The commit that the engine and the `sha` filter know it by.
    pub(crate) fn revisions(&self) -> Vec<&str> {
        [self.commit.as_deref(), self.tested_revision.as_deref()]
            .into_iter()
            .flatten()
            .collect()
    }

    pub(crate) fn incomplete(&self) -> bool {
        self.expected
            .is_some_and(|expected| (self.shards.len() as u32) < expected)
    }
}

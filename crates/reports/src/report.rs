//! The neutral report that every format is read into.

use assay_domain::{
    attempt::{Attempt, ErrorDetail},
    execution::{Executions, TestOutcome},
    recording::{RunContext, ShardIndex},
    run::RunState,
    test::{ShownAs, TestName},
    timestamp::Timestamp,
};

pub use crate::format::{Format, UnknownFormat};

/// A file of an import, as its bytes were read.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Its name for messages, `-` for standard input.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
    /// The time of its last change, if known: the fallback for the run's start.
    pub modified: Option<Timestamp>,
}

/// The results of one shard or of an unsharded run, in a neutral form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The format that was read.
    pub format: Format,
    /// The context in the report itself. Flags and CI variables take precedence.
    pub context: RunContext,
    /// The value in the report that all shards of its run share, such as CTRF's `runId`.
    pub run_key: Option<String>,
    /// The machine or device on which the tests ran, if the report names it.
    pub host: Option<String>,
    /// The shard in the report.
    pub shard: Option<ShardIndex>,
    /// The earliest start in the report.
    pub started_at: Option<Timestamp>,
    /// The latest end in the report, written or implied.
    pub finished_at: Option<Timestamp>,
    /// Its duration in milliseconds, if its start and end are of an unknown zone and were left out.
    pub duration_ms: Option<u64>,
    /// `Interrupted` if the run was stopped or the file was cut off.
    pub state: RunState,
    /// Errors outside of any test, such as a file that did not load. A run with such an error fails.
    pub errors: Vec<ErrorDetail>,
    /// The tests, each name and file once, in the order of the report.
    pub tests: Vec<ReportedTest>,
    /// What passed and is a test only where it fails by itself: groups of subtests, and hooks of groups.
    pub passed_groups: Vec<TestName>,
    /// Warnings of the reader.
    pub warnings: Vec<String>,
    /// Whether its tool retries tests by itself and writes a pass on retry like any other pass (`docs/formats.md`).
    pub hides_retries: bool,
    /// Whether the names of its tests are unique in a repository, as with packages of Java, .NET and Go.
    pub has_qualified_names: bool,
    /// Whether it says that results were taken from a cache, as `go test` does: those tests did not run.
    pub is_cached: bool,
}

impl Report {
    /// A report without tests.
    pub(crate) fn empty(format: Format) -> Self {
        Self {
            format,
            context: RunContext::default(),
            run_key: None,
            host: None,
            shard: None,
            started_at: None,
            finished_at: None,
            duration_ms: None,
            state: RunState::Completed,
            errors: Vec::new(),
            tests: Vec::new(),
            passed_groups: Vec::new(),
            warnings: Vec::new(),
            hides_retries: matches!(format, Format::Cucumber | Format::Mochawesome | Format::Ctest),
            has_qualified_names: matches!(
                format,
                Format::Go | Format::Trx | Format::Testng | Format::Nunit | Format::Xunit
            ),
            is_cached: false,
        }
    }

    /// Whether a name lacks the parts of the written one that change from run to run.
    pub fn has_unstable_names(&self) -> bool {
        self.tests.iter().any(|test| test.shown_as.name.is_some())
    }

    /// Whether it has neither a test nor an error.
    pub(crate) const fn is_without_results(&self) -> bool {
        self.tests.is_empty() && self.errors.is_empty()
    }

    /// Marks the run as interrupted and adds a warning, if the file was cut off in a `line`.
    pub(crate) fn mark_cut_off(&mut self, file: &str, line: Option<usize>) {
        if let Some(line) = line {
            self.state = RunState::Interrupted;
            self.warnings.push(format!(
                "{file}: cut off in line {line}; its complete results were read"
            ));
        }
    }

    /// Extends the run's time to include an event with this start and duration, if known.
    pub(crate) fn widen(&mut self, start: Option<Timestamp>, duration_ms: Option<u64>) {
        let Some(start) = start else { return };
        let duration = i64::try_from(duration_ms.unwrap_or(0)).unwrap_or(i64::MAX);
        let end = start.plus_ms(duration);
        self.started_at = Some(self.started_at.map_or(start, |earliest| earliest.min(start)));
        self.finished_at = Some(self.finished_at.map_or(end, |latest| latest.max(end)));
    }
}

/// A test of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedTest {
    /// Its name and file.
    pub test: TestName,
    /// How it is shown.
    pub shown_as: ShownAs,
    /// Its attempts by execution, never empty. Executions with the worst outcome come last.
    pub attempts: Executions<Attempt>,
}

impl ReportedTest {
    /// The outcome of the test.
    pub fn outcome(&self) -> Option<TestOutcome> {
        outcome(self.attempts.executions())
    }
}

/// The outcome of a test with these executions.
pub(crate) fn outcome<'a>(executions: impl IntoIterator<Item = &'a [Attempt]>) -> Option<TestOutcome> {
    TestOutcome::of(executions.into_iter().map(|execution| {
        execution
            .iter()
            .map(|attempt| (attempt.status, attempt.duration_ms))
    }))
}

/// The error of an unreadable file. Every message names the file and what was expected.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is of no known format.
    #[error("{file}: no known report format; {hint}")]
    Unrecognised {
        /// The file.
        file: String,
        /// What the file contains, and which formats are known.
        hint: String,
    },
    /// The file has the format but is broken.
    #[error("{file}:{line}: not a readable {format} report: {problem}")]
    Broken {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The format's name.
        format: &'static str,
        /// The problem and what was expected.
        problem: String,
    },
    /// The file or a part of it exceeds a limit.
    #[error("{file}: {what} exceeds the limit of {limit}")]
    TooLarge {
        /// The file.
        file: String,
        /// The part that is too large.
        what: &'static str,
        /// The limit in words.
        limit: String,
    },
}

/// What all files of an import may exceed together, in the words of an error.
pub(crate) mod whole_import {
    /// Their size.
    pub(crate) const BYTES: &str = "the import as a whole, unpacked,";
    /// The memory of lists and shared names beyond a multiple of their size.
    pub(crate) const LISTS: &str = "the memory for the import's lists and shared names";
    /// Their memory.
    pub(crate) const MEMORY: &str = "the memory for reading the import";
    /// Their tests.
    pub(crate) const TESTS: &str = "the number of tests in all files of the import";
}

impl ReadError {
    /// The file.
    pub fn file(&self) -> &str {
        match self {
            Self::Unrecognised { file, .. } | Self::Broken { file, .. } | Self::TooLarge { file, .. } => file,
        }
    }

    /// The error of a part of a file that exceeds a limit.
    pub(crate) fn too_large(file: &str, what: &'static str, limit: impl ToString) -> Self {
        Self::TooLarge {
            file: file.to_owned(),
            what,
            limit: limit.to_string(),
        }
    }

    /// Whether all files of the import together exceed a limit. The error has the file at which that was found.
    pub(crate) fn is_of_whole_import(&self) -> bool {
        let of_whole_import = [
            whole_import::BYTES,
            whole_import::LISTS,
            whole_import::MEMORY,
            whole_import::TESTS,
        ];
        matches!(self, Self::TooLarge { what, .. } if of_whole_import.contains(what))
    }
}

//! The runner of a job's command, which runs some of its tests again by its own selection.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::PathBuf,
    time::{Duration, Instant},
};

use assay_domain::{attempt::AttemptStatus, test::TestName};
use assay_flakiness::plan::reruns::{ProcessOf, RerunKind};
use assay_reports::Report;
use assay_runners::{
    Runner,
    selection::{self, Selected, Selection},
};

/// A job whose command runs again.
pub trait CommandJob {
    /// The reason why it does not.
    type Error: From<NotSelected>;

    /// Runs the command with a selection, and reads the report that it writes.
    fn run(&mut self, selection: Selection) -> Result<Report, Self::Error>;

    /// Sends the results of these tests in the last report as a part of the run. Returns the server's judgement.
    fn send(&mut self, tests: &[TestName]) -> Result<crate::judged::JudgedRun, Self::Error>;
}

/// The time in which tests run again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    began: Instant,
    limit: Duration,
}

impl Budget {
    /// A budget that begins now.
    pub(crate) fn of(limit: Duration) -> Self {
        Self {
            began: Instant::now(),
            limit,
        }
    }

    /// The whole seconds of the limit.
    pub(crate) const fn limit_s(&self) -> u64 {
        self.limit.as_secs()
    }

    /// The seconds since it began.
    pub(crate) fn spent_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// The seconds that are left.
    pub(crate) fn left_s(&self) -> f64 {
        (self.limit.as_secs_f64() - self.spent_s()).max(0.0)
    }
}

/// The end of reruns.
#[derive(Debug)]
pub struct Ended<T, E> {
    /// What they found; none if no test ran again.
    pub found: Option<T>,
    /// Why they ended early.
    pub error: Option<E>,
}

/// The runner cannot select a test.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", assay_reports::shown_name(name))]
pub struct NotSelected {
    name: String,
    reason: &'static str,
}

/// How long tests take, from a report.
#[derive(Debug, Clone, Default)]
pub struct Durations {
    of_test: BTreeMap<String, f64>,
    of_file: BTreeMap<String, f64>,
    tests: BTreeMap<String, Vec<TestName>>,
}

impl Durations {
    /// The durations of tests, each with its milliseconds.
    pub fn new<'a>(tests: impl IntoIterator<Item = (&'a TestName, u64)>) -> Self {
        let mut durations = Self::default();
        for (test, milliseconds) in tests {
            let seconds = Duration::from_millis(milliseconds).as_secs_f64();
            *durations.of_test.entry(test.name.clone()).or_default() += seconds;
            if let Some(file) = file_of(test) {
                *durations.of_file.entry(file.clone()).or_default() += seconds;
                durations.tests.entry(file).or_default().push(test.clone());
            }
        }
        durations
    }

    /// The sum over all tests, in seconds.
    pub fn total_s(&self) -> f64 {
        self.of_test.values().sum()
    }

    /// The seconds of a test in a rerun of this kind; 0 if they are not known.
    pub fn seconds(&self, test: &TestName, kind: RerunKind) -> f64 {
        let known = match kind {
            RerunKind::Alone => self.of_test.get(&test.name),
            RerunKind::WithFile => file_of(test).and_then(|file| self.of_file.get(&file)),
        };
        known.copied().unwrap_or_default()
    }

    /// The tests of a file, in the order of the report.
    fn tests_of(&self, file: &str) -> &[TestName] {
        self.tests.get(file).map_or(&[], Vec::as_slice)
    }
}

/// What a rerun with its file runs: the file, else the class or package.
pub(crate) fn file_of(test: &TestName) -> Option<String> {
    let class = || test.name.split_once(" > ").map(|(class, _)| class.to_owned());
    test.file_path.clone().or_else(class)
}

/// Selects tests of a runner.
#[derive(Debug, Clone)]
pub struct Selector {
    runner: Runner,
    durations: Durations,
    /// The folder of files that selections read.
    folder: PathBuf,
}

impl Selector {
    /// Selects among the tests of a report. Files that a selection reads are in `folder`.
    pub fn new(runner: Runner, report: &Report, folder: PathBuf) -> Self {
        let tests = report.tests.iter().map(|test| {
            let milliseconds = test.attempts.iter().filter_map(|attempt| attempt.duration_ms);
            (&test.test, milliseconds.sum::<u64>())
        });
        Self {
            runner,
            durations: Durations::new(tests),
            folder,
        }
    }

    /// The seconds of a start of the runner, if the whole command took this long.
    pub(crate) fn startup_s(&self, took: Duration) -> f64 {
        (took.as_secs_f64() - self.durations.total_s()).max(0.0)
    }

    /// The tests that share a process with a test.
    pub const fn process(&self) -> ProcessOf {
        match self.runner {
            Runner::Nextest => ProcessOf::Test,
            Runner::Playwright | Runner::Jest | Runner::Vitest | Runner::Go => ProcessOf::File,
            Runner::Pytest | Runner::Surefire | Runner::Dotnet | Runner::Txt | Runner::Json => {
                ProcessOf::Suite
            }
        }
    }

    /// The seconds of one repetition of a test, without the start of the runner; none if the runner cannot select it.
    pub fn seconds(&self, test: &TestName, kind: RerunKind) -> Option<f64> {
        let is_of_runner = match kind {
            RerunKind::Alone => true,
            RerunKind::WithFile => selection::by_file(self.runner) || self.runner == Runner::Go,
        };
        let can_run = is_of_runner && self.select(std::slice::from_ref(test), kind).is_ok();
        can_run.then(|| self.durations.seconds(test, kind))
    }

    /// The selection of tests, alone or with their files.
    pub fn select(&self, tests: &[TestName], kind: RerunKind) -> Result<Selection, NotSelected> {
        let selected = match (kind, self.runner) {
            (RerunKind::Alone, _) => selection::select(self.runner, tests, Selected::Alone, &self.folder),
            // Go selects by names, so that all tests of the package are named. Subtests run with their test.
            (RerunKind::WithFile, Runner::Go) => {
                let packages: BTreeSet<String> = tests.iter().filter_map(file_of).collect();
                let of_packages = packages
                    .iter()
                    .flat_map(|package| self.durations.tests_of(package));
                let whole: Vec<TestName> = of_packages
                    .filter(|test| !test.name.contains('/'))
                    .cloned()
                    .collect();
                selection::select(self.runner, &whole, Selected::Alone, &self.folder)
            }
            (RerunKind::WithFile, _) => {
                selection::select(self.runner, tests, Selected::WithFile, &self.folder)
            }
        };
        selected.map_err(|(test, reason)| NotSelected {
            name: test.name,
            reason,
        })
    }
}

/// Whether each test of a report failed, without those that were skipped.
pub(crate) fn failed(report: &Report) -> HashMap<&TestName, bool> {
    let of_test = report.tests.iter().filter_map(|test| {
        let status = test.outcome()?.status;
        (!status.is_skip()).then_some((&test.test, status != AttemptStatus::Passed))
    });
    of_test.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(name: &str, file: Option<&str>) -> TestName {
        TestName {
            name: name.to_owned(),
            file_path: file.map(str::to_owned),
        }
    }

    fn selector(runner: Runner, tests: &[TestName]) -> Selector {
        Selector {
            runner,
            durations: Durations::new(tests.iter().zip([1_000, 2_000, 4_000])),
            folder: PathBuf::from("/tmp"),
        }
    }

    #[test]
    fn a_rerun_with_its_file_takes_as_long_as_the_file() {
        let tests = [
            test("a", Some("x.js")),
            test("b", Some("x.js")),
            test("c", Some("y.js")),
        ];
        let selector = selector(Runner::Jest, &tests);
        assert_eq!(selector.durations.total_s(), 7.0);
        assert_eq!(selector.seconds(&tests[0], RerunKind::Alone), Some(1.0));
        assert_eq!(selector.seconds(&tests[0], RerunKind::WithFile), Some(3.0));
        let unknown = test("d", None);
        assert_eq!(selector.seconds(&unknown, RerunKind::WithFile), None);
    }

    #[test]
    fn the_package_of_go_is_named_test_by_test() {
        let tests = [
            test("shop > TestPays", None),
            test("shop > TestPays/card", None),
            test("shop > TestTax", None),
        ];
        let selection = selector(Runner::Go, &tests).select(&tests[..1], RerunKind::WithFile);
        let value = &selection.unwrap().variables[0].value;
        assert!(value.contains("TestPays") && value.contains("TestTax"), "{value}");
        assert!(!value.contains("card"), "{value}");
    }

    #[test]
    fn a_runner_without_files_runs_tests_alone_only() {
        let tests = [test("shop::tests > pays", None)];
        let selector = selector(Runner::Nextest, &tests);
        assert_eq!(selector.seconds(&tests[0], RerunKind::Alone), Some(1.0));
        assert_eq!(selector.seconds(&tests[0], RerunKind::WithFile), None);
        assert_eq!(selector.process(), ProcessOf::Test);
    }
}

//! The runner of a job's command, which runs some of its tests again by its own selection.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::PathBuf,
    time::{Duration, Instant},
};

use assay_cli_terminal::progress::Progress;
use assay_domain::{attempt::AttemptStatus, test::TestName};
use assay_flakiness::plan::reruns::{ProcessOf, RerunKind};
use assay_reports::{Report, ReportedTest, without_package};

use crate::runners::{
    Runner,
    selection::{self, Selected, Selection},
};

/// A command that runs again.
pub trait Repeat {
    /// The reason why it does not.
    type Error: From<NotSelected>;

    /// Receives what runs and why.
    fn progress(&self) -> &dyn Progress;

    /// Runs the command with a selection for at most this time, and reads the report that it writes. A command that finds
    /// no test may write none.
    fn run(&mut self, selection: Selection, limit: Duration) -> Result<RunEnd, Self::Error>;
}

/// A job whose command runs again, and that sends the results.
pub trait CommandJob: Repeat {
    /// Sends the results of these tests in the last report as a part of the run. Returns the server's judgement.
    fn send(&mut self, tests: &[TestName]) -> Result<crate::gate::judged::JudgedRun, Self::Error>;
}

/// The end of a command that ran again.
#[derive(Debug)]
pub enum RunEnd {
    /// It ended by itself, with this report and exit status.
    Reported(Box<Report>, u8),
    /// It ended by itself, without a report.
    Unreported,
    /// It was ended at its limit.
    TimedOut,
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
        self.left().as_secs_f64()
    }

    /// The time that is left.
    pub(crate) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.began.elapsed())
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
#[error("{}{reason}", name.as_deref().map(|name| format!("{}: ", assay_reports::shown_name(name))).unwrap_or_default())]
pub struct NotSelected {
    name: Option<String>,
    reason: &'static str,
}

/// How long tests take, from a report, by the names that this run wrote.
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
    let class = || {
        let (_, name) = without_package(&test.name).split_once(" > ")?;
        test.name
            .strip_suffix(name)?
            .strip_suffix(" > ")
            .map(str::to_owned)
    };
    test.file_path.clone().or_else(class)
}

/// Selects tests of a runner.
#[derive(Debug, Clone)]
pub struct Selector {
    runner: Runner,
    durations: Durations,
    /// The names that this run wrote, by stored names without the parts that change from run to run.
    written: HashMap<TestName, String>,
    /// How often tests ran that ran several times, as one name in two files does.
    executions: HashMap<TestName, usize>,
    /// The folder of files that selections read.
    folder: PathBuf,
}

impl Selector {
    /// Selects among the tests of a report. Files that a selection reads are in `folder`.
    pub fn new(runner: Runner, report: &Report, folder: PathBuf) -> Self {
        let written: HashMap<TestName, String> = report
            .tests
            .iter()
            .filter_map(|test| Some((test.test.clone(), test.shown_as.name.clone()?)))
            .collect();
        let tests: Vec<(TestName, u64)> = report
            .tests
            .iter()
            .map(|test| {
                let milliseconds = test.attempts.iter().filter_map(|attempt| attempt.duration_ms);
                (written_name(&written, &test.test), milliseconds.sum())
            })
            .collect();
        Self {
            runner,
            durations: Durations::new(tests.iter().map(|(test, milliseconds)| (test, *milliseconds))),
            written,
            executions: report
                .tests
                .iter()
                .map(|test| (test.test.clone(), test.attempts.executions().count()))
                .filter(|(_, executions)| *executions > 1)
                .collect(),
            folder,
        }
    }

    /// Whether each test of a later report failed, without those that were skipped, and without those that passed less
    /// often than they ran in the first report: another test of the name may be missing. A test is under its stored name
    /// and under its written one, because a project may store either.
    pub(crate) fn failed(&self, report: &Report) -> HashMap<TestName, bool> {
        let mut failed = HashMap::new();
        for (test, has_failed) in ran(report) {
            let before = self.executions.get(&test.test).copied().unwrap_or(1);
            if !has_failed && test.attempts.executions().count() < before {
                continue;
            }
            if let Some(name) = &test.shown_as.name {
                let written = TestName {
                    name: name.clone(),
                    file_path: test.test.file_path.clone(),
                };
                failed.insert(written, has_failed);
            }
            failed.insert(test.test.clone(), has_failed);
        }
        failed
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
            Runner::Pytest
            | Runner::Mocha
            | Runner::Surefire
            | Runner::Dotnet
            | Runner::Txt
            | Runner::Json => ProcessOf::Suite,
        }
    }

    /// The seconds of one repetition of a test, without the start of the runner; none if the runner cannot select it.
    pub fn seconds(&self, test: &TestName, kind: RerunKind) -> Option<f64> {
        let is_of_runner = match kind {
            RerunKind::Alone => true,
            RerunKind::WithFile => {
                selection::by_file(self.runner) || matches!(self.runner, Runner::Go | Runner::Mocha)
            }
        };
        let can_run = is_of_runner && self.select(std::slice::from_ref(test), kind).is_ok();
        can_run.then(|| self.durations.seconds(&written_name(&self.written, test), kind))
    }

    /// The selection of tests, alone or with their files.
    pub fn select(&self, tests: &[TestName], kind: RerunKind) -> Result<Selection, NotSelected> {
        let tests: Vec<TestName> = tests
            .iter()
            .map(|test| written_name(&self.written, test))
            .collect();
        let selected = match (kind, self.runner) {
            (RerunKind::Alone, _) => selection::select(self.runner, &tests, Selected::Alone, &self.folder),
            (RerunKind::WithFile, Runner::Go | Runner::Mocha) => {
                selection::select(self.runner, &self.of_files(&tests), Selected::Alone, &self.folder)
            }
            (RerunKind::WithFile, _) => {
                selection::select(self.runner, &tests, Selected::WithFile, &self.folder)
            }
        };
        selected.map_err(|refused| NotSelected {
            name: refused.test.map(|test| test.name),
            reason: refused.reason,
        })
    }

    /// All tests of the packages or files of these tests, for a runner that selects by names only. Subtests of Go run with
    /// their test.
    fn of_files(&self, tests: &[TestName]) -> Vec<TestName> {
        let files: BTreeSet<String> = tests.iter().filter_map(file_of).collect();
        let of_files = files.iter().flat_map(|file| self.durations.tests_of(file));
        let is_go = self.runner == Runner::Go;
        let whole: BTreeSet<TestName> = of_files
            .map(|test| {
                if is_go {
                    without_subtest(test)
                } else {
                    test.clone()
                }
            })
            .collect();
        whole.into_iter().collect()
    }
}

/// A test by the name that this run wrote.
fn written_name(written: &HashMap<TestName, String>, test: &TestName) -> TestName {
    TestName {
        name: written.get(test).unwrap_or(&test.name).clone(),
        file_path: test.file_path.clone(),
    }
}

/// `example.org/shop > TestPays/card` as `example.org/shop > TestPays`.
fn without_subtest(test: &TestName) -> TestName {
    let name = test.name.split_once(" > ").map(|(package, name)| {
        let top = name.split('/').next().unwrap_or(name);
        format!("{package} > {top}")
    });
    TestName {
        name: name.unwrap_or_else(|| test.name.clone()),
        file_path: test.file_path.clone(),
    }
}

/// The tests of a report that ran, and whether they failed.
pub(crate) fn ran(report: &Report) -> impl Iterator<Item = (&ReportedTest, bool)> {
    report.tests.iter().filter_map(|test| {
        let status = test.outcome()?.status;
        (!status.is_skip()).then_some((test, status != AttemptStatus::Passed))
    })
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
            written: HashMap::new(),
            executions: HashMap::new(),
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
            test("example.org/shop/cart > TestPays/card", None),
            test("example.org/shop/cart > TestTax", None),
            test("example.org/shop/menu > TestMenu", None),
        ];
        let value = |tests_of: &[TestName], kind| {
            let selection = selector(Runner::Go, &tests).select(tests_of, kind).unwrap();
            selection.variables[0].value.clone()
        };
        assert_eq!(
            value(&tests[..1], RerunKind::WithFile),
            "-count=1 -run=^TestPays$|^TestTax$"
        );
        assert_eq!(
            value(&tests[..1], RerunKind::Alone),
            "-count=1 -run=^TestPays$/^card$"
        );
        let mocha = selector(
            Runner::Mocha,
            &[test("a > b", Some("x.js")), test("c", Some("x.js"))],
        );
        let selection = mocha.select(&[test("c", Some("x.js"))], RerunKind::WithFile);
        assert_eq!(selection.unwrap().arguments, ["--grep", "^(?:a(?: >)? b|c)$"]);
    }

    #[test]
    fn a_name_that_is_stored_without_its_changing_part_is_selected_as_it_is_written() {
        let xml = "<testsuites><testsuite name='a'>\
                   <testcase classname='tests.test_a' name='test_a[0b2f6c9e-58a1-4a7c-9d1e-3f5b7a9c1d2e]' time='1'/>\
                   </testsuite></testsuites>";
        let file = assay_reports::SourceFile {
            name: "r.xml".to_owned(),
            bytes: xml.as_bytes().to_vec(),
            modified: None,
        };
        let report = assay_reports::read(&[file], &assay_reports::Options::default()).unwrap();
        let stored = report.tests[0].test.clone();
        assert!(!stored.name.contains("0b2f6c9e"), "{stored:?}");
        let selector = Selector::new(Runner::Pytest, &report, PathBuf::from("/tmp"));
        assert_eq!(selector.seconds(&stored, RerunKind::Alone), Some(1.0));
        let selection = selector
            .select(std::slice::from_ref(&stored), RerunKind::Alone)
            .unwrap();
        let (_, plugin) = selection.file.unwrap();
        assert!(
            plugin.contains("test_a[0b2f6c9e-58a1-4a7c-9d1e-3f5b7a9c1d2e]"),
            "{plugin}"
        );
        let failed = selector.failed(&report);
        assert_eq!(failed.get(&stored), Some(&false));
        assert_eq!(failed.len(), 2, "{failed:?}");
    }

    #[test]
    fn a_pass_of_one_of_two_tests_of_a_name_is_no_rerun_of_the_other() {
        let read = |cases: &[&str]| {
            let files = cases
                .iter()
                .enumerate()
                .map(|(file, cases)| assay_reports::SourceFile {
                    name: format!("{file}/r.xml"),
                    bytes: format!("<testsuites><testsuite name='s'>{cases}</testsuite></testsuites>")
                        .into_bytes(),
                    modified: None,
                });
            assay_reports::read(files.collect::<Vec<_>>(), &assay_reports::Options::default()).unwrap()
        };
        let passed = "<testcase classname='m' name='health' time='1'/>";
        let failed = "<testcase classname='m' name='health' time='1'><failure message='x'/></testcase>";
        let selector = Selector::new(Runner::Pytest, &read(&[passed, failed]), PathBuf::from("/tmp"));
        let again = |cases: &[&str]| selector.failed(&read(cases)).into_values().collect::<Vec<_>>();
        assert_eq!(again(&[passed]), Vec::<bool>::new());
        assert_eq!(again(&[passed, &passed.replace('1', "2")]), [false]);
        assert_eq!(again(&[failed]), [true]);
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

use std::path::PathBuf;

use assay_cli_terminal::progress::Progress;
use assay_domain::cause::Action;
use assay_reports::{Format, SourceFile};

use super::*;
use crate::{
    gate::{
        judged::{JudgedFailure, fixture::flake},
        selector::{NotSelected, Repeat, RunEnd},
    },
    runners::{Runner, selection::Selection},
};

const TESTS: [(&str, &str); 3] = [
    ("cart > pays", "cart.py"),
    ("cart > ships", "cart.py"),
    ("tax > adds", "tax.py"),
];

fn report(failed: &[&str]) -> Report {
    let cases = TESTS.iter().map(|(name, file)| {
        let (class, title) = name.split_once(" > ").unwrap();
        let failure = if failed.contains(name) {
            "<failure message='no'/>"
        } else {
            ""
        };
        format!(
            "<testsuite name='{class}'><testcase classname='{class}' name='{title}' file='{file}' time='0.01'>{failure}</testcase></testsuite>"
        )
    });
    let xml = format!("<testsuites>{}</testsuites>", cases.collect::<String>());
    let file = SourceFile {
        name: "r.xml".to_owned(),
        bytes: xml.into_bytes(),
        modified: None,
    };
    let options = assay_reports::Options {
        format: Some(Format::Junit),
        ..assay_reports::Options::default()
    };
    assay_reports::read(&[file], &options).unwrap()
}

/// A job whose tests fail in these of its runs, from 1.
struct Job {
    fails: fn(u32) -> &'static [&'static str],
    runs: u32,
    sent: Vec<Vec<String>>,
    /// Whether the server knows a test as flaky before its first failure is sent. It does afterwards.
    known: bool,
}

impl Repeat for Job {
    type Error = NotSelected;

    fn progress(&self) -> &dyn Progress {
        &()
    }

    fn run(&mut self, _: Selection, _: Duration) -> Result<RunEnd, NotSelected> {
        self.runs += 1;
        Ok(RunEnd::Reported(Box::new(report((self.fails)(self.runs))), 0))
    }
}

impl CommandJob for Job {
    fn send(&mut self, tests: &[TestName]) -> Result<JudgedRun, NotSelected> {
        self.sent
            .push(tests.iter().map(|test| test.name.clone()).collect());
        Ok(judged(tests, self.known || self.sent.len() > 1))
    }
}

/// A judgement of tests that failed and passed.
fn judged(tests: &[TestName], known_as_flaky: bool) -> JudgedRun {
    let failure = |test: &TestName| JudgedFailure {
        file_path: test.file_path.clone(),
        recovered: true,
        known_as_flaky,
        ..flake(&test.name)
    };
    JudgedRun {
        mine: 0.0,
        action: Action::Pass,
        incomplete: None,
        tests: 3,
        total: tests.len(),
        failures: tests.iter().map(failure).collect(),
        lacking: None,
    }
}

fn burn_in(new: &[&str], changed: &[&str], job: &mut Job) -> Option<BurnInResults> {
    let report = report(&[]);
    let selector = Selector::new(Runner::Pytest, &report, PathBuf::from("/tmp"));
    let tests = report.tests.iter().map(|test| test.test.clone());
    let new: Vec<TestName> = tests.filter(|test| new.contains(&&*test.name)).collect();
    let changed = changed.iter().map(|file| (*file).to_owned()).collect();
    let budget = Duration::from_secs(60);
    let burned = BurnIn::new(
        &selector,
        (&report, &judged(&[], false)),
        (&new, &changed),
        Duration::ZERO,
        budget,
    )
    .run(job);
    assert!(burned.error.is_none());
    burned.found
}

fn job(fails: fn(u32) -> &'static [&'static str]) -> Job {
    Job {
        fails,
        runs: 0,
        sent: Vec::new(),
        known: false,
    }
}

#[test]
fn a_new_test_that_fails_sometimes_is_named_and_only_its_failures_and_recoveries_are_sent() {
    let mut job = job(|run| if run % 5 == 2 { &["cart > pays"] } else { &[] });
    let results = burn_in(&["cart > pays", "cart > ships"], &[], &mut job).unwrap();
    assert_eq!((results.new, results.tests, results.failed.len()), (2, 2, 1));
    let failed = &results.failed[0];
    assert!(failed.is_newly_flaky && failed.failures >= 2, "{failed:?}");
    assert!(
        results.in_words().contains("cart > pays fails in "),
        "{}",
        results.in_words()
    );
    assert!(
        job.sent.iter().all(|sent| sent == &["cart > pays"]),
        "{:?}",
        job.sent
    );
    let failures = usize::try_from(failed.failures).unwrap();
    assert!(
        (2 * failures - 1..=2 * failures).contains(&job.sent.len()),
        "{:?}",
        job.sent
    );
}

#[test]
fn tests_of_changed_files_run_and_stable_ones_are_not_accused() {
    let mut job = job(|_| &[]);
    let results = burn_in(&[], &["web/tax.py"], &mut job).unwrap();
    assert_eq!((results.tests, results.good), (1, 1));
    assert!(
        results.in_words().starts_with("1 changed test ran "),
        "{}",
        results.in_words()
    );
    assert!(
        results.in_words().ends_with("each fails in less than 5 %"),
        "{}",
        results.in_words()
    );
    assert_eq!(job.sent, Vec::<Vec<String>>::new());
    assert_eq!(burn_in(&[], &["other.py"], &mut job), None);
}

#[test]
fn a_test_that_is_known_as_flaky_is_not_newly_flaky() {
    let mut job = job(|run| if run % 4 == 2 { &["tax > adds"] } else { &[] });
    job.known = true;
    let results = burn_in(&[], &["tax.py"], &mut job).unwrap();
    assert!(!results.failed[0].is_newly_flaky, "{results:?}");
}

#[test]
fn tests_that_fail_together_are_no_flakes() {
    let all: fn(u32) -> &'static [&'static str] = |run| {
        if run == 3 {
            &["cart > pays", "cart > ships", "tax > adds"]
        } else {
            &[]
        }
    };
    let mut job = job(all);
    let results = burn_in(&["cart > pays", "cart > ships", "tax > adds"], &[], &mut job).unwrap();
    assert_eq!(results.failed, []);
    assert_eq!(job.sent, Vec::<Vec<String>>::new());
}

use std::path::PathBuf;

use assay_cli_terminal::progress::Progress;
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A command whose runs end so, from the first.
struct Job {
    results: fn(u32) -> &'static str,
    runs: u32,
    selections: Vec<Vec<String>>,
}

impl Repeat for Job {
    type Error = NotSelected;

    fn progress(&self) -> &dyn Progress {
        &()
    }

    fn run(&mut self, selection: Selection, _: Duration) -> std::result::Result<RunEnd, NotSelected> {
        self.runs += 1;
        self.selections.push(selection.arguments);
        let inner = match (self.results)(self.runs) {
            "" => return Ok(RunEnd::Unreported),
            "slow" => return Ok(RunEnd::TimedOut),
            inner => inner,
        };
        let ms = match inner {
            "<!-- late -->" => 9_000,
            "<!-- paused -->" => 500,
            _ => 100,
        };
        let ms = ms + if inner == COPIED { 0 } else { self.runs % 2 };
        let time = f64::from(ms) / 1_000.0;
        let (others, tool, status) = match inner {
            ALONE | FAILS_ALONE => (String::new(), "cart", 0),
            OTHERS_SKIPPED => (others(9, "<skipped/>"), "cart", 0),
            OTHERS_FAIL => (others(9, "<failure/>"), "cart", 1),
            FEWER => (others(7, ""), "cart", 0),
            ONE_FAILS => (others(8, "") + &others(1, "<failure/>"), "cart", 1),
            COMMAND_FAILS => (others(9, ""), "cart", 1),
            JEST => (others(9, ""), "jest tests", 0),
            _ => (others(9, ""), "cart", 0),
        };
        let xml = format!(
            "<testsuites name='{tool}'><testsuite name='cart'><testcase classname='cart' name='pays' time='{time}'>{inner}\
             </testcase>{others}</testsuite></testsuites>"
        );
        let file = assay_reports::SourceFile {
            name: "r.xml".to_owned(),
            bytes: xml.into_bytes(),
            modified: None,
        };
        let report = assay_reports::read(vec![file], &assay_reports::Options::default()).unwrap();
        Ok(RunEnd::Reported(Box::new(report), status))
    }
}

/// Other tests, named by their number and result.
fn others(count: usize, result: &str) -> String {
    let case = |number| {
        format!(
            "<testcase classname='cart' name='{number}{}'>{result}</testcase>",
            result.len()
        )
    };
    (0..count).map(case).collect()
}

const PASS: &str = "<!-- -->";
const ALONE: &str = "<!-- alone -->";
const FAILS_ALONE: &str = "<!-- alone --><failure message='timed out after 3 ms'/>";
const OTHERS_SKIPPED: &str = "<!-- others skipped -->";
const OTHERS_FAIL: &str = "<!-- others fail -->";
const FEWER: &str = "<!-- fewer -->";
const ONE_FAILS: &str = "<!-- one fails -->";
const COMMAND_FAILS: &str = "<!-- command fails -->";
const COPIED: &str = "<!-- copied -->";
const JEST: &str = "<!-- jest -->";
const RETRIED: &str = "<flakyFailure message='timed out after 9 ms'/>";
const TIMES_OUT: &str = "<failure message='timed out after 30 ms'/>";

fn known(rate: f64) -> KnownFlake {
    let title = failure(&[ErrorDetail {
        message: Some("timed out after 50 ms".to_owned()),
        ..ErrorDetail::default()
    }]);
    KnownFlake {
        errors: vec![assay_answers::fix::KnownError {
            fingerprint: title.fingerprint.unwrap(),
            title: title.title,
            runs: 1,
        }],
        usual_ms: Some(100),
        ..KnownFlake::of_rate(rate)
    }
}

fn verified(known: &KnownFlake, mode: Option<RunMode>, results: fn(u32) -> &'static str) -> (Verified, Job) {
    verified_with(Some(Runner::Mocha), known, mode, results)
}

fn verified_with(
    runner: Option<Runner>,
    known: &KnownFlake,
    mode: Option<RunMode>,
    results: fn(u32) -> &'static str,
) -> (Verified, Job) {
    let test = TestName {
        name: "cart > pays".to_owned(),
        file_path: None,
    };
    let plan = Plan {
        test: &test,
        known,
        mode,
        budget: Duration::from_secs(600),
        runner,
    };
    let mut job = Job {
        results,
        runs: 0,
        selections: Vec::new(),
    };
    let selector = |runner, report: &Report| Selector::new(runner, report, PathBuf::from("/tmp"));
    let verified = verify(&plan, &mut job, selector).unwrap();
    (verified, job)
}

#[test]
fn enough_clean_runs_in_the_suite_prove_a_fix() {
    let (verified, job) = verified(&known(0.3), None, |_| PASS);
    let check = verified.check;
    assert_eq!(
        (check.outcome, check.mode, check.runs, job.runs),
        (FixOutcome::Proved, RunMode::InSuite, 162, 162)
    );
    assert!(check.largest_rate <= 0.03 && verified.bound == 0.03, "{check:?}");
    assert!(job.selections.iter().all(Vec::is_empty), "the unchanged command");
    assert!(verified.remarks.is_empty());
}

#[test]
fn a_failure_with_an_error_of_before_is_told_from_a_new_one() {
    let (old, job) = verified(&known(0.3), None, |run| if run == 5 { TIMES_OUT } else { PASS });
    assert_eq!(
        (old.check.outcome, old.check.runs, job.runs),
        (FixOutcome::StillFlaky, 5, 5)
    );
    let (new, _) = verified(&known(0.3), None, |_| "<failure message='expected 2 to be 3'/>");
    assert_eq!(new.check.outcome, FixOutcome::Differs);
    assert!(new.in_words().contains("to be 3"), "{}", new.in_words());
    assert!(new.in_words().contains("error before"), "{}", new.in_words());
    let (nameless, _) = verified(&known(0.3), None, |_| "<failure/>");
    assert_eq!(nameless.check.outcome, FixOutcome::StillFlaky);
    assert!(
        nameless.headline().ends_with("with an error without a text"),
        "{}",
        nameless.headline()
    );
    let (unknown, _) = verified(&KnownFlake::of_rate(0.3), None, |_| TIMES_OUT);
    assert!(
        unknown.headline().ends_with("and no error of before is known"),
        "{}",
        unknown.headline()
    );
}

#[test]
fn runs_with_fewer_tests_than_those_that_show_the_flake_prove_nothing() {
    let (alone, job) = verified(&known(0.5), Some(RunMode::Alone), |_| PASS);
    assert_eq!(alone.check.outcome, FixOutcome::NotProvable);
    assert!(
        alone.remarks[0].contains("only known to fail in its suite"),
        "{:?}",
        alone.remarks
    );
    assert!(job.selections[0].is_empty() && job.selections[1].contains(&"--grep".to_owned()));
    // The first run was no run alone.
    assert_eq!((alone.check.runs, job.runs), (96, 97));
    // Unfixed code, which fails in its suite first: what counts is whether it fails alone about as often.
    let alone = |results| {
        let check = verified(&known(0.5), Some(RunMode::Alone), results).0.check;
        (check.outcome, check.mode, check.runs)
    };
    let still_flaky = |runs| (FixOutcome::StillFlaky, RunMode::Alone, runs);
    assert_eq!(
        alone(|run| if [1, 4, 6].contains(&run) { TIMES_OUT } else { PASS }),
        still_flaky(5)
    );
    assert_eq!(
        alone(|run| if run < 4 { TIMES_OUT } else { PASS }),
        still_flaky(3)
    );
    // What its suite left may fail the first run alone, or each of them, and alone only a part of the flake may be seen. A fix
    // still needs the suite.
    let in_suite = |runs| (FixOutcome::StillFlaky, RunMode::InSuite, runs);
    assert_eq!(alone(|run| if run == 2 { TIMES_OUT } else { PASS }), in_suite(97));
    assert_eq!(alone(|_| TIMES_OUT), in_suite(5));
    assert_eq!(
        alone(|run| if run % 40 == 20 { TIMES_OUT } else { PASS }),
        in_suite(98)
    );
    let fails_alone = KnownFlake {
        mode: RunMode::Alone,
        ..known(0.5)
    };
    let (alone, _) = verified(&fails_alone, None, |_| PASS);
    assert_eq!(
        (alone.check.outcome, alone.check.mode),
        (FixOutcome::Proved, RunMode::Alone)
    );
    let (in_suite, _) = verified(&fails_alone, None, |_| TIMES_OUT);
    assert_eq!(
        (in_suite.check.outcome, in_suite.check.mode),
        (FixOutcome::StillFlaky, RunMode::InSuite)
    );
    let elsewhere = KnownFlake {
        obstacle: Some("it never failed on this variant".to_owned()),
        ..known(0.5)
    };
    let (other_variant, job) = verified(&elsewhere, None, |_| PASS);
    assert_eq!(
        (other_variant.check.outcome, job.runs),
        (FixOutcome::NotProvable, 0)
    );
}

#[test]
fn a_run_without_its_usual_tests_proves_nothing() {
    let of_ten = KnownFlake {
        suite_tests: Some(10),
        ..known(0.5)
    };
    let first_alone = |results: fn(u32) -> &'static str| verified(&known(0.5), None, results);
    for (why, (verified, job), mode, ran) in [
        (
            "ran no other test",
            verified(&of_ten, None, |_| ALONE),
            RunMode::Alone,
            1,
        ),
        ("ran no other test", first_alone(|_| ALONE), RunMode::Alone, 1),
        (
            "ran no other test",
            verified(&of_ten, None, |_| OTHERS_SKIPPED),
            RunMode::Alone,
            1,
        ),
        (
            "8 of the usual 10 tests",
            verified(&of_ten, None, |_| FEWER),
            RunMode::InSuite,
            1,
        ),
        (
            "8 of the usual 10 tests",
            first_alone(|run| if run == 1 { PASS } else { FEWER }),
            RunMode::InSuite,
            2,
        ),
        (
            "9 of the 10 tests of a run failed",
            verified(&of_ten, None, |_| OTHERS_FAIL),
            RunMode::InSuite,
            1,
        ),
        (
            "no failed test explains",
            verified(&of_ten, None, |_| COMMAND_FAILS),
            RunMode::InSuite,
            1,
        ),
        (
            "retry like any other pass",
            verified(&of_ten, None, |_| JEST),
            RunMode::InSuite,
            1,
        ),
        (
            "from a cache",
            verified(&of_ten, None, |_| COPIED),
            RunMode::InSuite,
            COPIES,
        ),
    ] {
        let check = verified.check;
        assert_eq!(
            (check.outcome, check.mode, job.runs),
            (FixOutcome::NotProvable, mode, ran),
            "{why}"
        );
        assert!(verified.remarks[0].contains(why), "{why}: {:?}", verified.remarks);
    }
    // Another flaky test is no obstacle.
    let (usual, _) = verified(&of_ten, None, |run| if run == 1 { PASS } else { ONE_FAILS });
    assert_eq!(usual.check.outcome, FixOutcome::Proved, "{:?}", usual.remarks);
    let (failed, _) = verified(&of_ten, None, |_| FAILS_ALONE);
    assert_eq!(
        (failed.check.outcome, failed.ran, failed.check.mode),
        (FixOutcome::StillFlaky, RunMode::Alone, RunMode::InSuite)
    );
    // A command of one test needs no runner.
    let (failed, _) = verified_with(None, &known(0.5), None, |_| FAILS_ALONE);
    assert_eq!(failed.check.outcome, FixOutcome::StillFlaky);
}

#[test]
fn what_hides_a_flake_is_no_fix() {
    let (skipped, _) = verified(&known(0.5), None, |_| "<skipped/>");
    assert_eq!(skipped.check.outcome, FixOutcome::NotProvable);
    assert!(skipped.remarks[0].contains("skipped"), "{:?}", skipped.remarks);
    let (retried, _) = verified(&known(0.5), None, |run| if run == 2 { RETRIED } else { PASS });
    assert_eq!(retried.check.outcome, FixOutcome::StillFlaky);
}

#[test]
fn passes_that_take_much_longer_prove_nothing() {
    let paused = |run| if run == 1 { PASS } else { "<!-- paused -->" };
    let (paused, _) = verified(&known(0.5), None, paused);
    assert_eq!(paused.check.outcome, FixOutcome::NotProvable);
    assert_eq!(
        paused.headline(),
        "not provable, although 96 runs in its suite passed"
    );
    assert!(
        paused.remarks[0]
            .starts_with("it takes 5 times as long as usual in 95 of 96 passes (500 ms, not 100 ms)"),
        "{:?}",
        paused.remarks
    );
    // A longer time-out: some passes, which were failures before, take longer.
    let (late, _) = verified(&known(0.1), None, |run| {
        if run % 25 == 0 { "<!-- late -->" } else { PASS }
    });
    assert_eq!(late.check.outcome, FixOutcome::NotProvable);
    assert!(
        late.remarks[0].contains("90 times as long as usual in 19 of 489"),
        "{:?}",
        late.remarks
    );
    let (seldom, _) = verified(&known(0.1), None, |run| {
        if run % 50 == 0 { "<!-- late -->" } else { PASS }
    });
    assert_eq!(seldom.check.outcome, FixOutcome::Proved);
    let (unknown, _) = verified(&KnownFlake::of_rate(0.5), None, |_| "<!-- paused -->");
    assert_eq!(unknown.check.outcome, FixOutcome::Proved);
    assert!(
        unknown.remarks[0].contains("duration before or now is unknown"),
        "{:?}",
        unknown.remarks
    );
}

#[test]
fn the_end_of_the_budget_is_no_answer() {
    let (open, _) = verified(&known(0.05), None, |run| if run == 39 { "slow" } else { PASS });
    assert_eq!(
        (open.check.outcome, open.check.runs),
        (FixOutcome::NotProvable, 38)
    );
    assert_eq!(
        open.headline(),
        "not provable in this budget: 489 runs needed in its suite, 38 done; or 298 clean builds"
    );
    let (crashed, _) = verified(&known(0.05), None, |run| if run == 3 { "" } else { PASS });
    assert_eq!(crashed.check.outcome, FixOutcome::NotProvable);
    assert!(crashed.remarks[0].contains("crashed"), "{:?}", crashed.remarks);
}

#[test]
fn the_rate_is_that_of_the_variant_of_the_job() {
    let answer = json!({
        "project": { "id": "x", "name": "p" },
        "test": { "name": "cart > pays", "filePath": null },
        "rate": 0.2, "mode": "in_suite", "usualMs": 12, "errors": [],
        "variants": [
            { "variant": "windows", "rate": 0.4, "failures": 9, "runs": 20, "tests": 60 },
            { "variant": "linux / chromium", "rate": 0.0, "failures": 0, "runs": 30, "tests": 50 },
        ],
    });
    let of = |suite, rate| KnownFlake::of_answer(&answer, suite, rate).unwrap().0.unwrap();
    assert_eq!(of(Some("windows"), None).suite_tests, Some(60));
    assert_eq!(
        (
            of(Some("windows"), Some(0.9)).rate,
            of(Some("windows"), None).obstacle
        ),
        (0.4, None)
    );
    assert!(of(Some("linux"), None).obstacle.unwrap().contains("windows"));
    // Another job, of which nothing is known.
    assert_eq!((of(Some("lin"), None).rate, of(None, Some(0.1)).rate), (0.2, 0.1));
    assert!(
        of(Some("lin"), None)
            .obstacle
            .unwrap()
            .contains("variant of this job is not known")
    );
    assert_eq!(of(None, None).suite_tests, Some(50));
    let mut by_calendar = answer.clone();
    by_calendar["calendar"] = json!("Failed on 8 of 8 weekends (UTC) and on none of 30 other days");
    let (by_calendar, _) = KnownFlake::of_answer(&by_calendar, Some("windows"), None).unwrap();
    assert!(by_calendar.unwrap().obstacle.unwrap().contains("8 of 8 weekends"));
    assert!(KnownFlake::of_answer(&json!({}), None, None).is_err());
}

proptest! {
    #[test]
    fn a_test_that_fails_is_never_proved(rate in 0.01..1.0_f64, fails_at in 1..58_u32) {
        // Fewer runs than any proof needs.
        let test = TestName { name: "cart > pays".to_owned(), file_path: None };
        let known = known(rate);
        let plan = Plan { test: &test, known: &known, mode: None, budget: Duration::from_secs(600), runner: None };
        let mut job = FailsAt(fails_at.min(CleanRuns::Repetitions.needed(bound(rate))), 0);
        let verified = verify(&plan, &mut job, |runner, report: &Report| {
            Selector::new(runner, report, PathBuf::from("/tmp"))
        });
        prop_assert_eq!(verified.unwrap().check.outcome, FixOutcome::StillFlaky);
    }
}

struct FailsAt(u32, u32);

impl Repeat for FailsAt {
    type Error = NotSelected;

    fn progress(&self) -> &dyn Progress {
        &()
    }

    fn run(&mut self, selection: Selection, limit: Duration) -> std::result::Result<RunEnd, NotSelected> {
        self.1 += 1;
        let results: fn(u32) -> &'static str = if self.0 == self.1 { |_| TIMES_OUT } else { |_| PASS };
        Job {
            results,
            runs: self.1,
            selections: Vec::new(),
        }
        .run(selection, limit)
    }
}

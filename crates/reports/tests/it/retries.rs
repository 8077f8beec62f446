//! Which results of a test are attempts of one execution: in one report, and over the files of one import.

use assay_domain::attempt::AttemptStatus;
use assay_reports::{Report, SourceFile};

use crate::support::{inline, plain};

/// The statuses of each test, one letter for an attempt, executions separated by spaces.
fn executions(report: &Report) -> Vec<(&str, String)> {
    let letters = |attempts: &[assay_domain::attempt::Attempt]| -> String {
        attempts
            .iter()
            .map(|attempt| match attempt.status {
                AttemptStatus::Passed => 'P',
                AttemptStatus::Failed => 'F',
                AttemptStatus::TimedOut => 'T',
                AttemptStatus::Skipped => 'S',
                AttemptStatus::Interrupted => 'I',
            })
            .collect()
    };
    let tests = report.tests.iter();
    tests
        .map(|test| {
            let all: Vec<String> = test.attempts.executions().map(letters).collect();
            (&*test.test.name, all.join(" "))
        })
        .collect()
}

fn read(files: Vec<SourceFile>) -> Report {
    plain(files).unwrap()
}

fn of_first(name: &str, text: impl Into<Vec<u8>>) -> String {
    executions(&read(vec![inline(name, text)])).remove(0).1
}

/// A case of JUnit XML with a letter as its outcome.
fn case(name: &str, outcome: char) -> String {
    let inner = match outcome {
        'F' => "<failure message='wrong'/>",
        'E' => "<error message='broken'/>",
        'S' => "<skipped message='no printer'/>",
        _ => "",
    };
    format!("<testcase classname='shop.Cart' name='{name}' time='0.5'>{inner}</testcase>")
}

fn cases(name: &str, outcomes: &str) -> String {
    outcomes.chars().map(|outcome| case(name, outcome)).collect()
}

const FORMS: &[(&str, &str)] = &[
    ("FP", "FP"),
    ("FEP", "FFP"),
    ("FF", "FF"),
    ("PF", "P F"),
    ("PP", "P P"),
    ("FPF", "FP F"),
    ("FPP", "FP P"),
    ("PFP", "P FP"),
    ("FS", "S F"),
];

#[test]
fn in_one_suite_the_order_of_the_results_decides() {
    // The attributes are those of tools with a rule of their own for other things, and of an unknown one.
    for suite in [
        "name='s'",
        "name='C' tests='2' skipped='0' failures='1' errors='0' timestamp='2026-11-20T19:25:00' hostname='h' time='1'",
        "name='e2e' tests='4' skipped='1' failures='1' time='812'",
        "name='All' errors='0' failures='1' skipped='0' timestamp='2026-11-25T10:00:00' time='0.9' tests='1'",
        "xsi:noNamespaceSchemaLocation='https://maven.apache.org/surefire/surefire-test-report.xsd' name='shop.Cart'",
    ] {
        for (outcomes, expected) in FORMS {
            let text = format!("<testsuite {suite}>{}</testsuite>", cases("adds", outcomes));
            assert_eq!(of_first("r.xml", text), *expected, "{outcomes} {suite}");
        }
    }
}

#[test]
fn results_of_two_suites_are_two_executions() {
    let suite = |outcome| format!("<testsuite name='s'>{}</testsuite>", case("adds", outcome));
    let text = format!("<testsuites>{}{}</testsuites>", suite('F'), suite('P'));
    assert_eq!(of_first("r.xml", text), "P F");
}

#[test]
fn tools_that_write_all_attempts_into_one_case_repeat_on_purpose() {
    let playwright = "timestamp='2026-11-20T19:18:54.000Z' hostname='api' tests='1' failures='0' skipped='0' time='0.1' \
                      errors='0'";
    let case =
        |inner: &str| format!("<testcase name='adds' classname='a.spec.ts' time='0.1'>{inner}</testcase>");
    let text = format!(
        "<testsuites><testsuite name='a.spec.ts' {playwright}>{}{}</testsuite></testsuites>",
        case("<failure message='a'>wrong</failure>"),
        case("")
    );
    assert_eq!(of_first("r.xml", text), "P F");
    let ctrf = |tool: &str| {
        let test = |status: &str| format!(r#"{{"name": "adds", "status": "{status}", "duration": 1}}"#);
        let tests = [test("failed"), test("passed")].join(",");
        let text = format!(r#"{{"results": {{"tool": {{"name": "{tool}"}}, "tests": [{tests}]}}}}"#);
        of_first("r.json", text)
    };
    assert_eq!(ctrf("playwright"), "P F");
    assert_eq!(ctrf("junit-to-ctrf"), "FP");
}

#[test]
fn in_a_ctrf_document_the_order_of_the_results_decides() {
    for (outcomes, expected) in FORMS {
        let entry = |outcome| {
            let status = match outcome {
                'F' | 'E' => "failed",
                'S' => "skipped",
                _ => "passed",
            };
            format!(r#"{{"name": "pays", "suite": "shop.Pay", "status": "{status}", "duration": 5}}"#)
        };
        let entries: Vec<String> = outcomes.chars().map(entry).collect();
        let text = format!(
            r#"{{"results": {{"tool": {{"name": "x"}}, "tests": [{}]}}}}"#,
            entries.join(",")
        );
        assert_eq!(of_first("r.json", text), *expected, "{outcomes}");
    }
}

#[test]
fn a_tap_script_may_assert_the_same_twice() {
    assert_eq!(of_first("r.tap", "1..2\nnot ok 1 - works\nok 2 - works\n"), "P F");
}

#[test]
fn reruns_of_pytest_are_attempts_whatever_the_suite_is_called() {
    let suite = |attributes: &str| {
        let empty = "<testcase classname='t.test_a' name='test_flaky' time='0.1'/>";
        format!("<testsuites><testsuite {attributes}>{empty}{empty}</testsuite></testsuites>")
    };
    let old = "errors='0' failures='0' hostname='ci' name='api' skipped='0' tests='1' time='0.1' timestamp='2026-11-25T10:00:00'";
    let new = "name='api' errors='0' failures='0' skipped='0' tests='1' time='0.1' timestamp='2026-11-25T10:00:00' hostname='ci'";
    assert_eq!(of_first("r.xml", suite(old)), "FP");
    assert_eq!(of_first("r.xml", suite(new)), "FP");
    // Another tool of Python sorts the attributes, too, and has no retries of this form.
    let other = "errors='0' failures='0' name='api' skipped='0' tests='1' time='0.1'";
    assert_eq!(of_first("r.xml", suite(other)), "P P");
}

#[test]
fn a_test_that_nextest_fails_for_being_flaky_passed_in_the_end() {
    let case = |inner: &str| {
        format!(
            "<testsuites name='nextest-run' uuid='5d1c0b5e-8a55-4c39-9b4b-0d6f7f6f2f12'><testsuite name='shop'>\
             <testcase name='cart::adds' classname='shop' time='0.02'>{inner}</testcase></testsuite></testsuites>"
        )
    };
    let flaky = "<flakyFailure time='0.01' message='a' type='test failure with exit code 101'/>";
    let failed = |kind: &str| format!("<failure message='m' type='{kind}'/>");
    for (inner, expected) in [
        ([&*failed("flaky failure"), flaky].concat(), "FP"),
        (flaky.to_owned(), "FP"),
        (
            [&*failed("test failure with exit code 101"), flaky].concat(),
            "FF",
        ),
        (failed("flaky failure"), "F"),
    ] {
        assert_eq!(of_first("r.xml", case(&inner)), expected, "{inner}");
    }
}

#[test]
fn a_case_marked_as_flaky_passed_after_a_failed_attempt() {
    for (attributes, inner, expected) in [
        (
            "flaky='true'",
            "<failure>java.lang.AssertionError: a</failure>",
            "FP",
        ),
        ("flaky='true'", "", "FP"),
        ("flaky='true'", "<skipped/>", "S"),
        ("flaky='true'", "<flakyFailure message='a'/>", "FP"),
        ("flaky='false'", "<failure>a</failure>", "F"),
        ("", "<failure>a</failure>", "F"),
    ] {
        let text = format!(
            "<testsuite name='Pixel2'><testcase name='opens' classname='shop.Menu' time='1' {attributes}>{inner}</testcase>\
             </testsuite>"
        );
        assert_eq!(of_first("r.xml", text), expected, "{attributes} {inner}");
    }
}

#[test]
fn a_retry_that_is_a_part_of_the_name_is_an_attempt() {
    let trx = |results: &[(&str, &str)]| {
        let results: String = results
            .iter()
            .map(|(name, outcome)| format!("<UnitTestResult testName='{name}' outcome='{outcome}'/>"))
            .collect();
        format!("<TestRun><Results>{results}</Results></TestRun>")
    };
    let read_all = |name: &str, text: String| {
        let report = read(vec![inline(name, text)]);
        let tests = executions(&report).into_iter();
        tests
            .map(|(name, all)| format!("{name}: {all}"))
            .collect::<Vec<_>>()
    };
    // The tool writes results in any order.
    let retried = [
        ("Pays (retry #2)", "Passed"),
        ("Pays", "Failed"),
        ("Pays (retry #1)", "Failed"),
        ("Ships", "Passed"),
    ];
    assert_eq!(read_all("r.trx", trx(&retried)), ["Pays: FFP", "Ships: P"]);
    let others = [("shows retry #1", "Failed"), ("shows", "Passed")];
    assert_eq!(read_all("r.trx", trx(&others)), ["shows retry #1: F", "shows: P"]);
    let nunit = "<test-run><test-suite><test-case name='Pays' fullname='Shop.Pays' result='Failed'/>\
                 <test-case name='Pays (retry #1)' fullname='Shop.Pays (retry #1)' result='Passed'/></test-suite></test-run>";
    assert_eq!(read_all("r.xml", nunit.to_owned()), ["Shop > Pays: FP"]);
    let xunit = "<assemblies><assembly><collection><test name='Shop.Pays' type='Shop' method='Pays' result='Fail'/>\
                 <test name='Shop.Pays (retry #1)' type='Shop' method='Pays' result='Pass'/></collection></assembly></assemblies>";
    assert_eq!(read_all("r.xml", xunit.to_owned()), ["Shop > Pays: FP"]);
    let junit = format!(
        "<testsuite name='shop.Cart'>{}{}</testsuite>",
        case("pays", 'F'),
        case("pays, retry #1", 'P')
    );
    assert_eq!(read_all("r.xml", junit), ["shop.Cart > pays: FP"]);
    let entry = |name: &str, status: &str| format!(r#"{{"name": "{name}", "status": "{status}"}}"#);
    let entries = [entry("pays", "failed"), entry("pays (retry #1)", "passed")].join(",");
    let ctrf = format!(r#"{{"results": {{"tool": {{"name": "x"}}, "tests": [{entries}]}}}}"#);
    assert_eq!(read_all("r.json", ctrf), ["pays: FP"]);
}

/// A file of JUnit XML whose suite starts at this second of an hour and takes a second.
fn at(second: u32, tests: &[(&str, char)]) -> String {
    let cases: String = tests.iter().map(|(name, outcome)| case(name, *outcome)).collect();
    let (minute, second) = (second / 60, second % 60);
    format!(
        "<testsuite name='s' timestamp='2026-11-20T10:{minute:02}:{second:02}Z' time='1'>{cases}</testsuite>"
    )
}

fn over_files(files: &[(&str, String)]) -> (Vec<String>, bool) {
    let files = files
        .iter()
        .map(|(name, text)| inline(name, text.as_str()))
        .collect();
    let report = read(files);
    let tests = executions(&report).into_iter();
    let is_named = report
        .warnings
        .iter()
        .any(|warning| warning.contains("read as their retries"));
    (
        tests
            .map(|(name, all)| format!("{}: {all}", name.rsplit(' ').next().unwrap()))
            .collect(),
        is_named,
    )
}

#[test]
fn a_later_file_of_the_failed_tests_alone_is_a_retry() {
    let first = at(0, &[("a", 'F'), ("b", 'P'), ("c", 'F')]);
    let second = at(5, &[("a", 'P'), ("c", 'F')]);
    let third = at(9, &[("c", 'P')]);
    let all = [
        ("one.xml", first.clone()),
        ("two.xml", second.clone()),
        ("three.xml", third),
    ];
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let files = order.map(|index| all[index].clone());
        let (mut tests, is_named) = over_files(&files);
        tests.sort();
        assert_eq!(tests, ["a: FP", "b: P", "c: FFP"], "{order:?}");
        assert!(is_named);
    }
    let (tests, _) = over_files(&[("one.xml", first.clone()), ("two.xml", at(5, &[("a", 'P')]))]);
    assert_eq!(tests[0], "a: FP", "a retry of one of the failed tests");
    // Without a known order, with a test that passed, as a leg with fewer tests has, or with a new test it is another
    // execution.
    for other in [
        at(0, &[("a", 'P'), ("c", 'P')]),
        at(5, &[("a", 'P'), ("b", 'P')]),
        at(5, &[("a", 'P'), ("c", 'P'), ("d", 'P')]),
        at(5, &[("a", 'P'), ("c", 'P')]).replace("timestamp", "at"),
    ] {
        let (tests, is_named) = over_files(&[("one.xml", first.clone()), ("two.xml", other.clone())]);
        assert_eq!(tests[0], "a: P F", "{other}");
        assert!(!is_named);
    }
}

#[test]
fn a_file_with_all_tests_again_is_a_leg_of_a_matrix_unless_the_tool_numbers_it() {
    let first = || at(0, &[("a", 'F'), ("b", 'P')]);
    let second = || at(5, &[("a", 'P'), ("b", 'P')]);
    for (one, other) in [
        ("linux.xml", "windows.xml"),
        ("junit-1.xml", "junit-2.xml"),
        ("linux/attempt1.xml", "windows/attempt2.xml"),
    ] {
        let (tests, is_named) = over_files(&[(one, first()), (other, second())]);
        assert_eq!(tests, ["a: P F", "b: P P"], "{one} {other}");
        assert!(!is_named);
    }
    for (one, other) in [
        ("out/attempt_1.xml", "out/attempt_2.xml"),
        ("t/cart/test_attempts/attempt_1.xml", "t/cart/test.xml"),
        ("m/Pixel2-30/r.xml", "m/Pixel2-30-rerun_1/r.xml"),
        ("out/a.xml", "out/Retries/1/b.xml"),
    ] {
        let expected = ["a: FP", "b: P P"];
        let (tests, is_named) = over_files(&[(one, first()), (other, second())]);
        assert_eq!(tests, expected, "{one} {other}");
        assert!(is_named);
        // The tool's number is enough without a start.
        let untimed = |text: String| text.replace("timestamp", "at");
        let (tests, _) = over_files(&[(one, untimed(first())), (other, untimed(second()))]);
        assert_eq!(tests, expected, "{one} {other}");
    }
}

#[test]
fn a_file_after_green_ones_is_no_retry() {
    let first = at(0, &[("a", 'P'), ("b", 'P')]);
    let second = at(5, &[("a", 'F')]);
    let (tests, is_named) = over_files(&[("out/attempt_1.xml", first), ("out/attempt_2.xml", second)]);
    assert_eq!(tests, ["a: P F", "b: P"]);
    assert!(!is_named);
}

#[test]
fn later_files_of_other_formats_are_retries_too() {
    let ctrf = |start: u64, tests: &[(&str, &str)]| {
        let entry = |(name, status): &(&str, &str)| {
            format!(
                r#"{{"name": "{name}", "status": "{status}", "start": {start}, "stop": {}}}"#,
                start + 10
            )
        };
        let entries: Vec<String> = tests.iter().map(entry).collect();
        format!(
            r#"{{"reportFormat": "CTRF", "results": {{"tool": {{"name": "MSTest"}}, "summary": {{"start": {start}}}, "tests": [{}]}}}}"#,
            entries.join(",")
        )
    };
    let files = [
        (
            "a.json",
            ctrf(1_795_600_000_000, &[("x", "failed"), ("y", "passed")]),
        ),
        ("b.json", ctrf(1_795_600_005_000, &[("x", "passed")])),
    ];
    assert_eq!(over_files(&files).0, ["x: FP", "y: P"]);
    let trx = |start: &str, tests: &[(&str, &str)]| {
        let result = |(name, outcome): &(&str, &str)| {
            format!(
                "<UnitTestResult testName='{name}' outcome='{outcome}' startTime='{start}' duration='00:00:01'/>"
            )
        };
        let results: String = tests.iter().map(result).collect();
        format!(
            "<TestRun><Times start='{start}' finish='2026-11-20T10:00:09Z'/><Results>{results}</Results></TestRun>"
        )
    };
    let files = [
        (
            "a.trx",
            trx("2026-11-20T10:00:00Z", &[("x", "Failed"), ("y", "Passed")]),
        ),
        ("b.trx", trx("2026-11-20T10:00:05Z", &[("x", "Passed")])),
    ];
    assert_eq!(over_files(&files).0, ["x: FP", "y: P"]);
    let pytest = |created: u64, tests: &[(&str, &str)]| {
        let entry = |(name, outcome): &(&str, &str)| {
            format!(r#"{{"nodeid": "t.py::{name}", "outcome": "{outcome}"}}"#)
        };
        let entries: Vec<String> = tests.iter().map(entry).collect();
        format!(
            r#"{{"created": {created}, "duration": 1, "exitcode": 1, "root": "/r", "summary": {{}}, "tests": [{}]}}"#,
            entries.join(",")
        )
    };
    let files = [
        (
            "a.json",
            pytest(1_795_600_001, &[("x", "failed"), ("y", "passed")]),
        ),
        ("b.json", pytest(1_795_600_009, &[("x", "passed")])),
    ];
    assert_eq!(over_files(&files).0, ["x: FP", "y: P"]);
}

#[test]
fn the_attempts_of_allure_share_history_and_parameters() {
    let result = |currency: &str, status: &str, start: u64| {
        format!(
            r#"{{"uuid": "{currency}{start}", "historyId": "one", "name": "total", "status": "{status}", "start": {start},
            "stop": {start}, "parameters": [{{"name": "currency", "value": "{currency}"}},
            {{"name": "seed", "value": "{start}", "excluded": true}}]}}"#
        )
    };
    let files = [
        ("r/a-result.json", result("EUR", "failed", 1_795_600_000_000)),
        ("r/b-result.json", result("USD", "failed", 1_795_600_001_000)),
        ("r/c-result.json", result("USD", "passed", 1_795_600_002_000)),
    ];
    assert_eq!(over_files(&files).0, ["[EUR]: F", "[USD]: FP"]);
}

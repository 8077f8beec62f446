//! Which results of a test are attempts of one execution: in one report, and over the files of one import.

use assay_domain::attempt::AttemptStatus;
use assay_reports::{Format, Report, SourceFile};

use crate::{
    support::{inline, plain},
    templates,
};

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

/// Cases of one name. Each takes another time, because the same failed result twice is one.
fn cases(name: &str, outcomes: &str) -> String {
    let case = |(index, outcome)| case(name, outcome).replace("0.5", &format!("0.{}", 5 + index));
    outcomes.chars().enumerate().map(case).collect()
}

#[test]
fn a_repeated_case_is_a_retry_by_the_shape_that_its_tool_documents() {
    let gradle = "name='C' tests='2' skipped='0' failures='1' errors='0' timestamp='2026-11-20T19:25:00' hostname='h' time='1'";
    let (openshift, other) = (
        "name='openshift-tests' tests='4' failures='1' time='8'",
        "name='s'",
    );
    let gotestsum =
        "tests='4' failures='1' time='0.1' name='example.org/shop' timestamp='2026-11-20T19:18:54Z'";
    let xcbeautify = "name='ShopUITests.Login' tests='3' failures='1'";
    let bitrise = |name: &str| format!("{name}' configuration-hash='c1");
    for (root, suite, results, expected) in [
        // A method of a class, after all others. Before one of them, it is another leaf of this title.
        ("", gradle, "a() F, b() P, a() P", "FP"),
        ("", gradle, "a() F, b() P, c() F, a() P, c() F, c() P", "FP"),
        ("", gradle, "a() F, a() P, b() P", "P F"),
        // A leaf of a specification may be one word.
        ("", gradle, "a F, b P, a P", "P F"),
        ("", gradle, "a F, a P, b P", "P F"),
        ("", gradle, "is empty F, b P, is empty P", "P F"),
        ("", gradle, "[2] b F, other() P, [2] b P", "P F"),
        (
            "",
            gradle,
            "repetition 1 of 2 F, other() P, repetition 1 of 2 P",
            "P F",
        ),
        // Everything twice, or a result after a pass: repeated on purpose.
        ("", gradle, "a() F, b() P, a() P, b() P", "P F"),
        ("", gradle, "a() F, a() P, b() P, c() P, c() F", "P F"),
        ("", gradle, "a() F, a() P, a() P, b() P", "P P F"),
        ("", openshift, "a F, a P, b P", "FP"),
        ("", openshift, "a F, a P, b P, b P", "P F"),
        ("", openshift, "a P, a F, b P", "P F"),
        (
            "All tests' tests='3' failures='1",
            xcbeautify,
            "testA F, testA P, testB P",
            "FP",
        ),
        (
            "All tests' tests='3' failures='1",
            xcbeautify,
            "price(of:) F, price(of:) P, testB P",
            "P F",
        ),
        (
            "All tests' tests='3' failures='1",
            &format!("{xcbeautify} time='1'"),
            "testA F, testA P, testB P",
            "P F",
        ),
        (
            "",
            other,
            &format!("{0} F, {0} P, {1} P", bitrise("testA()"), bitrise("testB()")),
            "FP",
        ),
        (
            "",
            other,
            &format!(
                "{0} F, testA()' configuration-hash='c2 P, {1} P",
                bitrise("testA()"),
                bitrise("testB()")
            ),
            "P F",
        ),
        // gotestsum lists failed tests first.
        ("go", gotestsum, "TestA F, TestB P, TestA P", "FP"),
        ("go", gotestsum, "TestA F, TestA P, TestB P", "P F"),
        ("go", gotestsum, "TestA F, TestA P, TestB P, TestB P", "P F"),
        (
            "go",
            gotestsum,
            "TestA/x F, TestA F, TestB P, TestA/x P, TestA/y P, TestA/y P, TestA P",
            "FP",
        ),
        ("go", gotestsum, "TestA/x F, TestA F, TestA/x P, TestA P", "P F"),
    ] {
        let cases: String = results
            .split(", ")
            .map(|result| {
                let (name, outcome) = result.rsplit_once(' ').unwrap();
                case(name, outcome.chars().next().unwrap())
            })
            .collect();
        let version = "<properties><property name='go.version' value='go1.22'/></properties>";
        let (root, properties) = if root == "go" { ("", version) } else { (root, "") };
        let text = format!(
            "<testsuites name='{root}'><testsuite {suite}>{properties}{cases}</testsuite></testsuites>"
        );
        assert_eq!(of_first("r.xml", text), expected, "{suite} {results}");
    }
    let ctrf = |names: &[(&str, &str)]| {
        let test = |(name, status): &(&str, &str)| {
            format!(r#"{{"name": "shop.Pay: {name}", "suite": "shop.Pay", "status": "{status}"}}"#)
        };
        let tests: Vec<String> = names.iter().map(test).collect();
        let tests = tests.join(",");
        of_first(
            "r.json",
            format!(r#"{{"results": {{"tool": {{"name": "junit-to-ctrf"}}, "tests": [{tests}]}}}}"#),
        )
    };
    let others = ("b()", "passed");
    assert_eq!(ctrf(&[("a()", "failed"), ("a()", "passed"), others]), "FP");
    assert_eq!(ctrf(&[("[1] a", "failed"), ("[1] a", "passed"), others]), "P F");
}

/// Without the tool's mark of a retry, results of one name are executions, and one that failed fails the run.
#[test]
fn a_failed_test_beside_others_of_its_name_fails_the_run_in_every_format() {
    let word = |letter| if letter == 'F' { "fail" } else { "pass" };
    for template in templates::all() {
        for outcomes in ["FP", "PF", "FPP", "PFP", "FFP", "FPFP"] {
            let tests: Vec<(String, &str)> = outcomes
                .chars()
                .map(|letter| ("a".to_owned(), word(letter)))
                .collect();
            let mut alone = template.files(&tests);
            let with_others: Vec<(String, &str)> = [("b".to_owned(), "pass")]
                .into_iter()
                .chain(tests)
                .chain([("c".to_owned(), "pass")])
                .collect();
            // Allure's results of one history, place and parameters in a row are attempts.
            if template.format == Format::Allure {
                for file in &mut alone {
                    let text = String::from_utf8_lossy(&file.bytes).replace("\"stop\": ", "\"stop\": 9");
                    file.bytes = text.into_bytes();
                }
            } else {
                assert_is_failed(template.format, template.files(&with_others), outcomes);
            }
            assert_is_failed(template.format, alone, outcomes);
        }
    }
    // Tools whose shape of a retry is something else.
    for suite in [
        "name='pytest' errors='0' failures='1' skipped='0' tests='2' time='1'",
        "name='s'",
    ] {
        let text = format!(
            "<testsuites><testsuite {suite}>{}</testsuite></testsuites>",
            cases("adds", "FP")
        );
        assert_is_failed(Format::Junit, vec![inline("r.xml", text)], suite);
    }
}

fn assert_is_failed(format: Format, files: Vec<SourceFile>, what: &str) {
    let report = read(files);
    assert_eq!(report.format, format);
    let is_failed = |test: &assay_reports::ReportedTest| test.outcome().unwrap().status.is_failure();
    assert!(
        report.tests.iter().any(is_failed),
        "{format} {what} {:?}",
        executions(&report)
    );
}

#[test]
fn a_sender_may_say_that_repeated_results_are_retries() {
    for (outcomes, expected) in [
        ("FP", "FP"),
        ("PF", "P F"),
        ("FPF", "FP F"),
        ("FPP", "FP P"),
        ("FF", "FF"),
        ("PS", "S P"),
        ("FS", "S F"),
    ] {
        let text = format!("<testsuite name='s'>{}</testsuite>", cases("adds", outcomes));
        let options = assay_reports::Options {
            retries_as_attempts: true,
            ..assay_reports::Options::default()
        };
        let report = assay_reports::read(vec![inline("r.xml", text)], &options).unwrap();
        assert_eq!(executions(&report)[0].1, expected, "{outcomes}");
    }
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
fn a_retry_of_allure_begins_after_the_failed_attempt_at_the_same_place() {
    let result = |start: u64, stop: u64, status: &str, place: &str| {
        format!(
            r#"{{"uuid": "{start}", "historyId": "one", "name": "total", "status": "{status}", "start": {start},
            "stop": {stop}, "labels": [{{"name": "framework", "value": "pytest"}}{place}]}}"#
        )
    };
    let place = |name: &str, value: &str| format!(r#", {{"name": "{name}", "value": "{value}"}}"#);
    let t = 1_795_600_000_000_u64;
    for (first, second, expected) in [
        (
            result(t, t + 5, "failed", ""),
            result(t + 5, t + 9, "passed", ""),
            "FP",
        ),
        (
            result(t, t + 5, "failed", ""),
            result(t + 4, t + 9, "passed", ""),
            "P F",
        ),
        (
            result(t, t + 5, "passed", ""),
            result(t + 6, t + 9, "failed", ""),
            "P F",
        ),
        (
            result(t, t + 5, "failed", &place("host", "a")),
            result(t + 6, t + 9, "passed", &place("host", "b")),
            "P F",
        ),
    ] {
        let files = [("r/a-result.json", first), ("r/b-result.json", second)];
        assert_eq!(over_files(&files).0, [format!("total: {expected}")]);
    }
}

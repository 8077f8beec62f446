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

/// The executions of the results of one name: each is one, and the worst comes last.
fn alone(outcomes: &str) -> String {
    let mut letters: Vec<&str> = outcomes.split("").filter(|letter| !letter.is_empty()).collect();
    letters.sort_by_key(|letter| "SPFE".find(letter));
    letters.join(" ").replace('E', "F")
}

const FORMS: &[&str] = &["FP", "FEP", "FF", "PF", "PP", "FPF", "FPP", "PFP", "FS"];

#[test]
fn results_of_one_name_are_executions_unless_the_tool_says_more() {
    let playwright = "name='a.spec.ts' timestamp='2026-11-20T19:18:54.000Z' hostname='api' tests='1' failures='0' \
                      skipped='0' time='0.1' errors='0'";
    for suite in [
        "name='s'",
        "name='e2e' tests='4' skipped='1' failures='1' time='812'",
        "name='All' errors='0' failures='1' skipped='0' timestamp='2026-11-25T10:00:00' time='0.9' tests='1'",
        "xsi:noNamespaceSchemaLocation='https://maven.apache.org/surefire/surefire-test-report.xsd' name='shop.Cart'",
        "name='shop' tests='6' failures='1' errors='0' id='0' hostname='ci' time='0.03'",
        playwright,
    ] {
        for outcomes in FORMS {
            let text = format!(
                "<testsuites><testsuite {suite}>{}{}</testsuite></testsuites>",
                cases("adds", outcomes),
                case("removes", 'P')
            );
            let report = read(vec![inline("r.xml", text)]);
            assert_eq!(executions(&report)[0].1, alone(outcomes), "{outcomes} {suite}");
            let is_doubtful = outcomes.contains('F') && outcomes.contains('P');
            let warnings = report.warnings.join(" ");
            assert_eq!(
                warnings.contains("--retries-as-attempts"),
                is_doubtful,
                "{outcomes} {warnings}"
            );
        }
    }
    for outcomes in FORMS {
        let entry = |outcome| {
            let status = match outcome {
                'F' | 'E' => "failed",
                'S' => "skipped",
                _ => "passed",
            };
            format!(r#"{{"name": "pays", "suite": "shop.Pay", "status": "{status}", "duration": 5}}"#)
        };
        let entries: Vec<String> = outcomes.chars().map(entry).collect();
        for tool in ["playwright", "xunit-to-ctrf"] {
            let text = format!(
                r#"{{"results": {{"tool": {{"name": "{tool}"}}, "tests": [{}]}}}}"#,
                entries.join(",")
            );
            assert_eq!(of_first("r.json", text), alone(outcomes), "{outcomes}");
        }
    }
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
        // A method of a class, at any place. Another name that is one word, in a later round.
        ("", gradle, "a() F, a() P, b() P", "FP"),
        ("", gradle, "a F, b P, a P", "FP"),
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

/// Two different tests of one name in every format, the first of them failed.
#[test]
fn a_failed_test_beside_a_passed_one_of_its_name_fails_the_run() {
    let xml = |text: &str| ("r.xml", text.to_owned());
    let json = |text: &str| ("r.json", text.replace('\n', " "));
    let junit = |suite: &str| {
        (
            "r.xml",
            format!(
                "<testsuites><testsuite {suite}>{}</testsuite></testsuites>",
                cases("adds", "FP")
            ),
        )
    };
    let go = |status: &str| {
        format!(
            "{{\"Action\":\"run\",\"Package\":\"p\",\"Test\":\"TestA\"}}\n{{\"Action\":\"{status}\",\"Package\":\"p\",\"Test\":\"TestA\"}}\n"
        )
    };
    let libtest = |event: &str| {
        format!(
            "{{\"type\":\"test\",\"event\":\"started\",\"name\":\"a\"}}\n{{\"type\":\"test\",\"event\":\"{event}\",\"name\":\"a\"}}\n"
        )
    };
    let dart = |id: u8, result: &str| {
        format!(
            "{{\"test\":{{\"id\":{id},\"name\":\"a\",\"suiteID\":0,\"groupIDs\":[]}},\"type\":\"testStart\",\"time\":{id}}}\n{{\"testID\":{id},\"result\":\"{result}\",\"skipped\":false,\"hidden\":false,\"type\":\"testDone\",\"time\":{id}}}\n"
        )
    };
    let allure = |start: u64, status: &str| {
        inline(
            &format!("r/{start}-result.json"),
            format!(
                r#"{{"uuid": "{start}", "historyId": "a", "name": "a", "status": "{status}", "start": {start}, "stop": 1795600009000}}"#
            ),
        )
    };
    let inputs = vec![
        junit("name='s'"),
        junit("name='pytest' errors='0' failures='1' skipped='0' tests='2' time='1'"),
        junit("name='openshift-tests'"),
        xml(
            "<TestRun><Results><UnitTestResult testName='a' outcome='Failed'/><UnitTestResult testName='a' outcome='Passed'/>\
             </Results></TestRun>",
        ),
        xml(
            "<test-run><test-suite><test-case name='a' fullname='N.a' result='Failed'/><test-case name='a' fullname='N.a' \
             result='Passed'/></test-suite></test-run>",
        ),
        xml(
            "<assemblies><assembly><collection><test name='N.a' type='N' method='a' result='Fail'/><test name='N.a' type='N' \
             method='a' result='Pass'/></collection></assembly></assemblies>",
        ),
        xml(
            "<testng-results><suite><test name='t'><class name='A'><test-method name='a' status='FAIL' duration-ms='3'/>\
             <test-method name='a' status='PASS' duration-ms='3'/></class></test></suite></testng-results>",
        ),
        xml(
            "<Site><Testing><Test Status='failed'><Name>a</Name></Test><Test Status='passed'><Name>a</Name></Test></Testing></Site>",
        ),
        xml(
            "<robot><suite name='S'><test name='a'><status status='FAIL'/></test><test name='a'><status status='PASS'/></test>\
             </suite></robot>",
        ),
        json(
            r#"{"results": {"tool": {"name": "x"}, "tests": [{"name": "a", "status": "failed"}, {"name": "a", "status": "passed"}]}}"#,
        ),
        json(
            r#"{"results": {"tool": {"name": "junit-to-ctrf"}, "tests": [{"name": "a", "status": "failed"}, {"name": "a", "status": "passed"}]}}"#,
        ),
        json(
            r#"{"numTotalTests": 2, "numRuntimeErrorTestSuites": 0, "testResults": [{"name": "/a.js", "assertionResults": [
            {"title": "a", "status": "failed"}, {"title": "a", "status": "passed"}]}]}"#,
        ),
        json(
            r#"{"config": {}, "suites": [{"title": "a", "file": "a", "specs": [
            {"title": "a", "file": "a", "tests": [{"results": [{"status": "failed"}]}]},
            {"title": "a", "file": "a", "tests": [{"results": [{"status": "passed"}]}]}]}]}"#,
        ),
        json(
            r#"{"stats": {}, "tests": [{"title": "a", "fullTitle": "s a", "err": {"message": "no"}}, {"title": "a", "fullTitle": "s a", "err": {}}],
            "pending": [], "failures": [{"title": "a", "fullTitle": "s a", "err": {"message": "no"}}], "passes": []}"#,
        ),
        json(
            r#"{"stats": {}, "results": [{"title": "s", "suites": [], "tests": [{"title": "a", "fullTitle": "s a", "state": "failed", "err": {"message": "no"}},
            {"title": "a", "fullTitle": "s a", "state": "passed", "err": {}}]}], "meta": {"mochawesome": {}}}"#,
        ),
        json(
            r#"[{"uri": "a.feature", "name": "F", "elements": [
            {"id": "f;a", "type": "scenario", "name": "a", "line": 3, "steps": [{"result": {"status": "failed"}}]},
            {"id": "f;a", "type": "scenario", "name": "a", "line": 9, "steps": [{"result": {"status": "passed"}}]}]}]"#,
        ),
        json(
            r#"{"created": 1795600001, "duration": 1, "exitcode": 1, "root": "/r", "summary": {}, "tests": [
            {"nodeid": "t.py::a", "outcome": "failed"}, {"nodeid": "t.py::a", "outcome": "passed"}]}"#,
        ),
        json(
            r#"{"version": "3", "examples": [{"full_description": "a", "file_path": "./a.rb", "status": "failed"},
            {"full_description": "a", "file_path": "./a.rb", "status": "passed"}], "summary": {"failure_count": 1}}"#,
        ),
        ("r.tap", "1..2\nnot ok 1 - a\nok 2 - a\n".to_owned()),
        ("r.jsonl", [go("fail"), go("pass")].concat()),
        (
            "r.jsonl",
            [
                "{\"type\":\"suite\",\"event\":\"started\",\"test_count\":2}\n",
                &libtest("failed"),
                &libtest("ok"),
            ]
            .concat(),
        ),
        (
            "r.jsonl",
            [
                "{\"protocolVersion\":\"0.1.1\",\"runnerVersion\":null,\"type\":\"start\",\"time\":0}\n",
                &dart(1, "failure"),
                &dart(2, "success"),
            ]
            .concat(),
        ),
    ];
    let mut imports: Vec<Vec<SourceFile>> = inputs
        .into_iter()
        .map(|(name, text)| vec![inline(name, text)])
        .collect();
    imports.push(vec![
        allure(1_795_600_000_000, "failed"),
        allure(1_795_600_001_000, "passed"),
    ]);
    for files in imports {
        let text = String::from_utf8_lossy(&files[0].bytes).into_owned();
        let report = plain(files).unwrap_or_else(|error| panic!("{text}: {error}"));
        let is_failed = |test: &assay_reports::ReportedTest| test.outcome().unwrap().status.is_failure();
        assert!(
            report.tests.iter().any(is_failed),
            "{text}\n{:?}",
            executions(&report)
        );
    }
}

#[test]
fn a_sender_may_say_that_repeated_results_are_retries() {
    for (outcomes, expected) in [
        ("FP", "FP"),
        ("PF", "FP"),
        ("FPP", "P FP"),
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
    // xdist's --dist=each runs all tests twice. A failed test at one file and line is a rerun.
    let suite = |cases: String| format!("<testsuites><testsuite {new}>{cases}</testsuite></testsuites>");
    assert_eq!(
        of_first("r.xml", suite(cases("a", "PP") + &cases("b", "PP"))),
        "P P"
    );
    assert_eq!(
        of_first("r.xml", suite(cases("a", "FP") + &cases("b", "P"))),
        "P F"
    );
    let placed = cases("a", "FEP") + &cases("b", "P");
    let placed = placed.replace("time=", "file='t.py' line='4' time=");
    assert_eq!(of_first("r.xml", suite(placed)), "FFP");
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
    let without_first = [("Pays (retry #1)", "Failed"), ("Pays (retry #2)", "Passed")];
    assert_eq!(
        read_all("r.trx", trx(&without_first)),
        ["Pays (retry #1): F", "Pays (retry #2): P"]
    );
    // Other tools have no such retries.
    let junit = format!(
        "<testsuite name='shop.Cart'>{}{}</testsuite>",
        case("pays", 'F'),
        case("pays (retry #1)", 'P')
    );
    assert_eq!(
        read_all("r.xml", junit),
        ["shop.Cart > pays: F", "shop.Cart > pays (retry #1): P"]
    );
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
    // A retry begins after the failed attempt, at the same place.
    let result = |start: u64, stop: u64, status: &str, place: &str| {
        format!(
            r#"{{"uuid": "{start}", "historyId": "one", "name": "total", "status": "{status}", "start": {start},
            "stop": {stop}, "labels": [{place}]}}"#
        )
    };
    let place = |name: &str, value: &str| format!(r#"{{"name": "{name}", "value": "{value}"}}"#);
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

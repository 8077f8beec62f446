//! Input that is broken, huge or malicious returns a report or a clear error.

use std::fmt::Write as _;

use assay_domain::run::RunState;
use assay_reports::{Format, Options, ReadError, SourceFile, looks_like_report, read};

use crate::support::{self, plain};

fn error(name: &str, bytes: impl Into<Vec<u8>>) -> String {
    plain(vec![support::inline(name, bytes)]).unwrap_err().to_string()
}

#[test]
fn a_file_that_is_no_report_is_named_with_advice() {
    for (bytes, hint) in [
        ("", "the file is empty: its reporter crashed or never ran"),
        ("  \n", "the file is empty: its reporter crashed or never ran"),
        (
            "hello",
            "expected Playwright JSON, JUnit XML of every dialect, CTRF",
        ),
        ("[]", "expected Playwright JSON"),
        (
            "PK\u{3}\u{4}report.jsonl",
            "only Playwright's blob reports are read",
        ),
        ("=== RUN   TestA", "use `go test -json` instead"),
        (
            r#"{"pytest_version": "9.2.0", "$report_type": "SessionStart"}"#,
            "write `--junitxml` or use pytest-json-report instead",
        ),
        (
            "<TestLog><TestSuite name='a'/></TestLog>",
            "run it with --log_format=JUNIT instead",
        ),
        (
            "<?xml version='1.0'?><TestCase name='a'/>",
            "run it with -o FILE,junitxml instead",
        ),
        ("<Site><Build/></Site>", "import Test.xml beside it"),
        (
            "<TestRun><FailedTests/><SuccessfulTests><Test id='1'/></SuccessfulTests></TestRun>",
            "use AUnit.Reporter.JUnit",
        ),
        (
            "<?xml version='1.0'?><testsuites xmlns='http://check.sourceforge.net/ns'><suite/></testsuites>",
            "set CK_TAP_LOG_FILE_NAME instead",
        ),
        (
            "<gtester><testbinary path='a'><testcase path='/a'/></testbinary></gtester>",
            "with --tap instead",
        ),
        (
            "<!DOCTYPE CUNIT_TEST_RUN_REPORT SYSTEM 'CUnit-Run.dtd'><CUNIT_TEST_RUN_REPORT/>",
            "CU_automated_enable_junit_xml",
        ),
        ("<unittest-results tests='3'/>", "convert it to JUnit XML"),
        ("<TestResults><TestListing/></TestResults>", "junittestreport"),
        ("<valgrindoutput/>", "holds no tests"),
        (
            "<robot name='arm'><link name='base'/></robot>",
            "expected Playwright JSON",
        ),
        (
            "<assembly xmlns='x'><id>bin</id></assembly>",
            "expected Playwright JSON",
        ),
        (
            r#"{"type": "log", "event": "started"}"#,
            "expected Playwright JSON",
        ),
        (
            r#"{"generator": "Robot 7.5", "rpa": false, "suite": {}}"#,
            "--output output.xml",
        ),
    ] {
        let message = error("some.file", bytes);
        assert!(
            message.starts_with("some.file: no known report format; ") && message.contains(hint),
            "{message}"
        );
        assert_eq!(looks_like_report(bytes.as_bytes()), None, "{bytes}");
    }
}

#[test]
fn formats_are_recognised_by_content_and_not_by_name() {
    for (text, format) in [
        (r#"{"config": {"suites": 1}, "suites": []}"#, Format::Playwright),
        (
            r#"{"results": {"tool": {"name": "x"}, "tests": []}}"#,
            Format::Ctrf,
        ),
        (r#"{"numTotalTests": 1, "testResults": []}"#, Format::Jest),
        (
            "FAIL x [build failed]\n{\"Time\":\"t\",\"Action\":\"run\",\"Package\":\"x\"}\n",
            Format::Go,
        ),
        (
            "> npm test\n{\"config\":{},\"suites\":[{\"title\":\"<testsuites>\"}]}",
            Format::Playwright,
        ),
        (
            "log\n<?xml version=\"1.0\"?><testsuites><system-out>\n{\"config\":{},\"suites\":[]}",
            Format::Junit,
        ),
        ("<j:testsuite xmlns:j='x'/>", Format::Junit),
        ("\u{feff}<?xml version=\"1.0\"?>\n<TestRun id='1'>", Format::Trx),
        (
            r#"{"uuid": "a", "historyId": "h", "status": "passed"}"#,
            Format::Allure,
        ),
        (r#"{"stats": {}, "tests": [], "passes": []}"#, Format::Mocha),
        (
            r#"{"stats": {}, "results": [{"uuid": "a"}]}"#,
            Format::Mochawesome,
        ),
        (
            r#"{"version": "3", "examples": [], "summary": {}}"#,
            Format::Rspec,
        ),
        (
            r#"{"type": "suite", "event": "started", "test_count": 1}"#,
            Format::Libtest,
        ),
        ("TAP version 13\nok 1 - a", Format::Tap),
        ("1..0 # skip", Format::Tap),
        ("npm test\nok 1 - a\n1..1", Format::Tap),
        (r#"[{"uri": "a.feature", "elements": []}]"#, Format::Cucumber),
        (
            "<testsuites><testsuite><properties><robot><suite/></robot></properties></testsuite></testsuites>",
            Format::Junit,
        ),
        ("<log><test-run/></log><testsuites/>", Format::Junit),
    ] {
        assert_eq!(looks_like_report(text.as_bytes()), Some(format), "{text}");
    }
}

#[test]
fn depth_is_bounded() {
    let depth = 200_000;
    // A field that is not read may be nested to any depth.
    let steps = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let text = format!(
        r#"{{"config": {{}}, "suites": [{{"title": "a", "specs": [{{"title": "t", "tests": [{{"status": "expected",
            "results": [{{"status": "passed", "steps": {steps}}}]}}]}}]}}]}}"#
    );
    assert_eq!(
        plain(vec![support::inline("r.json", text)]).unwrap().tests.len(),
        1
    );
    // A field that is read may not.
    for (open, close) in [("{\"suites\":[", "]}"), ("{\"error\":{\"cause\":", "}}")] {
        let text = format!(
            "{{\"config\":{{}},\"suites\":[{}{}]}}",
            open.repeat(depth),
            close.repeat(depth)
        );
        let message = error("deep.json", text);
        assert!(
            message.starts_with("deep.json:1: not a readable Playwright JSON report: "),
            "{message}"
        );
    }
    // Metadata that the user added are not read.
    let text = format!(
        "{{\"config\":{{\"metadata\":{}{}}},\"suites\":[],\"errors\":[{{\"message\":\"e\"}}]}}",
        "[".repeat(depth),
        "]".repeat(depth)
    );
    let report = plain(vec![support::inline("deep.json", text)]).unwrap();
    assert_eq!(report.errors.len(), 1);
}

#[test]
fn huge_texts_keep_their_head_and_tail() {
    let long = "x".repeat(5 << 20);
    let text = serde_json::json!({"config": {}, "suites": [{"title": long, "file": long, "specs": [{"title": "t", "tests": [
        {"projectName": long, "status": "unexpected", "results": [{"status": "failed", "errors": [{"message": format!("begin {long} end")}]}]}]}]}]});
    let report = plain(vec![support::inline("r.json", text.to_string())]).unwrap();
    let test = &report.tests[0];
    assert!(test.test.name.chars().count() < 2_100);
    assert!(test.test.file_path.as_ref().unwrap().chars().count() < 2_100);
    let message = test.attempts[0].errors[0].message.as_ref().unwrap();
    assert!(message.starts_with("begin x") && message.ends_with("x end") && message.chars().count() < 16_100);
}

#[test]
fn numbers_of_tests_attempts_errors_and_warnings_are_bounded() {
    let mut results = String::new();
    for _ in 0..3_000 {
        write!(
            results,
            "{}{{\"status\":\"failed\",\"errors\":[",
            if results.is_empty() { "" } else { "," }
        )
        .unwrap();
        results.push_str(&vec!["{\"message\":\"m\"}"; 30].join(","));
        results.push_str("]}");
    }
    let errors = vec!["{\"message\":\"outside\"}"; 500].join(",");
    let text = format!(
        "{{\"config\":{{}},\"errors\":[{errors}],\"suites\":[{{\"specs\":[{{\"tests\":[{{\"status\":\"unexpected\",\"results\":[{results}]}}]}}]}}]}}"
    );
    let report = plain(vec![support::inline("r.json", text)]).unwrap();
    assert_eq!(report.tests[0].attempts.len(), 1_000);
    assert_eq!(report.tests[0].attempts[0].errors.len(), 20);
    assert_eq!(report.errors.len(), 100);
    assert!(
        report.warnings[0].starts_with("400 more errors"),
        "{:?}",
        report.warnings
    );
    assert_eq!(report.tests[0].test.name, "(no name)");
}

#[test]
fn a_long_line_that_is_no_report_is_read_once() {
    // Quadratic work here would take minutes.
    let text = format!("[{}]", "{\"a\":{}},".repeat(1 << 20));
    let message = error("r.json", text);
    assert!(message.contains("no known report format"), "{message}");
}

#[test]
fn the_wrong_format_is_refused_by_name() {
    let options = Options {
        format: Some(Format::Ctrf),
        ..Options::default()
    };
    let message = read(vec![support::file("playwright/green.json")], &options)
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("not a readable CTRF report: no JSON object with the key `results` in it"),
        "{message}"
    );
    assert!(matches!(
        read(vec![], &Options::default()),
        Err(ReadError::Unrecognised { .. })
    ));
}

#[test]
fn a_cut_off_archive_is_read_as_far_as_it_goes() {
    use std::io::Write as _;
    let file = support::file("playwright/full.json");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(&file.bytes).unwrap();
    let packed = packed.finish().unwrap();
    let whole = plain(vec![support::inline("full.json.gz", packed.clone())]).unwrap();
    assert_eq!(whole, plain(vec![file]).unwrap());
    let cut = plain(vec![support::inline("full.json.gz", &packed[..packed.len() / 2])]).unwrap();
    assert_eq!(cut.state, RunState::Interrupted);
    assert!(!cut.tests.is_empty() && cut.tests.len() < whole.tests.len());
}

#[test]
fn retries_that_are_only_counted_are_bounded() {
    let tests: Vec<String> = (0..1_000)
        .map(|number| format!(r#"{{"name":"t{number}","status":"passed","retries":999999}}"#))
        .collect();
    let text = format!(r#"{{"results":{{"tool":{{}},"tests":[{}]}}}}"#, tests.join(","));
    let report = plain(vec![support::inline("r.json", text)]).unwrap();
    assert!(report.tests.iter().all(|test| test.attempts.len() == 21));
    let text = r#"{"numRuntimeErrorTestSuites": 0, "testResults": [{"name": "a.js", "assertionResults": [
        {"title": "t", "status": "passed", "invocations": 1e9}]}]}"#;
    let report = plain(vec![support::inline("r.json", text)]).unwrap();
    assert_eq!(report.tests[0].attempts.len(), 21);
}

#[test]
fn long_names_that_differ_in_the_middle_are_two_tests() {
    let name = |middle: char| format!("{}{middle}{}", "a".repeat(5_000), "z".repeat(5_000));
    let (one, other) = (name('1'), name('2'));
    let text = format!(
        "<testsuite><testcase name='{one}'/><testcase name='{other}'><failure/></testcase>\
         <testcase name='x' file='/{one}.py'/><testcase name='x' file='/{other}.py'/></testsuite>"
    );
    let report = plain(vec![support::inline("r.xml", text)]).unwrap();
    assert_eq!(report.tests.len(), 4);
    for test in &report.tests {
        assert_eq!(test.attempts.len(), 1);
        assert!(test.test.name.len() <= 8_000);
    }
    assert!(
        report.warnings[0].starts_with("The names or paths of 4 tests are longer than 2000 characters."),
        "{:?}",
        report.warnings
    );
}

#[test]
fn a_cut_off_report_of_many_levels_is_read_in_linear_time() {
    // Quadratic work here would take minutes.
    let depth = 200_000;
    let inner = format!("{}{}", "{\"tests\":[".repeat(depth), "]}".repeat(depth));
    let text = format!(
        r#"{{"results":{{"tool":{{}},"environment":{{"extra":{inner}}},"tests":[{{"name":"a","status":"passed"}},{{"na"#
    );
    let report = plain(vec![support::inline("r.json", text)]).unwrap();
    assert_eq!(report.tests.len(), 1);
}

#[test]
fn what_a_crashed_reporter_leaves_beside_a_report_is_an_error_of_the_run() {
    let beside = |left: &str| {
        let whole =
            "<testsuites><testsuite name='s'><testcase classname='m' name='a'/></testsuite></testsuites>";
        let files = [("a.xml", whole), ("b", left)].map(|(name, text)| SourceFile {
            name: name.to_owned(),
            bytes: text.as_bytes().to_vec(),
            modified: None,
        });
        read(&files, &Options::default())
    };
    for left in [
        "",
        "  \n",
        "<?xml version='1.0'?>\n",
        "<?xml version='1.0'?>\n<assem",
        "<assemblies timestamp='1'>\n<",
        "{\"stats\": {\"suites\": 1, \"failures\": 1",
        "[{\"uri\": \"a.feat",
        "{\"numFailedTests\": 1, \"startTime\":",
    ] {
        let report = beside(left).unwrap_or_else(|error| panic!("{left}: {error}"));
        let error = report.errors.first().and_then(|error| error.message.as_deref());
        assert!(
            error.unwrap_or_default().contains("cut off"),
            "{left}: {:?}",
            report.errors
        );
    }
    // What is whole, or nothing that a reporter of these formats begins, is no report.
    for other in [
        "<coverage line-rate='1'><packages/></coverage>",
        "<coverage/>",
        "<html><body><br>",
        "{\"version\": 3}",
        "// a comment\n{\"strict\": true}",
        "[INFO] started",
        "a=1",
    ] {
        assert!(!assay_reports::is_cut_off(other.as_bytes()), "{other}");
        assert!(beside(other).is_err(), "{other}");
    }
}

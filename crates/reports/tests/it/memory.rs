//! Reports whose lists and shared names would take much more memory than their text are refused.

use assay_reports::{Format, Options, SourceFile, read, read_readable};

use crate::support::{self, plain};

#[test]
fn names_that_many_tests_share_are_bounded() {
    const TESTS: usize = 30_000;
    // 20,000 bytes; a shortened one has about 8,000.
    let name = "😀".repeat(5_000);
    let xml = |before: &str, test: &str, after: &str| {
        format!("{}{}{after}", before.replace("NAME", &name), test.repeat(TESTS))
    };
    let json = |before: &str, test: &str, after: &str| {
        format!(
            "{}{}{after}",
            before.replace("NAME", &name),
            vec![test; TESTS].join(",")
        )
    };
    for (format, text) in [
        (
            Format::Junit,
            xml("<testsuite name='NAME'>", "<testcase name='a'/>", "</testsuite>"),
        ),
        (
            Format::Robot,
            xml(
                "<robot><suite name='NAME' source='NAME'>",
                "<test name='a'><status status='PASS'/></test>",
                "</suite></robot>",
            ),
        ),
        (
            Format::Testng,
            xml(
                "<testng-results><class name='&amp;NAME'>",
                "<test-method name='a' status='PASS'/>",
                "</class></testng-results>",
            ),
        ),
        (
            Format::Trx,
            xml(
                "<TestRun><UnitTest id='1'><TestMethod className='NAME'/></UnitTest>",
                "<UnitTestResult testId='1' testName='a' outcome='Passed'/>",
                "</TestRun>",
            ),
        ),
        (
            Format::Playwright,
            json(
                r#"{"config":{},"suites":[{"title":"NAME","specs":[{"tests":["#,
                "{}",
                "]}]}]}",
            ),
        ),
        (
            Format::Playwright,
            json(
                r#"{"config":{},"suites":[{"specs":[{"tests":[{"projectName":"NAME","results":["#,
                "{}",
                "]}]}]}]}",
            ),
        ),
        (
            Format::Playwright,
            json(
                "{\"method\":\"onBlobReportMetadata\",\"params\":{}}\n{\"method\":\"onProject\",\"params\":{\"project\":\
                 {\"name\":\"NAME\",\"suites\":[{\"entries\":[",
                r#"{"testId":"1"}"#,
                "]}]}}}\n{\"method\":\"onEnd\"}\n",
            ),
        ),
        (
            Format::Cucumber,
            json(r#"[{"uri":"a","name":"NAME","elements":["#, "{}", "]}]"),
        ),
        (
            Format::Karate,
            json(r#"{"name":"NAME","scenarioResults":["#, "{}", "]}"),
        ),
        (
            Format::Jest,
            json(
                r#"{"testResults":[{"name":"NAME","assertionResults":["#,
                r#"{"title":"a"}"#,
                "]}]}",
            ),
        ),
        (
            Format::Mochawesome,
            json(
                r#"{"stats":{},"results":[{"title":"NAME","tests":["#,
                "{}",
                "]}]}",
            ),
        ),
        (
            Format::Ctrf,
            json(
                r#"{"results":{"tool":{},"tests":[{"name":"a","browser":"NAME","retryAttempts":["#,
                "{}",
                "]}]}}",
            ),
        ),
        (Format::Tap, xml("t/NAME.t ..\n", "ok\n", "1..1\n")),
        (
            Format::Dart,
            xml(
                "{\"type\":\"group\",\"group\":{\"id\":1,\"name\":\"NAME\"}}\n",
                "{\"type\":\"testStart\",\"test\":{\"id\":1,\"groupIDs\":[1]}}\n\
                 {\"type\":\"testDone\",\"testID\":1,\"result\":\"success\"}\n",
                "",
            ),
        ),
    ] {
        let options = Options {
            format: Some(format),
            ..Options::default()
        };
        let read = read(vec![support::inline("r", text)], &options);
        assert_eq!(
            read.map(|report| report.tests.len()).unwrap_err().to_string(),
            "r: the memory for the import's lists and shared names exceeds the limit of 192 MiB plus twice the size of \
             each file",
            "{format}"
        );
    }
}

#[test]
fn many_files_are_bounded_as_one_is() {
    let shared_names = |file: usize| {
        let name = format!("{file}{}", "😀".repeat(2_000));
        let tests = "<testcase name='a'/>".repeat(3_000);
        format!("<testsuite name='{name}'>{tests}</testsuite>")
    };
    let many_elements = |file: usize| {
        let assertions = vec![r#"{"title":"a"}"#; 100_000].join(",");
        format!("{{\"testResults\":[{{\"name\":\"{file}\",\"assertionResults\":[{assertions}]}}]}}")
    };
    let files = |count: usize, text: &dyn Fn(usize) -> String| -> Vec<SourceFile> {
        (0..count)
            .map(|file| support::inline(&format!("r{file}"), text(file)))
            .collect()
    };
    let options = Options::default();
    let names = files(10, &shared_names);
    plain(vec![names[0].clone()]).unwrap();
    let elements = files(20, &many_elements);
    plain(vec![elements[0].clone()]).unwrap();
    for error in [
        read(names, &options)
            .map(|report| report.tests.len())
            .unwrap_err(),
        // No file is skipped, although each is small enough.
        read_readable(&elements, &options)
            .map(|partial| partial.report.tests.len())
            .unwrap_err(),
    ] {
        let expected = "the memory for the import's lists and shared names exceeds the limit of 192 MiB";
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn attempts_that_a_report_only_counts_are_bounded() {
    let report = |tests: usize, retries: usize| {
        let test = |number| format!(r#"{{"name": "t{number}", "status": "passed", "retries": {retries}}}"#);
        let tests: Vec<String> = (0..tests).map(test).collect();
        let tests = tests.join(",");
        format!(r#"{{"results": {{"tool": {{"name": "x"}}, "summary": {{}}, "tests": [{tests}]}}}}"#)
    };
    let read = |content: String| {
        let file = assay_reports::SourceFile {
            name: "r.json".to_owned(),
            bytes: content.into_bytes(),
            modified: None,
        };
        assay_reports::read(vec![file], &assay_reports::Options::default())
    };
    let error = read(report(150_000, 20)).unwrap_err().to_string();
    assert!(error.contains("memory"), "{error}");
    assert_eq!(read(report(20_000, 2)).unwrap().tests[0].attempts.len(), 3);
}

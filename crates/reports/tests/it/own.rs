//! The own formats of test tools: reports that the tools in testdata/reports/suites wrote, and samples from the
//! documentation of tools that could not be run.

use assay_domain::{attempt::AttemptStatus, run::RunState};
use assay_reports::{Format, Options, looks_like_report, read};

use crate::{
    render::render,
    support::{self, inline, plain, rooted},
};

/// The reports of a tool's own format below testdata/reports, with the checkout that each names.
pub(crate) fn reports() -> Vec<(String, Format, String)> {
    let mut reports = Vec::new();
    for folder in support::folders() {
        for file in support::files_in(&folder) {
            let Some(format) =
                looks_like_report(&file.bytes).filter(|format| !HAVE_OTHER_TESTS.contains(format))
            else {
                continue;
            };
            let text = String::from_utf8_lossy(&file.bytes);
            let named = text.split_once("/home/runner/work/acme-shop/");
            let checkout = named.and_then(|(_, rest)| rest.split(['/', '"', '<', '\n']).next());
            let root = format!("/home/runner/work/acme-shop/{}", checkout.unwrap_or("acme-shop"));
            reports.push((file.name, format, root));
        }
    }
    assert!(reports.len() > 25, "{reports:?}");
    reports
}

/// Formats that several tools write, or whose reports are compared in another file of these tests.
const HAVE_OTHER_TESTS: &[Format] = &[
    Format::Playwright,
    Format::Junit,
    Format::Ctrf,
    Format::Jest,
    Format::Go,
    Format::Trx,
    Format::Allure,
    Format::Testng,
];

#[test]
fn reports_are_recognised_and_read_as_their_suites_ran() {
    for (path, _, root) in reports() {
        let report = rooted(vec![support::file(&path)], &root);
        let name = path.replace(['/', '.'], "-");
        insta::assert_snapshot!(format!("own-{name}"), render(&report));
    }
}

#[test]
fn a_truncated_report_yields_no_other_tests_and_is_never_complete() {
    for (path, format, _) in reports() {
        let file = support::file(&path);
        let whole = plain(vec![file.clone()]).unwrap();
        let text = String::from_utf8(file.bytes).unwrap();
        for share in 1..8 {
            let end = (share * text.len() / 8..)
                .find(|at| text.is_char_boundary(*at))
                .unwrap();
            let options = Options {
                format: Some(format),
                ..Options::default()
            };
            // A file that is cut off before its first whole test is refused.
            let Ok(cut) = read(vec![inline("r", &text.as_bytes()[..end])], &options) else {
                continue;
            };
            for test in &cut.tests {
                let is_known = whole.tests.iter().any(|known| known.test == test.test);
                assert!(is_known, "{path} {share}/8: {:?}", test.test);
            }
            // Text after the tests may be missing, such as prove's summary.
            let is_noted = !cut.warnings.is_empty() || !cut.errors.is_empty() || cut.tests == whole.tests;
            assert!(cut.state == RunState::Interrupted || is_noted, "{path} {share}/8");
        }
    }
}

#[test]
fn depths_numbers_and_types_that_no_tool_writes_are_bounded() {
    let deep = 100_000;
    let options = |format| Options {
        format: Some(format),
        ..Options::default()
    };
    let nested = |open: &str, close: &str| format!("{}{}", open.repeat(deep), close.repeat(deep));
    for (format, text) in [
        (
            Format::Robot,
            format!("<robot>{}</robot>", nested("<suite name='s'>", "</suite>")),
        ),
        (
            Format::Nunit,
            format!("<test-run>{}</test-run>", nested("<test-suite>", "</test-suite>")),
        ),
        (Format::Xunit, nested("<assemblies>", "</assemblies>")),
        (Format::Ctest, nested("<Site>", "</Site>")),
        (
            Format::Mochawesome,
            format!(
                "{{\"stats\":{{}},\"results\":[{}]}}",
                nested("{\"suites\":[", "]}")
            ),
        ),
    ] {
        let error = read(vec![inline("deep", text)], &options(format))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("levels") || error.contains("recursion limit"),
            "{format}: {error}"
        );
    }
    // Subtests that are nested too deep are not tests.
    let tap: String = (0..1_000)
        .map(|depth| format!("{}ok 1 - a\n", " ".repeat(4 * depth)))
        .collect();
    assert_eq!(plain(vec![inline("r.tap", tap)]).unwrap().tests.len(), 1);

    let odd = r#"{"stats": [], "passes": 1, "pending": null, "failures": {}, "tests": [{"title": 5, "fullTitle": [], "duration": 1e300,
        "currentRetry": 1e300, "err": {"message": {}, "stack": 7}}, null, {}]}"#;
    let report = read(vec![inline("r.json", odd)], &options(Format::Mocha)).unwrap();
    assert_eq!(report.tests[0].attempts.len(), 21);
    let odd = r#"{"stats": {}, "passes": 1, "tests": [{"title": 5, "duration": 1e300, "currentRetry": 1e300, "err": {}}]}"#;
    let report = plain(vec![inline("r.json", odd)]).unwrap();
    assert_eq!(report.tests[0].test.name, "5");
    assert_eq!(report.tests[0].attempts.len(), 21);
    assert_eq!(report.tests[0].attempts[20].duration_ms, Some(366 * 86_400_000));
    let odd = r#"[{"uri": 7, "name": {}, "elements": [{"name": [], "line": -4, "steps": [{"result": {"status": 1, "duration": -1e300}}]}, null]}]"#;
    let report = plain(vec![inline("r.json", odd)]).unwrap();
    assert_eq!(report.tests[0].test.name, "(no name)");
    assert_eq!(report.tests[0].attempts[0].duration_ms, Some(0));
}

#[test]
fn attempts_that_a_tool_writes_are_distinguished() {
    let statuses = |text: &str| -> Vec<Vec<AttemptStatus>> {
        let report = plain(vec![inline("r", text)]).unwrap();
        let tests = report.tests.iter();
        tests
            .map(|test| test.attempts.iter().map(|attempt| attempt.status).collect())
            .collect()
    };
    use AttemptStatus::{Failed, Passed};
    // Ruby writes each attempt of a scenario. Examples without a number are executions of their outline.
    let element = |line: u32, status: &str| {
        format!(
            "{{\"id\":\"f;a\",\"name\":\"a\",\"line\":{line},\"steps\":[{{\"match\":{{\"location\":\"a.rb:3\"}},\"result\":{{\"status\":\"{status}\"}}}}]}}"
        )
    };
    let feature = [element(3, "failed"), element(3, "passed"), element(9, "passed")].join(",");
    let text = format!("[{{\"id\":\"f\",\"uri\":\"a.feature\",\"name\":\"f\",\"elements\":[{feature}]}}]");
    assert_eq!(statuses(&text), [vec![Failed, Passed, Passed]]);
    let text = text.replace("\"name\":\"a\",\"line\":9", "\"name\":\"b\",\"line\":9");
    assert_eq!(statuses(&text), [vec![Failed, Passed], vec![Passed]]);
    // nextest's events number the attempt.
    let text = "{\"type\":\"suite\",\"event\":\"started\",\"test_count\":1}\n\
                {\"type\":\"test\",\"event\":\"ok\",\"name\":\"shop::orders$adds_up#3\"}\n\
                {\"type\":\"suite\",\"event\":\"ok\"}\n";
    assert_eq!(statuses(text), [vec![Failed, Failed, Passed]]);
}

#[test]
fn a_folder_of_karate_counts_each_feature_once() {
    let feature = support::file("samples/shop.orders.karate-json.txt");
    let mut files = vec![
        feature.clone(),
        support::file("samples/karate-summary-json.txt"),
        inline(
            "samples/shop.orders.json",
            r#"[{"uri": "a.feature", "elements": []}]"#,
        ),
        inline(
            "samples/shop.orders.xml",
            "<testsuite><testcase name='[1:4] keeps'/></testsuite>",
        ),
        inline(
            "samples/shop.basket.xml",
            "<testsuite><testcase name='[1:4] opens'/></testsuite>",
        ),
    ];
    for file in files.iter_mut().take(2) {
        let (_, name) = file.name.rsplit_once("samples/").unwrap();
        file.name = format!("samples/{name}");
    }
    let report = plain(files).unwrap();
    let names: Vec<&str> = report.tests.iter().map(|test| &*test.test.name).collect();
    assert_eq!(
        names,
        [
            "Orders > keeps the discount",
            "Orders > lists the orders",
            "Orders > prices",
            "Orders > prices [2]",
            "[1:4] opens"
        ]
    );
    let repetitions = report
        .warnings
        .iter()
        .filter(|warning| warning.ends_with("; counted once"));
    assert_eq!(repetitions.count(), 3, "{:?}", report.warnings);
    // Karate writes the keys in any order: the name may follow the cut.
    let text = String::from_utf8(feature.bytes).unwrap();
    let scenarios = text.find("\"scenarioResults\"").unwrap();
    let end = text.find("\"callDepth\"").unwrap();
    let nameless = format!("{{{}", &text[scenarios..end - 1]);
    let error = plain(vec![inline("a.karate-json.txt", nameless)])
        .unwrap_err()
        .to_string();
    assert!(error.contains("before the feature's name"), "{error}");
}

#[test]
fn nunit_before_2_5_has_no_result_attribute_but_marks_executed_tests() {
    let text = "<test-results name='shop.dll' date='2007-07-27' time='11:18:43'><test-suite name='shop' success='False'><results>\
                <test-case name='Shop.OrderTests.AddsUp' executed='True' success='True' time='0.010' asserts='0'/>\
                <test-case name='Shop.OrderTests.Keeps' executed='True' success='False' time='0.020' asserts='1'>\
                <failure><message>expected: 1350</message></failure></test-case>\
                <test-case name='Shop.OrderTests.IsIgnored' executed='False'><reason><message>later</message></reason></test-case>\
                </results></test-suite></test-results>";
    let report = plain(vec![inline("r.xml", text)]).unwrap();
    let statuses: Vec<AttemptStatus> = report.tests.iter().map(|test| test.attempts[0].status).collect();
    use AttemptStatus::{Failed, Passed, Skipped};
    assert_eq!(statuses, [Passed, Failed, Skipped]);
}

#[test]
fn wrong_types_and_huge_numbers_are_bounded_in_every_json_format() {
    const LONGEST: u64 = 366 * 86_400_000;
    let scenario = r#"{"name": [], "line": -1e300, "exampleIndex": {}, "failed": "no", "durationMillis": 1e300, "startTime": -1e300,
        "stepResults": [{"step": {"line": []}, "result": {"status": {}}}, {"result": {"status": "failed", "errorMessage": 5}}]}"#;
    let example = r#"{"full_description": 5, "file_path": [], "run_time": 1e300, "status": {}, "exception": {"message": [], "backtrace": 7}}"#;
    let pytest = r#"{"nodeid": 5, "outcome": [], "call": {"duration": 1e300, "crash": {"message": 7, "lineno": -1}, "longrepr": {}}, "setup": null}"#;
    let dart = "{\"protocolVersion\":\"0.1.1\",\"runnerVersion\":null,\"type\":\"start\",\"time\":-1e300}\n\
                {\"suite\":{\"id\":1e300,\"path\":7},\"type\":\"suite\"}\n{\"test\":{\"id\":2,\"name\":[],\"suiteID\":-4,\"groupIDs\":7,\
                \"line\":1e300},\"type\":\"testStart\",\"time\":0}\n{\"testID\":2,\"error\":{},\"stackTrace\":9,\"type\":\"error\"}\n\
                {\"testID\":2,\"result\":[],\"type\":\"testDone\",\"time\":1e300}\n{\"type\":\"done\"}\n";
    let libtest = "{\"type\":\"suite\",\"event\":\"started\",\"test_count\":-1e300}\n{\"type\":\"test\",\"event\":\"ok\",\"name\":\"a#1e300\",\
                   \"exec_time\":1e300,\"stdout\":{}}\n{\"type\":\"test\",\"event\":\"failed\",\"name\":\"b#18446744073709551616\",\"exec_time\":[]}\n";
    let blob = "{\"method\":\"onBlobReportMetadata\",\"params\":{\"version\":{}}}\n{\"method\":\"onProject\",\"params\":{\"project\":\
                {\"name\":7,\"suites\":[{\"title\":[],\"entries\":[{\"testId\":1,\"title\":{}}]}]}}}\n\
                {\"method\":\"onTestBegin\",\"params\":{\"testId\":1,\"result\":{\"id\":2,\"startTime\":1e300}}}\n\
                {\"method\":\"onTestEnd\",\"params\":{\"test\":{\"testId\":1},\"result\":{\"id\":2,\"duration\":1e300,\"status\":[],\"errors\":7}}}\n\
                {\"method\":\"onEnd\",\"params\":{\"result\":{\"duration\":-1e300}}}\n";
    let mut problems = Vec::new();
    for (format, text) in [
        (Format::Karate, format!(r#"{{"name": {{}}, "scenarioResults": [{scenario}, null]}}"#)),
        (Format::Karate, r#"{"featureSummary": [{"name": 5, "failedCount": -1e300, "scenarioCount": 1e300, "durationMillis": 1e300}]}"#.to_owned()),
        (Format::Rspec, format!(r#"{{"summary": {{}}, "examples": [{example}, null]}}"#)),
        (Format::PytestJson, format!(r#"{{"exitcode": {{}}, "created": 1e300, "root": 7, "tests": [{pytest}, null]}}"#)),
        (Format::Dart, dart.to_owned()),
        (Format::Libtest, libtest.to_owned()),
        (Format::Playwright, blob.to_owned()),
    ] {
        let report = plain(vec![inline("r", text)]);
        let Ok(report) = report else {
            problems.push(format!("{format}: {}", report.unwrap_err()));
            continue;
        };
        assert_eq!(report.format, format);
        assert!(!report.tests.is_empty(), "{format}");
        for test in &report.tests {
            assert!(!test.test.name.is_empty(), "{format}");
            assert!(test.attempts.len() <= 21, "{format}");
            let durations = test.attempts.iter().filter_map(|attempt| attempt.duration_ms);
            assert!(durations.max().unwrap_or(0) <= LONGEST, "{format}");
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
    // An element that is not an object is rejected with its line.
    let text = "{\"exitcode\": 1, \"root\": \"/r\", \"tests\": [\n7]}";
    let error = plain(vec![inline("r", text)]).unwrap_err().to_string();
    assert!(error.starts_with("r:2: not a readable pytest"), "{error}");
}

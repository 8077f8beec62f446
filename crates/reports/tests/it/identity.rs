//! The identity of tests and results: which names are one test, and which results are one result written twice.

use assay_domain::attempt::AttemptStatus;
use assay_reports::Report;

use crate::support::{inline, plain};

fn junit(text: &str) -> Report {
    plain(vec![inline("r.xml", text)]).unwrap()
}

/// Name, file and number of attempts of each test.
fn tests(report: &Report) -> Vec<(&str, Option<&str>, usize)> {
    report
        .tests
        .iter()
        .map(|test| {
            (
                &*test.test.name,
                test.test.file_path.as_deref(),
                test.attempts.len(),
            )
        })
        .collect()
}

#[test]
fn a_suite_named_by_a_path_is_the_file() {
    let report = junit(
        "<testsuites name='jest tests'><testsuite name='atoms/a.test.tsx'><testcase classname='' name='renders'/></testsuite>\
         <testsuite name='atoms/b.test.tsx'><testcase classname='' name='renders'/></testsuite>\
         <testsuite name='tests/test_a.py'><testcase classname='' name='adds'/></testsuite>\
         <testsuite name='my orders.js'><testcase classname='' name='adds'/></testsuite></testsuites>",
    );
    assert_eq!(
        tests(&report),
        [
            ("renders", Some("atoms/a.test.tsx"), 1),
            ("renders", Some("atoms/b.test.tsx"), 1),
            ("adds", Some("tests/test_a.py"), 1),
            ("adds", None, 1),
        ]
    );
}

#[test]
fn without_a_class_name_the_suite_names_the_class() {
    let report = junit(
        "<testsuites><testsuite name='all'><testsuite name='packet'><testsuite name='TestA'><testcase classname='' name='A'/>\
         </testsuite><testsuite name='TestB'><testcase classname='' name='A'/></testsuite><testcase classname='' name='A'/>\
         </testsuite></testsuite></testsuites>",
    );
    assert_eq!(
        tests(&report),
        [
            ("TestA > A", None, 1),
            ("TestB > A", None, 1),
            ("packet > A", None, 1)
        ]
    );
}

#[test]
fn suites_distinguish_tests_of_the_same_name() {
    let report = junit(
        "<testsuites><testsuite name='s1'><testcase classname='C' name='a'/><testcase classname='C' name='b'/></testsuite>\
         <testsuite name='s2'><testcase classname='C' name='a'><failure/></testcase></testsuite>\
         <testsuite name='s1'><testcase classname='C' name='a'/></testsuite></testsuites>",
    );
    assert_eq!(
        tests(&report),
        [
            ("s1 > C > a", None, 2),
            ("C > b", None, 1),
            ("s2 > C > a", None, 1)
        ]
    );
    // A name with the time of the run differs in each run.
    let report = junit(
        "<testsuites><testsuite name='s-20261120184603'><testcase classname='C' name='a'/></testsuite>\
         <testsuite name='s-20261120184604'><testcase classname='C' name='a'/></testsuite></testsuites>",
    );
    assert_eq!(tests(&report), [("C > a", None, 2)]);
}

#[test]
fn a_browser_named_by_the_suite_is_the_variant() {
    let report = junit(
        "<testsuites><testsuite name='Firefox - a.cy.js'><testcase classname='page' name='opens'/></testsuite>\
         <testsuite name='FiltersTest: internet explorer 11'><testsuite name='FiltersTest::opens'>\
         <testcase classname='page' name='opens'/></testsuite></testsuite>\
         <testsuite name='Chrome'><testcase classname='page' name='opens'><failure/></testcase></testsuite>\
         <testsuite name='Chromed: parts'><testcase classname='page' name='closes'/></testsuite></testsuites>",
    );
    let names_and_browsers: Vec<_> = report
        .tests
        .iter()
        .map(|test| (&*test.test.name, test.attempts[0].browser.as_deref()))
        .collect();
    assert_eq!(
        names_and_browsers,
        [
            ("Firefox > page > opens", Some("Firefox")),
            (
                "internet explorer 11 > page > opens",
                Some("internet explorer 11")
            ),
            ("Chrome > page > opens", Some("Chrome")),
            ("page > closes", None),
        ]
    );
    assert_eq!(report.tests[0].test.file_path.as_deref(), Some("a.cy.js"));
    // Without a class name, the rest of the suite's name distinguishes two tests of one title.
    let report = junit(
        "<testsuites><testsuite name='FiltersTest: chrome'><testcase name='opens'/>\
         <testsuite name='FiltersTest::byNull'><testcase name='byNull with data set #0'/></testsuite></testsuite>\
         <testsuite name='OrdersTest: chrome'><testcase name='opens'/></testsuite></testsuites>",
    );
    let names: Vec<&str> = report.tests.iter().map(|test| &*test.test.name).collect();
    assert_eq!(
        names,
        [
            "chrome > FiltersTest > opens",
            "chrome > FiltersTest > byNull with data set #0",
            "chrome > OrdersTest > opens"
        ]
    );
}

#[test]
fn a_test_that_ran_on_several_machines_of_ci_is_one_without_a_root() {
    let jest = |path: &str| {
        let text = format!(
            r#"{{"numTotalTests": 1, "testResults": [{{"name": "{path}", "assertionResults": [{{"title": "adds up", "status": "passed"}}]}}]}}"#
        );
        inline(path, text)
    };
    let report = plain(vec![
        jest("/home/runner/work/shop/shop/src/a.test.js"),
        jest("/Users/runner/work/shop/shop/src/a.test.js"),
        jest("D:/a/shop/shop/src/a.test.js"),
        jest("/srv/runner-7/_work/shop/shop/src/a.test.js"),
    ])
    .unwrap();
    assert_eq!(tests(&report), [("adds up", Some("src/a.test.js"), 4)]);
}

#[test]
fn a_playwright_report_from_windows_has_the_test_names_of_other_systems() {
    let text = r#"{"config": {}, "suites": [{"title": "critical\\a.spec.ts", "file": "critical/a.spec.ts", "specs": [{"title": "t\\u",
        "file": "critical/a.spec.ts", "tests": [{"projectName": "chromium", "results": [{"status": "passed"}]}]}]}]}"#;
    let report = plain(vec![inline("r.json", text)]).unwrap();
    assert_eq!(
        tests(&report),
        [(
            "chromium > critical/a.spec.ts > t\\u",
            Some("critical/a.spec.ts"),
            1
        )]
    );
}

#[test]
fn results_that_testng_writes_beside_surefires_count_once() {
    let surefire = "<testsuite xsi:noNamespaceSchemaLocation='https://maven.apache.org/surefire/maven-surefire-plugin/xsd/\
                    surefire-test-report-3.0.xsd' name='TestSuite'><testcase classname='A' name='one' time='5.1'/></testsuite>";
    let by = |reporter: &str, time: &str| {
        format!(
            "<!-- Generated by org.testng.reporters.{reporter} --><testsuite name='A'><testcase classname='A' name='one' \
             time='{time}'/></testsuite>"
        )
    };
    let own = [
        inline("out/junitreports/TEST-A.xml", by("JUnitReportReporter", "5.1")),
        inline("out/Suite/Test.xml", by("JUnitXMLReporter", "2.8")),
    ];
    let all = [&[inline("out/TEST-TestSuite.xml", surefire)], &own[..]].concat();
    for (files, warned) in [(all, 2), (own.to_vec(), 1)] {
        let report = plain(files).unwrap();
        assert_eq!(tests(&report), [("A > one", None, 1)]);
        let repetitions = report
            .warnings
            .iter()
            .filter(|warning| warning.ends_with("; counted once"));
        assert_eq!(repetitions.count(), warned, "{:?}", report.warnings);
    }
    // Results of another module are distinct.
    let apart = vec![
        inline("a/TEST-TestSuite.xml", surefire),
        inline("b/junitreports/TEST-A.xml", by("JUnitReportReporter", "5.1")),
    ];
    assert_eq!(tests(&plain(apart).unwrap()), [("A > one", None, 2)]);
    let copies = vec![inline("a.xml", surefire), inline("copy of a.xml", surefire)];
    assert_eq!(tests(&plain(copies).unwrap()), [("A > one", None, 1)]);
}

#[test]
fn a_skipped_twin_that_took_time_is_a_retried_attempt() {
    let statuses = |first: &str| -> Vec<AttemptStatus> {
        let report = junit(&format!(
            "<testsuites><testsuite name='s'>{first}<testcase classname='A' name='a' time='0.1'/></testsuite></testsuites>"
        ));
        report.tests[0]
            .attempts
            .iter()
            .map(|attempt| attempt.status)
            .collect()
    };
    use AttemptStatus::{Failed, Passed, Skipped};
    assert_eq!(
        statuses("<testcase classname='A' name='a' time='17.9'><skipped/></testcase>"),
        [Failed, Passed]
    );
    assert_eq!(
        statuses("<testcase classname='A' name='a' time='0'><skipped/></testcase>"),
        [Skipped, Passed]
    );
    // TestNG writes the attempts in any order.
    let case =
        |time: &str, end: &str| format!("<testcase classname='A' name='a' time='{time}'>{end}</testcase>");
    for (cases, expected) in [
        (
            [
                case("0.1", ""),
                case("0.2", "<skipped/>"),
                case("0.3", "<skipped/>"),
            ]
            .concat(),
            vec![Failed, Failed, Passed],
        ),
        (
            [
                case("0.1", "<skipped/>"),
                case("0.2", ""),
                case("0.3", "<skipped/>"),
            ]
            .concat(),
            vec![Failed, Failed, Passed],
        ),
        (
            [case("0.1", "<failure/>"), case("0.2", "<skipped/>")].concat(),
            vec![Failed, Failed],
        ),
        (
            [case("0.1", ""), case("0.2", "<skipped message='no network'/>")].concat(),
            vec![Skipped, Passed],
        ),
        (
            [case("0.2", "<skipped>no network</skipped>"), case("0.1", "")].concat(),
            vec![Skipped, Passed],
        ),
    ] {
        let report = junit(&format!("<testsuite name='s'>{cases}</testsuite>"));
        let read: Vec<AttemptStatus> = report.tests[0]
            .attempts
            .iter()
            .map(|attempt| attempt.status)
            .collect();
        assert_eq!(read, expected, "{cases}");
    }
}

#[test]
fn the_same_results_in_another_file_of_a_folder_count_once() {
    let case = |name: &str, time: &str| format!("<testcase classname='A' name='{name}' time='{time}'/>");
    let suite = |more: &str, cases: &str| format!("<testsuite name='s'{more}>{cases}</testsuite>");
    let all = suite("", &[case("one", "5.1"), case("two", "0.3")].concat());
    let read = |part: String, path: &str| {
        let files = vec![inline("out/all.xml", &*all), inline(path, part)];
        let report = plain(files).unwrap();
        let repetitions = report
            .warnings
            .iter()
            .filter(|warning| warning.ends_with("repeats the results of out/all.xml; counted once"))
            .count();
        (report.tests[0].attempts.len(), repetitions)
    };
    let one = case("one", "5.1");
    assert_eq!(read(suite("", &one), "out/A.xml"), (1, 1));
    assert_eq!(read(suite("", &one), "out/classes/A.xml"), (1, 1));
    // Another duration, status, test or folder means another execution. Results too short to compare are also kept.
    for (part, path) in [
        (suite("", &case("one", "5.2")), "out/A.xml"),
        (
            suite("", &one.replace("/>", "><skipped/></testcase>")),
            "out/A.xml",
        ),
        (suite("", &[&*one, &case("three", "0.1")].concat()), "out/A.xml"),
        (suite("", &one), "other/A.xml"),
    ] {
        assert_eq!(read(part.clone(), path), (2, 0), "{path}: {part}");
    }
    let short = suite("", &case("one", "0.001"));
    let two = vec![
        inline("out/a.xml", &*short),
        inline("out/b.xml", short.replace("'s'", "'t'")),
    ];
    assert_eq!(plain(two).unwrap().tests[0].attempts.len(), 2);
    // A later time means another execution, too.
    let at = |minute: u32| suite(&format!(" timestamp='2026-11-20T10:{minute:02}:00Z'"), &one);
    let runs = vec![inline("out/1.xml", at(1)), inline("out/2.xml", at(2))];
    assert_eq!(plain(runs).unwrap().tests[0].attempts.len(), 2);
}

#[test]
fn odd_ways_to_write_a_result_are_read() {
    let report = junit(
        "<testsuites time='1967986371'><testsuite><testcase name='a' time='999638317'/><testcase name='b' time='0'/>\
         </testsuite></testsuites>",
    );
    assert_eq!(report.tests[0].attempts[0].duration_ms, Some(1_000));
    let report = junit("<testsuite time='00:00:00.823'><testcase name='a' time='00:00:00.121'/></testsuite>");
    assert_eq!(report.tests[0].attempts[0].duration_ms, Some(121));
    let report =
        junit("<testsuite><testcase name='a' status='run' result='skipped' classname='S'/></testsuite>");
    assert_eq!(report.tests[0].attempts[0].status, AttemptStatus::Skipped);
    let report = junit(
        "<testsuites name='pytest tests'><testsuite name='pytest'><testcase classname='t' name='a'>\
         <failure message='#x1B[31mred#x1B[0m #x07bell'/></testcase></testsuite></testsuites>",
    );
    assert_eq!(
        report.tests[0].attempts[0].errors[0].message.as_deref(),
        Some("red bell")
    );
    // Before version 6, pytest wrote no element around the suite.
    let report = junit(
        "<testsuite errors='0' failures='1' hostname='vm' name='pytest' skipped='0' tests='1' time='1'>\
         <testcase classname='t' name='a'><failure message='#x1B[1m#x1B[31mred#x1B[0m'/></testcase></testsuite>",
    );
    assert_eq!(
        report.tests[0].attempts[0].errors[0].message.as_deref(),
        Some("red")
    );
    let report = junit(
        "<testsuite><testcase name='a'><failure message='\u{feff}[36m&lt;body&gt;[39m [5m] is kept'/></testcase></testsuite>",
    );
    assert_eq!(
        report.tests[0].attempts[0].errors[0].message.as_deref(),
        Some("<body> [5m] is kept")
    );
    let text = r#"{"numRuntimeErrorTestSuites": 0, "testResults": [{"testFilePath": "/r/a.test.js", "failureMessage": null,
        "testResults": [{"ancestorTitles": ["s"], "title": "t", "status": "failed", "duration": 3,
        "failureMessages": ["\u001b[1m  ● \u001b[1ms › t\u001b[22m\n\n    Error: x\n\u001b[2m      at f (a.test.js:3:5)"]}]}]}"#;
    let report = plain(vec![inline("r.json", text)]).unwrap();
    assert_eq!(tests(&report), [("s > t", Some("/r/a.test.js"), 1)]);
    assert_eq!(
        report.tests[0].attempts[0].errors[0].message.as_deref(),
        Some("Error: x")
    );
    let windows = r#"<testsuites><testsuite name="critical\a.spec.ts" timestamp="2025-12-08T10:59:05.269Z" hostname="chromium" tests="1"
        failures="0" skipped="0" time="1" errors="0"><testcase name="s › t" classname="critical\a.spec.ts" time="1"/></testsuite></testsuites>"#;
    assert_eq!(
        tests(&junit(windows)),
        [(
            "chromium > critical/a.spec.ts > s > t",
            Some("critical/a.spec.ts"),
            1
        )]
    );
}

//! Outcomes: words that are known and unknown, headers that count more failures than the results show, hooks and
//! set-ups that exist only if they failed, reasons for skipping.

use assay_domain::{
    attempt::AttemptStatus::{self, Failed, Interrupted, Passed, Skipped},
    run::RunState,
};
use assay_reports::{Format, Report};

use crate::{
    support::{inline, plain},
    templates,
};

fn read(content: impl Into<String>) -> Report {
    plain(vec![inline("r", content.into().into_bytes())]).unwrap()
}

/// The tests as `name: status status | status (reason)`, with one part for each execution.
fn tests(report: &Report) -> Vec<String> {
    let test = |test: &assay_reports::ReportedTest| {
        let executions = test.attempts.executions().map(|attempts| {
            let attempts = attempts.iter().map(|attempt| match &attempt.skip_reason {
                Some(reason) => format!("{} ({reason})", attempt.status),
                None => attempt.status.to_string(),
            });
            attempts.collect::<Vec<_>>().join(" ")
        });
        format!(
            "{}: {}",
            test.test.name,
            executions.collect::<Vec<_>>().join(" | ")
        )
    };
    report.tests.iter().map(test).collect()
}

fn errors(report: &Report) -> Vec<&str> {
    let messages = report.errors.iter().map(|error| error.message.as_deref());
    messages.map(Option::unwrap_or_default).collect()
}

/// A report of each format that has words, with one test whose status is a given word.
fn with_word(word: &str) -> Vec<(Format, Report)> {
    let templates = templates::all().into_iter().filter(|template| template.has_words);
    templates
        .map(|template| {
            (
                template.format,
                plain(template.files(&[("t".to_owned(), word)])).unwrap(),
            )
        })
        .collect()
}

fn status(report: &Report) -> AttemptStatus {
    report.tests[0].outcome().unwrap().status
}

#[test]
fn an_unknown_word_is_skipped_with_a_warning_and_the_run_is_incomplete_in_every_format() {
    let reports = with_word("half-done");
    // Mocha's JSON and TAP have no words: one lists failures, the other has `ok` and `not ok`.
    assert_eq!(reports.len(), Format::ALL.len() - 2);
    for (format, report) in reports {
        assert_eq!(report.format, format);
        assert_eq!(
            (status(&report), report.state),
            (Skipped, RunState::Interrupted),
            "{format}"
        );
        let warned = report.warnings.iter().any(|warning| {
            warning.contains("1 result has the unknown status \"half-done\"") && warning.contains("skipped")
        });
        assert!(warned, "{format}: {:?}", report.warnings);
    }
}

#[test]
fn words_that_all_formats_share_mean_the_same_whatever_their_case() {
    for (word, expected) in [
        ("Failed", Failed),
        ("FAILURE", Failed),
        ("error", Failed),
        ("untested", Skipped),
        ("ignored", Skipped),
        ("not run", Skipped),
        ("NotRun", Skipped),
        ("Passed", Passed),
    ] {
        for (format, report) in with_word(word) {
            // The actions of Go are not words of people: all but a few are news of a test.
            if format == Format::Go {
                continue;
            }
            // A scenario of Karate that ends early skips the rest of its steps, and has passed.
            if format == Format::Karate && expected == Skipped {
                continue;
            }
            assert_eq!(status(&report), expected, "{format}: {word}");
            assert_eq!(report.state, RunState::Completed, "{format}: {word}");
            assert!(report.warnings.is_empty(), "{format}: {:?}", report.warnings);
        }
    }
}

#[test]
fn formats_keep_their_own_words() {
    for (format, word, expected) in [
        (Format::Playwright, "interrupted", Interrupted),
        (Format::Trx, "PassedButRunAborted", Passed),
        (Format::Trx, "Aborted", Interrupted),
        (Format::Testng, "SUCCESS_PERCENTAGE_FAILURE", Skipped),
        (Format::Cucumber, "undefined", Failed),
        (Format::Cucumber, "ambiguous", Failed),
        (Format::Robot, "NOT RUN", Skipped),
        (Format::Nunit, "Warning", Passed),
        (Format::Nunit, "Inconclusive", Skipped),
        (Format::PytestJson, "xfailed", Skipped),
        (Format::PytestJson, "xpassed", Passed),
        (Format::Junit, "run", Passed),
        (Format::Junit, "completed", Passed),
        (Format::Junit, "notrun", Skipped),
        (Format::Jest, "todo", Skipped),
        (Format::Ctrf, "other", Skipped),
        (Format::Go, "bench", Passed),
    ] {
        let report = with_word(word)
            .into_iter()
            .find(|(of, _)| *of == format)
            .unwrap()
            .1;
        assert_eq!(status(&report), expected, "{format}: {word}");
        let says_unknown = |warning: &String| warning.contains("unknown");
        assert!(!report.warnings.iter().any(says_unknown), "{format}: {word}");
    }
}

#[test]
fn a_result_without_a_status_does_not_pass() {
    for content in [
        r#"{"results": {"tool": {"name": "x"}, "summary": {}, "tests": [{"name": "t"}]}}"#,
        r#"{"summary": {}, "examples": [{"full_description": "t"}]}"#,
        r#"[{"uri": "a.feature", "name": "F", "elements": [{"type": "scenario", "name": "t", "steps": [{"name": "s", "result": {"status": "passed"}}, {"name": "u"}]}]}]"#,
        r#"{"name": "F", "relativePath": "a.feature", "scenarioResults": [{"name": "t"}]}"#,
    ] {
        let report = read(content);
        assert_eq!(
            (status(&report), report.state),
            (Skipped, RunState::Interrupted),
            "{content}"
        );
        assert!(
            report.warnings[0].contains("1 result has no status"),
            "{:?}",
            report.warnings
        );
    }
}

#[test]
fn unknown_words_are_counted_once_for_each_report() {
    let case =
        |name: &str, status: &str| format!(r#"<testcase classname="C" name="{name}" status="{status}"/>"#);
    let cases = [
        case("a", "odd"),
        case("b", "odd"),
        case("c", "queer"),
        case("d", "passed"),
    ];
    let report = read(format!("<testsuite>{}</testsuite>", cases.concat()));
    assert_eq!(report.warnings.len(), 2);
    assert!(report.warnings[0].starts_with("r: 2 results have the unknown status \"odd\""));
    assert!(report.warnings[1].starts_with("r: 1 result has the unknown status \"queer\""));
}

#[test]
fn elements_of_a_junit_case_are_outcomes_by_their_word() {
    for (element, expected, reason, is_unknown) in [
        (
            r#"<aborted message="not on Linux" type="T"/>"#,
            Skipped,
            Some("not on Linux"),
            false,
        ),
        (
            "<warning>The data provider is invalid.</warning>",
            Skipped,
            Some("The data provider is invalid."),
            false,
        ),
        (r#"<Failed message="3.1 V"/>"#, Failed, None, false),
        ("<ERROR>boom</ERROR>", Failed, None, false),
        (r#"<ignored message="later"/>"#, Skipped, Some("later"), false),
        (
            r#"<unstable message="now and then"/>"#,
            Skipped,
            Some("now and then"),
            true,
        ),
        // These describe the case.
        (
            r#"<attachment type="image/png">a.png</attachment>"#,
            Passed,
            None,
            false,
        ),
        (r#"<metric name="size" value="3"/>"#, Passed, None, false),
        (r#"<passed message="well done"/>"#, Passed, None, false),
    ] {
        let report = read(format!(
            r#"<testsuite><testcase classname="C" name="t">{element}</testcase></testsuite>"#
        ));
        let attempt = &report.tests[0].attempts[0];
        assert_eq!(attempt.status, expected, "{element}");
        assert_eq!(attempt.skip_reason.as_deref(), reason, "{element}");
        assert_eq!(report.state == RunState::Interrupted, is_unknown, "{element}");
        assert_eq!(report.warnings.len(), usize::from(is_unknown), "{element}");
    }
}

#[test]
fn a_header_that_counts_more_failures_than_the_results_show_is_an_error() {
    let header = "the report's header counts 3 failures, and its results show 1. The others are unknown.";
    for (what, content) in [
        (
            "a suite of JUnit",
            r#"<testsuite tests="9" failures="3" errors="2"><testcase classname="C" name="t"><failure/></testcase><testcase classname="C" name="u"/></testsuite>"#,
        ),
        (
            "an inner suite",
            r#"<testsuites><testsuite failures="3"><testcase classname="C" name="t"><failure/></testcase></testsuite><testsuite failures="0"/></testsuites>"#,
        ),
        (
            "the outermost element",
            r#"<testsuites failures="3"><testsuite failures="1"><testcase classname="C" name="t"><failure/></testcase></testsuite></testsuites>"#,
        ),
        (
            "CTRF",
            r#"{"results": {"tool": {"name": "x"}, "summary": {"failed": 3}, "tests": [{"name": "t", "status": "failed"}]}}"#,
        ),
        (
            "Jest",
            r#"{"numFailedTests": 3, "testResults": [{"name": "a.js", "assertionResults": [{"title": "t", "status": "failed"}]}]}"#,
        ),
        (
            "Mocha",
            r#"{"stats": {"failures": 3}, "tests": [{"title": "t", "fullTitle": "t", "err": {"message": "x"}}], "pending": [], "failures": [{"title": "t", "fullTitle": "t", "err": {"message": "x"}}], "passes": []}"#,
        ),
        (
            "mochawesome",
            r#"{"stats": {"failures": 3}, "results": [{"tests": [{"title": "t", "state": "failed"}]}]}"#,
        ),
        (
            "Playwright",
            r#"{"config": {}, "suites": [{"title": "a.ts", "specs": [{"title": "t", "tests": [{"results": [{"status": "failed"}]}]}]}], "stats": {"unexpected": 3}}"#,
        ),
        (
            "TRX",
            r#"<TestRun><Results><UnitTestResult testName="t" outcome="Failed"/></Results><ResultSummary outcome="Failed"><Counters failed="2" error="1"/></ResultSummary></TestRun>"#,
        ),
        (
            "NUnit 3",
            r#"<test-run failed="3"><test-suite name="S"><test-case name="t" fullname="C.t" result="Failed"><failure><message>x</message></failure></test-case></test-suite></test-run>"#,
        ),
        (
            "NUnit 2",
            r#"<test-results failures="2" errors="1"><test-suite name="S"><results><test-case name="C.t" result="Failure"><failure><message>x</message></failure></test-case></results></test-suite></test-results>"#,
        ),
        (
            "xUnit.net",
            r#"<assemblies><assembly failed="2" errors="0"><collection><test name="C.t" type="C" method="t" result="Fail"/></collection></assembly><assembly failed="1"/></assemblies>"#,
        ),
        (
            "TestNG",
            r#"<testng-results failed="3"><suite><test name="x"><class name="C"><test-method name="t" status="FAIL"/></class></test></suite></testng-results>"#,
        ),
        (
            "pytest",
            r#"{"exitcode": 1, "root": "/", "summary": {"failed": 2, "error": 1}, "tests": [{"nodeid": "test_a.py::t", "outcome": "failed"}]}"#,
        ),
        (
            "RSpec",
            r#"{"summary": {"failure_count": 3}, "examples": [{"full_description": "t", "status": "failed"}]}"#,
        ),
        (
            "Robot Framework",
            r#"<robot><suite name="S"><test name="t"><status status="FAIL">x</status></test></suite><statistics><total><stat pass="0" fail="3" skip="0">All Tests</stat></total><tag><stat pass="0" fail="9">smoke</stat></tag></statistics></robot>"#,
        ),
        ("TAP", "TAP version 13\nnot ok 1 - t\n1..1\n# tests 1\n# fail 3\n"),
    ] {
        let report = read(content);
        assert_eq!(errors(&report), [format!("r: {header}")], "{what}");
    }
}

#[test]
fn a_header_that_agrees_or_counts_less_is_no_error() {
    for (what, content) in [
        (
            "a case that is a failure and an error",
            r#"<testsuite tests="1" failures="1" errors="1"><testcase classname="C" name="t"><failure/></testcase></testsuite>"#,
        ),
        (
            "several assertions of one case",
            r#"<testsuite failures="1"><testcase classname="C" name="t"><failure/><failure/></testcase></testsuite>"#,
        ),
        (
            "both levels",
            r#"<testsuites failures="2"><testsuite failures="1"><testcase classname="C" name="t"><failure/></testcase></testsuite><testsuite failures="1"><testcase classname="D" name="t"><failure/></testcase></testsuite></testsuites>"#,
        ),
        (
            "an error of a suite",
            r#"<testsuite failures="0" errors="1"><error message="x"/></testsuite>"#,
        ),
        (
            "a flaky case",
            r#"<testsuite failures="1"><testcase classname="C" name="t"><flakyFailure/></testcase></testsuite>"#,
        ),
        (
            "the lines of go's own output, which gotestsum counts as errors",
            r#"<testsuites tests="1" failures="0" errors="2"><testsuite failures="0"><properties><property name="go.version" value="go1.24"/></properties><testcase classname="p" name="t"/></testsuite></testsuites>"#,
        ),
        (
            "a failed test with a failed subtest, which Node counts twice",
            "TAP version 13\n# Subtest: a\n    not ok 1 - b\n    1..1\nnot ok 1 - a\n1..1\n# tests 2\n# fail 2\n",
        ),
        (
            "a tag of Robot Framework, whose tests are counted again",
            r#"<robot><suite name="S"><test name="t"><status status="FAIL">x</status></test></suite><statistics><total><stat pass="0" fail="1" skip="0">All Tests</stat></total><tag><stat pass="0" fail="9">smoke</stat></tag></statistics></robot>"#,
        ),
        (
            "a test that was run again",
            r#"{"results": {"tool": {"name": "x"}, "summary": {"failed": 0}, "tests": [{"name": "t", "status": "passed", "retries": 2}]}}"#,
        ),
    ] {
        let report = read(content);
        let is_header = |message: &&str| message.contains("header");
        assert!(
            !errors(&report).iter().any(is_header),
            "{what}: {:?}",
            errors(&report)
        );
    }
}

#[test]
fn a_cut_off_report_is_not_compared_with_its_header() {
    let report = read(r#"<testsuite tests="9" failures="3"><testcase classname="C" name="t"/><testcase cla"#);
    assert_eq!((report.errors.len(), report.state), (0, RunState::Interrupted));
}

/// A hook before each test, as each tool that builds on Mocha writes it.
#[test]
fn a_failed_hook_of_a_test_is_a_failure_of_that_test() {
    let hook = r#"\"before each\" hook for \"pays\""#;
    let xml = "&quot;before each&quot; hook for &quot;pays&quot;";
    for (what, content, name) in [
        (
            "mocha-junit-reporter",
            format!(
                r#"<testsuites name="Mocha Tests"><testsuite name="till"><testcase name="till {xml}" classname="{xml}"><failure message="no"/></testcase></testsuite></testsuites>"#
            ),
            "till pays",
        ),
        (
            "mocha-junit-reporter, a hook of all files",
            format!(
                r#"<testsuites name="Mocha Tests"><testsuite name="till"><testcase name="{xml}" classname="{xml}"><failure message="no"/></testcase></testsuite></testsuites>"#
            ),
            "till pays",
        ),
        (
            "Mocha's XUnit",
            format!(
                r#"<testsuite name="Mocha Tests"><testcase classname="till" name="{xml}" file="t.js"><failure>no</failure></testcase></testsuite>"#
            ),
            "till > pays",
        ),
        (
            "Mocha's JSON",
            format!(
                r#"{{"stats": {{"failures": 1}}, "tests": [], "pending": [], "passes": [], "failures": [{{"title": "{hook}", "fullTitle": "till {hook}", "err": {{"message": "no"}}}}]}}"#
            ),
            "till pays",
        ),
        (
            "mochawesome",
            format!(
                r#"{{"stats": {{}}, "results": [{{"title": "", "suites": [{{"title": "till", "beforeHooks": [{{"title": "{hook}", "fullTitle": "till {hook}", "state": "failed", "err": {{"message": "no"}}}}], "suites": [{{"title": "cash", "tests": [{{"title": "pays", "fullTitle": "till cash pays", "state": null}}]}}]}}]}}]}}"#
            ),
            "till cash pays",
        ),
        (
            "CTRF",
            format!(
                r#"{{"results": {{"tool": {{"name": "mocha"}}, "summary": {{}}, "tests": [{{"name": "till {hook}", "status": "failed", "message": "no"}}]}}}}"#
            ),
            "till pays",
        ),
        (
            "TAP",
            "1..1\nnot ok 1 till \"before each\" hook for \"pays\"\n  no\n".to_owned(),
            "till pays",
        ),
    ] {
        let report = read(content);
        assert_eq!(report.tests.len(), 1, "{what}");
        assert_eq!(report.tests[0].test.name, name, "{what}");
        assert_eq!(status(&report), Failed, "{what}");
        let attempt = report.tests[0].attempts.last().unwrap();
        assert_eq!(attempt.errors[0].message.as_deref(), Some("no"), "{what}");
        assert!(report.errors.is_empty(), "{what}: {:?}", report.errors);
    }
}

#[test]
fn a_failed_hook_after_a_test_fails_the_attempt_that_had_passed() {
    let report = read(
        r#"<testsuites name="Mocha Tests"><testsuite name="till"><testcase name="till pays" classname="pays"/><testcase name="till &quot;after each&quot; hook for &quot;pays&quot;" classname="&quot;after each&quot; hook for &quot;pays&quot;"><failure message="no"/></testcase></testsuite></testsuites>"#,
    );
    assert_eq!(tests(&report), ["till pays: failed"]);
}

#[test]
fn what_exists_only_if_it_failed_is_an_error_of_the_run() {
    let junit = |suite: &str, case: &str| {
        format!(
            "<testsuites><testsuite {suite}><testcase classname='C' name='t'/>{case}</testsuite></testsuites>"
        )
    };
    let surefire =
        r#"xmlns:xsi="x" xsi:noNamespaceSchemaLocation="surefire-test-report.xsd" name="org.shop.CartTest""#;
    let gradle = r#"name="org.shop.CartTest" tests="1" skipped="0" failures="1" errors="0" timestamp="2026-11-20T10:00:00" hostname="h" time="1""#;
    let failure = r#"<failure message="no database"/>"#;
    for (what, content, expected) in [
        (
            "JUnit's initializationError",
            junit(gradle, &format!(r#"<testcase name="initializationError" classname="org.shop.CartTest">{failure}</testcase>"#)),
            "org.shop.CartTest > initializationError: no database",
        ),
        (
            "JUnit 4's classMethod",
            junit("name='x'", &format!(r#"<testcase name="classMethod" classname="org.shop.CartTest">{failure}</testcase>"#)),
            "org.shop.CartTest > classMethod: no database",
        ),
        (
            "a set-up that Surefire names as the class",
            junit(surefire, &format!(r#"<testcase name="org.shop.CartTest" classname="org.shop.CartTest">{failure}</testcase>"#)),
            "org.shop.CartTest: no database",
        ),
        (
            "a set-up that Surefire does not name",
            junit(surefire, &format!(r#"<testcase name="" classname="org.shop.CartTest">{failure}</testcase>"#)),
            "org.shop.CartTest: no database",
        ),
        (
            "GoogleTest's failure outside of tests",
            junit("name='NonTestSuiteFailure'", &format!(r#"<testcase name="" classname="">{failure}</testcase>"#)),
            "NonTestSuiteFailure: no database",
        ),
        (
            "Vitest's unhandled errors",
            junit(
                r#"name="vitest unhandled errors" timestamp="2026-11-20T10:00:00Z" hostname="h" tests="1" failures="0" errors="1" skipped="0" time="0""#,
                r#"<testcase classname="vitest unhandled errors" name="Unhandled Rejection"><error message="no database"/></testcase>"#,
            )
            .replace("<testcase classname='C' name='t'/>", ""),
            "vitest unhandled errors > Unhandled Rejection: no database",
        ),
        (
            "a hook of Mocha for a suite",
            junit("name='till'", &format!(r#"<testcase name="till &quot;after all&quot; hook in &quot;till&quot;" classname="&quot;after all&quot; hook in &quot;till&quot;">{failure}</testcase>"#)),
            "till \"after all\" hook in \"till\": no database",
        ),
        (
            "a package of Go",
            junit(
                "name='example.org/shop'",
                &format!(r#"<properties><property name="go.version" value="go1"/></properties><testcase classname="" name="TestMain">{failure}</testcase>"#),
            ),
            "example.org/shop > TestMain: no database",
        ),
    ] {
        let report = read(content);
        assert_eq!(errors(&report), [expected], "{what}");
        let mut tests = tests(&report);
        let set_up = tests.iter().position(|test| test.ends_with(" > (set-up): failed"));
        let is_of_class = expected.contains("CartTest") || expected.contains("TestMain");
        assert_eq!(set_up.is_some(), is_of_class, "{what}: {tests:?}");
        set_up.map(|set_up| tests.remove(set_up));
        assert!(tests.iter().all(|test| test.ends_with("C > t: passed")), "{what}: {tests:?}");
    }
}

#[test]
fn tests_with_such_names_that_pass_or_mean_something_else_stay_tests() {
    for (content, expected) in [
        (
            r#"<testsuite><testcase name="classMethod" classname="C"/></testsuite>"#,
            "C > classMethod: passed",
        ),
        (
            r#"<testsuite><testcase name="Spec" classname="Spec"><failure/></testcase></testsuite>"#,
            "Spec: failed",
        ),
        (
            r#"<testsuite><testcase name="a hook for &quot;pays&quot;" classname="C"><failure/></testcase></testsuite>"#,
            "C > a hook for \"pays\": failed",
        ),
        (
            r#"<testsuite><testcase name="initializationErrorIsShown" classname="C"><failure/></testcase></testsuite>"#,
            "C > initializationErrorIsShown: failed",
        ),
    ] {
        let report = read(content);
        assert_eq!(tests(&report), [expected]);
        assert!(report.errors.is_empty(), "{expected}");
    }
}

#[test]
fn set_up_scripts_of_nextest_are_no_tests() {
    let script = |outcome: &str| {
        read(format!(
            r#"<testsuites name="nextest-run" uuid="1"><testsuite name="@setup-script:db"><testcase name="db" classname="@setup-script:db">{outcome}</testcase></testsuite><testsuite name="shop"><testcase name="adds" classname="shop"/></testsuite></testsuites>"#
        ))
    };
    let (passed, failed) = (script(""), script(r#"<failure message="no database"/>"#));
    assert_eq!(tests(&passed), ["shop > adds: passed"]);
    assert_eq!(tests(&failed), tests(&passed));
    assert!(passed.errors.is_empty());
    assert_eq!(errors(&failed), ["@setup-script:db > db: no database"]);
}

#[test]
fn every_format_that_writes_the_reason_for_skipping_keeps_it() {
    let reason = "no network";
    for (what, content) in [
        (
            "JUnit XML",
            format!(
                r#"<testsuite><testcase classname="C" name="t"><skipped message="{reason}"/></testcase></testsuite>"#
            ),
        ),
        (
            "JUnit XML, as text",
            format!(
                r#"<testsuite><testcase classname="C" name="t"><skipped>{reason}</skipped></testcase></testsuite>"#
            ),
        ),
        (
            "Playwright",
            format!(
                r#"{{"config": {{}}, "suites": [{{"title": "a.ts", "specs": [{{"title": "t", "tests": [{{"annotations": [{{"type": "slow"}}, {{"type": "skip", "description": "{reason}"}}], "results": [{{"status": "skipped"}}]}}]}}]}}]}}"#
            ),
        ),
        (
            "CTRF",
            format!(
                r#"{{"results": {{"tool": {{"name": "x"}}, "summary": {{}}, "tests": [{{"name": "t", "status": "skipped", "message": "{reason}"}}]}}}}"#
            ),
        ),
        (
            "Vitest",
            format!(
                r#"{{"testResults": [{{"name": "a.js", "assertionResults": [{{"title": "t", "status": "skipped", "failureMessages": ["{reason}"]}}]}}]}}"#
            ),
        ),
        (
            "Go",
            format!(
                "{{\"Action\":\"run\",\"Package\":\"p\",\"Test\":\"T\"}}\n{{\"Action\":\"output\",\"Package\":\"p\",\"Test\":\"T\",\"Output\":\"=== RUN   T\\n\"}}\n{{\"Action\":\"output\",\"Package\":\"p\",\"Test\":\"T\",\"Output\":\"    {reason}\\n\"}}\n{{\"Action\":\"output\",\"Package\":\"p\",\"Test\":\"T\",\"Output\":\"--- SKIP: T (0.00s)\\n\"}}\n{{\"Action\":\"skip\",\"Package\":\"p\",\"Test\":\"T\"}}\n{{\"Action\":\"pass\",\"Package\":\"p\"}}\n"
            ),
        ),
        (
            "TRX",
            format!(
                r#"<TestRun><Results><UnitTestResult testName="t" outcome="NotExecuted"><Output><ErrorInfo><Message>{reason}</Message></ErrorInfo></Output></UnitTestResult></Results></TestRun>"#
            ),
        ),
        (
            "Allure",
            format!(
                r#"{{"uuid": "1", "historyId": "1", "fullName": "t", "name": "t", "status": "skipped", "statusDetails": {{"message": "{reason}"}}}}"#
            ),
        ),
        (
            "TestNG",
            format!(
                r#"<testng-results><suite><test name="x"><class name="C"><test-method name="t" status="SKIP"><exception class="org.testng.SkipException"><message>{reason}</message></exception></test-method></class></test></suite></testng-results>"#
            ),
        ),
        (
            "Cucumber",
            format!(
                r#"[{{"uri": "a.feature", "name": "F", "elements": [{{"type": "scenario", "name": "t", "steps": [{{"name": "s", "result": {{"status": "skipped", "error_message": "{reason}"}}}}]}}]}}]"#
            ),
        ),
        (
            "Robot",
            format!(
                r#"<robot><suite name="S"><test name="t"><status status="SKIP">{reason}</status></test><status status="PASS"/></suite></robot>"#
            ),
        ),
        (
            "NUnit",
            format!(
                r#"<test-run><test-suite name="S"><test-case name="t" fullname="C.t" result="Skipped"><reason><message>{reason}</message></reason></test-case></test-suite></test-run>"#
            ),
        ),
        (
            "xUnit.net",
            format!(
                r#"<assemblies><assembly><collection><test name="C.t" type="C" method="t" result="Skip"><reason>{reason}</reason></test></collection></assembly></assemblies>"#
            ),
        ),
        (
            "pytest",
            format!(
                r#"{{"exitcode": 0, "root": "/", "tests": [{{"nodeid": "test_a.py::t", "outcome": "skipped", "setup": {{"outcome": "skipped", "longrepr": "('/shop/test_a.py', 3, 'Skipped: {reason}')"}}}}]}}"#
            ),
        ),
        (
            "RSpec",
            format!(
                r#"{{"summary": {{}}, "examples": [{{"full_description": "t", "status": "pending", "pending_message": "{reason}"}}]}}"#
            ),
        ),
        ("TAP", format!("1..1\nok 1 - t # SKIP {reason}\n")),
        (
            "Dart",
            format!(
                "{{\"protocolVersion\": \"0.1.1\", \"runnerVersion\": \"1\", \"type\": \"start\", \"time\": 0}}\n{{\"test\": {{\"id\": 1, \"name\": \"t\", \"groupIDs\": [1], \"metadata\": {{\"skip\": true, \"skipReason\": \"{reason}\"}}}}, \"type\": \"testStart\", \"time\": 1}}\n{{\"testID\": 1, \"result\": \"success\", \"skipped\": true, \"type\": \"testDone\", \"time\": 2}}\n{{\"success\": true, \"type\": \"done\", \"time\": 3}}"
            ),
        ),
        (
            "libtest",
            format!(
                "{{\"type\": \"suite\", \"event\": \"started\", \"test_count\": 1}}\n{{\"type\": \"test\", \"name\": \"t\", \"event\": \"ignored\", \"message\": \"{reason}\"}}\n{{\"type\": \"suite\", \"event\": \"ok\", \"passed\": 0}}"
            ),
        ),
        (
            "CTest",
            format!(
                r#"<Site><Testing><Test Status="notrun"><Name>t</Name><Results><NamedMeasurement name="Completion Status"><Value>SKIP_{reason}</Value></NamedMeasurement></Results></Test></Testing></Site>"#
            ),
        ),
    ] {
        let report = read(content);
        let attempt = &report.tests[0].attempts[0];
        assert_eq!(
            (
                attempt.status,
                attempt
                    .skip_reason
                    .as_deref()
                    .map(|text| text.trim_start_matches("SKIP_"))
            ),
            (Skipped, Some(reason)),
            "{what}"
        );
    }
}

/// The messages of the errors outside of tests, and the status of the run by its tests.
fn errors_and_failed_tests(name: &str, text: &str) -> (Vec<String>, usize) {
    let report = plain(vec![inline(name, text)]).unwrap();
    let failed = |test: &&assay_reports::ReportedTest| test.outcome().unwrap().status.is_failure();
    let messages = report
        .errors
        .iter()
        .map(|error| error.message.clone().unwrap_or_default());
    (messages.collect(), report.tests.iter().filter(failed).count())
}

#[test]
fn a_run_that_its_tool_calls_failed_has_an_error_if_no_result_failed() {
    let trx = |outcome: &str, result: &str| {
        format!(
            "<TestRun><Results><UnitTestResult testName='a' outcome='{result}'/></Results><ResultSummary \
             outcome='{outcome}'/></TestRun>"
        )
    };
    let nunit = |run: &str, suite: &str| {
        format!(
            "<test-run result='{run}'>{suite}<test-suite name='S' result='Passed'><test-case name='a' fullname='S.a' \
             result='Passed'/></test-suite></test-run>"
        )
    };
    let invalid = "<test-suite name='B.dll' result='Failed' label='Invalid'><reason><message>File not found</message>\
                   </reason></test-suite>";
    let bare = "<test-suite name='B.dll' result='Failed' label='Invalid'/>";
    let robot = |status: &str| {
        format!(
            "<robot><suite name='S'><test name='a'><status status='PASS'/></test><status status='{status}'/></suite></robot>"
        )
    };
    let pytest = |code: u8| {
        format!(
            r#"{{"created": 1, "duration": 1, "exitcode": {code}, "root": "/r", "summary": {{}}, "tests": [{{"nodeid": "t.py::a", "outcome": "passed"}}]}}"#
        )
    };
    let libtest = |event: &str| {
        format!(
            "{{\"type\":\"suite\",\"event\":\"started\",\"test_count\":1}}\n{{\"type\":\"test\",\"event\":\"ok\",\"name\":\"a\"}}\n\
             {{\"type\":\"suite\",\"event\":\"{event}\",\"passed\":1}}\n"
        )
    };
    for (name, text, expected) in [
        ("r.trx", trx("Aborted", "Passed"), Some("Aborted")),
        ("r.trx", trx("Timeout", "Passed"), Some("Timeout")),
        ("r.trx", trx("Completed", "Passed"), None),
        ("r.trx", trx("Failed", "Failed"), None),
        ("r.xml", nunit("Failed", invalid), Some("B.dll: File not found")),
        (
            "r.xml",
            nunit("Failed", bare),
            Some("B.dll: failed without a test"),
        ),
        ("r.xml", nunit("Failed", ""), Some("Failed")),
        ("r.xml", nunit("Passed", ""), None),
        ("r.xml", robot("FAIL"), Some("FAIL")),
        ("r.xml", robot("PASS"), None),
        ("r.json", pytest(3), Some("exit code 3")),
        ("r.json", pytest(5), None),
        ("r.jsonl", libtest("failed"), Some("failed")),
        ("r.jsonl", libtest("ok"), None),
    ] {
        let (errors, _) = errors_and_failed_tests(name, &text);
        match expected {
            Some(part) => assert!(
                errors.len() == 1 && errors[0].contains(part),
                "{text}: {errors:?}"
            ),
            None => assert!(errors.is_empty(), "{text}: {errors:?}"),
        }
    }
}

#[test]
fn marks_and_shapes_of_single_tools_are_read() {
    let read = |name: &str, text: &str| plain(vec![inline(name, text)]).unwrap();
    let lines = |report: &assay_reports::Report| -> Vec<String> {
        let line = |test: &assay_reports::ReportedTest| {
            let statuses: Vec<String> = test
                .attempts
                .iter()
                .map(|attempt| attempt.status.to_string())
                .collect();
            format!("{} {}", test.test.name, statuses.join(","))
        };
        report.tests.iter().map(line).collect()
    };
    let testcafe = |name: &str| {
        format!(
            "<testsuite name='TestCafe Tests: Chrome 119 / Linux'><testcase classname='Cart' file='c.js' name='{name}'/>\
             </testsuite>"
        )
    };
    assert_eq!(
        lines(&read("r.xml", &testcafe("adds (unstable) (screenshots: /tmp/1)"))),
        ["TestCafe Tests: Chrome 119 / Linux > Cart > adds failed,passed"]
    );
    assert_eq!(
        lines(&read("r.xml", &testcafe("adds (screenshots: /tmp/1)"))),
        ["TestCafe Tests: Chrome 119 / Linux > Cart > adds passed"]
    );
    let other = "<testsuite name='s'><testcase classname='Cart' name='adds (unstable)'/></testsuite>";
    assert_eq!(
        lines(&read("r.xml", other)),
        ["s > Cart > adds (unstable) passed"]
    );

    let busted = "<testsuite name='s'><testcase classname='A' name='outer'><testcase classname='A' name='inner'><failure/>\
                  </testcase></testcase></testsuite>";
    assert_eq!(
        lines(&read("r.xml", busted)),
        ["s > A > inner failed", "s > A > outer passed"]
    );

    let mocha = r#"{"stats": {}, "tests": [{"fullTitle": "s a", "err": {"message": "no"}}, {"fullTitle": "s a", "err": {}}],
        "pending": [], "failures": [{"fullTitle": "s a", "err": {"message": "no"}}], "passes": []}"#;
    assert_eq!(lines(&read("r.json", mocha)), ["s a passed,failed"]);
    let empty = mocha.replace(r#""message": "no""#, "");
    assert_eq!(lines(&read("r.json", &empty)), ["s a passed,failed"]);

    let root = "<testsuites name='Mocha Tests'><testsuite name='Root Suite' file='a.cy.ts' tests='0'/><testsuite name='S' \
                tests='1'><testcase name='S works' classname='works'/></testsuite></testsuites>";
    assert_eq!(
        read("r.xml", root).tests[0].test.file_path.as_deref(),
        Some("a.cy.ts")
    );

    let pester = "<test-results name='Pester'><test-suite name='S'><results><test-case name='' success='False'/></results>\
                  </test-suite></test-results>";
    assert!(lines(&read("r.xml", pester))[0].ends_with("skipped"));

    // test-retry runs a class again whose set-up failed.
    let gradle = |cases: &str| {
        format!(
            "<testsuite name='A' tests='2' skipped='0' failures='1' errors='0' timestamp='2026-11-20T19:25:00' hostname='h' \
             time='1'>{cases}</testsuite>"
        )
    };
    let set_up = "<testcase name='initializationError' classname='A'><failure message='no'/></testcase>";
    let test = "<testcase name='a()' classname='A'/>";
    for (cases, set_up, errors) in [
        ([set_up, test], "A > (set-up): failed passed", 0),
        ([test, set_up], "A > (set-up): failed", 1),
    ] {
        let report = read("r.xml", &gradle(&cases.concat()));
        assert!(
            tests(&report).contains(&set_up.to_owned()),
            "{:?}",
            tests(&report)
        );
        assert_eq!(report.errors.len(), errors, "{set_up}");
    }
}

#[test]
fn formats_without_a_reader_are_refused_with_advice() {
    for (text, advice) in [
        (
            r#"{"environment": {"os": "posix"}, "testsuites": []}"#,
            "twister.xml",
        ),
        (r#"{"collection": {}, "run": {}}"#, "newman"),
        (
            r#"{"__version__": [18], "elapsed": 1, "tests": []}"#,
            "--xunit-xml-output",
        ),
        (
            "<doctest><TestSuite><TestCase name='a'/></TestSuite></doctest>",
            "--reporters=junit",
        ),
    ] {
        let error = plain(vec![inline("r", text)]).unwrap_err().to_string();
        assert!(error.contains(advice), "{text}: {error}");
    }
}

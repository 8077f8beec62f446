//! JUnit XML: real reports, each checked against its suite in testdata/reports/suites, and samples of tools without a
//! suite there.

use assay_domain::{attempt::AttemptStatus, run::RunState};
use assay_reports::{KnownFiles, Options, Report};

use crate::{
    render::render,
    support::{self, plain, rooted},
};

fn real(path: &str, root: &str) -> String {
    render(&rooted(
        vec![support::file(path)],
        &format!("/home/runner/work/{root}"),
    ))
}

#[test]
fn real_reports_are_read_as_their_suites_ran() {
    for (name, path, root) in [
        ("bats", "bats/junit.xml", "acme-shop/acme-bats"),
        ("behave", "python-others/behave.xml", "acme-shop/acme-pyo"),
        ("ctest", "ctest/junit.xml", "acme-shop/acme-cpp"),
        ("cucumber", "cucumber/junit.xml", "acme-shop/acme-cucumber"),
        ("gotestsum-all", "go/gotestsum-all.xml", "acme-shop/acme-go"),
        ("gotestsum-rerun", "go/gotestsum-rerun.xml", "acme-shop/acme-go"),
        ("jest-default", "jest/junit-default.xml", "acme-shop/acme-js"),
        ("jest-tuned", "jest/junit-tuned.xml", "acme-shop/acme-js"),
        (
            "mocha-jenkins",
            "mocha/mocha-junit-jenkins.xml",
            "acme-shop/acme-mocha",
        ),
        (
            "mocha-reporter",
            "mocha/mocha-junit-reporter.xml",
            "acme-shop/acme-mocha",
        ),
        (
            "mocha-switched",
            "mocha/mocha-junit-switched.xml",
            "acme-shop/acme-mocha",
        ),
        ("mocha-xunit", "mocha/xunit.xml", "acme-shop/acme-mocha"),
        ("nextest", "nextest/junit.xml", "acme-shop/acme-rs"),
        ("nextest-green", "nextest/junit-green.xml", "acme-shop/acme-rs"),
        ("playwright-full", "playwright/full.xml", "acme-shop/acme-shop"),
        ("playwright-green", "playwright/green.xml", "acme-shop/acme-shop"),
        (
            "playwright-history-02",
            "playwright/history-02.xml",
            "acme-shop/acme-shop",
        ),
        (
            "playwright-history-08",
            "playwright/history-08.xml",
            "acme-shop/acme-shop",
        ),
        (
            "playwright-include-retries",
            "playwright/include-retries.xml",
            "acme-shop/acme-shop",
        ),
        (
            "playwright-load-error",
            "playwright/load-error.xml",
            "acme-shop/acme-shop",
        ),
        (
            "playwright-shard-2-of-3",
            "playwright/shard-2-of-3.xml",
            "acme-shop/acme-shop",
        ),
        ("playwright-v1.20.2", "playwright/v1.20.2.xml", "old/old"),
        ("playwright-v1.31.2", "playwright/v1.31.2.xml", "old/old"),
        ("prove", "tap/prove-junit.xml", "acme-shop/acme-tap"),
        (
            "pytest-collection-error",
            "pytest/junit-collection-error.xml",
            "acme-shop/acme-py",
        ),
        ("pytest-empty", "pytest/junit-empty.xml", "acme-shop/acme-py"),
        ("pytest-green", "pytest/junit-green.xml", "acme-shop/acme-py"),
        ("pytest-maxfail", "pytest/junit-maxfail.xml", "acme-shop/acme-py"),
        ("pytest-xunit1", "pytest/junit-xunit1.xml", "acme-shop/acme-py"),
        ("pytest-xunit2", "pytest/junit-xunit2.xml", "acme-shop/acme-py"),
        ("robot", "python-others/robot-xunit.xml", "acme-shop/acme-pyo"),
        ("rspec", "rspec/junit.xml", "acme-shop/acme-rb"),
        (
            "rspec-load-error",
            "rspec/junit-load-error.xml",
            "acme-shop/acme-rb",
        ),
        (
            "surefire-broken-setup",
            "surefire/TEST-org.example.shop.BrokenSetupTest.xml",
            "acme-shop/acme-java",
        ),
        (
            "surefire-order",
            "surefire/TEST-org.example.shop.OrderTest.xml",
            "acme-shop/acme-java",
        ),
        (
            "unittest",
            "python-others/unittest-xml-reporting.xml",
            "acme-shop/acme-pyo",
        ),
        ("vitest", "vitest/junit.xml", "acme-shop/acme-vitest"),
        (
            "vitest-shard-1-of-2",
            "vitest/junit-shard-1-of-2.xml",
            "acme-shop/acme-vitest",
        ),
        (
            "vitest-shard-2-of-2",
            "vitest/junit-shard-2-of-2.xml",
            "acme-shop/acme-vitest",
        ),
    ] {
        insta::assert_snapshot!(format!("junit-{name}"), real(path, root));
    }
}

#[test]
fn samples_are_read_as_their_tools_define() {
    for name in ["catch2", "googletest", "gradle", "node-test", "phpunit"] {
        insta::assert_snapshot!(
            format!("junit-{name}"),
            real(&format!("samples/{name}.xml"), "shop")
        );
    }
}

fn names(report: &Report) -> Vec<&str> {
    report.tests.iter().map(|test| test.test.name.as_str()).collect()
}

#[test]
fn playwright_has_the_same_names_in_junit_and_json() {
    // Titles that contain Playwright's own separator are an exception.
    for name in [
        "full",
        "green",
        "shard-1-of-3",
        "shard-3-of-3",
        "v1.20.2",
        "v1.31.2",
    ] {
        let xml = plain(vec![support::file(&format!("playwright/{name}.xml"))]).unwrap();
        let json = plain(vec![support::file(&format!("playwright/{name}.json"))]).unwrap();
        let mut junit_names = names(&xml);
        let json_names: Vec<String> = names(&json)
            .iter()
            .map(|name| name.replace(" › ", " > "))
            .collect();
        let mut json_names: Vec<&str> = json_names.iter().map(String::as_str).collect();
        junit_names.sort_unstable();
        json_names.sort_unstable();
        assert_eq!(junit_names, json_names, "{name}");
    }
}

#[test]
fn class_names_find_their_files_in_the_checkout() {
    let files: KnownFiles = ["tests/test_orders.py", "tests/unit/test_orders.py"]
        .into_iter()
        .map(String::from)
        .collect();
    let options = Options {
        known_files: Some(&files),
        ..Options::default()
    };
    let report = assay_reports::read(vec![support::file("pytest/junit-xunit2.xml")], &options).unwrap();
    let file = |name: &str| {
        let test = report.tests.iter().find(|test| test.test.name == name).unwrap();
        assert_eq!(
            test.test.file_path, None,
            "a file that was found is no part of the identity"
        );
        test.shown_as.file_path.as_deref()
    };
    assert_eq!(
        file("tests.test_orders.TestOrders > test_total"),
        Some("tests/test_orders.py")
    );
    assert_eq!(
        file("tests.unit.test_orders.TestOrders > test_total"),
        Some("tests/unit/test_orders.py")
    );
    assert_eq!(file("tests.test_warehouse.WarehouseTest > test_stock"), None);
}

#[test]
fn surefire_classes_are_one_run() {
    let files = support::files_in("surefire");
    let report = plain(files).unwrap();
    assert_eq!((report.tests.len(), report.errors.len()), (10, 1));
    assert_eq!(report.state, RunState::Completed);
}

#[test]
fn vitest_cases_after_a_bail_are_skipped_if_durations_are_finer_than_milliseconds() {
    let report = |total: &str| {
        let text = format!(
            r#"<testsuites name="vitest tests" tests="3" failures="1" errors="0" time="{total}">
            <testsuite name="h/slow.test.js" timestamp="2026-11-20T23:25:10.851Z" hostname="vm" tests="3" failures="1" errors="0" skipped="0" time="{total}">
            <testcase classname="h/slow.test.js" name="first" time="0.802"></testcase>
            <testcase classname="h/slow.test.js" name="second" time="0.815"><failure message="bail here" type="Error">Error: bail here</failure></testcase>
            <testcase classname="h/slow.test.js" name="third" time="0"></testcase>
            </testsuite></testsuites>"#
        );
        let report = support::plain(vec![support::inline("junit.xml", text)]).unwrap();
        let ends: Vec<AttemptStatus> = report
            .tests
            .iter()
            .map(|test| test.attempts.last().unwrap().status)
            .collect();
        ends
    };
    let (passed, failed) = (AttemptStatus::Passed, AttemptStatus::Failed);
    assert_eq!(report("1.626721594"), [passed, failed, AttemptStatus::Skipped]);
    assert_eq!(report("1.625"), [passed, failed, passed]);
}

/// Status and first message of a case, in a suite whose tool is not recognized.
fn status_and_message(case: &str) -> (AttemptStatus, String) {
    let text = format!(r#"<testsuite name="s">{case}</testsuite>"#);
    let report = plain(vec![support::inline("junit.xml", text)]).unwrap();
    let last = report.tests[0].attempts.last().unwrap();
    let message = last.errors[0].message.clone().unwrap();
    (last.status, message)
}

#[test]
fn phpunits_message_is_below_the_tests_name_with_and_without_a_namespace() {
    for name in [
        "FooTest::testFail",
        r"Acme\Shop\FooTest::testFail",
        "FooTest::testFail with data set \"a/b\" ('a/b')",
    ] {
        let (_, message) = status_and_message(&format!(
            r#"<testcase name="testFail" class="FooTest" classname="FooTest"><failure
            type="PHPUnit\Framework\ExpectationFailedException">{}
not same
Failed asserting that 2 is identical to 1.

/app/FooTest.php:4
/app/Base.php:9</failure></testcase>"#,
            name.replace('"', "&quot;")
        ));
        assert_eq!(message, "not same\nFailed asserting that 2 is identical to 1.");
    }
}

#[test]
fn a_catch2_exception_has_its_own_message() {
    let (_, message) = status_and_message(
        "<testcase classname='c.global' name='throws'><error type='TEST_CASE'>\nFAILED:\nboom\nat c.cc:4\n</error></testcase>",
    );
    assert_eq!(message, "boom");
}

#[test]
fn the_time_limits_of_node_and_robot_are_time_outs() {
    let (status, _) = status_and_message(
        "<testcase name='slow' classname='test'><failure type='testTimeoutFailure' message='test timed out after 200ms'/></testcase>",
    );
    assert_eq!(
        status,
        AttemptStatus::Failed,
        "node:test writes no suite around it"
    );
    let node = r#"<testsuites><testcase name="slow" classname="test"><failure type="testTimeoutFailure" message="test timed out after 200ms"/></testcase></testsuites>"#;
    let report = plain(vec![support::inline("junit.xml", node)]).unwrap();
    assert_eq!(report.tests[0].attempts[0].status, AttemptStatus::TimedOut);
    let (status, _) = status_and_message(
        "<testcase name='Slow' classname='T'><failure message='Test timeout 1 second exceeded.' type='AssertionError'/></testcase>",
    );
    assert_eq!(status, AttemptStatus::TimedOut);
}

#[test]
fn the_nameless_case_of_an_interrupted_pytest_is_not_a_passed_test() {
    let (case_with_name, case_without_name) = (
        r#"<testcase classname="tests.test_ok" name="test_a" time="0.001" />"#,
        r#"<testcase time="0.000" />"#,
    );
    let report = |cases: [&str; 2]| {
        let text = format!(
            r#"<testsuites name="pytest tests"><testsuite name="pytest" tests="2" time="0.277">{}</testsuite></testsuites>"#,
            cases.concat()
        );
        let report = plain(vec![support::inline("junit.xml", text)]).unwrap();
        assert_eq!(names(&report), ["tests.test_ok > test_a"]);
        (report.state, report.warnings.len())
    };
    assert_eq!(
        report([case_with_name, case_without_name]),
        (RunState::Interrupted, 1)
    );
    assert_eq!(
        report([case_without_name, case_with_name]),
        (RunState::Completed, 0),
        "a rerun of what crashed its worker"
    );
}

#[test]
fn gos_groups_of_subtests_are_tests_only_if_they_failed_by_themselves() {
    let xml = r#"<testsuites><testsuite name="example.org/shop"><properties><property name="go.version" value="go1.22"/></properties>
        <testcase classname="example.org/shop" name="TestGreen/a"/><testcase classname="example.org/shop" name="TestGreen"/>
        <testcase classname="example.org/shop" name="TestRed/a/b"><failure message="Failed">    a_test.go:7: wrong</failure></testcase>
        <testcase classname="example.org/shop" name="TestRed/a"><failure message="Failed"/></testcase>
        <testcase classname="example.org/shop" name="TestRed/c"/>
        <testcase classname="example.org/shop" name="TestRed"><failure message="Failed"/></testcase>
        <testcase classname="example.org/shop" name="TestOwn/a"/>
        <testcase classname="example.org/shop" name="TestOwn"><failure message="Failed">    a_test.go:9: cleanup</failure></testcase>
        <testcase classname="example.org/shop" name="TestAlone"/></testsuite>
        <testsuite name="others"><testcase classname="k" name="get"/><testcase classname="k" name="get/all"/></testsuite></testsuites>"#;
    let report = plain(vec![support::inline("r.xml", xml)]).unwrap();
    let names: Vec<&str> = report.tests.iter().map(|test| test.test.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "others > k > get",
            "others > k > get/all",
            "example.org/shop > TestGreen/a",
            "example.org/shop > TestRed/a/b",
            "example.org/shop > TestRed/c",
            "example.org/shop > TestOwn/a",
            "example.org/shop > TestOwn",
            "example.org/shop > TestAlone",
        ]
    );
}

#[test]
fn playwrights_files_are_found_in_the_checkout() {
    let xml = r#"<testsuites><testsuite name="a.spec.ts" timestamp="2026-11-20T19:18:54.000Z" hostname="api" tests="1" failures="0" skipped="0" time="0.1" errors="0">
        <testcase name="adds" classname="a.spec.ts" time="0.1"></testcase></testsuite></testsuites>"#;
    let path = |files: &[&str]| {
        let known_files: KnownFiles = files.iter().map(|file| (*file).to_owned()).collect();
        let options = Options {
            known_files: Some(&known_files),
            ..Options::default()
        };
        let report = assay_reports::read(vec![support::inline("r.xml", xml)], &options).unwrap();
        assert_eq!(report.tests[0].test.name, "api > a.spec.ts > adds");
        assert_eq!(report.tests[0].test.file_path.as_deref(), Some("a.spec.ts"));
        report.tests[0].shown_as.file_path.clone()
    };
    assert_eq!(
        path(&["e2e/a.spec.ts", "e2e/b.spec.ts"]).as_deref(),
        Some("e2e/a.spec.ts")
    );
    assert_eq!(path(&["e2e/a.spec.ts", "unit/a.spec.ts"]), None);
    assert_eq!(path(&[]), None);
}

#[test]
fn the_message_of_an_uncaught_exception_is_below_its_location() {
    for (text, expected) in [
        (
            "node:internal/assert/utils:281\n    throw err;\n    ^\n\nAssertionError [ERR_ASSERTION]: Expected values to be \
             strictly equal:\n\n3 !== 10\n\n    at a (/r/a.js:1:2) {\n  code: 1\n}\n\nNode.js v22.15.0",
            "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n\n3 !== 10",
        ),
        (
            "Can't clean tmpdir: /tmp/x\nFiles blocking: [ 'a' ]\n\n/r/tmpdir.js:69\n    throw e;\n    ^\n\nReferenceError: a is \
             not defined\n    at b (/r/b.js:1:2)",
            "ReferenceError: a is not defined",
        ),
        (
            "2026-11-20 18:46:03,120 WARN server started\njava.lang.IllegalStateException: closed\n\tat org.A.b(A.java:3)",
            "java.lang.IllegalStateException: closed",
        ),
        (
            "node:events:498\n      throw er; // Unhandled 'error' event\n      ^\n\nError: read ECONNRESET\n    at TLSWrap.a \
             (node:b:216:20)\nEmitted 'error' event at:\n    at c (node:d:170:8)",
            "Error: read ECONNRESET",
        ),
        (
            "node:events:487\n      throw er; // Unhandled 'error' event\n      ^\n\nError [ERR_WORKER_OUT_OF_MEMORY]: Worker \
             terminated\n    at a (node:b:1:2)",
            "Error [ERR_WORKER_OUT_OF_MEMORY]: Worker terminated",
        ),
        ("total is wrong\n\nError: not looked at", "total is wrong"),
        (
            "expected 3\n    at a (/r/a.js:1:2)\n/r/b.js:3\nTypeError: a cause",
            "expected 3",
        ),
    ] {
        let (_, message) = status_and_message(&format!(
            "<testcase name='a'><failure><![CDATA[{text}]]></failure></testcase>"
        ));
        assert_eq!(message, expected);
    }
}

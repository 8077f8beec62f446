//! JUnit XML: real reports, each checked against its suite in testdata/reports/suites, and samples of tools without a
//! suite there.

use assay_domain::run::RunState;
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

//! Real reports, each checked against the suite that made it.

use crate::testing::{read_bytes, read_file, told};

macro_rules! reports {
    ($($name:ident = $path:literal),+ $(,)?) => {
        $(#[test]
        fn $name() {
            let report = read_file($path, super::read).expect("a readable report");
            insta::assert_snapshot!(stringify!($name), told(&report));
        })+
    };
}

reports! {
    bats = "bats/junit.xml",
    behave = "python-others/behave.xml",
    ctest = "ctest/junit.xml",
    gotestsum_all = "go/go1.19/gotestsum-all.xml",
    gotestsum_rerun = "go/go1.19/gotestsum-rerun.xml",
    jest_default = "jest/junit-default.xml",
    jest_tuned = "jest/junit-tuned.xml",
    mocha_jenkins = "mocha/mocha-junit-jenkins.xml",
    mocha_junit_reporter = "mocha/mocha-junit-reporter.xml",
    mocha_switched = "mocha/mocha-junit-switched.xml",
    mocha_xunit = "mocha/xunit.xml",
    nextest = "nextest/junit.xml",
    nextest_green = "nextest/junit-green.xml",
    playwright_full = "playwright/full/junit.xml",
    playwright_green = "playwright/green/junit.xml",
    playwright_history_02 = "playwright-history/run-02.xml",
    playwright_history_08 = "playwright-history/run-08.xml",
    playwright_include_retries = "playwright/junit-include-retries/junit.xml",
    playwright_load_error = "playwright/load-error/junit.xml",
    playwright_merged = "playwright/merged/junit.xml",
    playwright_no_tests = "playwright/no-tests/junit.xml",
    playwright_shard_1 = "playwright/shards/junit-1-of-3.xml",
    playwright_shard_2 = "playwright/shards/junit-2-of-3.xml",
    playwright_shard_3 = "playwright/shards/junit-3-of-3.xml",
    playwright_1_20 = "playwright-old/v1.20.2/junit.xml",
    playwright_1_31 = "playwright-old/v1.31.2/junit.xml",
    prove = "tap/prove-junit.xml",
    pytest_collection_error = "pytest/collection-error/junit.xml",
    pytest_empty = "pytest/junit-empty.xml",
    pytest_green = "pytest/junit-green.xml",
    pytest_maxfail = "pytest/junit-maxfail.xml",
    pytest_xunit1 = "pytest/junit-xunit1.xml",
    pytest_xunit2 = "pytest/junit-xunit2.xml",
    robot = "python-others/robot-xunit.xml",
    rspec = "rspec/junit.xml",
    rspec_load_error = "rspec/junit-load-error.xml",
    surefire_broken_setup = "surefire/TEST-org.example.shop.BrokenSetupTest.xml",
    surefire_order = "surefire/TEST-org.example.shop.OrderTest.xml",
    unittest = "python-others/unittest-xml-reporting.xml",
    vitest = "vitest/junit.xml",
    vitest_shard_1 = "vitest/junit-shard-1-of-2.xml",
    vitest_shard_2 = "vitest/junit-shard-2-of-2.xml",
}

#[test]
fn a_crashed_reporter_leaves_nothing_to_read() {
    let error = read_file("vitest/reporter-crashed/junit.xml", super::read).unwrap_err();
    assert_eq!(
        error.to_string(),
        "vitest/reporter-crashed/junit.xml:1: not a readable JUnit XML report: the file is empty; \
         expected <testsuites> or <testsuite>"
    );
}

fn told_of(text: &str) -> String {
    told(&read_bytes("r.xml", text.as_bytes().to_vec(), super::read).expect("a readable report"))
}

/// As GoogleTest, Catch2, PHPUnit, node:test and Gradle write them.
#[test]
fn tools_without_a_report_of_their_own() {
    insta::assert_snapshot!("googletest", told_of(include_str!("samples/googletest.xml")));
    insta::assert_snapshot!("catch2", told_of(include_str!("samples/catch2.xml")));
    insta::assert_snapshot!("phpunit", told_of(include_str!("samples/phpunit.xml")));
    insta::assert_snapshot!("node_test", told_of(include_str!("samples/node-test.xml")));
    insta::assert_snapshot!("gradle", told_of(include_str!("samples/gradle.xml")));
}

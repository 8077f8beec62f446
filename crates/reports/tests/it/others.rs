//! CTRF, Jest, Vitest and Allure: real reports of the suites in testdata/reports/suites.

use assay_domain::attempt::AttemptStatus;

use crate::{
    render::render,
    support::{self, SHOP, rooted},
};

const JS: &str = "/home/runner/work/acme-shop/acme-js";
const VITEST: &str = "/home/runner/work/acme-shop/acme-vitest";
const MOCHA: &str = "/home/runner/work/acme-shop/acme-mocha";
const PY: &str = "/home/runner/work/acme-shop/acme-py";

#[test]
fn real_ctrf_reports_are_read_as_their_suites_ran() {
    for (name, root) in [
        ("jest", JS),
        ("mocha", MOCHA),
        ("playwright-full", SHOP),
        ("playwright-green", SHOP),
        ("playwright-interrupted", SHOP),
        ("playwright-sigint", SHOP),
        ("pytest", PY),
        ("pytest-collection-error", PY),
    ] {
        let report = rooted(vec![support::file(&format!("ctrf/{name}.json"))], root);
        insta::assert_snapshot!(format!("ctrf-{name}"), render(&report));
    }
}

#[test]
fn real_jest_and_vitest_reports_are_read_as_their_suites_ran() {
    for (name, root) in [
        ("jest/jest", JS),
        ("vitest/vitest", VITEST),
        ("vitest/vitest-shard-1-of-2", VITEST),
        ("vitest/vitest-shard-2-of-2", VITEST),
    ] {
        let report = rooted(vec![support::file(&format!("{name}.json"))], root);
        insta::assert_snapshot!(name.rsplit('/').next().unwrap(), render(&report));
    }
}

#[test]
fn real_allure_folders_are_read_as_their_suites_ran() {
    for (name, root) in [("allure-playwright", SHOP), ("allure-pytest", PY)] {
        let mut report = rooted(support::files_in(name), root);
        report.tests.sort_by(|a, b| a.test.cmp(&b.test));
        insta::assert_snapshot!(name, render(&report));
    }
}

#[test]
fn playwright_tests_have_equal_names_in_ctrf_and_json() {
    let names = |file: &str| {
        let report = rooted(vec![support::file(file)], SHOP);
        let mut names: Vec<_> = report
            .tests
            .into_iter()
            .map(|test| (test.test, test.attempts.last().unwrap().browser.clone()))
            .collect();
        names.sort();
        names
    };
    let json = names("playwright/full.json");
    let ctrf = names("ctrf/playwright-full.json");
    // CTRF writes paths relative to the checkout, JSON relative to the test folder. With a known root both are the
    // same.
    assert_eq!(ctrf, json);
}

#[test]
fn a_folder_of_allure_or_surefire_results_is_one_run_among_others() {
    let mut files = support::files_in("allure-playwright");
    files.retain(|file| assay_reports::looks_like_report(&file.bytes).is_some());
    files.push(support::file("ctrf/mocha.json"));
    files.extend(support::files_in("surefire"));
    let runs = assay_reports::read_each(files, &assay_reports::Options::default()).unwrap();
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    assert_eq!(names, ["allure-playwright", "ctrf/mocha.json", "surefire"]);
    let flaky = runs[0]
        .report
        .tests
        .iter()
        .find(|test| test.test.name.ends_with("second try"))
        .unwrap();
    let statuses: Vec<_> = flaky.attempts.iter().map(|attempt| attempt.status).collect();
    assert_eq!(
        statuses,
        [
            AttemptStatus::Failed,
            AttemptStatus::Passed,
            AttemptStatus::Passed
        ]
    );
}

//! Reports of one suite by several writers, and folders of several reports.

use assay_domain::attempt::AttemptStatus;

use crate::support::{self, SHOP, rooted};

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

//! JUnit XML: names that agree with other formats, files of the checkout, and a folder that is one run.

use assay_domain::run::RunState;
use assay_reports::{KnownFiles, Options, Report};

use crate::support::{self, plain};

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

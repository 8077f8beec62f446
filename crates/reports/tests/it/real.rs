//! Reports that the tools in testdata/reports/suites wrote, and samples from the documentation of tools that could not be
//! run. Each has a snapshot, which a person checked against its suite.

use assay_reports::{Format, looks_like_report};

use crate::{
    render::render,
    support::{self, rooted},
};

/// The reports below testdata/reports with their formats, and the checkout that each names.
pub(crate) fn reports() -> Vec<(String, Format, String)> {
    let mut reports = Vec::new();
    for folder in support::folders() {
        for file in support::files_in(&folder) {
            let Some(format) = looks_like_report(&file.bytes) else {
                continue;
            };
            let text = String::from_utf8_lossy(&file.bytes);
            let checkouts = ["/home/runner/work/shop", "/home/runner/work/acme-shop/"];
            let root = checkouts.iter().find_map(|start| {
                let (_, rest) = text.split_once(start)?;
                let name = rest.split(['/', '"', '<', '\n']).next()?;
                Some(format!("{start}{name}"))
            });
            let root = root.unwrap_or_else(|| support::SHOP.to_owned());
            reports.push((file.name, format, root));
        }
    }
    assert!(reports.len() > 150, "{reports:?}");
    reports
}

#[test]
fn reports_are_recognised_and_read_as_their_suites_ran() {
    for (path, format, root) in reports() {
        // The files of a folder of Allure are one report.
        if format == Format::Allure {
            continue;
        }
        let report = rooted(vec![support::file(&path)], &root);
        insta::assert_snapshot!(path.replace(['/', '.'], "-"), render(&report));
    }
}

#[test]
fn folders_of_allure_are_read_as_their_suites_ran() {
    for (name, root) in [("allure-playwright", "acme-shop"), ("allure-pytest", "acme-py")] {
        let root = format!("/home/runner/work/acme-shop/{root}");
        let mut report = rooted(support::files_in(name), &root);
        report.tests.sort_by(|a, b| a.test.cmp(&b.test));
        insta::assert_snapshot!(name, render(&report));
    }
}

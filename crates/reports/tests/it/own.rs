//! The own formats of test tools: reports that the tools in testdata/reports/suites wrote, and samples after the
//! documentation of those that could not be run.

use assay_reports::{Format, looks_like_report};

use crate::{
    render::render,
    support::{self, rooted},
};

/// Each report, the format that it is recognised as, and the folder below the checkouts where it was made.
pub(crate) const REPORTS: &[(&str, Format, &str)] = &[
    ("cucumber/cucumber.json", Format::Cucumber, "acme-cucumber"),
    ("robot/output.xml", Format::Robot, "acme-robot"),
    ("robot/legacy.xml", Format::Robot, "acme-robot"),
    ("robot/merged.xml", Format::Robot, "acme-robot"),
    ("mocha/mocha.json", Format::Mocha, "acme-mocha"),
    ("mochawesome/mochawesome.json", Format::Mochawesome, "acme-mocha"),
    ("pytest/json-report.json", Format::PytestJson, "acme-py"),
    ("rspec/rspec.json", Format::Rspec, "acme-rspec"),
    ("rspec/rspec-load-error.json", Format::Rspec, "acme-rspec"),
    ("tap/node-test.tap", Format::Tap, "acme-node"),
    ("tap/mocha.tap", Format::Tap, "acme-mocha"),
    ("tap/orders.tap", Format::Tap, "acme-tap"),
    ("tap/prove-verbose.txt", Format::Tap, "acme-tap"),
    ("tap/bail-out.tap", Format::Tap, "acme-tap"),
    ("tap/short.tap", Format::Tap, "acme-tap"),
    ("tap/skip-all.tap", Format::Tap, "acme-tap"),
    ("libtest/libtest.jsonl", Format::Libtest, "acme-nextest"),
    ("libtest/libtest-crash.jsonl", Format::Libtest, "acme-nextest"),
    ("ctest/Test.xml", Format::Ctest, "acme-ctest"),
    ("nunit/nunit2.xml", Format::Nunit, "acme-nunit"),
    ("samples/nunit3.xml", Format::Nunit, "acme-net"),
    ("samples/xunit2.xml", Format::Xunit, "acme-net"),
    ("samples/dart.jsonl", Format::Dart, "acme-dart"),
    ("samples/karate-summary-json.txt", Format::Karate, "acme-karate"),
];

#[test]
fn reports_are_recognised_and_read_as_their_suites_ran() {
    for (path, format, checkout) in REPORTS {
        let file = support::file(path);
        assert_eq!(looks_like_report(&file.bytes), Some(*format), "{path}");
        let report = rooted(vec![file], &format!("/home/runner/work/acme-shop/{checkout}"));
        assert_eq!(report.format, *format, "{path}");
        let name = path.replace(['/', '.'], "-");
        insta::assert_snapshot!(format!("own-{name}"), render(&report));
    }
}

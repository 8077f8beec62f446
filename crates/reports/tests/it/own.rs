//! The own formats of test tools: reports that the tools in testdata/reports/suites wrote, and samples from the
//! documentation of tools that could not be run.

use assay_domain::run::RunState;
use assay_reports::{Format, Options, read};

use crate::{
    real::reports,
    support::{self, inline, plain},
};

/// Formats that several tools write, or whose reports are compared in another file of these tests.
const HAVE_OTHER_TESTS: &[Format] = &[
    Format::Playwright,
    Format::Junit,
    Format::Ctrf,
    Format::Jest,
    Format::Go,
    Format::Trx,
    Format::Allure,
    Format::Testng,
];

#[test]
fn a_truncated_report_yields_no_other_tests_and_is_never_complete() {
    for (path, format, _) in reports() {
        if HAVE_OTHER_TESTS.contains(&format) {
            continue;
        }
        let file = support::file(&path);
        let whole = plain(vec![file.clone()]).unwrap();
        let text = String::from_utf8(file.bytes).unwrap();
        for share in 1..8 {
            let end = (share * text.len() / 8..)
                .find(|at| text.is_char_boundary(*at))
                .unwrap();
            let options = Options {
                format: Some(format),
                ..Options::default()
            };
            // A file that is cut off before its first whole test is refused.
            let Ok(cut) = read(vec![inline("r", &text.as_bytes()[..end])], &options) else {
                continue;
            };
            for test in &cut.tests {
                let is_known = whole.tests.iter().any(|known| known.test == test.test);
                assert!(is_known, "{path} {share}/8: {:?}", test.test);
            }
            // Text after the tests may be missing, such as prove's summary.
            let is_noted = !cut.warnings.is_empty() || !cut.errors.is_empty() || cut.tests == whole.tests;
            assert!(cut.state == RunState::Interrupted || is_noted, "{path} {share}/8");
        }
    }
}

#[test]
fn depths_numbers_and_types_that_no_tool_writes_are_bounded() {
    let deep = 100_000;
    let options = |format| Options {
        format: Some(format),
        ..Options::default()
    };
    let nested = |open: &str, close: &str| format!("{}{}", open.repeat(deep), close.repeat(deep));
    for (format, text) in [
        (
            Format::Robot,
            format!("<robot>{}</robot>", nested("<suite name='s'>", "</suite>")),
        ),
        (
            Format::Nunit,
            format!("<test-run>{}</test-run>", nested("<test-suite>", "</test-suite>")),
        ),
        (Format::Xunit, nested("<assemblies>", "</assemblies>")),
        (Format::Ctest, nested("<Site>", "</Site>")),
        (
            Format::Mochawesome,
            format!(
                "{{\"stats\":{{}},\"results\":[{}]}}",
                nested("{\"suites\":[", "]}")
            ),
        ),
    ] {
        let error = read(vec![inline("deep", text)], &options(format))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("levels") || error.contains("recursion limit"),
            "{format}: {error}"
        );
    }
    // Subtests that are nested too deep are not tests.
    let tap: String = (0..1_000)
        .map(|depth| format!("{}ok 1 - a\n", " ".repeat(4 * depth)))
        .collect();
    assert_eq!(plain(vec![inline("r.tap", tap)]).unwrap().tests.len(), 1);

    let odd = r#"{"stats": [], "passes": 1, "pending": null, "failures": {}, "tests": [{"title": 5, "fullTitle": [], "duration": 1e300,
        "currentRetry": 1e300, "err": {"message": {}, "stack": 7}}, null, {}]}"#;
    let report = read(vec![inline("r.json", odd)], &options(Format::Mocha)).unwrap();
    assert_eq!(report.tests[0].attempts.len(), 21);
    let odd = r#"{"stats": {}, "passes": 1, "tests": [{"title": 5, "duration": 1e300, "currentRetry": 1e300, "err": {}}]}"#;
    let report = plain(vec![inline("r.json", odd)]).unwrap();
    assert_eq!(report.tests[0].test.name, "5");
    assert_eq!(report.tests[0].attempts.len(), 21);
    assert_eq!(report.tests[0].attempts[20].duration_ms, Some(366 * 86_400_000));
    let odd = r#"[{"uri": 7, "name": {}, "elements": [{"name": [], "line": -4, "steps": [{"result": {"status": 1, "duration": -1e300}}]}, null]}]"#;
    let report = plain(vec![inline("r.json", odd)]).unwrap();
    assert_eq!(report.tests[0].test.name, "(no name)");
    assert_eq!(report.tests[0].attempts[0].duration_ms, Some(0));
}

#[test]
fn a_folder_of_karate_counts_each_feature_once() {
    let feature = support::file("samples/shop.orders.karate-json.txt");
    let mut files = vec![
        feature.clone(),
        support::file("samples/karate-summary-json.txt"),
        inline(
            "samples/shop.orders.json",
            r#"[{"uri": "a.feature", "elements": []}]"#,
        ),
        inline(
            "samples/shop.orders.xml",
            "<testsuite><testcase name='[1:4] keeps'/></testsuite>",
        ),
        inline(
            "samples/shop.basket.xml",
            "<testsuite><testcase name='[1:4] opens'/></testsuite>",
        ),
    ];
    for file in files.iter_mut().take(2) {
        let (_, name) = file.name.rsplit_once("samples/").unwrap();
        file.name = format!("samples/{name}");
    }
    let report = plain(files).unwrap();
    let names: Vec<&str> = report.tests.iter().map(|test| &*test.test.name).collect();
    assert_eq!(
        names,
        [
            "Orders > keeps the discount",
            "Orders > lists the orders",
            "Orders > prices",
            "Orders > prices [2]",
            "[1:4] opens"
        ]
    );
    let repetitions = report
        .warnings
        .iter()
        .filter(|warning| warning.ends_with("; counted once"));
    assert_eq!(repetitions.count(), 3, "{:?}", report.warnings);
    // Karate writes the keys in any order: the name may follow the cut.
    let text = String::from_utf8(feature.bytes).unwrap();
    let scenarios = text.find("\"scenarioResults\"").unwrap();
    let end = text.find("\"callDepth\"").unwrap();
    let nameless = format!("{{{}", &text[scenarios..end - 1]);
    let error = plain(vec![inline("a.karate-json.txt", nameless)])
        .unwrap_err()
        .to_string();
    assert!(error.contains("before the feature's name"), "{error}");
}

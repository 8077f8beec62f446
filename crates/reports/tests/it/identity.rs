//! The identity of tests: parts of names that change from run to run. testdata/readings has further cases.

use assay_reports::Options;

use crate::support::{inline, plain};

#[test]
fn parts_of_names_that_change_from_run_to_run_are_replaced_in_every_format() {
    let run = |address: &str, version: &str, ms: u32| {
        let name = format!("is #&lt;Cart:0x{address}&gt;");
        let plain_name = format!("is #<Cart:0x{address}>");
        [
            (
                "r.xml",
                format!(
                    "<testsuite name='rspec'><testcase classname='spec.cart_spec' name='{name}'/></testsuite>"
                ),
            ),
            (
                "r.trx",
                format!(
                    "<TestRun><Results><UnitTestResult testName='{name}' outcome='Passed'/></Results></TestRun>"
                ),
            ),
            (
                "r.json",
                format!(
                    r#"{{"results": {{"tool": {{"name": "x"}}, "tests": [{{"name": "{plain_name}", "status": "passed"}}]}}}}"#
                ),
            ),
            ("r.tap", format!("1..1\nok 1 - {plain_name}\n")),
            (
                "t.tap",
                format!("1..1\nok 1 Chrome {version} - [{ms} ms] - Unit | adds\n"),
            ),
            (
                "k.xml",
                format!(
                    "<testsuite name='Chrome Headless {version} (Linux x86_64)'><testcase name='Cart adds' \
                     classname='Chrome_Headless_{}_(Linux_x86_64).Cart'/></testsuite>",
                    version.replace('.', "_")
                ),
            ),
            (
                "testng-results.xml",
                format!(
                    "<testng-results><suite><test name='Default test'><class name='shop.Cart'><test-method name='adds' \
                     status='PASS'><params><param><value>shop.Money@{}</value></param></params></test-method></class></test>\
                     </suite></testng-results>",
                    &address[4..12]
                ),
            ),
        ]
    };
    let (first, second) = (
        run("00007f1c21a3b4c5", "119.0.6045", 52),
        run("000055d29c0a1b27", "120.0.1", 3),
    );
    let expected = [
        "spec.cart_spec > is #<Cart:<address>>",
        "is #<Cart:<address>>",
        "is #<Cart:<address>>",
        "is #<Cart:<address>>",
        "Chrome <version> > Unit | adds",
        "Chrome Headless <version> (Linux x86_64) > Cart adds",
        "shop.Cart > adds(shop.Money@<hash>)",
    ];
    for ((one, other), expected) in first.iter().zip(&second).zip(expected) {
        for (name, text) in [one, other] {
            let report = plain(vec![inline(name, text.as_str())]).unwrap();
            let [test] = report.tests.as_slice() else {
                panic!("{text}")
            };
            assert_eq!(test.test.name, expected, "{text}");
            assert!(test.shown_as.name.is_some());
            let counted = report
                .warnings
                .iter()
                .filter(|warning| warning.starts_with("1 name has a part that changes"));
            assert_eq!(counted.count(), 1, "{:?}", report.warnings);
            let options = Options {
                keeps_written_names: true,
                ..Options::default()
            };
            let written = assay_reports::read(vec![inline(name, text.as_str())], &options).unwrap();
            assert_eq!(Some(&written.tests[0].test.name), test.shown_as.name.as_ref());
            assert_eq!(written.warnings.len() + 1, report.warnings.len());
        }
    }
    let testem = plain(vec![inline("t.tap", first[4].1.as_str())]).unwrap();
    let attempt = &testem.tests[0].attempts[0];
    assert_eq!(
        (attempt.duration_ms, attempt.browser.as_deref()),
        (Some(52), Some("Chrome 119.0.6045"))
    );
}

//! TestNG's own results, cut off and broken.

use assay_reports::{Format, looks_like_report};

use crate::support::{self, inline, plain};

#[test]
fn a_cut_off_report_keeps_its_whole_tests_and_others_are_refused() {
    let whole = String::from_utf8(support::file("testng/testng-results.xml").bytes).unwrap();
    let all = plain(vec![inline("t.xml", whole.clone())]).unwrap().tests.len();
    for share in [3, 5, 9] {
        let end = (1..)
            .map(|at| at * whole.len() / share)
            .find(|at| whole.is_char_boundary(*at))
            .unwrap();
        let cut = plain(vec![inline("t.xml", &whole[..end])]).unwrap();
        assert!(
            cut.tests.len() < all && cut.warnings[0].contains("cut off in line"),
            "{:?}",
            cut.warnings
        );
    }
    let message = |text: &str| plain(vec![inline("t.xml", text)]).unwrap_err().to_string();
    let crossed = message("<testng-results>\n<suite></test></testng-results>");
    assert!(
        crossed.contains("t.xml:2: ") && crossed.contains("expected </suite>, found </test>"),
        "{crossed}"
    );
    assert!(message(&"<testng-results>".repeat(100_000)).contains("64 levels"));
    assert_eq!(
        looks_like_report(b"<?xml?><testng-results/>"),
        Some(Format::Testng)
    );
}

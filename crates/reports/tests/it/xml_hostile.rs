//! XML files that are malicious or damaged. Each is bounded, and read or rejected with an error.

use std::time::Duration;

use assay_domain::run::RunState;
use assay_reports::{Format, Options, ReadError, Report};
use rustix::time::{ClockId, clock_gettime};

use crate::support::{self, inline, plain};

fn read(bytes: impl Into<Vec<u8>>) -> Result<Report, ReadError> {
    // A single file is read on the thread of its caller.
    let processor_time = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let began = processor_time();
    let read = as_junit(bytes);
    // Each of these needs far less, even unoptimized.
    assert!(processor_time() - began < Duration::from_secs(90));
    read
}

fn as_junit(bytes: impl Into<Vec<u8>>) -> Result<Report, ReadError> {
    let options = Options {
        format: Some(Format::Junit),
        ..Options::default()
    };
    assay_reports::read(vec![inline("r.xml", bytes)], &options)
}

fn real(path: &str) -> Report {
    plain(vec![support::file(path)]).unwrap()
}

fn error_of(bytes: impl Into<Vec<u8>>) -> String {
    read(bytes).expect_err("the file is refused").to_string()
}

/// Name, message and stack of the report's first test.
fn first_test(report: &Report) -> (&str, String, String) {
    let test = report.tests.first().expect("a test");
    let error = test.attempts.first().and_then(|attempt| attempt.errors.first());
    let text = |text: Option<&String>| text.cloned().unwrap_or_default();
    (
        &test.test.name,
        text(error.and_then(|error| error.message.as_ref())),
        text(error.and_then(|error| error.stack.as_ref())),
    )
}

#[test]
fn entities_are_never_expanded() {
    let bomb = real("hostile/billion-laughs.xml");
    assert_eq!(first_test(&bomb), ("s > x", "&a9;".into(), String::new()));
    let external = real("hostile/xxe.xml");
    assert_eq!(first_test(&external), ("s > x", "&secret;".into(), String::new()));
}

#[test]
fn unknown_entities_stay_and_forbidden_characters_are_replaced() {
    let report = real("hostile/unknown-entity.xml");
    assert_eq!(
        first_test(&report),
        (
            "s > x",
            "a&nbsp;b".into(),
            "c&nbsp;d \u{fffd} \u{fffd} \u{fffd}".into()
        )
    );
}

#[test]
fn encodings_are_recognised() {
    let name = |path: &str| {
        let report = real(path);
        first_test(&report).0.to_owned()
    };
    assert_eq!(name("hostile/latin1.xml"), "é > Müller");
    assert_eq!(name("hostile/cp1252-undeclared.xml"), "s > café –");
    assert_eq!(name("hostile/utf8-bom.xml"), "s > x");
    assert_eq!(name("hostile/namespaced.xml"), "s > x");
    for swapped in [false, true] {
        let bytes: Vec<u8> =
            "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-16\"?><testsuite><testcase name='é✓'/></testsuite>"
                .encode_utf16()
                .flat_map(|unit| {
                    if swapped {
                        unit.to_be_bytes()
                    } else {
                        unit.to_le_bytes()
                    }
                })
                .collect();
        assert_eq!(first_test(&read(bytes).unwrap()).0, "é✓");
    }
}

#[test]
fn nesting_is_bounded() {
    let deep = format!(
        "<testsuites>{}{}</testsuites>",
        "<testsuite name=\"s\">".repeat(200_000),
        "</testsuite>".repeat(200_000)
    );
    let error = error_of(deep);
    assert_eq!(
        error,
        "r.xml: the nesting of elements exceeds the limit of 64 levels (line 1)"
    );
    let deep = format!(
        "<testsuites><testsuite name=\"s\"><testcase name=\"x\"><failure>{}{}</failure></testcase></testsuite></testsuites>",
        "<b>".repeat(200_000),
        "</b>".repeat(200_000)
    );
    assert!(error_of(deep).contains("64 levels"));
}

#[test]
fn long_texts_keep_their_head_and_tail() {
    let long = format!("head {} tail", "A".repeat(50_000_000));
    let report = read(format!(
        "<testsuite><testcase name=\"{long}\"><failure message=\"{long}\">{long}</failure></testcase></testsuite>"
    ))
    .unwrap();
    let (name, message, stack) = first_test(&report);
    for (text, most) in [(name, 2_000), (&message, 16_000), (&stack, 32_000)] {
        assert!(text.starts_with("head AAA") && text.ends_with("AAA tail"));
        assert!(text.len() < most + 100);
    }
}

#[test]
fn many_attributes_and_many_ampersands_are_read_in_linear_time() {
    let attributes: String = (0..200_000).map(|number| format!("a{number}=\"1\" ")).collect();
    let report = read(format!(
        "<testsuite><testcase name=\"x\" {attributes}/></testsuite>"
    ))
    .unwrap();
    assert_eq!(first_test(&report).0, "x");
    let ampersands = "&".repeat(5_000_000);
    read(format!(
        "<testsuite><testcase name=\"{ampersands}\"><failure>{ampersands}</failure></testcase></testsuite>"
    ))
    .unwrap();
}

#[test]
fn a_cut_off_file_keeps_its_complete_tests() {
    let whole = "<testsuites><testsuite name=\"s\">\n<testcase name=\"a\"/>\n<testcase name=\"b\"><failure>x</failure></testcase>\n\
                 <testcase name=\"c\"><failure><![CDATA[y]]></failure></testcase></testsuite></testsuites>";
    for (cut, tests) in [
        ("<failure>x", 1),
        ("name=\"c", 2),
        ("[CDATA[y", 2),
        ("</testsuite>", 3),
    ] {
        let end = whole.find(cut).unwrap() + cut.len() - 2;
        let report = read(&whole[..end]).unwrap();
        assert_eq!(report.state, RunState::Interrupted, "{cut}");
        assert_eq!(report.tests.len(), tests, "{cut}");
        assert!(report.warnings[0].starts_with("r.xml: cut off in line "), "{cut}");
    }
    assert_eq!(read(whole).unwrap().state, RunState::Completed);
}

#[test]
fn several_roots_are_all_read() {
    let twice = "<?xml version=\"1.0\"?><testsuite><testcase name=\"a\"/></testsuite>\n\
                 <?xml version=\"1.0\"?><testsuite><testcase name=\"b\"/></testsuite>";
    let report = read(twice).unwrap();
    assert_eq!(report.tests.len(), 2);
    assert_eq!(report.warnings, ["r.xml: 2 reports in one file; all were read"]);
}

#[test]
fn a_file_that_is_no_report_is_refused_with_file_line_and_expectation() {
    let empty =
        "r.xml:1: not a readable JUnit XML report: the file is empty; expected <testsuites> or <testsuite>";
    for (text, expected) in [
        ("", empty),
        (" \n\n", empty),
        (
            "no XML at all",
            "the file has no whole element; expected <testsuites> or <testsuite>",
        ),
        ("<testsui", "the file has no whole element"),
        (
            "<!-- a page -->\n<html><body/></html>",
            "r.xml:2: not a readable JUnit XML report: expected <testsuites> or <testsuite> as the root, found <html>",
        ),
        (
            "<testsuite>\n<testcase name=\"a\">\n</testsuite>",
            "r.xml:3: not a readable JUnit XML report: expected </testcase>, found </testsuite>",
        ),
        (
            "<testsuite/></testsuite>",
            "</testsuite> closes an element that was never opened",
        ),
    ] {
        let error = error_of(text);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn odd_but_whole_files_are_read() {
    for (text, name) in [
        ("<testsuites><testcase name='a'/></testsuites>", "a"),
        ("<testsuite><testcase/></testsuite>", "(no name)"),
        ("<testsuite><testcase name='a' name='b'/></testsuite>", "b"),
        ("<testsuite><testcase name='a\0b'/></testsuite>", "ab"),
        (
            "<testsuite><testcase name='a' time='soon' timestamp='never'/></testsuite>",
            "a",
        ),
        (
            "<testsuite><testsuites><testsuite><testcase name='a'/></testsuite></testsuites></testsuite>",
            "a",
        ),
        ("<testsuite><testcase name=\"a > b\"/></testsuite>", "a > b"),
        ("<!DOCTYPE><testsuite><testcase name='a'/></testsuite>", "a"),
    ] {
        let report = read(text).unwrap();
        assert_eq!(first_test(&report).0, name, "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        let _result = as_junit(bytes);
    }

    #[test]
    fn no_markup_panics(parts in proptest::collection::vec(proptest::sample::select(PARTS), 0..40)) {
        let text = parts.concat();
        if let Ok(report) = as_junit(text) {
            for test in &report.tests {
                proptest::prop_assert!(!test.attempts.is_empty());
                proptest::prop_assert!(!test.test.name.is_empty());
            }
        }
    }
}

const PARTS: &[&str] = &[
    "<testsuites>",
    "</testsuites>",
    "<testsuite name='s' hostname='h'>",
    "</testsuite>",
    "<testsuite",
    "<testcase name='a'/>",
    "<testcase classname='c' name='a' time='1'>",
    "</testcase>",
    "<failure message='m' type='t'>",
    "</failure>",
    "<error/>",
    "<flakyFailure message='f'/>",
    "<rerunError>",
    "</rerunError>",
    "<stackTrace>",
    "</stackTrace>",
    "<skipped/>",
    "text",
    "&lt;",
    "&bad;",
    "<![CDATA[",
    "]]>",
    "<!--",
    "-->",
    "<?pi?>",
    "<system-out>",
    "</system-out>",
    "\0",
    "é",
    ">",
    "'",
    "<",
    "&",
    "<properties><property name='go.version'/></properties>",
];

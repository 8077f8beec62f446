//! Times without a zone, and numbers in the spelling of other countries.

use assay_domain::timestamp::Timestamp;
use assay_reports::{Clocks, Options, Report};

use crate::support::{inline, plain};

/// The time of the import in UTC.
const NOW: &str = "2026-11-20T10:00:00Z";

fn at(text: &str) -> Option<Timestamp> {
    Some(text.parse().unwrap())
}

fn read(content: &str, utc_offset_minutes: Option<i32>) -> Report {
    let options = Options {
        clocks: Clocks {
            utc_offset_minutes,
            now: at(NOW),
        },
        ..Options::default()
    };
    assay_reports::read(vec![inline("r", content)], &options).unwrap()
}

/// GoogleTest's report of a suite that starts at this time.
fn googletest(start: &str) -> String {
    format!(
        r#"<testsuites name="AllTests" timestamp="{start}" time="60"><testsuite name="Cart" timestamp="{start}"><testcase classname="Cart" name="adds" status="run" time="1" timestamp="{start}"/></testsuite></testsuites>"#
    )
}

#[test]
fn times_without_a_zone_are_those_of_the_machine_whose_offset_is_known() {
    // Tokyo, St. John's and Greenwich, all at 09:55 UTC.
    for (local, offset) in [
        ("2026-11-20T18:55:00.000", 540),
        ("2026-11-20T06:25:00", -210),
        ("2026-11-20T09:55:00", 0),
    ] {
        let report = read(&googletest(local), Some(offset));
        assert_eq!(report.started_at, at("2026-11-20T09:55:00Z"), "{local}");
        assert_eq!(report.finished_at, at("2026-11-20T09:56:00Z"), "{local}");
        assert_eq!(
            report.tests[0].attempts[0].started_at, report.started_at,
            "{local}"
        );
        assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    }
}

#[test]
fn times_of_every_format_that_has_no_zone_are_moved() {
    let nine_hours_ahead = "2026-11-20T18:55:00";
    for (what, content) in [
        ("pytest", format!(r#"<testsuites><testsuite name="pytest" errors="0" timestamp="{nine_hours_ahead}"><testcase classname="a" name="t"/></testsuite></testsuites>"#)),
        ("Robot Framework before 7", r#"<robot><suite name="S"><test name="t"><status status="PASS" starttime="20261120 18:55:00.000" endtime="20261120 18:55:01.000"/></test><status status="PASS"/></suite></robot>"#.to_owned()),
        ("Robot Framework 7", format!(r#"<robot><suite name="S"><test name="t"><status status="PASS" start="{nine_hours_ahead}" elapsed="1"/></test><status status="PASS"/></suite></robot>"#)),
        ("NUnit 2", r#"<test-results date="2026-11-20" time="18:55:00"><test-suite name="S"><results><test-case name="C.t" result="Success"/></results></test-suite></test-results>"#.to_owned()),
        ("xUnit.net 2", r#"<assemblies><assembly run-date="2026-11-20" run-time="18:55:00"><collection><test name="C.t" type="C" method="t" result="Pass"/></collection></assembly></assemblies>"#.to_owned()),
        ("TRX", format!(r#"<TestRun><Times start="{nine_hours_ahead}" finish="{nine_hours_ahead}"/><Results><UnitTestResult testName="t" outcome="Passed"/></Results></TestRun>"#)),
    ] {
        let report = read(&content, Some(540));
        assert_eq!(report.started_at, at("2026-11-20T09:55:00Z"), "{what}");
    }
}

#[test]
fn times_with_a_zone_and_those_of_tools_that_write_utc_stay() {
    let utc = "2026-11-20T09:55:00";
    for (what, content) in [
        ("a zone", googletest("2026-11-20T09:55:00Z")),
        ("another zone", googletest("2026-11-20T10:55:00+01:00")),
        (
            "the name of a zone",
            format!(
                r#"<testng-results><suite><test name="x"><class name="C"><test-method name="t" status="PASS" started-at="{utc} UTC"/></class></test></suite></testng-results>"#
            ),
        ),
        (
            "jest-junit",
            format!(
                r#"<testsuites name="jest tests"><testsuite name="a" timestamp="{utc}"><testcase classname="a" name="t"/></testsuite></testsuites>"#
            ),
        ),
        (
            "mocha-junit-reporter",
            format!(
                r#"<testsuites name="Mocha Tests"><testsuite name="a" timestamp="{utc}"><testcase classname="a" name="t"/></testsuite></testsuites>"#
            ),
        ),
        (
            "Gradle",
            format!(
                r#"<testsuite name="a" tests="1" skipped="0" failures="0" errors="0" timestamp="{utc}" hostname="h" time="1"><testcase classname="a" name="t"/></testsuite>"#
            ),
        ),
        (
            "Karma",
            format!(
                r#"<testsuite name="Chrome" package="" timestamp="{utc}" id="0" hostname="h"><testcase classname="a" name="t"/></testsuite>"#
            ),
        ),
        (
            "seconds",
            r#"{"exitcode": 0, "root": "/", "created": 1795168500, "tests": []}"#.to_owned(),
        ),
    ] {
        let report = read(&content, Some(540));
        assert_eq!(report.started_at, at("2026-11-20T09:55:00Z"), "{what}");
    }
    // West of Greenwich a tool that writes UTC would have started ahead.
    let report = read(&googletest(utc), Some(-300));
    assert_eq!(report.started_at, at("2026-11-20T09:55:00Z"));
}

#[test]
fn without_an_offset_a_start_that_lies_ahead_is_left_out_with_a_warning() {
    for ahead in [
        "2026-11-20T10:11:00",
        "2026-11-20T18:55:00",
        "2026-11-21T00:00:00",
    ] {
        let report = read(&googletest(ahead), None);
        assert_eq!((report.started_at, report.finished_at), (None, None), "{ahead}");
        assert_eq!(report.duration_ms, Some(60_000), "{ahead}");
        assert_eq!(report.tests[0].attempts[0].started_at, None, "{ahead}");
        assert_eq!(report.warnings.len(), 1, "{ahead}");
        assert!(report.warnings[0].contains("no zone") && report.warnings[0].contains("utcOffset"));
    }
    // Neither a clock that is a little ahead, nor a date that is wrong, nor a time with a zone.
    for (start, kept) in [
        ("2026-11-20T10:09:00", "2026-11-20T10:09:00Z"),
        ("2026-11-20T03:00:00", "2026-11-20T03:00:00Z"),
        ("2026-11-21T00:01:00", "2026-11-21T00:01:00Z"),
        ("2026-11-20T18:55:00Z", "2026-11-20T18:55:00Z"),
    ] {
        let report = read(&googletest(start), None);
        assert_eq!(report.started_at, at(kept), "{start}");
        assert!(report.warnings.is_empty(), "{start}");
    }
}

#[test]
fn without_clocks_times_without_a_zone_are_utc() {
    let report = plain(vec![inline("r", googletest("2126-11-20T18:55:00"))]).unwrap();
    assert_eq!(report.started_at, at("2126-11-20T18:55:00Z"));
}

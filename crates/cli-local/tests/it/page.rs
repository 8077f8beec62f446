//! The page is well-formed and self-contained, and shows report texts as plain text.

use assay_cli_local::analysis::{Analysis, page};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha2::{Digest as _, Sha256};

use crate::csv::{analyze, small_history};

/// Elements that have no end tag.
const VOID: [&str; 4] = ["meta", "link", "input", "br"];

/// Checks that all elements are closed in order and all attributes quoted. Returns the text between tags.
fn well_formed(html: &str) -> String {
    let mut text = String::new();
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html.strip_prefix("<!DOCTYPE html>").unwrap();
    while let Some(at) = rest.find('<') {
        text.push_str(&rest[..at]);
        let raw = open.last().is_some_and(|name| ["script", "style"].contains(name));
        let tag_end = rest[at..].find('>').unwrap() + at;
        let tag = &rest[at + 1..tag_end];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "the end tag closes the open element");
        } else if raw {
            // Text of a script or style that looks like markup.
            rest = &rest[at + 1..];
            continue;
        } else {
            let name = tag.split(' ').next().unwrap();
            assert!(
                name.bytes().all(|b| b.is_ascii_alphanumeric()),
                "an element: {tag:?}"
            );
            attributes(&tag[name.len()..]);
            if !VOID.contains(&name) {
                open.push(name);
            }
        }
        rest = &rest[tag_end + 1..];
    }
    assert!(open.is_empty(), "still open: {open:?}");
    text
}

fn attributes(text: &str) {
    let mut names = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find(['=', ' ']).unwrap_or(rest.len());
        let name = &rest[..end];
        assert!(
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'),
            "{text:?}"
        );
        assert!(!name.starts_with("on"), "no handler: {text:?}");
        assert!(!names.contains(&name), "{name} twice: {text:?}");
        names.push(name);
        rest = &rest[end..];
        if let Some(value) = rest.strip_prefix("=\"") {
            let end = value.find('"').unwrap();
            rest = &value[end + 1..];
        }
        rest = rest.trim_start();
    }
}

fn hostile() -> Analysis {
    let names = [
        "</script><script>alert(1)</script>",
        "\"\"><img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)",
        "a &lt; b & c > d > <!-- e",
        "\u{202e}desrever \u{0} \u{1b}[31mred",
        " > > ",
    ];
    let mut text = String::from("test,run,started_at,status,branch,file,variant,revision\n");
    for (index, name) in names.iter().enumerate() {
        for run in 0..8 {
            let status = if run % 3 == index % 3 { "failed" } else { "passed" };
            text += &format!(
                "\"{name}\",\"<b>r{run}\",2026-11-{:02}T08:00:00Z,{status},\"main<i>\",\"<u>.ts\",\"<s>\",\"<em>{run}\"\n",
                10 + run
            );
        }
    }
    analyze(&text)
}

#[test]
fn the_page_of_a_small_history_is_complete() {
    let analysis = analyze(&small_history());
    let html = page(&analysis);
    let text = well_formed(&html);
    assert!(text.contains("1 test is broken, 1 flaky"), "{text}");
    for expected in [
        "rescued",
        "red",
        "Passed on retry in 2 of 10 runs",
        "And 2 other tests",
        "Evidence",
    ] {
        assert!(text.contains(expected), "{expected}");
    }
    assert_eq!(html.matches("<li class=\"row ").count(), analysis.tests.len());
    for status in ["broken", "flaky"] {
        assert_eq!(html.matches(&format!("<li class=\"row {status}\"")).count(), 1);
    }
}

#[test]
fn tests_that_fail_now_have_a_group_of_their_own() {
    let mut rows = String::from("test,run,started_at,status\n");
    for run in 1..=12 {
        let status = if run == 12 { "failed" } else { "passed" };
        rows += &format!("late,{run},2026-11-{run:02}T08:00:00Z,{status}\n");
    }
    let analysis = analyze(&rows);
    assert_eq!(
        (
            analysis.reported().len(),
            analysis.failing().len(),
            analysis.others().len()
        ),
        (0, 1, 0)
    );
    let text = well_formed(&page(&analysis));
    assert!(
        text.contains("Failing now") && text.contains("Failed the last run on main, run 12."),
        "{text}"
    );
    assert!(!well_formed(&page(&analyze(&small_history()))).contains("Their newest runs failed"));
}

#[test]
fn the_page_loads_no_external_resource() {
    let html = page(&analyze(&small_history()));
    for loader in [
        "http:",
        "https:",
        "src=",
        "url(",
        "@import",
        "fetch(",
        "XMLHttpRequest",
        "//cdn",
    ] {
        assert!(!html.contains(loader), "{loader}");
    }
    assert!(html.contains("default-src 'none'"));
    // Links lead to anchors of the page. The icon is empty, so that no browser requests one.
    for link in html.split(" href=\"").skip(1) {
        assert!(
            link.starts_with('#') || link.starts_with("data:,\""),
            "{link:.40}"
        );
    }
    assert!(
        !html.contains(" style="),
        "no style attribute, which the policy would block"
    );
}

/// A history of daily runs from the first day of the window on: each test with its outcome by run.
fn daily(tests: &[(String, &str)]) -> Analysis {
    let mut rows = String::from("test,run,started_at,status,variant\n");
    for (variant, (name, outcomes)) in tests.iter().enumerate().map(|(place, test)| (place / 2, test)) {
        for (day, outcome) in (1..).zip(outcomes.chars()) {
            let status = if outcome == 'f' { "failed" } else { "passed" };
            rows += &format!("{name},{day},2026-11-{day:02}T08:00:00Z,{status},{variant}\n");
        }
    }
    analyze(&rows)
}

#[test]
fn every_test_has_a_row_however_many_there_are() {
    // Two tests on a variant, so that no run is a mass failure.
    let outcomes = ["fpppfppp", "pfpppfpp", "ppfpppfp", "pppfpppf"];
    let tests: Vec<(String, &str)> = (0..1_200)
        .zip(outcomes.into_iter().cycle())
        .map(|(test, outcomes)| (format!("suite > t{test}"), outcomes))
        .collect();
    let analysis = daily(&tests);
    assert_eq!(analysis.reported().len(), 1_200);
    let html = page(&analysis);
    assert_eq!(html.matches("<li class=\"row flaky\"").count(), 1_200);
    let mut anchors: Vec<&str> = html
        .split("<details id=\"")
        .skip(1)
        .map(|rest| rest.split_once('"').unwrap().0)
        .collect();
    assert_eq!(anchors.len(), 1_200);
    anchors.sort_unstable();
    anchors.dedup();
    assert_eq!(anchors.len(), 1_200);
    let titles: std::collections::HashSet<&str> = html
        .split("class=\"name\" title=\"")
        .skip(1)
        .map(|rest| rest.split_once('"').unwrap().0)
        .collect();
    assert_eq!(titles.len(), 1_200);
    assert!(titles.contains("suite &gt; t1199"));
}

#[test]
fn a_strip_shows_the_worst_of_each_run() {
    let mut rows = String::from("test,run,started_at,status,variant,branch\n");
    for run in 1..=10 {
        for variant in 0..10 {
            // One variant of ten fails in every third run.
            let status = if variant == 3 && run % 3 == 0 {
                "failed"
            } else {
                "passed"
            };
            rows += &format!("a,{run},2026-11-{run:02}T08:00:00Z,{status},v{variant},main\n");
        }
    }
    let analysis = analyze(&rows);
    let html = page(&analysis);
    // The row, the branch and the failing variant have one bar per run. No other variant has a strip.
    assert_eq!(html.matches("data-o=\"ppfppfppfp\"").count(), 3, "{html}");
    assert_eq!(html.matches("data-o=").count(), 3);
    let drawn: Vec<_> = analysis.recent(&analysis.tests[0], 24);
    assert_eq!(drawn.len(), 10);
}

#[test]
fn a_test_is_new_where_it_first_failed_in_the_last_week() {
    let analysis = daily(&[
        ("new".to_owned(), "ppppppppppfpfp"),
        ("old".to_owned(), "pfppppppppfpfp"),
    ]);
    let html = page(&analysis);
    assert_eq!(html.matches("data-new=\"1\"").count(), 1);
    let (row, _) = html.split_once("title=\"new\"").unwrap();
    assert!(row.rsplit_once("<li ").unwrap().1.contains("data-new"), "{row}");
}

#[test]
fn only_the_pages_own_script_may_run() {
    let html = page(&analyze(&small_history()));
    let (_, behind) = html.split_once("<script>").unwrap();
    let (script, _) = behind.split_once("</script>").unwrap();
    let hash = BASE64_STANDARD.encode(Sha256::digest(script));
    assert!(html.contains(&format!("script-src 'sha256-{hash}';")), "{hash}");
}

#[test]
fn text_of_a_report_is_escaped() {
    let analysis = hostile();
    assert!(!analysis.reported().is_empty());
    let html = page(&analysis);
    well_formed(&html);
    assert_eq!(html.matches("<script>").count(), 1, "only the script of the page");
    for tag in ["<img", "<b>r", "<i>", "<u>", "<s>", "<em>"] {
        assert!(!html.contains(tag), "{tag}");
    }
}

#[test]
fn a_history_without_failures_has_a_sentence() {
    let rows: String = (1..9)
        .map(|run| format!("a,{run},2026-11-{run:02}T08:00:00Z,passed\n"))
        .collect();
    let text = well_formed(&page(&analyze(&format!("test,run,started_at,status\n{rows}"))));
    assert!(
        text.contains("No test is broken, failing or flaky") && text.contains("And 1 other test"),
        "{text}"
    );
}

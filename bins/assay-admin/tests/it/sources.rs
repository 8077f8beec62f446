//! The selection of files, the limits for reading them, and the display of their names.

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Output, Stdio},
};

use assay_testkit::{Cli, assert_contains, started_by, stderr_text};

use crate::junit;

const START: &str = "2026-11-20T10:00:00Z";

/// Runs the program without a database, in little memory and time.
fn bounded(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let program = Cli::new("postgres://nowhere.invalid/none").command(arguments);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -v 2097152 && exec timeout 60 \"$0\" \"$@\""]);
    started_by(limited, &program)
        .env("PATH", "/usr/bin:/bin")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn endless_files_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, link) = (folder.path().join("pipe.xml"), folder.path().join("link.xml"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    symlink("/dev/zero", &link).unwrap();
    let matched = text(&folder.path().join("*.xml"));
    let dry = ["import", "--dry-run", "--project", "web"].as_slice();
    for command in [dry, &["analyze"], &["analyze", "--format", "csv"]] {
        for path in ["/dev/zero", &text(&pipe), &text(&link), &matched] {
            let output = bounded(&[command, &[path]].concat(), &[]);
            assert_eq!(
                output.status.code(),
                Some(1),
                "{command:?} {path}: {}",
                stderr_text(&output)
            );
            assert!(
                stderr_text(&output)
                    .contains("not a regular file; pass the content of a pipe on standard input"),
                "{command:?} {path}: {}",
                stderr_text(&output)
            );
        }
    }
}

#[test]
fn large_files_beside_a_report_are_recognised_by_their_beginning() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..6 {
        let file = File::create(folder.path().join(format!("{number}.json"))).unwrap();
        // A file of zeros that takes no disk.
        file.set_len(400 << 20).unwrap();
    }
    fs::write(
        folder.path().join("r.xml"),
        junit::report(START, &[("adds", true)]),
    )
    .unwrap();
    for command in [
        ["import", "--dry-run", "--project", "web"].as_slice(),
        &["analyze"],
    ] {
        let output = bounded(&[command, &["--json", &text(folder.path())]].concat(), &[]);
        assert!(output.status.success(), "{}", stderr_text(&output));
        assert_contains(&stderr_text(&output), "0.json: no test report");
    }
}

#[test]
fn an_event_file_without_an_end_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("r.xml");
    fs::write(&report, junit::report(START, &[("adds", true)])).unwrap();
    let pipe = folder.path().join("event.json");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for event in ["/dev/zero", &text(&pipe)] {
        let output = bounded(
            &["import", "--dry-run", "--project", "web", &text(&report)],
            &[("GITHUB_ACTIONS", "true"), ("GITHUB_EVENT_PATH", event)],
        );
        assert!(output.status.success(), "{event}: {}", stderr_text(&output));
        assert_contains(&stderr_text(&output), "it is not a regular file");
    }
}

#[test]
fn the_name_of_a_file_cannot_inject_commands_into_ci_or_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let evil = "\n::error::gone ##vso[task.complete] \u{1b}[2J\u{202e}";
    for (name, content) in [
        ("foreign", "{}"),
        ("broken", "<testsuite><a></b></testsuite>"),
        ("cut", "<testsuite><testcase name='a'/>"),
    ] {
        let inner = folder.path().join(format!("{name}{evil}"));
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join(format!("{evil}.xml")), content).unwrap();
    }
    fs::write(
        folder.path().join("r.xml"),
        junit::report(START, &[("adds", true)]),
    )
    .unwrap();
    let missing = format!("{}/missing{evil}", text(folder.path()));
    let matched = format!("{}/broken*/*.xml", text(folder.path()));
    let cut = format!("{}/cut*/*.xml", text(folder.path()));
    let dry = ["import", "--dry-run", "--project", "web"].as_slice();
    for command in [dry, &["analyze"]] {
        for path in [&text(folder.path()), &missing, &matched, &cut] {
            let output = bounded(&[command, &[path]].concat(), &[]);
            let printed = stderr_text(&output) + &String::from_utf8_lossy(&output.stdout);
            assert!(
                !printed.contains("##vso[")
                    && !printed.contains(['\u{1b}', '\u{202e}'])
                    && !printed.contains("::error::"),
                "{printed:?}"
            );
            let names_it = printed.contains(r"\u{a}\u{3a}:error");
            assert!(names_it || command == ["analyze"] && path == &cut, "{printed:?}");
        }
    }
}

#[test]
fn readable_files_beside_an_unreadable_one_count_and_the_exit_status_differs() {
    let folder = tempfile::tempdir().unwrap();
    let report = junit::report(START, &[("adds", true), ("pays", true)]);
    fs::write(folder.path().join("a.xml"), report).unwrap();
    fs::write(folder.path().join("empty.xml"), "").unwrap();
    fs::write(
        folder.path().join("broken.xml"),
        "<testsuite><testcase name='a'></testsuite>",
    )
    .unwrap();
    let pattern = text(&folder.path().join("*.xml"));
    let import = ["import", "--dry-run", "--project", "web", "--json"];
    for (flags, path, unread, status) in [
        (&[][..], pattern.as_str(), 1, 1),
        (&["--lenient"], &pattern, 1, 0),
        // Other files of a folder are skipped, but a broken report is an error.
        (&[], &text(folder.path()), 1, 1),
        (&["--lenient"], &text(folder.path()), 1, 0),
    ] {
        let output = bounded(&[&import, flags, &[path]].concat(), &[]);
        assert_eq!(output.status.code(), Some(status), "{}", stderr_text(&output));
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(value["tests"], 2, "{value}");
        assert_eq!(value["notRead"].as_array().unwrap().len(), unread, "{value}");
        for file in [
            "broken.xml:1: not a readable JUnit XML report",
            "empty.xml: the report is empty",
        ] {
            assert_contains(&stderr_text(&output), file);
        }
    }
    fs::remove_file(folder.path().join("a.xml")).unwrap();
    let output = bounded(&[&import[..], &["--lenient", &pattern]].concat(), &[]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr_text(&output));
    assert_contains(&stderr_text(&output), "nothing was stored");
}

#[test]
fn a_report_without_tests_and_time_does_not_become_the_newest_run() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("a.xml"),
        junit::report(START, &[("adds", true)]),
    )
    .unwrap();
    fs::write(folder.path().join("b.xml"), "<testsuites/>").unwrap();
    let output = bounded(&["analyze", "--json", &text(folder.path())], &[]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    assert_contains(&stderr_text(&output), "b.xml: it has no tests and no time");
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["tests"].as_array().unwrap().len(), 1, "{value}");
}

#[test]
fn each_unread_report_of_a_folder_is_named_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    // The report is read although other files of the folder are no reports.
    for number in 0..30 {
        fs::write(folder.path().join(format!("a{number}.json")), "{}").unwrap();
    }
    let report = junit::report(START, &[("adds", true)]);
    fs::write(folder.path().join("z.xml"), report).unwrap();
    let unread: Vec<[String; 3]> =
        serde_json::from_str(include_str!("../../../../testdata/unread.json")).unwrap();
    for [name, content, _] in &unread {
        fs::write(folder.path().join(name), content).unwrap();
    }
    for command in [
        ["import", "--dry-run", "--project", "web"].as_slice(),
        &["analyze"],
    ] {
        let output = bounded(&[command, &[&text(folder.path())]].concat(), &[]);
        assert!(output.status.success(), "{}", stderr_text(&output));
        let printed = stderr_text(&output);
        for [name, _, hint] in &unread {
            let line = printed
                .lines()
                .find(|line| line.contains(&format!("/{name}: no test report; ")));
            assert!(line.is_some_and(|line| line.contains(hint)), "{name}: {printed}");
        }
        assert_contains(&printed, "skipped 20 more files");
    }
}

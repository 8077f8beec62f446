//! `assay renames`, and the renames file that uploads bring.

use std::{
    fs,
    process::{Command, Output},
};

use assay_testkit::{assert_contains, program, stderr_text};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    receiver::{Receiver, stored},
    upload::{Job, output_text},
};

fn git(folder: &TempDir, script: &str) {
    let status = Command::new("sh")
        .args(["-euc", script])
        .current_dir(folder.path())
        .status();
    assert!(status.unwrap().success(), "{script}");
}

fn write(folder: &TempDir, name: &str, text: &str) {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn renames(folder: &TempDir, arguments: &[&str]) -> Output {
    Command::new(program("assay"))
        .arg("renames")
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .unwrap()
}

fn report(cases: &[(&str, &str)]) -> String {
    let case = |(name, file): &(&str, &str)| format!(r#"<testcase name="{name}" file="{file}"/>"#);
    let cases: String = cases.iter().map(case).collect();
    format!("<testsuites><testsuite name='a'>{cases}</testsuite></testsuites>")
}

#[test]
fn files_that_git_moved_are_suggested_as_reports_name_them_and_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..50).map(|line| format!("line {line}\n")).collect();
    write(&folder, "web/src/old.test.ts", &text);
    write(&folder, "README.md", &text.replace("line", "words"));
    git(
        &folder,
        "git init --quiet . && git config user.name a && git config user.email a@example.org
         git add --all && git commit --quiet -m first
         git mv web/src/old.test.ts web/src/new.test.ts && git mv README.md 'READ ME.md' && git commit --quiet -m moved",
    );
    let day = |output: &Output| -> Vec<String> {
        let lines = output_text(output);
        lines
            .lines()
            .map(|line| line.split_once(' ').unwrap().1.to_owned())
            .collect()
    };
    let all = renames(&folder, &["suggest"]);
    assert_eq!(all.status.code(), Some(0), "{}", stderr_text(&all));
    assert_eq!(
        day(&all),
        [
            "file README.md -> READ ME.md",
            "file web/src/old.test.ts -> web/src/new.test.ts"
        ]
    );
    write(&folder, "out/junit.xml", &report(&[("pays", "src/new.test.ts")]));
    let of_tests = renames(&folder, &["suggest", "out"]);
    assert_eq!(day(&of_tests), ["file src/old.test.ts -> src/new.test.ts"]);
    assert!(!folder.path().join(".assay").exists());
    // What was pasted is not suggested again.
    write(&folder, ".assay/renames", &output_text(&of_tests));
    assert_eq!(output_text(&renames(&folder, &["suggest", "out"])).trim(), "");
    assert_eq!(renames(&folder, &["check", "out"]).status.code(), Some(0));
}

#[test]
fn lines_that_are_left_out_or_ignored_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    git(&folder, "git init --quiet .");
    let missing = renames(&folder, &["check"]);
    assert_eq!(missing.status.code(), Some(1));
    assert_contains(&stderr_text(&missing), "has no .assay/renames");
    let lines =
        "2026-11-20 test a > pays -> a > pays by card\n2026-11-21 test a -> b\n2026-11-22 test b -> a\n";
    write(&folder, ".assay/renames", lines);
    let both = report(&[("pays", "x.ts"), ("pays by card", "x.ts")]);
    write(&folder, "junit.xml", &both);
    let checked = renames(&folder, &["check", "--json", "junit.xml"]);
    assert_eq!(checked.status.code(), Some(1));
    let printed: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(printed["lines"], 1);
    assert_eq!(printed["problems"].as_array().unwrap().len(), 2, "{printed}");
    let ignored = printed["ignored"][0].as_str().unwrap();
    assert!(ignored.starts_with("line 1 is ignored for this run"), "{ignored}");
    let words = output_text(&renames(&folder, &["check", "junit.xml"]));
    assert_contains(&words, ".assay/renames: line 2: leads back to");
}

#[test]
fn an_upload_brings_the_renames_file_unless_it_is_of_a_pull_request() {
    let receiver = Receiver::start(vec![stored(), stored(), stored()]);
    let job = Job::new(&receiver.url);
    let renames = |arguments: &[&str]| {
        let mut command = job.command(&[&["upload", "out"], arguments].concat());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
        receiver.requests().last().unwrap().field("renames")
    };
    let status = Command::new("git")
        .args(["init", "--quiet"])
        .current_dir(job.folder.path())
        .status();
    assert!(status.unwrap().success());
    assert_eq!(
        renames(&[]).as_deref(),
        Some(""),
        "the checkout has no renames file"
    );
    job.write(".assay/renames", "2026-11-20 test a -> b\n");
    assert_eq!(
        renames(&["--branch", "main"]).as_deref(),
        Some("2026-11-20 test a -> b\n")
    );
    assert_eq!(renames(&["--branch", "main", "--pr", "7"]), None);
    assert_eq!(receiver.requests().len(), 3);
}

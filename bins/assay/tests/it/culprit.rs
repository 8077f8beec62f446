//! `assay culprit`: the commit that broke a test, in a real repository and by a real server's history.

use std::{
    path::Path,
    process::{Command, Output},
};

use assay_testkit::{Cli, ServedWorld, assert_contains, stderr_text};
use serde_json::Value;

/// A repository of commits that are tagged c1, c2 … Those from `broken` on have a file of that name.
fn repository(folder: &Path, commits: usize, broken: usize) -> Vec<String> {
    let script = format!(
        "git init --quiet . && git config user.name a && git config user.email a@example.org
         for commit in $(seq 1 {commits}); do
           if [ $commit -ge {broken} ]; then echo $commit > broken; git add broken; fi
           git commit --quiet --allow-empty -m \"Commit $commit\"; git tag c$commit; git rev-parse HEAD
         done"
    );
    let output = Command::new("sh")
        .args(["-euc", &script])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr_text(&output));
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn culprit(folder: &Path, arguments: &[&str]) -> Output {
    let mut command =
        Cli::new("postgresql://127.0.0.1:1/nowhere").command(&[&["culprit"], arguments].concat());
    command.current_dir(folder).output().unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr_text(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_broken_commit_is_found_in_a_worktree_although_the_test_flakes() {
    let folder = tempfile::tempdir().unwrap();
    let commits = repository(folder.path(), 20, 13);
    // Every fifth run fails by itself.
    let runs = folder.path().join("runs").display().to_string();
    let test = format!("echo >> {runs}; [ $(($(wc -l < {runs}) % 5)) != 0 ] && [ ! -e broken ]");
    let fixed = [
        "--json",
        // With a range no server is needed.
        "--test",
        "cart > pays",
        "--good",
        "c1",
        "--bad",
        "c20",
        "--flake-rate",
        "0.2",
        "--run",
        &test,
    ];
    let output = culprit(folder.path(), &fixed);
    let answer = json(&output);
    assert_eq!(answer["outcome"], "found", "{answer} {}", stderr_text(&output));
    assert_eq!(answer["commit"], commits[12].as_str());
    assert_eq!(answer["searched"], 19);
    // The worktree is gone, and the checkout as it was.
    let list = Command::new("git")
        .args(["worktree", "list"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(list.stdout).unwrap().lines().count(), 1);
    let text = culprit(folder.path(), &fixed[1..]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert_contains(&text, "Commit 13 broke the test");
}

#[test]
fn a_signal_removes_the_worktree_and_old_code_gets_no_secrets() {
    let folder = tempfile::tempdir().unwrap();
    repository(folder.path(), 6, 99);
    let [seen, started] = ["seen", "started"].map(|name| folder.path().join(name).display().to_string());
    let script = format!("env > {seen}; touch {started}; sleep 1000 & wait");
    for name in ["TERM", "INT"] {
        let _ = std::fs::remove_file(&started);
        let arguments = ["culprit", "--good", "c1", "--bad", "c6", "--run", &script];
        let command = Cli::new("postgresql://127.0.0.1:1/nowhere").command(&arguments);
        let mut child = crate::run::with_default_signals(&command)
            .current_dir(folder.path())
            .envs([
                ("ASSAY_READ_KEY", "svc_ro_secret"),
                ("GITHUB_TOKEN", "ghs_secret"),
                ("CI_JOB_TOKEN", "job_secret"),
                ("KEPT", "kept"),
            ])
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        assay_testkit::wait_until("the command runs", || Path::new(&started).exists());
        crate::run::signal(&child, name);
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(if name == "TERM" { 143 } else { 130 }));
        let list = Command::new("git")
            .args(["worktree", "list"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(list.stdout).unwrap().lines().count(), 1);
        let seen = std::fs::read_to_string(&seen).unwrap();
        assert!(seen.contains("KEPT=kept") && !seen.contains("secret"), "{seen}");
    }
}

#[test]
fn the_history_of_a_server_bounds_the_search_and_counts() {
    let world = ServedWorld::new();
    let folder = tempfile::tempdir().unwrap();
    let commits = repository(folder.path(), 8, 5);
    let report = |failed: bool| {
        let failure = if failed { "<failure message=\"no\"/>" } else { "" };
        format!(
            "<testsuites><testsuite name=\"cart\"><testcase classname=\"cart\" name=\"pays\">{failure}</testcase></testsuite></testsuites>"
        )
    };
    for (minutes_ago, commit, failed) in [(90, 0, false), (80, 1, false), (40, 6, true), (30, 7, true)] {
        let arguments = [
            "--branch",
            "main",
            "--commit",
            &commits[commit],
            "--run-key",
            &commits[commit],
        ];
        world.import_report(minutes_ago, &report(failed), &arguments);
    }
    let mut command =
        Cli::new("postgresql://127.0.0.1:1/nowhere").command(&["culprit", "--json", "--test", "cart > pays"]);
    let output = command
        .current_dir(folder.path())
        .env(
            "ASSAY_API_URL",
            format!("http://{}/api/v1", world.server.address()),
        )
        .env("ASSAY_READ_KEY", &world.key)
        .output()
        .unwrap();
    let answer = json(&output);
    assert_eq!(
        (&answer["outcome"], &answer["searched"]),
        (&"open".into(), &5.into()),
        "{answer}"
    );
    let next = answer["next"]["commit"].as_str().unwrap();
    assert!(commits[2..6].iter().any(|commit| commit == next), "{answer}");
    assert!(answer["next"]["times"].as_u64().unwrap() >= 1);
}

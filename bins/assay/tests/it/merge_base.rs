//! The merge base that an upload brings, from a real checkout.

use std::{fs, path::Path, process::Command};

use assay_testkit::stderr_text;

use crate::{
    receiver::{Receiver, stored},
    upload::Job,
};

fn git(folder: &Path, arguments: &[&str]) -> String {
    let user = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let output = Command::new("git")
        .args(user)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        stderr_text(&output)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn commit(folder: &Path, file: &str) -> String {
    fs::write(folder.join(file), file).unwrap();
    git(folder, &["add", file]);
    git(folder, &["commit", "--quiet", "-m", file]);
    git(folder, &["rev-parse", "HEAD"])
}

#[test]
fn an_upload_brings_the_commit_at_which_its_branch_left_the_target() {
    let receiver = Receiver::start(vec![stored(), stored(), stored(), stored()]);
    let job = Job::new(&receiver.url);
    let origin = tempfile::tempdir().unwrap();
    git(origin.path(), &["init", "--quiet", "--initial-branch=main"]);
    let base = commit(origin.path(), "a.ts");
    let checkout = job.folder.path();
    git(checkout, &["init", "--quiet", "--initial-branch=main"]);
    let address = origin.path().display().to_string();
    git(checkout, &["remote", "add", "origin", &address]);
    git(checkout, &["fetch", "--quiet", "origin"]);
    git(checkout, &["switch", "--quiet", "-c", "topic", "origin/main"]);
    let head = commit(checkout, "b.ts");
    // The target goes on.
    commit(origin.path(), "c.ts");
    git(checkout, &["fetch", "--quiet", "origin"]);
    let sent = |target: Option<&str>, commit: &str| {
        let mut command = job.command(&["upload", "out"]);
        command
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_RUN_ID", "812")
            .env("GITHUB_SHA", commit);
        if let Some(target) = target {
            command.env("GITHUB_BASE_REF", target);
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
        receiver.requests().last().unwrap().field("mergeBase")
    };
    assert_eq!(sent(Some("main"), &head).as_deref(), Some(base.as_str()));
    assert_eq!(sent(Some("main"), &base), None, "another commit is checked out");
    assert_eq!(sent(Some("release"), &head), None, "the target is not here");
    assert_eq!(
        sent(None, &head),
        None,
        "neither CI nor the checkout names a target"
    );
}

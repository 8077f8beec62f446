//! `assay owners check`, and the owners file that uploads bring.

use std::{fs, process::Command};

use assay_testkit::{assert_contains, program, stderr_text};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    receiver::{Receiver, stored},
    upload::{Job, output_text},
};

/// A folder with these files, which git tracks.
fn repository(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    track(folder.path());
    folder
}

fn track(folder: &std::path::Path) {
    for arguments in [&["init", "--quiet"][..], &["add", "--all"]] {
        let status = Command::new("git").args(arguments).current_dir(folder).status();
        assert!(status.unwrap().success());
    }
}

fn check(folder: &TempDir, arguments: &[&str]) -> std::process::Output {
    Command::new(program("assay"))
        .args(["owners", "check"])
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .unwrap()
}

fn json(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr_text(output)))
}

#[test]
fn the_coverage_of_files_and_of_the_tests_of_reports_is_printed() {
    let folder = repository(&[
        (".github/CODEOWNERS", "/web/ @web @ada\n/api/ @api\n"),
        ("web/src/cart.test.ts", ""),
        ("web/src/pay.test.ts", ""),
        ("api/src/pay.test.ts", ""),
        ("README.md", ""),
    ]);
    // An untracked file is no file of the checkout.
    fs::write(folder.path().join("web/left-over.txt"), "").unwrap();
    let files = check(&folder, &["--json"]);
    assert_eq!(files.status.code(), Some(0));
    let printed = json(&files);
    assert_eq!((&printed["total"], &printed["owned"]), (&json!(5), &json!(3)));
    assert_eq!(printed["owners"], json!({"@ada": 2, "@api": 1, "@web": 2}));
    assert_eq!(printed["unowned"], json!([".github/CODEOWNERS", "README.md"]));

    let case = |file: &str| format!(r#"<testcase name="{file}" classname="a" file="{file}"/>"#);
    let cases: String = ["src/cart.test.ts", "src/pay.test.ts", "web/src/new.test.ts"]
        .map(case)
        .concat();
    let report = format!("<testsuites><testsuite name='a'>{cases}</testsuite></testsuites>");
    fs::write(folder.path().join("junit.xml"), report).unwrap();
    let tests = check(&folder, &["junit.xml"]);
    assert_eq!(tests.status.code(), Some(0));
    let text = output_text(&tests);
    assert!(
        text.starts_with(".github/CODEOWNERS: 2 rules. 2 of 3 tests have an owner (66 %)"),
        "{text}"
    );
    assert!(
        text.contains("1 file unclear") && text.contains("  src/pay.test.ts"),
        "{text}"
    );
}

#[test]
fn a_missing_file_and_a_line_that_is_no_rule_fail_the_check() {
    let folder = repository(&[("a.ts", "")]);
    let missing = check(&folder, &[]);
    assert_eq!(missing.status.code(), Some(1));
    assert_contains(&stderr_text(&missing), ".assay/owners, .github/CODEOWNERS");
    fs::create_dir(folder.path().join(".assay")).unwrap();
    fs::write(folder.path().join("CODEOWNERS"), "* @all\n").unwrap();
    assert_eq!(check(&folder, &[]).status.code(), Some(0));
    // Assay's own file comes first.
    fs::write(folder.path().join(".assay/owners"), "* @all\n*.ts nobody\n").unwrap();
    let wrong = check(&folder, &[]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(
        output_text(&wrong).contains(".assay/owners: line 2: \"nobody\" is no owner"),
        "{}",
        output_text(&wrong)
    );
}

#[test]
fn an_upload_brings_the_owners_file_unless_it_is_of_a_pull_request() {
    let receiver = Receiver::start(vec![stored(), stored(), stored()]);
    let job = Job::new(&receiver.url);
    let send = |arguments: &[&str]| {
        let output = job
            .command(&[&["upload", "out"], arguments].concat())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
        let requests = receiver.requests();
        requests.last().unwrap().clone()
    };
    track(job.folder.path());
    assert_eq!(
        send(&[]).field("owners").as_deref(),
        Some(""),
        "the checkout has no owners file"
    );
    job.write("CODEOWNERS", "*.ts @web\n");
    job.write("web/cart.test.ts", "");
    track(job.folder.path());
    let request = send(&["--branch", "main"]);
    assert_eq!(request.field("owners").as_deref(), Some("*.ts @web\n"));
    assert_eq!(request.field("ownersPath").as_deref(), Some("CODEOWNERS"));
    let files = request.field("ownersFiles").unwrap();
    assert!(files.lines().any(|file| file == "web/cart.test.ts"), "{files}");
    let request = send(&["--branch", "main", "--pr", "7"]);
    for field in ["owners", "ownersPath", "ownersFiles"] {
        assert_eq!(request.field(field), None, "{field}");
    }
}

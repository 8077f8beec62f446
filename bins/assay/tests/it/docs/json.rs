//! Compares the JSON that commands print with its description on the page about the command line.

use std::{collections::BTreeMap, fs};

use assay_testkit::{Answer, Cli, Receiver, TestDatabase};

use super::{folder, root};
use crate::junit;

/// The rows of the page's table: a command's words, and the fields of its object in order. A command may have several
/// rows.
fn fields_by_command() -> BTreeMap<String, Vec<String>> {
    let page = fs::read_to_string(root().join("docs/cli.md")).unwrap();
    let (_, table) = page.split_once("| Command | Fields |\n|---|---|\n").unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    // Text in parentheses describes the field before it.
    let words = |cell: &str| -> Vec<String> {
        cell.split(", `")
            .map(|word| {
                word.trim()
                    .trim_start_matches('`')
                    .split('`')
                    .next()
                    .unwrap()
                    .to_owned()
            })
            .collect()
    };
    let without_remarks = |cell: &str| {
        let mut depth = 0;
        cell.chars()
            .filter(|char| {
                depth += i32::from(*char == '(');
                let is_kept = depth == 0;
                depth -= i32::from(*char == ')');
                is_kept
            })
            .collect::<String>()
    };
    let mut by_command: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows {
        let (commands, fields) = row.trim_matches('|').split_once('|').unwrap();
        let fields = words(&without_remarks(fields));
        for command in words(commands) {
            by_command
                .entry(command)
                .or_default()
                .extend(fields.iter().cloned());
        }
    }
    for fields in by_command.values_mut() {
        fields.sort();
    }
    by_command
}

#[test]
fn each_command_prints_the_documented_fields() {
    let (folder, database) = (folder(), TestDatabase::new());
    let cli = Cli::new(database.url());
    let at = |name: &str| folder.path().join(name).display().to_string();
    let report = at("reports/junit.xml");
    let mut documented = fields_by_command();
    let mut check = |command: &str, arguments: &[&str]| {
        let words: Vec<_> = command.split(' ').chain(arguments.iter().copied()).collect();
        let printed = cli.json(&words);
        let mut fields: Vec<_> = printed.as_object().unwrap().keys().cloned().collect();
        fields.sort();
        assert_eq!(documented.remove(command), Some(fields), "{command}");
        printed
    };
    check("org create", &["Shop", "--plan", "pro"]);
    check("org set-plan", &["Shop", "standard"]);
    check("org list", &[]);
    check("project create", &["--org", "Shop", "web"]);
    check("project set", &["web", "--pr-comments", "on"]);
    check("project list", &[]);
    let key = check("key create", &["--org", "Shop", "--days", "30"]);
    check("key create-ingest", &["--project", "web"]);
    check("key rotate", &[key["id"].as_str().unwrap()]);
    check("uploads", &["--project", "web"]);
    check("key rename", &[key["id"].as_str().unwrap(), "dashboard"]);
    check("key list", &[]);
    check("key revoke", &[key["id"].as_str().unwrap()]);
    check("key delete", &[key["id"].as_str().unwrap()]);
    let issuer = ["--issuer", "https://gitlab.com", "--repository", "20"];
    let trust = check("trust add", &[&["--project", "web"][..], &issuer].concat());
    check("trust list", &[]);
    check("trust remove", &[trust["id"].as_str().unwrap()]);
    check("import --dry-run", &["--project", "web", &report]);
    check("import", &["--project", "web", &report]);
    check("analyze", &[&report]);
    let (tree, written) = (at("reports"), at("written.csv"));
    let of_tree = ["--dir", &tree, "--pattern", "{run}.xml"];
    check("backfill", &[&of_tree[..], &["--csv", &written]].concat());
    check("backfill --plan", &of_tree);
    let green = at("green.xml");
    fs::write(
        &green,
        junit::report("2026-11-20T10:00:00Z", &[("adds", true), ("pays", true)]),
    )
    .unwrap();
    check("gate", &[&green, "--history", &at("history.csv")]);
    check(
        "quarantine",
        &["--history", &at("history.csv"), "--format", "txt"],
    );
    let (written, command) = (
        at("written.xml"),
        format!(
            r#"sed "s/time=\"[0-9.]*\"/time=\"0.0$(date +%N)\"/" '{green}' > '{}'"#,
            at("written.xml")
        ),
    );
    // What follows the command is its own, so the flag comes before it.
    let repeated = [
        "--json",
        "--test",
        "totals > adds",
        "--flake-rate",
        "1",
        "--report",
        &written,
    ];
    check("verify", &[&repeated[..], &["--", "sh", "-c", &command]].concat());
    let example = root().join("crates/http-api/src/routes/examples/proof.json");
    check("proof check", &[example.to_str().unwrap()]);
    let (list, timings) = (at("tests.txt"), at("timings.json"));
    fs::write(&list, "example.com/shop\n").unwrap();
    fs::write(&timings, r#"{"stableBranch": "main", "runs": [], "tests": []}"#).unwrap();
    let shard = [
        "--runner",
        "go",
        "--index",
        "1",
        "--total",
        "1",
        "--timings",
        &timings,
    ];
    check("split", &[&[list.as_str()], &shard[..]].concat());
    let mut git = std::process::Command::new("sh");
    git.current_dir(folder.path()).args([
        "-euc",
        "git init --quiet . && git config user.name a && git config user.email a@example.org
         for commit in good bad; do git commit --quiet --allow-empty -m $commit; git tag $commit; done",
    ]);
    assert!(git.status().unwrap().success());
    check("culprit", &["--good", "good", "--bad", "bad", "--root", &at("")]);
    fs::write(folder.path().join("CODEOWNERS"), "* @ada\n").unwrap();
    check("owners check", &["--root", &at("")]);
    fs::create_dir(folder.path().join(".assay")).unwrap();
    fs::write(folder.path().join(".assay/renames"), "2026-11-20 test a -> b\n").unwrap();
    check("renames check", &["--root", &at("")]);
    check("renames suggest", &["--root", &at("")]);
    check("excuse check", &[]);
    check("excuse list", &[]);
    check("export", &["--project", "web", &at("exported")]);
    check("doctor", &[]);
    check("migrate", &[]);
    check("prune", &[]);
    check("rebuild", &[]);
    check("refingerprint", &[]);
    let server = Receiver::new();
    let url = format!("http://127.0.0.1:{}", server.port);
    let begun = r#"{"device_code": "d", "user_code": "u", "verification_uri": "https://login.example.org", "interval": 1,
        "access_token": "svc_session_x", "expires_in": 60}"#;
    server.answer(Answer::Status(200, begun.to_owned()));
    check("login", &["--url", &url]);
    server.answer(Answer::Status(204, String::new()));
    check("logout", &["--url", &url]);
    check("completions", &["bash"]);
    check("man", &[]);
    check("man --output", &[&at("man1")]);
    check("setup", &["--org", "Shop", "--project", "web"]);
    check("project rename", &["web", "store"]);
    check("org rename", &["Shop", "Corner Shop"]);
    cli.json(&["org", "create", "Bakery"]);
    check("project move-to-org", &["store", "Bakery"]);
    check("project delete", &["store", "--yes"]);
    check("org export", &["Bakery", &at("archive")]);
    check("org delete", &["Bakery", "--yes"]);
    check("org import", &[&at("archive")]);
    assert!(documented.is_empty(), "not tried: {documented:?}");
}

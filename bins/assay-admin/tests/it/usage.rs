//! Exit statuses and streams.

use assay_testkit::{Cli, TestDatabase, assert_contains, closed_pipe, stderr_text};

#[test]
fn wrong_usage_exits_with_2_and_help_with_0() {
    let cli = Cli::new("postgresql:///nowhere");
    let long = "n".repeat(201);
    for wrong in [
        &["--nonsense"][..],
        &[],
        &["org"],
        &["org", "create"],
        &["org", "create", ""],
        &["org", "create", "  "],
        &["org", "create", "a\nb"],
        &["org", "create", &long],
        &["org", "create", "a", "--plan", "gold"],
        &["import", "--project", "p"],
        &["import", "--project", "p", "--shard", "3/2", "x.xml"],
        &["import", "--project", "p", "--started-at", "yesterday", "x.xml"],
        &["import", "--project", "p", "--pr", "0", "x.xml"],
        &["import", "--project", "p", "--ci", "abacus", "x.xml"],
        &["import", "--project", "p", "--format", "docx", "x.xml"],
    ] {
        let refused = cli.run(wrong);
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{wrong:?}: {}",
            stderr_text(&refused)
        );
        assert!(refused.stdout.is_empty() && !refused.stderr.is_empty());
    }
    for help in [
        &["--help"][..],
        &["help", "import"],
        &["import", "--help"],
        &["key", "create", "-h"],
        &["--version"],
    ] {
        let output = cli.run(help);
        assert_eq!(output.status.code(), Some(0), "{help:?}");
        assert!(!output.stdout.is_empty());
    }
}

#[test]
fn a_command_of_the_other_program_is_named_with_it() {
    let cli = Cli::new("postgresql:///nowhere");
    for (program, arguments, expected) in [
        (
            "assay",
            &["migrate"][..],
            "assay: `assay migrate` is in `assay-admin`, so run `assay-admin migrate`",
        ),
        (
            "assay",
            &["--json", "org", "create", "Shop"],
            "assay: `assay org` is in `assay-admin`",
        ),
        (
            "assay-admin",
            &["run", "--report", "junit.xml", "--", "pytest"],
            "assay-admin: `assay-admin run` is in `assay`, so run `assay run`",
        ),
    ] {
        let refused = cli.command_of(program, arguments).output().unwrap();
        let text = stderr_text(&refused);
        assert_eq!(refused.status.code(), Some(2), "{text}");
        assert!(text.starts_with(expected), "{text}");
    }
}

#[test]
fn a_test_command_without_dashes_gets_a_hint() {
    let cli = Cli::new("postgresql:///nowhere");
    let hint = "tip: put -- before the command: assay run --report junit.xml -- pytest --junitxml=junit.xml";
    for wrong in [
        &["run", "pytest"][..],
        &["run", "--report", "junit.xml", "pytest"],
        &["run", "--report=junit.xml", "pytest", "--junitxml=junit.xml"],
    ] {
        let refused = cli.run(wrong);
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}");
        assert!(
            stderr_text(&refused).contains(hint),
            "{wrong:?}: {}",
            stderr_text(&refused)
        );
    }
    // The command is correct, and the option is mistyped.
    let refused = cli.run(&["run", "--reprot", "junit.xml", "--", "pytest"]);
    let text = stderr_text(&refused);
    assert!(
        text.contains("--report") && !text.contains("put -- before"),
        "{text}"
    );
}

#[test]
fn the_help_of_the_gate_describes_its_own_flags() {
    let cli = Cli::new("postgresql:///nowhere");
    let help = String::from_utf8(cli.run(&["gate", "--help"]).stdout).unwrap();
    for (words, is_there) in [
        ("--best-effort", true),
        ("End with status 3 instead of 2", true),
        ("cannot be stored", false),
        ("--dry-run", false),
        ("--spool", false),
    ] {
        assert_eq!(help.contains(words), is_there, "{words}: {help}");
    }
    let help = String::from_utf8(cli.run(&["upload", "--help"]).stdout).unwrap();
    assert!(help.contains("--dry-run") && help.contains("--spool"), "{help}");
}

#[test]
fn a_usage_error_shows_no_option_as_required_because_a_variable_sets_it() {
    let cli = Cli::new("postgresql:///nowhere");
    for (wrong, usage) in [
        (
            &["org", "create"][..],
            "Usage: assay-admin org create [OPTIONS] <NAME>\n",
        ),
        (
            &["--data-dir", "d", "key", "create", "--org", "a"],
            "Usage: assay-admin key create [OPTIONS] --org <ORG> --days <DAYS>\n",
        ),
        (&["--nonsense"], "Usage: assay-admin [OPTIONS] <COMMAND>\n"),
    ] {
        let mut command = cli.command(wrong);
        let refused = command.env("ASSAY_DATA_DIR", "d").output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}");
        assert!(
            stderr_text(&refused).contains(usage),
            "{wrong:?}: {}",
            stderr_text(&refused)
        );
    }
}

#[test]
fn an_unreachable_database_exits_with_1() {
    let output = Cli::new("postgresql://127.0.0.1:1/nowhere").run(&["org", "list", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(
        stderr_text(&output).starts_with("assay-admin: the database is unreachable"),
        "{}",
        stderr_text(&output)
    );
    assert_contains(&stderr_text(&output), "-> see whether Postgres runs");
    let encrypted = Cli::new("postgresql://127.0.0.1:1/nowhere?sslmode=require").run(&["org", "list"]);
    assert_contains(
        &stderr_text(&encrypted),
        "-> this build connects to Postgres without encryption",
    );
}

#[test]
fn an_unmigrated_database_is_reported_with_the_command_to_run() {
    let database = TestDatabase::unmigrated();
    let cli = Cli::new(database.url());
    let refused = cli.run(&["org", "list"]);
    assert_eq!(refused.status.code(), Some(1));
    assert_contains(&stderr_text(&refused), "assay-admin migrate");

    let first = cli.json(&["migrate"]);
    assert!(!first["applied"].as_array().unwrap().is_empty());
    assert!(cli.json(&["migrate"])["applied"].as_array().unwrap().is_empty());
    assert!(cli.run(&["org", "list"]).status.success());
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let database = TestDatabase::new();
    let cli = Cli::new(database.url());
    for arguments in [
        &["org", "list"][..],
        &["org", "list", "--json"],
        &["doctor"],
        &["completions", "bash"],
        &["man"],
        &["--help"],
    ] {
        let mut child = cli
            .command(arguments)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", stderr_text(&output));
        assert!(
            output.stderr.is_empty(),
            "{arguments:?}: {}",
            stderr_text(&output)
        );
    }
    // A check that failed is still a failure.
    let status = Cli::new("postgresql://127.0.0.1:1/nowhere")
        .command(&["doctor"])
        .stdout(closed_pipe())
        .stderr(closed_pipe())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn no_error_repeats_a_key_that_was_given_for_a_name() {
    const KEY: &str = "svc_ro_0123456789abcdefghijABCDEFGHIJ01234567";
    let database = TestDatabase::new();
    let cli = Cli::new(database.url());
    cli.json(&["org", "create", "Shop"]);
    cli.json(&["project", "create", "--org", "Shop", "web"]);
    for arguments in [
        &["key", "list", "--org", KEY][..],
        &["project", "list", "--org", KEY],
        &["org", "delete", KEY, "--yes"],
        &["uploads", "--project", KEY],
    ] {
        let output = cli.run(arguments);
        let message = stderr_text(&output);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(message.contains("svc_…") && !message.contains(KEY), "{message}");
    }
    // Another name is repeated.
    let output = cli.run(&["key", "list", "--org", "Shpo"]);
    assert_contains(&stderr_text(&output), "Shpo");
}

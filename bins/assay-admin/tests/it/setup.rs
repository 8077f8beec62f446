//! `assay-admin setup`.

use std::fs;

use assay_testkit::{Cli, TestDatabase, assert_contains, stderr_text};

use crate::pty::{Session, Streams};

#[test]
fn an_empty_database_becomes_a_project_with_both_keys_and_a_repetition_changes_nothing() {
    let database = TestDatabase::unmigrated();
    let cli = Cli::new(database.url());
    let setup = [
        "setup",
        "--org",
        "Shop",
        "--project",
        "web",
        "--url",
        "https://assay.example.org/",
    ];
    let first = cli.json(&setup);
    assert!(!first["applied"].as_array().unwrap().is_empty());
    assert_eq!(first["url"], "https://assay.example.org");
    assert!(first["readKey"]["key"].as_str().unwrap().starts_with("svc_ro_"));
    assert!(first["ingestKey"]["key"].as_str().unwrap().starts_with("svc_"));

    let again = cli.json(&setup);
    for (pointer, is_same) in [
        ("/organizationId", true),
        ("/projectId", true),
        ("/readKey/id", true),
        ("/ingestKey/id", true),
        ("/readKey/key", false),
    ] {
        assert_eq!(
            again.pointer(pointer) == first.pointer(pointer),
            is_same,
            "{pointer}"
        );
    }
    assert!(again["readKey"]["key"].is_null() && again["ingestKey"]["key"].is_null());
    assert_eq!(cli.json(&["key", "list"])["keys"].as_array().unwrap().len(), 2);
    let text = String::from_utf8(cli.run(&setup).stdout).unwrap();
    assert_contains(&text, "exists already; `assay-admin key rotate ");
    assert!(!text.contains("only now"), "{text}");

    // A key for pull requests only is no key for the jobs of branches.
    cli.json(&["project", "create", "--org", "Shop", "api"]);
    cli.json(&["key", "create-ingest", "--project", "api", "--pull-requests-only"]);
    let trust = ["--issuer", "https://gitlab.com", "--repository", "74"];
    cli.json(&[&["trust", "add", "--project", "api"], &trust[..]].concat());
    let other = cli.json(&["setup", "--org", "Shop", "--project", "api"]);
    assert!(other["ingestKey"]["key"].is_string() && other["readKey"]["key"].is_null());
}

#[test]
fn the_lines_are_those_of_the_services_whose_files_are_here() {
    let database = TestDatabase::new();
    let folder = tempfile::tempdir().unwrap();
    let cli = Cli::new(database.url());
    let shown_at = |url: &str| {
        let mut command = cli.command(&["setup", "--org", "Shop", "--project", "web", "--url", url]);
        let output = command.current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", stderr_text(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = || shown_at("https://assay.example.org");
    assert!(shown().contains("ASSAY_INGEST_KEY: ${{ secrets.ASSAY_INGEST_KEY }}"));
    fs::write(folder.path().join(".gitlab-ci.yml"), "").unwrap();
    let text = shown();
    assert!(
        text.contains("GitLab CI (.gitlab-ci.yml)") && !text.contains("GitHub"),
        "{text}"
    );
    assert_contains(&text, "script: assay run -- ");
    assert!(!text.contains("unencrypted"), "{text}");
    fs::write(folder.path().join("bitbucket-pipelines.yml"), "").unwrap();
    let plain = shown_at("http://assay.example.org");
    for line in [
        "script: assay run --insecure-http -- ",
        "- assay run --insecure-http --suite test -- ",
        "Without TLS, keys go unencrypted",
    ] {
        assert_contains(&plain, line);
    }
    assert_contains(&shown_at("http://127.0.0.1:8080"), "script: assay run -- ");
}

#[test]
fn a_terminal_is_asked_for_what_no_flag_names() {
    let database = TestDatabase::new();
    let cli = Cli::new(database.url());
    let mut session = Session::start(cli.command(&["setup", "--project", "web"]), 100, Streams::All);
    session.until("The organization's name? [My organization]");
    session.answer("Shop");
    session.until("The server's address for people and CI? [http://127.0.0.1:8080]");
    session.answer("");
    let (status, shown) = session.end();
    assert!(
        status.success() && shown.contains("http://127.0.0.1:8080"),
        "{shown}"
    );
    assert_eq!(cli.json(&["org", "list"])["organizations"][0]["name"], "Shop");

    let refused = cli.run(&["setup", "--project", "web"]);
    assert_eq!(refused.status.code(), Some(2));
    assert_contains(&stderr_text(&refused), "give --org NAME");
}

#[test]
fn the_server_listens_at_the_address_and_reads_the_same_database() {
    let database = TestDatabase::new();
    let cli = Cli::new(database.url());
    for (url, line) in [
        ("http://127.0.0.1:21040", "same --listen 127.0.0.1:21040\n"),
        ("http://localhost:21040/", "same --listen 127.0.0.1:21040\n"),
        ("http://[::1]:21040", "same --listen [::1]:21040\n"),
        (
            "http://ci-box:21040",
            "same --listen 0.0.0.0:21040 --public-url http://ci-box:21040\n",
        ),
        (
            "https://assay.example.org",
            "same --public-url https://assay.example.org\n",
        ),
    ] {
        let output = cli.run(&["setup", "--org", "Shop", "--project", "web", "--url", url]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_contains(
            &text,
            &format!("  assay-server --front-listen same --ingest-listen {line}"),
        );
        assert_contains(&text, "the same ASSAY_DATABASE_URL");
    }
    for url in [
        "127.0.0.1:21040",
        "ftp://assay.example.org",
        "https://a@b.example",
        "http://h/path",
        "http://h:99999",
    ] {
        let refused = cli.run(&["setup", "--org", "Shop", "--project", "web", "--url", url]);
        assert_eq!(refused.status.code(), Some(2), "{url}");
        assert!(
            stderr_text(&refused).contains(&format!("--url {url}: expected an address")),
            "{url}"
        );
    }
}

//! Environment variables and flags.

use std::process::Command;

use assay_testkit::{Client, Server, TestDatabase, assert_contains, free_address, program};

#[test]
fn a_wrong_value_ends_the_start_with_its_name_and_the_expected_form() {
    for (variable, value, expected) in [
        ("ASSAY_LISTEN", "8080", "HOST:PORT"),
        ("ASSAY_ADMIN_LISTEN", "::1", "HOST:PORT"),
        ("ASSAY_RATE_LIMIT", "many", "whole number"),
        ("ASSAY_POOL_SIZE", "0", "1..=1024"),
        ("ASSAY_WORKERS", "-2", "1..=1024"),
        ("ASSAY_LISTEN", "", "HOST:PORT"),
        ("ASSAY_LISTEN", "same", "HOST:PORT"),
        ("RUST_LOG", "in=fo=x", "expected levels"),
        (
            "ASSAY_CORS_ORIGINS",
            "https://a.example,*",
            "\"*\" is not an origin",
        ),
        ("ASSAY_CORS_ORIGINS", "https://a.example/", "without a path"),
        ("ASSAY_PUBLIC_URL", "https://a.example/assay", "without a path"),
    ] {
        let output = Command::new(program("assay-server"))
            .env(variable, value)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{variable}: {stderr}");
        assert!(stderr.contains(expected), "{variable}: {stderr}");
    }
}

#[test]
fn a_listener_that_is_off_is_left_out() {
    let database = TestDatabase::new();
    let free = free_address();
    let mut server = Server::launch(
        Command::new(program("assay-server")),
        &[
            ("ASSAY_DATABASE_URL", database.url()),
            ("ASSAY_LISTEN", &free),
            ("ASSAY_ADMIN_LISTEN", "off"),
        ],
    );
    server.wait_for_log("the API listens on");
    let answer = Client::new(format!("http://{free}")).get("/api/v1/projects", None);
    assert_eq!(answer.status, 401);
    assert!(!server.log().contains("for operators"), "{}", server.log());
    server.signal("TERM");
    assert!(server.ended().success());

    let output = Command::new(program("assay-server"))
        .env("ASSAY_DATABASE_URL", database.url())
        .args(["--listen", "off", "--admin-listen", "127.0.0.1:0"])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_contains(&stderr, "no listener is on; name an address with --listen");
}

#[test]
fn a_usage_error_shows_no_option_as_required_because_a_variable_sets_it() {
    let output = Command::new(program("assay-server"))
        .arg("--install")
        .env("ASSAY_DATA_DIR", "d")
        .env("ASSAY_LISTEN", "127.0.0.1:1")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_contains(&stderr, "Usage: assay-server [OPTIONS]\n");
}

#[test]
fn an_unusable_setting_ends_the_start_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let file = file.display().to_string();
    for (environment, expected) in [
        (&[("ASSAY_DATABASE_URL", "nonsense")][..], "ASSAY_DATABASE_URL"),
        (&[("ASSAY_DATABASE_URL", "mysql://h/d")], "ASSAY_DATABASE_URL"),
        (
            &[
                ("ASSAY_REDIS_URL", "nonsense"),
                ("ASSAY_DATABASE_URL", "postgresql:///d"),
            ],
            "ASSAY_REDIS_URL",
        ),
        (&[("ASSAY_DATA_DIR", &file)], &file),
        (
            &[
                ("ASSAY_LISTEN", "127.0.0.1:1"),
                ("ASSAY_ADMIN_LISTEN", "192.0.2.1:0"),
            ],
            "LISTEN",
        ),
    ] {
        let output = Command::new(program("assay-server"))
            .env_remove("ASSAY_DATABASE_URL")
            .env("ASSAY_LISTEN", "127.0.0.1:0")
            .env("ASSAY_FRONT_LISTEN", "off")
            .env("ASSAY_ADMIN_LISTEN", "127.0.0.1:0")
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{environment:?}: {stderr}");
        assert!(stderr.contains(expected), "{environment:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{environment:?}: {stderr}");
    }
}

#[test]
fn values_that_do_not_go_together_are_refused() {
    for (settings, expected) in [
        (
            [("ASSAY_POOL_SIZE", "2"), ("ASSAY_WORKERS", "8")],
            "ASSAY_POOL_SIZE is 2 and ASSAY_WORKERS is 8",
        ),
        (
            [
                ("ASSAY_INGEST_LISTEN", "127.0.0.1:0"),
                ("ASSAY_INGEST_DATABASE_URL", "postgresql://localhost/other"),
            ],
            "ASSAY_INGEST_DATABASE_URL is set without ASSAY_DATABASE_URL",
        ),
        (
            [("ASSAY_LISTEN", "off"), ("ASSAY_INGEST_LISTEN", "same")],
            "ASSAY_INGEST_LISTEN is same, and ASSAY_LISTEN is off",
        ),
        (
            [
                ("ASSAY_REPLICA_URL", "postgresql://localhost/other"),
                ("ASSAY_DATABASE_URL", ""),
            ],
            "ASSAY_REPLICA_URL is set without ASSAY_DATABASE_URL",
        ),
    ] {
        let output = Command::new(program("assay-server"))
            .env_remove("ASSAY_DATABASE_URL")
            .envs(settings)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert_contains(&stderr, expected);
    }
}

#[test]
fn the_help_names_every_variable_and_no_secret() {
    let output = Command::new(program("assay-server"))
        .arg("--help-all")
        .env("ASSAY_DATABASE_URL", "postgresql://u:hunter2@h/d")
        .output()
        .unwrap();
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    for variable in [
        "ASSAY_DATABASE_URL",
        "ASSAY_DATA_DIR",
        "ASSAY_LISTEN",
        "ASSAY_FRONT_LISTEN",
        "ASSAY_FRONT_SECRET",
        "ASSAY_PUBLIC_URL",
        "ASSAY_ADMIN_LISTEN",
        "ASSAY_RATE_LIMIT",
        "ASSAY_REDIS_URL",
        "ASSAY_POOL_SIZE",
        "ASSAY_WORKERS",
        "RUST_LOG",
    ] {
        assert!(help.contains(variable), "{variable}");
    }
    assert!(!help.contains("hunter2"));
}

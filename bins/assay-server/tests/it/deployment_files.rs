//! The files of deploy/ as such: the image, the example of targets, and the names in all files.

use std::{fs, process::Command};

use assay_testkit::{assert_contains, notify_file, program};

use crate::deployment::{deploy, file, variables, variables_of_unit};

#[test]
fn the_image_has_tls_to_postgres_a_layer_of_dependencies_no_root_and_a_health_check() {
    let image = file("Dockerfile");
    let stages: Vec<&str> = image.split("\nFROM ").collect();
    let [.., build, last] = stages.as_slice() else {
        panic!("no stages: {image}")
    };
    // Dependencies are built before the sources are copied, by the same options.
    let (dependencies, sources) = build.split_once("\nCOPY . .\n").unwrap();
    let features = "--profile dist --locked --features \"$FEATURES\" --bin assay-server --bin assay-admin --bin assay-notify";
    assert!(dependencies.contains("\nENV FEATURES=assay-repository/tls-vendored\n"));
    assert!(dependencies.contains(&format!("cargo chef cook {features}")));
    assert!(sources.contains(&format!("cargo build {features}")));
    assert!(last.contains("\nUSER 65532\n") && last.starts_with("gcr.io/distroless/cc-debian12:nonroot\n"));
    let (_, check) = last.split_once("HEALTHCHECK ").unwrap();
    let (_, check) = check.lines().next().unwrap().split_once("CMD ").unwrap();
    let check: Vec<String> = serde_json::from_str(check).unwrap();
    let [path, flag] = check.as_slice() else {
        panic!("{check:?}")
    };
    let name = path.strip_prefix("/usr/local/bin/").unwrap();
    // Nothing listens there.
    let asked = Command::new(program(name))
        .arg(flag)
        .env("ASSAY_ADMIN_LISTEN", "127.0.0.1:1")
        .output()
        .unwrap();
    assert_eq!(asked.status.code(), Some(1), "{asked:?}");

    let ignored = fs::read_to_string(deploy().join("../.dockerignore")).unwrap();
    for name in [
        "target",
        ".assay",
        ".assay-demo",
        ".git",
        "deploy/.env",
        "deploy/tls",
        "deploy/notify.toml",
    ] {
        assert!(ignored.lines().any(|line| line == name), "{name}");
    }
}

#[test]
fn the_example_of_targets_is_accepted_once_only_its_owner_can_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let config = notify_file(folder.path(), &file("notify.example.toml"));
    let output = Command::new(program("assay-notify"))
        .args(["--test", "none", "--config"])
        .arg(config)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_contains(
        &printed,
        "it has: team, team-threads, office, hook, jira, linear, mail, log",
    );
}

#[test]
fn every_file_is_used_and_names_programs_commands_and_files_that_exist() {
    let mut names: Vec<String> = fs::read_dir(deploy())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        // The reader's own passwords and certificate.
        .filter(|name| ![".env", "tls", "notify.toml"].contains(&name.as_str()))
        .collect();
    names.sort();
    let known = [
        "Dockerfile",
        "assay-ingest.service",
        "assay-notify.service",
        "assay-prune.service",
        "assay-prune.timer",
        "assay-server.service",
        "compose.yaml",
        "ingest.env",
        "nginx.conf",
        "notify.env",
        "notify.example.toml",
        "owner.env",
        "roles.sql",
        "server.env",
    ];
    assert_eq!(names, known);
    let help = |program_name: &str, arguments: &[&str]| {
        let output = Command::new(program(program_name))
            .args(arguments)
            .arg("--help")
            .output()
            .unwrap();
        assert!(output.status.success(), "{program_name} {arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for name in names.iter().filter(|name| name.ends_with(".service")) {
        let unit = file(name);
        let value = |key: &str| {
            let prefix = format!("{key}=");
            unit.lines()
                .find_map(|line| line.strip_prefix(prefix.as_str()))
                .unwrap_or_else(|| panic!("{name} has no {key}"))
        };
        let command = value("ExecStart").strip_prefix("/usr/local/bin/").unwrap();
        let mut words = command.split(' ');
        let program_name = words.next().unwrap();
        let (flags, words): (Vec<&str>, Vec<&str>) = words.partition(|word| word.starts_with('-'));
        let shown = help(program_name, &words);
        for flag in flags {
            assert!(shown.contains(flag), "{name}: {flag}");
        }
        let settings = value("EnvironmentFile").strip_prefix("/etc/assay/").unwrap();
        for (variable, _) in variables(settings, &[])
            .into_iter()
            .chain(variables_of_unit(name, &[]))
        {
            assert!(shown.contains(&format!("[env: {variable}")), "{name}: {variable}");
        }
    }
    assert!(file("assay-prune.timer").contains("\nOnCalendar=daily\n"));
    // The image has the programs that compose starts.
    let image = file("Dockerfile");
    for line in file("compose.yaml").lines() {
        if let Some((_, path)) = line.split_once("entrypoint: [/usr/local/bin/") {
            let name = path.trim_end_matches(']');
            assert!(image.contains(&format!("target/dist/{name} ")), "{name}");
            help(name, &[]);
        }
        if let Some((path, _)) = line
            .trim()
            .strip_prefix("- ./")
            .and_then(|rest| rest.split_once(':'))
        {
            // The reader's own certificate and targets.
            assert!(
                ["tls", "notify.toml"].contains(&path) || deploy().join(path).exists(),
                "{path}"
            );
        }
    }
}

//! The private cluster with the real programs of Postgres.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use assay_local_postgres::{Cluster, ClusterError, Durability, Settings};
use tempfile::TempDir;

/// A folder that the user of Postgres may reach, whoever runs the tests.
fn folder() -> TempDir {
    let dir = tempfile::Builder::new()
        .prefix("assay-cluster-")
        .tempdir_in("/tmp")
        .unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn settings(durability: Durability) -> Settings {
    Settings {
        durability,
        ..Settings::new(
            std::env::var_os("PG_BIN").map(PathBuf::from),
            std::env::var_os("PATH"),
        )
    }
}

/// Whether the process runs; one that ended and waits to be reaped by its parent does not.
fn alive(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}/cwd")).read_link().is_ok()
}

fn kill_hard(pid: i32) {
    assert!(
        Command::new("sh")
            .arg("-c")
            .arg(format!("kill -9 {pid}"))
            .status()
            .unwrap()
            .success()
    );
    let deadline = Instant::now() + Duration::from_secs(10);
    while alive(pid) {
        assert!(Instant::now() < deadline, "process {pid} does not end");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn is_made_once_used_by_many_and_stopped_by_the_last() {
    let dir = folder();
    let clusters: Vec<Cluster> = thread::scope(|scope| {
        let starting: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| Cluster::start(dir.path(), &settings(Durability::Durable)).unwrap()))
            .collect();
        starting
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(
        clusters.iter().filter(|cluster| cluster.started_here()).count(),
        1
    );
    let pid = clusters.first().unwrap().pid();
    let count = clusters.len();
    // Whoever started it leaves first or in the middle: only the last one to leave ends it.
    for (index, cluster) in clusters.into_iter().enumerate() {
        assert_eq!(cluster.pid(), pid);
        cluster.stop().unwrap();
        assert_eq!(
            alive(pid),
            index + 1 < count,
            "after {} of {count} left",
            index + 1
        );
    }
    let again = Cluster::start(dir.path(), &settings(Durability::Durable)).unwrap();
    assert!(again.started_here());
    let pid = again.pid();
    drop(again);
    assert!(!alive(pid), "dropping the cluster stops it");
}

#[test]
fn starts_again_after_a_kill_and_beside_the_id_of_another_process() {
    let dir = folder();
    let first = Cluster::start(dir.path(), &settings(Durability::Durable)).unwrap();
    kill_hard(first.pid());
    let second = Cluster::start(dir.path(), &settings(Durability::Durable)).unwrap();
    assert!(second.started_here());
    assert_ne!(first.pid(), second.pid());
    let base = second.base().to_path_buf();
    kill_hard(second.pid());

    // As after a reboot or in a new container, the recorded id belongs to someone else.
    let pid_file = base.join("postgres/data/postmaster.pid");
    let recorded = fs::read_to_string(&pid_file).unwrap();
    let (_, rest) = recorded.split_once('\n').unwrap();
    fs::write(&pid_file, format!("{}\n{rest}", std::process::id())).unwrap();
    let third = Cluster::start(dir.path(), &settings(Durability::Durable)).unwrap();
    assert!(third.started_here());
    drop((first, second));
    third.stop().unwrap();
}

#[test]
fn a_deep_folder_keeps_its_socket_elsewhere() {
    let dir = folder();
    let deep = dir.path().join("d".repeat(60)).join("e".repeat(60));
    let cluster = Cluster::start(&deep, &settings(Durability::Ephemeral)).unwrap();
    assert!(
        cluster.url("assay").contains("host=%2Ftmp%2Fassay-"),
        "{}",
        cluster.url("assay")
    );
    cluster.stop().unwrap();
}

#[test]
fn without_programs_the_message_tells_the_remedies() {
    let error = ClusterError::NotFound {
        found: None,
        install: None,
    }
    .to_string();
    for remedy in ["apt-get install -y postgresql", "PG_BIN", "ASSAY_DATABASE_URL"] {
        assert!(error.contains(remedy), "{error}");
    }
    assert!(!error.contains('\n'));
}

#[test]
fn a_folder_that_is_named_and_does_not_do_is_told_and_no_other_taken() {
    let dir = folder();
    let named = |folder: &Path| Settings {
        pg_bin: Some(folder.to_path_buf()),
        ..settings(Durability::Ephemeral)
    };
    let refused = |bin: &Path| {
        Cluster::start(&dir.path().join("data"), &named(bin))
            .unwrap_err()
            .to_string()
    };
    let bin = dir.path().join("bin");
    let error = refused(&bin);
    for told in [
        &*format!("PG_BIN names {}", bin.display()),
        "no programs",
        "15 or newer",
        "unset",
    ] {
        assert!(error.contains(told), "{told} is missing in: {error}");
    }
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("initdb"), "").unwrap();
    fs::write(
        bin.join("postgres"),
        "#!/bin/sh\necho 'postgres (PostgreSQL) 9.6.24'\n",
    )
    .unwrap();
    fs::set_permissions(bin.join("postgres"), fs::Permissions::from_mode(0o755)).unwrap();
    let error = refused(&bin);
    assert!(error.contains("holds Postgres 9,"), "{error}");
    // As a variable that is set to nothing.
    assert!(Cluster::start(&dir.path().join("data"), &named(Path::new(""))).is_ok());
}

#[test]
fn a_folder_that_the_servers_user_cannot_reach_gets_a_stand_in() {
    let dir = tempfile::tempdir().unwrap(); // mode 0700
    let cluster = Cluster::start(dir.path(), &settings(Durability::Ephemeral)).unwrap();
    let base = cluster.base().to_path_buf();
    cluster.stop().unwrap();
    if base != dir.path().canonicalize().unwrap() {
        assert!(base.starts_with("/var/lib/assay"), "{}", base.display());
        fs::remove_dir_all(base).unwrap();
    }
}

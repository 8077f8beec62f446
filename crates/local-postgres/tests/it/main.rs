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

/// A folder that the user of Postgres can reach, for any user that runs the tests.
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

/// Whether the process is running. A zombie is not.
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
    let deadline = Instant::now() + Duration::from_secs(60);
    while alive(pid) {
        assert!(Instant::now() < deadline, "process {pid} does not end");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_cluster_is_created_once_shared_and_stopped_by_the_last_user() {
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
    // The program that started the cluster leaves first or in the middle. Only the last program stops the cluster.
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
fn a_cluster_starts_again_after_a_kill_and_with_a_reused_process_id() {
    let dir = folder();
    let first = Cluster::start(dir.path(), &settings(Durability::Durable)).unwrap();
    kill_hard(first.pid());
    let second = Cluster::start(dir.path(), &settings(Durability::Durable)).unwrap();
    assert!(second.started_here());
    assert_ne!(first.pid(), second.pid());
    let base = second.base().to_path_buf();
    kill_hard(second.pid());

    // After a reboot or in a new container, the recorded id may belong to another program.
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
fn the_socket_of_a_deep_folder_is_in_tmp() {
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
fn without_postgres_programs_the_message_has_the_remedies() {
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
fn an_unsuitable_named_folder_is_an_error_and_no_other_is_used() {
    let dir = folder();
    let settings_for = |folder: &Path| Settings {
        pg_bin: Some(folder.to_path_buf()),
        ..settings(Durability::Ephemeral)
    };
    let refused = |bin: &Path| {
        Cluster::start(&dir.path().join("data"), &settings_for(bin))
            .unwrap_err()
            .to_string()
    };
    let bin = dir.path().join("bin");
    let error = refused(&bin);
    for part in [
        &*format!("PG_BIN names {}", bin.display()),
        "no programs",
        "15 or newer",
        "unset",
    ] {
        assert!(error.contains(part), "{part} is missing in: {error}");
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
    // The variable is set but empty.
    assert!(Cluster::start(&dir.path().join("data"), &settings_for(Path::new(""))).is_ok());
}

#[test]
fn a_folder_that_the_servers_account_cannot_reach_is_replaced() {
    let dir = tempfile::tempdir().unwrap(); // mode 0700
    let inner = dir.path().join("inner");
    let cluster = Cluster::start(&inner, &settings(Durability::Ephemeral)).unwrap();
    let base = cluster.base().to_path_buf();
    cluster.stop().unwrap();
    if base != inner.canonicalize().unwrap() {
        assert!(base.starts_with("/var/lib/assay"), "{}", base.display());
        assert_eq!(mode(&base), 0o700);
        fs::remove_dir_all(base).unwrap();
    }
}

/// The permissions of a file or folder.
fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_new_folder_and_its_files_are_closed_to_other_users_and_ignored_by_git() {
    let dir = folder();
    let base = dir.path().join("made");
    Cluster::start(&base, &settings(Durability::Ephemeral))
        .unwrap()
        .stop()
        .unwrap();
    assert_eq!(mode(&base), 0o700);
    for name in ["start.lock", "users.lock", "postgres.log", ".gitignore"] {
        assert_eq!(mode(&base.join(name)), 0o600, "{name}");
    }
    assert_eq!(
        fs::read_to_string(base.join(".gitignore")).unwrap(),
        "*\n!config.toml\n!renames\n"
    );

    // An earlier version left them like this.
    fs::set_permissions(&base, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(base.join("start.lock"), fs::Permissions::from_mode(0o644)).unwrap();
    Cluster::start(&base, &settings(Durability::Ephemeral))
        .unwrap()
        .stop()
        .unwrap();
    assert_eq!((mode(&base), mode(&base.join("start.lock"))), (0o700, 0o600));
}

#[test]
fn a_folder_with_other_files_keeps_its_permissions() {
    let dir = folder();
    fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    for _ in 0..2 {
        Cluster::start(dir.path(), &settings(Durability::Ephemeral))
            .unwrap()
            .stop()
            .unwrap();
        assert_eq!(mode(dir.path()), 0o755);
        assert_eq!(mode(&dir.path().join("start.lock")), 0o600);
    }
    assert!(!dir.path().join(".gitignore").exists());
}

#[test]
fn a_start_waits_for_another_one_for_a_bounded_time_and_names_the_lock() {
    let dir = folder();
    let lock = fs::File::create(dir.path().join("start.lock")).unwrap();
    lock.lock().unwrap();
    let settings = Settings {
        timeout: Duration::from_millis(500),
        ..settings(Durability::Ephemeral)
    };
    let error = Cluster::start(dir.path(), &settings).unwrap_err().to_string();
    assert!(error.contains("start.lock") && error.contains("fuser"), "{error}");
}

#[test]
fn damaged_data_are_reported_at_once() {
    let dir = folder();
    let start = || Cluster::start(dir.path(), &settings(Durability::Durable));
    let data = start().unwrap().base().join("postgres/data");
    let damages: [(&str, &dyn Fn()); 5] = [
        ("without permission to enter", &|| {
            fs::rename(data.join("pg_hba.conf"), data.join("pg_hba.away")).unwrap();
            fs::write(data.join("pg_hba.conf"), "").unwrap();
        }),
        ("the database of new sessions is gone", &|| {
            fs::rename(data.join("pg_hba.away"), data.join("pg_hba.conf")).unwrap();
            fs::rename(data.join("base/5"), data.join("base/away")).unwrap();
        }),
        ("pg_control is empty", &|| {
            fs::rename(data.join("base/away"), data.join("base/5")).unwrap();
            fs::copy(data.join("global/pg_control"), data.join("pg_control.away")).unwrap();
            fs::write(data.join("global/pg_control"), "").unwrap();
        }),
        ("the write-ahead log is gone", &|| {
            fs::copy(data.join("pg_control.away"), data.join("global/pg_control")).unwrap();
            fs::remove_dir_all(data.join("pg_wal")).unwrap();
        }),
        ("PG_VERSION is missing", &|| {
            fs::remove_file(data.join("PG_VERSION")).unwrap();
        }),
    ];
    for (what, damage) in damages {
        damage();
        let error = start().unwrap_err();
        // A start that waited for Postgres would fail with `NoAnswer`.
        assert!(
            matches!(error, ClusterError::Damaged { .. } | ClusterError::Ended { .. }),
            "{what}: {error}"
        );
    }
}

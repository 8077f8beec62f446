//! Connections that end after a commit and before its answer. The statement is sent again and must change nothing.

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use assay_domain::{
    id::KeyId,
    ingest::IngestTerms,
    key::{KeyHash, NewKey},
    recording::{Effect, VerdictChange},
    store::{Administration, KeyDeletion, OrganizationTransfer, Recorder},
    verdict::VerdictStatus,
};
use assay_repository::Database;
use assay_testkit::TestDatabase;

use crate::{fixture::*, transfer};

/// A proxy before Postgres that loses the first answer with a given text, and its connection.
struct Proxy {
    folder: tempfile::TempDir,
    database: String,
    lost: Arc<AtomicUsize>,
}

impl Proxy {
    fn before(database: &TestDatabase, answer: &'static [u8]) -> Self {
        let real = database.text("SELECT split_part(current_setting('unix_socket_directories'), ',', 1)");
        let real = format!("{}/.s.PGSQL.5432", real.unwrap());
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        let lost = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&lost);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), UnixStream::connect(&real).unwrap());
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || forward(from, to, |_| true));
                let counter = Arc::clone(&counter);
                thread::spawn(move || {
                    forward(server, client, |bytes| {
                        let is_it = bytes.windows(answer.len()).any(|part| part == answer);
                        !(is_it && counter.fetch_add(1, Ordering::SeqCst) == 0)
                    });
                });
            }
        });
        let name = database.text("SELECT current_database()").unwrap();
        Self {
            folder,
            database: name,
            lost,
        }
    }

    fn connect(&self) -> Database {
        let folder = self.folder.path().display();
        let url = format!("host={folder} port=5432 user=assay dbname={}", self.database);
        Database::connect(&url, 2).unwrap()
    }

    fn has_lost_one(&self) -> bool {
        self.lost.load(Ordering::SeqCst) > 0
    }
}

/// Forwards data until `passes` rejects some; then closes the connection on both sides.
fn forward(mut from: UnixStream, mut to: UnixStream, mut passes: impl FnMut(&[u8]) -> bool) {
    let mut buffer = [0; 65_536];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let bytes = &buffer[..length];
        if !passes(bytes) || to.write_all(bytes).is_err() {
            break;
        }
    }
    // The other direction may have ended them already.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

fn key(seed: u8) -> NewKey {
    NewKey {
        id: KeyId(uuid::Uuid::from_bytes([seed; 16])),
        hash: KeyHash([seed; 32]),
        prefix: format!("svc_ro_{seed:05}"),
        created_at: NOW,
    }
}

#[test]
fn a_key_whose_commit_was_not_answered_is_stored_once_and_reported_as_stored() {
    let world = World::new();
    let organization = world.caller.organization;
    let proxy = Proxy::before(&world.database, b"COMMIT\0");
    let stored = proxy
        .connect()
        .create_read_key(organization, &key(1), NOW.plus_days(30));
    assert!(stored.unwrap() && proxy.has_lost_one());

    let proxy = Proxy::before(&world.database, b"COMMIT\0");
    let stored = proxy
        .connect()
        .create_ingest_key(world.project.id, &key(2), &IngestTerms::default());
    assert!(stored.unwrap() && proxy.has_lost_one());
    assert_eq!(world.store.keys(organization).unwrap().len(), 2);

    // Another key of the same text is not a repetition.
    let other = NewKey {
        id: KeyId(uuid::Uuid::from_bytes([9; 16])),
        ..key(1)
    };
    let refused = world
        .store
        .create_read_key(organization, &other, NOW.plus_days(30));
    assert!(refused.is_err());
}

#[test]
fn a_key_whose_deletion_was_not_answered_is_reported_as_deleted() {
    let world = World::new();
    let organization = world.caller.organization;
    world.store.create_read_key(organization, &key(1), NOW).unwrap();
    let proxy = Proxy::before(&world.database, b"COMMIT\0");
    let deletion = proxy.connect().delete_key(key(1).id, NOW).unwrap();
    assert!(deletion == KeyDeletion::Deleted && proxy.has_lost_one());
    assert!(world.store.keys(organization).unwrap().is_empty());
}

#[test]
fn an_import_whose_commit_was_not_answered_reports_what_it_changed() {
    let world = World::new();
    let import = |recording| {
        let proxy = Proxy::before(&world.database, b"COMMIT\0");
        let imported = proxy
            .connect()
            .record(world.project.id, &recording, &CountingJudge, NOW)
            .unwrap();
        assert!(proxy.has_lost_one());
        imported
    };
    let added = import(report("a").test("x", "p"));
    assert_eq!(added.effect, Effect::Added);
    let change = |from, to| VerdictChange {
        test_name: "x".to_owned(),
        file_path: Some("a.spec.ts".to_owned()),
        from,
        to,
    };
    let (unknown, healthy, broken) = (
        VerdictStatus::InsufficientData,
        VerdictStatus::Healthy,
        VerdictStatus::Broken,
    );
    assert_eq!(added.verdicts_changed.listed, [change(unknown, healthy)]);
    let replaced = import(report("a").content(1).replacing().test("x", "f"));
    assert_eq!(
        (replaced.effect, replaced.run_id),
        (Effect::Replaced, added.run_id)
    );
    assert_eq!(replaced.verdicts_changed.listed, [change(healthy, broken)]);
    assert_eq!(
        world.database.text("SELECT count(*) FROM run").as_deref(),
        Some("1")
    );
    // A separate import of the same report changes nothing.
    let again = world.import(&report("a").content(1).replacing().test("x", "f"));
    assert_eq!(again.effect, Effect::Unchanged);
    assert_eq!(again.verdicts_changed.total, 0);
}

#[test]
fn an_organization_whose_commit_was_not_answered_is_imported_once() {
    let (contents, mut archive) = transfer::archived();
    let target = TestDatabase::new();
    let proxy = Proxy::before(&target, b"COMMIT\0");
    let store = proxy.connect();
    let imported = store.import_organization(&contents, &mut archive, &CountingJudge, NOW);
    assert!(imported.unwrap().rows > 0 && proxy.has_lost_one());
    // The first commit belongs to the first partition. With the partitions there, it is that of the import.
    target
        .execute("TRUNCATE organization, project CASCADE; TRUNCATE result_block, attempt, attempt_texts, run_pack, verdict_block, verdict_evidence");
    let proxy = Proxy::before(&target, b"COMMIT\0");
    let store = proxy.connect();
    let imported = store.import_organization(&contents, &mut archive, &CountingJudge, NOW);
    assert!(imported.unwrap().rows > 0 && proxy.has_lost_one());
    assert_eq!(store.organizations().unwrap().len(), 1);
}

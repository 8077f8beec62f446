//! The server killed at any moment, and started again.

use std::{fs, process::Command, thread, time::Duration};

use assay_testkit::program;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use crate::{
    quiet, server, snapshot,
    world::{Report, World},
};

#[test]
fn killed_while_it_answers_and_started_again() {
    let _shared = quiet::shared();
    let mut world = World::new();
    for build in 1..=2 {
        world.import(&Report::whole(build, 20, 100 - i64::from(build)));
    }
    let before = snapshot::of(&world);
    let mut random = StdRng::seed_from_u64(7);
    for _ in 0..3 {
        let (client, key, path) = (
            world.server.client().clone(),
            world.key.clone(),
            world.path("/flaky"),
        );
        let reader = thread::spawn(move || {
            let authorization = format!("Bearer {key}");
            while client
                .try_get(&path, &[("Authorization", &authorization)])
                .is_ok()
            {}
        });
        thread::sleep(Duration::from_millis(random.random_range(0..150)));
        world.server.kill();
        reader.join().unwrap();
        world.server = server::start(world.folder.path(), world.database.url());
        snapshot::assert_same(&snapshot::of(&world), &before, "after the fault");
    }
}

#[test]
fn killed_at_any_moment_of_its_first_start() {
    let _shared = quiet::shared();
    let mut random = StdRng::seed_from_u64(11);
    for _ in 0..2 {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let launch = || server::launch(Command::new(program("assay-server")), folder.path(), &[]);
        let mut kills = Vec::new();
        for _ in 0..3 {
            let mut server = launch();
            let after = random.random_range(0..1_200);
            kills.push(after);
            thread::sleep(Duration::from_millis(after));
            server.kill();
        }
        let mut server = launch();
        server.ready();
        assert_eq!(
            server.client().get("/api/v1/projects", None).status,
            401,
            "{kills:?}"
        );
        // A regular end also stops its Postgres.
        server.signal("TERM");
        assert!(server.ended().success(), "{kills:?}: {}", server.log());
    }
}

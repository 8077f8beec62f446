//! The server's clock steps back, with libfaketime if it is installed.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use assay_testkit::program;

use crate::{
    quiet, server,
    world::{Report, World},
};

#[test]
fn a_clock_that_steps_back_changes_no_answer_but_the_periods() {
    let _shared = quiet::shared();
    let Some(library) = libfaketime() else {
        println!("SKIPPED: this needs libfaketime (apt-get install -y faketime)");
        return;
    };
    let mut world = World::new();
    for build in 1..=3 {
        world.import(&Report::whole(build, 20, 6_000 - i64::from(build)));
    }
    let offset = world.folder.path().join("offset");
    let set = |text: &str| fs::write(&offset, format!("{text}\n")).unwrap();
    set("+0");
    let offset = offset.display().to_string();
    world.server = server::start_with(
        Command::new(program("assay-server")),
        world.folder.path(),
        &[
            ("ASSAY_DATABASE_URL", world.database.url()),
            ("ASSAY_RATE_LIMIT", "60"),
            ("LD_PRELOAD", &library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", &offset),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            ("DONT_FAKE_MONOTONIC", "1"),
            ("FAKETIME_NO_CACHE", "1"),
        ],
    );
    let runs = |world: &World| world.get("/runs?days=90")["runs"].clone();
    let to = |world: &World| world.get("/runs?days=90")["window"]["to"].clone();
    let (before, at_first) = (runs(&world), to(&world));
    for step in ["-90", "-3600", "-86400", "+0", "-7200"] {
        set(step);
        // The step takes effect immediately, for requests and for the rate limit.
        for _ in 0..5 {
            assert_eq!(runs(&world), before, "{step}");
        }
        if step != "+0" {
            assert!(to(&world).as_str() < at_first.as_str(), "{step}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    world.server.ready();
}

fn libfaketime() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?;
    folders
        .filter_map(|folder| Some(folder.ok()?.path().join("faketime/libfaketime.so.1")))
        .find(|library| library.exists())
}

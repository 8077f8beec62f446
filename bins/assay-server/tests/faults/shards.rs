//! Many processes import shards of the same runs at once, while readers page.

use std::{
    process::{Child, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crate::{
    quiet,
    world::{Report, World},
};
use assay_testkit::{stderr_text, text};

const RUNS: u32 = 3;
const SHARDS: u32 = 6;
const TESTS: u32 = 20;

#[test]
fn shards_imported_at_once_make_one_run_each() {
    let _shared = quiet::shared();
    let world = World::new();
    let reports: Vec<_> = (1..=SHARDS)
        .flat_map(|shard| {
            (1..=RUNS).map(move |build| Report {
                build,
                shard: Some((shard, SHARDS)),
                tests: TESTS,
                age_s: 3_600 * i64::from(build),
            })
        })
        .collect();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| read_on(&world, &over));
        }
        let spawn = |report| {
            let mut command = world.import_command(report);
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let children: Vec<Child> = reports.iter().map(spawn).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", stderr_text(&output));
        }
        over.store(true, Ordering::Relaxed);
    });

    let runs = world.get("/runs?days=90");
    assert_eq!(runs["total"], RUNS);
    let mut numbers: Vec<_> = runs["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["runNumber"].as_u64())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=u64::from(RUNS)).map(Some).collect::<Vec<_>>());
    for run in runs["runs"].as_array().unwrap() {
        let detail = world.get(&format!("/runs/{}", text(&run["id"])));
        assert_eq!(detail["counts"]["total"], SHARDS * TESTS);
        let shards = detail["run"]["shards"]["received"].as_array().unwrap();
        assert_eq!(shards.len(), usize::try_from(SHARDS).unwrap());
        let failed = detail["counts"]["failed"].as_u64().unwrap();
        let build = (1..=RUNS).find(|build| failing(*build) == failed);
        assert!(build.is_some(), "{failed} failed");
    }
    // Derived rows agree with stored ones.
    let errors = world.get("/errors?days=90&perPage=50");
    let occurrences: u64 = errors["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["occurrenceCount"].as_u64().unwrap())
        .sum();
    assert_eq!(occurrences, (1..=RUNS).map(failing).sum::<u64>());
}

fn failing(build: u32) -> u64 {
    let report = Report::whole(build, TESTS, 0);
    let failing = (0..TESTS).filter(|test| report.fails(*test)).count();
    u64::from(SHARDS) * u64::try_from(failing).unwrap()
}

/// Every answer in between is consistent: counts add up, and each run is one row.
fn read_on(world: &World, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let runs = world.get("/runs?days=90&perPage=10");
        for run in runs["runs"].as_array().unwrap() {
            let detail = world.get(&format!("/runs/{}", text(&run["id"])));
            let received = detail["run"]["shards"]["received"].as_array().unwrap().len();
            let expected = received * usize::try_from(TESTS).unwrap();
            assert_eq!(detail["counts"]["total"], expected);
            assert_eq!(detail["tests"].as_array().unwrap().len(), expected);
        }
        world.get("/flaky");
    }
}

//! Imports at the same time.

use std::{collections::BTreeSet, thread};

use assay_domain::run::Outcome;

use crate::fixture::*;

#[test]
fn shards_that_arrive_together_are_one_run() {
    let world = World::new();
    let imported: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (1..=8)
            .map(|index| {
                let world = &world;
                scope.spawn(move || {
                    let shard = report("a").shard(index, 8).at(i64::from(index) * MINUTE);
                    world.import(&shard.test(&format!("test {index}"), "fp").test("shared", "p"))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let runs: BTreeSet<_> = imported.iter().map(|imported| imported.run_id).collect();
    let shards: BTreeSet<_> = imported.iter().map(|imported| imported.shard_id).collect();
    assert_eq!((runs.len(), shards.len()), (1, 8));
    assert_eq!(
        imported
            .iter()
            .filter(|imported| imported.status == Some(Outcome::Passed))
            .count(),
        1,
        "the last one"
    );
    let detail = world.detail(&imported[0]);
    assert_eq!((detail.counts.total, detail.counts.recovered), (9, 8));
    assert_eq!(detail.run.started_at, NOW.plus_ms(-8 * MINUTE));
    let shared = detail
        .tests
        .iter()
        .find(|test| test.test_name == "shared")
        .unwrap();
    assert_eq!(shared.attempts, 1, "eight executions, none of them retried");
    let before = world.packs();
    world.rebuild(world.project.id);
    assert_eq!(world.packs(), before);
}

#[test]
fn numbers_have_no_gaps_and_the_same_report_is_stored_once() {
    let world = World::new();
    thread::scope(|scope| {
        for index in 0..12 {
            let world = &world;
            // Each report twice.
            scope.spawn(move || world.import(&report(&format!("run {}", index / 2)).test("x", "p")));
        }
    });
    let numbers = world.database.texts("SELECT number FROM run ORDER BY number");
    let numbers: Vec<i32> = numbers
        .into_iter()
        .map(|number| number.unwrap().parse().unwrap())
        .collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    assert_eq!(
        world.database.text("SELECT runs FROM project").as_deref(),
        Some("6")
    );
    assert_eq!(world.history(14).runs.len(), 6);
}

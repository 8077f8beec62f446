//! Cursor pages while runs arrive and old ones are pruned.

use std::{
    collections::HashSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use assay_testkit::text;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::Value;

use crate::{
    quiet,
    world::{Report, World, now},
};

/// The plan's retention.
const RETENTION_S: i64 = 90 * 86_400;
/// A run this close to the end of its retention may be gone at the next request.
const MARGIN_S: i64 = 600;

/// An imported run, as the program reported it.
#[derive(Clone)]
struct AcknowledgedRun {
    id: String,
    stays: bool,
}

#[test]
fn pages_are_complete_and_without_repeats_while_runs_come_and_go() {
    let _shared = quiet::shared();
    let world = World::new();
    let acknowledged = Mutex::new(Vec::new());
    // Runs whose retention ends during the test, four in each second.
    for build in 1..=20 {
        import(&world, build, RETENTION_S - i64::from(build) / 4, &acknowledged);
    }
    for build in 41..=50 {
        import(&world, build, i64::from(build) * 3_600, &acknowledged);
    }
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let walkers: Vec<_> = (0..2_u64)
            .map(|seed| {
                scope.spawn({
                    let (world, over, acknowledged) = (&world, &over, &acknowledged);
                    move || {
                        let mut random = StdRng::seed_from_u64(seed);
                        let mut walks = 0;
                        while walks < 3 || !over.load(Ordering::Relaxed) {
                            walk(world, acknowledged, [10, 25, 50][random.random_range(0..3)]);
                            walks += 1;
                        }
                    }
                })
            })
            .collect();
        let mut random = StdRng::seed_from_u64(9);
        for build in 61..=84 {
            // Into the newest page, into the middle, and beyond the retention.
            let age = match build % 4 {
                0 => random.random_range(0..RETENTION_S - MARGIN_S),
                1 => RETENTION_S - random.random_range(-3..3),
                _ => 3_600 - i64::from(build) * 30,
            };
            import(&world, build, age, &acknowledged);
            if build % 8 == 0 {
                world.cli.json(&["prune"]);
            }
        }
        over.store(true, Ordering::Relaxed);
        for walker in walkers {
            walker.join().expect("each walk was complete");
        }
    });
}

fn import(world: &World, build: u32, age_s: i64, acknowledged: &Mutex<Vec<AcknowledgedRun>>) {
    let report = Report {
        build,
        shard: None,
        tests: 2,
        age_s,
    };
    let id = text(&world.import(&report)["runId"]);
    let waited = time::OffsetDateTime::now_utc() - now();
    let stays = age_s + waited.whole_seconds() < RETENTION_S - MARGIN_S;
    acknowledged.lock().unwrap().push(AcknowledgedRun { id, stays });
}

/// One walk to the oldest run and one back.
fn walk(world: &World, acknowledged: &Mutex<Vec<AcknowledgedRun>>, per_page: u32) {
    let acknowledged_runs = acknowledged.lock().unwrap().clone();
    let (there, last) = follow(world, per_page, "", "nextCursor", "next");
    is_complete(&there, &acknowledged_runs);
    let before: Vec<_> = there.iter().rev().take(1).cloned().collect();
    if let Some(cursor) = last["prevCursor"].as_str() {
        let on_last: HashSet<String> = ids(&last).into_iter().collect();
        let (back, _) = follow(world, per_page, cursor, "prevCursor", "prev");
        // The way back does not return the runs of the last page. A run that was acknowledged since the walk began may
        // be older than that page.
        let acknowledged_runs: Vec<_> = acknowledged_runs
            .into_iter()
            .filter(|run| !on_last.contains(&run.id))
            .collect();
        is_complete(&back, &acknowledged_runs);
        assert!(before.iter().all(|id| !back.contains(id)));
    }
}

/// The runs of all pages in one direction, and the last page.
fn follow(world: &World, per_page: u32, from: &str, next: &str, direction: &str) -> (Vec<String>, Value) {
    let (mut run_ids, mut cursor) = (Vec::new(), from.to_owned());
    loop {
        let after = if cursor.is_empty() {
            String::new()
        } else {
            format!("&cursor={cursor}&direction={direction}")
        };
        let page = world.get(&format!("/runs?days=90&perPage={per_page}{after}"));
        run_ids.extend(ids(&page));
        match page[next].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => return (run_ids, page),
        }
    }
}

fn ids(page: &Value) -> Vec<String> {
    page["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| text(&run["id"]))
        .collect()
}

/// No run is repeated, and every run that existed throughout is present.
fn is_complete(run_ids: &[String], acknowledged_runs: &[AcknowledgedRun]) {
    let set: HashSet<_> = run_ids.iter().collect();
    assert_eq!(set.len(), run_ids.len(), "a run came twice");
    for run in acknowledged_runs.iter().filter(|run| run.stays) {
        assert!(set.contains(&run.id), "{} was skipped", run.id);
    }
}

//! Pruning compared with an oracle: it deletes exactly the results past the retention, after any imports and at any
//! time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use assay_domain::{
    period::{Days, Period},
    plan::Plan,
    store::{Administration, ReadKeys, Store},
    timestamp::Timestamp,
};
use proptest::{prelude::*, test_runner::TestRunner};

use crate::fixture::*;

/// The next event.
#[derive(Debug, Clone)]
enum Event {
    /// A run, this many hours before the time.
    Arrives {
        run: u8,
        hours: i64,
        tests: BTreeSet<u8>,
    },
    /// Some days pass.
    Later(i64),
    Plan(Plan),
    Prune,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let tests = prop::collection::btree_set(0u8..5, 1..4);
    let event = prop_oneof![
        6 => (0u8..30, 0i64..(100 * 24), tests).prop_map(|(run, hours, tests)| Event::Arrives { run, hours, tests }),
        2 => (1i64..40).prop_map(Event::Later),
        1 => prop_oneof![Just(Plan::Pro), Just(Plan::Standard)].prop_map(Event::Plan),
        2 => Just(Event::Prune),
    ];
    prop::collection::vec(event, 1..25)
}

#[test]
fn pruning_deletes_exactly_the_runs_past_the_retention() {
    let world = World::new();
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 20,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner
        .run(&events(), |events| {
            check(&world, &events);
            // The next case begins with an empty database.
            world.database.execute(
                "TRUNCATE run, part, test, browser, signature, result_block, attempt, attempt_texts, run_pack, verdict_block, verdict_evidence, branch, daily_count",
            );
            Ok(())
        })
        .unwrap();
}

fn check(world: &World, events: &[Event]) {
    let (mut now, mut plan) = (NOW, Plan::Pro);
    world.store.set_plan(world.caller.organization, plan).unwrap();
    // The start and the tests of each stored run.
    let mut stored: BTreeMap<String, (Timestamp, BTreeSet<u8>)> = BTreeMap::new();
    for (salt, event) in events.iter().enumerate() {
        match event {
            Event::Arrives { run, hours, tests } => {
                let mut recording = report(&format!("run {run}"));
                recording.started_at = now.plus_ms(-hours * HOUR);
                recording.content[28] = salt as u8;
                recording.content[27] = 1;
                recording.replaces = true;
                for test in tests {
                    recording =
                        recording.test(&format!("test {test}"), if test % 2 == 0 { "fp" } else { "p" });
                }
                assay_domain::store::Recorder::record(
                    &world.store,
                    world.project.id,
                    &recording,
                    &CountingJudge,
                    now,
                )
                .unwrap();
                stored.insert(recording.run_key.clone(), (recording.started_at, tests.clone()));
            }
            Event::Later(days) => now = now.plus_days(*days),
            Event::Plan(new) => {
                plan = *new;
                world.store.set_plan(world.caller.organization, plan).unwrap();
            }
            Event::Prune => {
                let from = now.plus_days(-plan.retention_days());
                let due = stored.values().filter(|(start, _)| *start < from);
                let expected: (u64, u64) = due.fold((0, 0), |(runs, results), (_, tests)| {
                    (runs + 1, results + tests.len() as u64)
                });
                let dry = world.store.prune(now, true, &mut |_| ()).unwrap();
                let report = world.store.prune(now, false, &mut |_| ()).unwrap();
                assert_eq!(dry, report);
                let sum = report.projects.iter().fold((0, 0), |(runs, results), of| {
                    (runs + of.runs, results + of.results)
                });
                assert_eq!(sum, expected);
                stored.retain(|_, (start, _)| *start >= from);
                // Exactly the remaining rows are stored.
                let rows = "SELECT (SELECT count(*) FROM run) || ' ' || (SELECT count(*) FROM run_pack) || ' ' || \
                     (SELECT count(*) FROM result) || ' ' || (SELECT count(*) FROM attempt) || ' ' || \
                     (SELECT count(*) FROM test)";
                let results = stored.values().map(|(_, tests)| tests.len()).sum::<usize>();
                let attempts = stored
                    .values()
                    .flat_map(|(_, tests)| tests)
                    .filter(|test| *test % 2 == 0)
                    .count()
                    * 2;
                let tests: BTreeSet<u8> = stored.values().flat_map(|(_, tests)| tests.clone()).collect();
                let runs = stored.len();
                assert_eq!(
                    world.database.text(rows).unwrap(),
                    format!("{runs} {runs} {results} {attempts} {}", tests.len())
                );
                let over = "SELECT count(*) FROM partition WHERE ends_at <= to_timestamp($)";
                let horizon = now.plus_days(-Plan::Pro.retention_days()).unix_ms() / 1000;
                let over = over.replace('$', &horizon.to_string());
                assert_eq!(world.database.text(&over).as_deref(), Some("0"));
            }
        }
    }
    // The visible results are correct with and without pruning.
    let caller = assay_domain::project::Caller {
        plan,
        ..world.caller.clone()
    };
    let project = world
        .store
        .project(&caller, world.project.id, now)
        .unwrap()
        .unwrap();
    let period = Period::ending(now, Days::Ninety);
    for test in 0..5u8 {
        let visible: BTreeSet<Timestamp> = stored
            .values()
            .filter(|(start, tests)| *start >= project.visible_from && *start <= now && tests.contains(&test))
            .map(|(start, _)| *start)
            .collect();
        let history = world
            .store
            .history(&project, &any_file(&format!("test {test}")), &period)
            .unwrap();
        let starts: BTreeSet<Timestamp> = match history {
            assay_domain::test::TestLookup::Found(found) => found
                .occurrences
                .iter()
                .map(|occurrence| occurrence.started_at)
                .collect(),
            assay_domain::test::TestLookup::Missing | assay_domain::test::TestLookup::Ambiguous(_) => {
                BTreeSet::new()
            }
        };
        assert_eq!(starts, visible, "test {test}");
        let status = world
            .store
            .verdict(&project, &any_file(&format!("test {test}")))
            .unwrap();
        let is_found = matches!(status, assay_domain::test::TestLookup::Found(_));
        assert_eq!(is_found, !visible.is_empty(), "test {test}");
    }
    let rebuilt = world
        .store
        .rebuild(world.project.id, &CountingJudge, now, &mut |_, _| ())
        .unwrap()
        .unwrap();
    assert_eq!(rebuilt.runs_changed, 0);
}

#[test]
fn imports_and_reads_continue_during_pruning() {
    let world = World::new();
    for index in 0..200 {
        // Over the 13 weeks before the limit of the retention and the 10 days after it.
        let old = report(&format!("old {index}")).at(80 * DAY + index * 12 * HOUR);
        world.import(
            &old.test("x", "fp")
                .test("y", "p")
                .test(&format!("only {index}"), "f"),
        );
    }
    let remaining = (0..200)
        .filter(|index| 80 * DAY + index * 12 * HOUR <= 90 * DAY)
        .count();
    let is_done = AtomicBool::new(false);
    let imported = thread::scope(|scope| {
        let importer = scope.spawn(|| {
            let mut imported = 0;
            while !is_done.load(Ordering::SeqCst) || imported < 5 {
                // New runs, and late ones into weeks that pruning will drop.
                world.import(&report(&format!("new {imported}")).at(HOUR).test("x", "p"));
                world.import(&report(&format!("late {imported}")).at(100 * DAY).test("z", "f"));
                imported += 1;
            }
            imported
        });
        let reader = scope.spawn(|| {
            while !is_done.load(Ordering::SeqCst) {
                world
                    .store
                    .history(&world.project, &any_file("x"), &period(Days::Ninety))
                    .unwrap();
                world.store.runs(&world.project, &run_query()).unwrap();
            }
        });
        // Until only the rows of the concurrent importer remain.
        for _ in 0..3 {
            world.prune(false);
        }
        is_done.store(true, Ordering::SeqCst);
        reader.join().unwrap();
        importer.join().unwrap()
    });
    world.prune(false);
    let runs = world.database.text("SELECT count(*) FROM run").unwrap();
    assert_eq!(runs, (remaining + imported).to_string());
    let results = world.database.text("SELECT count(*) FROM result").unwrap();
    assert_eq!(results, (remaining * 3 + imported).to_string());
    let rebuilt = world.rebuild(world.project.id);
    assert_eq!((rebuilt.runs_changed, rebuilt.verdicts_changed), (0, 0));
}

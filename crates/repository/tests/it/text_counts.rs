//! The cached numbers of tests that showed each error signature always reflect the database.

use assay_domain::{
    plan::Plan,
    rules::RecordingRules,
    store::{Administration as _, Recorder as _, in_snapshot},
    timestamp::Timestamp,
};
use assay_repository::Database;

use crate::{fixture::*, refingerprint::FirstWord, signatures::with_failing_test};

/// The numbers of tests of the two weeks before a time, by signature.
fn counts(store: &Database, world: &World, now: Timestamp) -> Vec<(u32, u32)> {
    let project = world.project.clone().seen(Plan::Standard, now);
    let from = now.plus_days(-14);
    let read = in_snapshot(store, &project, |snapshot| {
        snapshot.observations(from, now)?;
        Ok(snapshot.window_errors(1, &[], from, now)?.tests)
    });
    let mut counts = read.unwrap();
    counts.sort_unstable();
    counts
}

/// The numbers as a store with an empty cache counts them.
fn without_cache(world: &World, now: Timestamp) -> Vec<(u32, u32)> {
    counts(&world.database.connect(), world, now)
}

#[test]
fn texts_are_counted_once_until_the_project_changes() {
    let world = World::on(Plan::Standard);
    let elsewhere = world.database.connect();
    let one = with_failing_test(report("a"), "x", None, &["boom early", "boom late", "bang"]);
    world.import(&with_failing_test(one, "y", None, &["boom late"]));
    let mut tests: Vec<u32> = without_cache(&world, NOW)
        .into_iter()
        .map(|(_, tests)| tests)
        .collect();
    tests.sort_unstable();
    assert_eq!(tests, [1, 1, 2]);
    let changes: [(&str, &dyn Fn()); 5] = [
        ("an import by another process", &|| {
            let recording = with_failing_test(report("b").at(70 * DAY), "z", None, &["boom late"]);
            let imported = elsewhere.record(world.project.id, &recording, &CountingJudge, NOW);
            imported.unwrap();
        }),
        ("an import", &|| {
            world.import(&with_failing_test(report("c"), "z", None, &["bang"]));
        }),
        ("other content in its place", &|| {
            world.import(&with_failing_test(
                report("c").content(1).replacing(),
                "z",
                None,
                &["boom late"],
            ));
        }),
        ("another grouping", &|| {
            let counts = elsewhere.refingerprint(world.project.id, &FirstWord);
            assert!(counts.unwrap().unwrap().changed > 0);
        }),
        ("pruning", &|| assert_eq!(world.prune(false)[0].runs, 1)),
    ];
    for (what, change) in changes {
        let before = without_cache(&world, NOW);
        assert_eq!(counts(&world.store, &world, NOW), before, "{what}");
        // A change by plain SQL, which does not invalidate the cache, shows whether the texts are counted again.
        let unnoticed_change = |tests: &str| format!("UPDATE attempt SET test = {tests} WHERE retry = 0");
        world.database.execute(&unnoticed_change("test + 100"));
        assert_eq!(
            counts(&world.store, &world, NOW),
            before,
            "counted again before {what}"
        );
        world.database.execute(&unnoticed_change("test - 100"));
        change();
        assert_eq!(
            counts(&world.store, &world, NOW),
            without_cache(&world, NOW),
            "{what}"
        );
    }
}

#[test]
fn a_period_with_other_runs_is_counted_apart() {
    let world = World::on(Plan::Standard);
    world.import(&with_failing_test(
        report("old").at(13 * DAY),
        "x",
        None,
        &["boom"],
    ));
    world.import(&with_failing_test(report("new").at(DAY), "y", None, &["boom"]));
    world.import(&with_failing_test(
        report("to come").at(-HOUR),
        "z",
        None,
        &["boom"],
    ));
    for (later, tests) in [
        (0, 2),
        (2 * HOUR, 3),
        (2 * DAY, 2),
        (HOUR, 3),
        (-2 * DAY, 1),
        (0, 2),
    ] {
        let now = NOW.plus_ms(later);
        assert_eq!(counts(&world.store, &world, now), [(0, tests)], "{later}");
        assert_eq!(without_cache(&world, now), [(0, tests)], "{later}");
    }
}

#[test]
fn runs_that_do_not_count_in_verdicts_do_not_count() {
    let world = World::on(Plan::Standard);
    world.import(&with_failing_test(report("a"), "x", None, &["boom"]));
    let rules = RecordingRules::IngestKey {
        backfill: false,
        pull_requests_only: true,
        budget: None,
    };
    let mut of_fork = report("b").branch("topic");
    of_fork.context.pull_request_number = Some(7);
    for test in ["x", "y", "z"] {
        of_fork = with_failing_test(of_fork, test, None, &["boom", "bang"]);
    }
    let store = &world.store;
    let recorded = store.record_under(world.project.id, &of_fork, rules, &CountingJudge, NOW);
    recorded.unwrap();
    assert_eq!(without_cache(&world, NOW), [(0, 1)]);
    let twice = with_failing_test(report("c"), "y", None, &["boom"]);
    world.import(&with_failing_test(twice, "z", None, &["bang"]));
    assert_eq!(without_cache(&world, NOW), [(0, 2), (1, 1)]);
}

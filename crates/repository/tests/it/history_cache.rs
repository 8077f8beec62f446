//! The cache of the engine's input always reflects the database.

use std::sync::Arc;

use assay_domain::{
    observation::History,
    plan::Plan,
    store::{Administration, ProjectChange, Recorder},
    timestamp::Timestamp,
};
use assay_repository::Database;

use crate::fixture::*;

fn history(store: &Database, world: &World, now: Timestamp) -> Arc<History> {
    let from = now.plus_days(-14);
    // A request looks up the project at its own time.
    let project = world.project.clone().seen(Plan::Standard, now);
    observations(store, &project, (from, now)).unwrap()
}

fn observed(world: &World, now: Timestamp) -> Arc<History> {
    history(&world.store, world, now)
}

/// The history as a store with an empty cache reads it.
fn without_cache(world: &World, now: Timestamp) -> Arc<History> {
    history(&world.database.connect(), world, now)
}

#[test]
fn a_history_is_read_once_until_the_project_changes() {
    let world = World::on(Plan::Standard);
    let elsewhere = world.database.connect();
    let changes: [(&str, &dyn Fn()); 7] = [
        ("an import", &|| {
            world.import(&report("a").test("x", "fp"));
        }),
        ("an import by another process", &|| {
            let recording = report("b").at(70 * DAY).test("y", "f");
            let imported = elsewhere.record(world.project.id, &recording, &CountingJudge, NOW);
            imported.unwrap();
        }),
        ("other content in its place", &|| {
            world.import(&report("a").content(1).replacing().test("x", "f"));
        }),
        ("another stable branch", &|| {
            let change = ProjectChange {
                stable_branch: Some("trunk".to_owned()),
                ..ProjectChange::default()
            };
            world
                .store
                .set_project(world.project.id, &change, &CountingJudge, NOW)
                .unwrap();
        }),
        ("pruning", &|| assert_eq!(world.prune(false)[0].runs, 1)),
        ("an import by an older program", &|| {
            world.database.execute(
                "UPDATE run SET branch = 'older'; UPDATE project SET evaluated_at = evaluated_at + interval '1 ms'",
            );
        }),
        ("the repair of a pack", &|| {
            world
                .database
                .execute("UPDATE run_pack SET pack = '\\x0100000000'");
            assert_eq!(world.rebuild(world.project.id).runs_changed, 1);
        }),
    ];
    let mut before = observed(&world, NOW);
    for (what, change) in changes {
        assert!(
            Arc::ptr_eq(&before, &observed(&world, NOW)),
            "read again before {what}"
        );
        change();
        let after = observed(&world, NOW);
        assert!(!Arc::ptr_eq(&before, &after), "not read again after {what}");
        assert_eq!(after, without_cache(&world, NOW), "{what}");
        before = after;
    }
    world.import(&report("a").content(1).replacing().test("x", "f"));
    assert!(
        Arc::ptr_eq(&before, &observed(&world, NOW)),
        "the same content again is no change"
    );
}

#[test]
fn the_runs_of_the_period_follow_the_time_of_the_request() {
    let world = World::on(Plan::Standard);
    world.import(&report("old").at(13 * DAY).test("x", "f"));
    world.import(&report("to come").at(-HOUR).test("x", "f"));
    let runs = |now: Timestamp| {
        let observed = observed(&world, now);
        assert_eq!(observed, without_cache(&world, now), "{now}");
        observed.runs.len()
    };
    let times = [0, 2 * HOUR, 2 * DAY, HOUR, 0, -2 * DAY].map(|later| NOW.plus_ms(later));
    assert_eq!(times.map(runs), [1, 2, 1, 2, 1, 1]);
    let cached = observed(&world, NOW.plus_ms(2 * HOUR));
    assert!(Arc::ptr_eq(&cached, &observed(&world, NOW.plus_ms(3 * HOUR))));
    // A longer period than that of the first request.
    let later = world.project.clone().seen(Plan::Standard, NOW.plus_days(1));
    let all = observations(&world.store, &later, (NOW.plus_days(-20), NOW.plus_days(1)));
    assert_eq!(all.unwrap().runs.len(), 2);
}

#[test]
fn another_project_is_another_history() {
    let world = World::on(Plan::Standard);
    world.import(&report("a").test("x", "f"));
    let other = world.another_project("other");
    assert_eq!(observed(&world, NOW).runs.len(), 1);
    let none = observations(&world.store, &other, (NOW.plus_days(-14), NOW)).unwrap();
    assert_eq!((none.runs.len(), none.tests), (0, 0));
}

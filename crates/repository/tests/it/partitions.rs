//! The partitions: created as needed for any dates of reports, and dropped as a whole.

use std::thread;

use assay_domain::{
    store::{Administration, PruneReport, Recorder},
    timestamp::Timestamp,
};
use diesel::connection::SimpleConnection;

use crate::{
    fixture::*,
    statements::{listen, recorded_statements},
};

/// The partitions of results with their numbers of results and of rows of `attempt`, by start.
fn partitions(world: &World) -> Vec<String> {
    let names = world
        .database
        .texts("SELECT name FROM partition ORDER BY starts_at");
    names
        .into_iter()
        .flatten()
        .map(|name| {
            let rows = world.database.text(&format!(
                "SELECT (SELECT coalesce(sum(length(status)), 0) FROM result_block_{name}) || ' ' || (SELECT count(*) FROM attempt_{name})"
            ));
            format!("{name}: {}", rows.unwrap())
        })
        .collect()
}

/// A world whose imports have the rights of the owner, for which `NOW` decides which partitions are weeks.
fn world() -> World {
    let mut world = World::new();
    world.importer = world.database.connect();
    world
}

fn at(text: &str) -> i64 {
    NOW.since_ms(text.parse().unwrap())
}

#[test]
fn each_week_has_a_partition_and_distant_dates_share_one() {
    let world = world();
    // NOW is a Wednesday: 2026-11-18.
    assert_eq!(NOW.to_string(), "2026-11-18T11:06:40.000Z");
    for (index, start) in [
        "2026-11-16T00:00:00Z",
        "2026-11-15T23:59:59.999Z",
        "2026-11-22T23:59:59.999Z",
        "2026-03-01T00:00:00Z",
        "2026-05-01T00:00:00Z",
        "2020-07-01T00:00:00Z",
        "1970-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "2026-11-30T12:00:00Z",
        "2027-12-31T00:00:00Z",
        "2031-01-01T00:00:00Z",
        "9999-12-31T00:00:00Z",
    ]
    .into_iter()
    .enumerate()
    {
        world.import(&report(&format!("{index}")).at(at(start)).test("x", "fp"));
    }
    assert_eq!(
        partitions(&world),
        [
            "early: 2 4",
            "20200101: 1 2",
            "20260101: 2 4",
            "20261109: 1 2",
            "20261116: 2 4",
            "20261130: 1 2",
            "20270308: 1 2",
            "20310101: 1 2",
            "21000101: 1 2",
        ]
    );
    let rebuilt = world.rebuild(world.project.id);
    assert_eq!(
        (rebuilt.runs, rebuilt.runs_changed, rebuilt.verdicts_changed),
        (12, 0, 0)
    );
}

#[test]
fn a_run_moves_with_its_rows_when_a_shard_began_earlier() {
    let world = world();
    let start = at("2026-11-16T01:00:00Z");
    let first = world.import(&report("a").shard(1, 2).at(start).test("x", "fp").test("y", "p"));
    assert_eq!(partitions(&world), ["20261116: 2 2"]);
    world.import(
        &report("a")
            .shard(2, 2)
            .at(start + 2 * HOUR)
            .test("x", "f")
            .test("z", "p"),
    );
    assert_eq!(partitions(&world), ["20261109: 3 3", "20261116: 0 0"]);
    let detail = world.detail(&first);
    assert_eq!((detail.counts.total, detail.tests.len()), (3, 3));
    // It moves back when a report with a later start replaces that shard.
    world.import(
        &report("a")
            .shard(2, 2)
            .content(1)
            .replacing()
            .at(start)
            .test("z", "f"),
    );
    assert_eq!(partitions(&world), ["20261109: 0 0", "20261116: 3 3"]);
    assert_eq!(world.detail(&first).counts.failed, 1);
    let rebuilt = world.rebuild(world.project.id);
    assert_eq!((rebuilt.runs_changed, rebuilt.verdicts_changed), (0, 0));
}

#[test]
fn imports_of_many_projects_make_the_same_weeks_at_once() {
    let world = world();
    let projects: Vec<_> = (0..6)
        .map(|index| world.another_project(&format!("project {index}")).id)
        .collect();
    thread::scope(|scope| {
        for (index, project) in projects.iter().enumerate() {
            let store = &world.store;
            scope.spawn(move || {
                for week in 0..8 {
                    // Each import has another order.
                    let week = if index % 2 == 0 { week } else { 7 - week };
                    let recording = report(&format!("{week}")).at(week * 7 * DAY).test("x", "fp");
                    store.record(*project, &recording, &CountingJudge, NOW).unwrap();
                }
            });
        }
    });
    assert_eq!(partitions(&world).len(), 8);
    assert_eq!(
        world.database.text("SELECT count(*) FROM result").as_deref(),
        Some("48")
    );
}

#[test]
fn a_period_in_use_is_left_for_the_next_time() {
    let world = world();
    for week in 0..3 {
        world.import(
            &report(&format!("{week}"))
                .at((100 + 7 * week) * DAY)
                .test("x", "f"),
        );
    }
    world.import(&report("new").test("y", "p"));
    let pruned = |later: Timestamp| -> PruneReport { world.store.prune(later, false, &mut |_| ()).unwrap() };
    // An unfinished reader. The rows that it reads must not be deleted.
    let mut reader = world.database.connection();
    reader
        .batch_execute("BEGIN; SELECT count(*) FROM result")
        .unwrap();
    let report = pruned(NOW);
    assert_eq!(
        (report.projects[0].runs, report.partitions, report.partitions_left),
        (3, 0, 3)
    );
    reader.batch_execute("COMMIT").unwrap();
    let report = pruned(NOW);
    assert_eq!(
        (report.projects.len(), report.partitions, report.partitions_left),
        (0, 3, 0)
    );
    assert_eq!(
        partitions(&world),
        ["20261116: 1 0", "20261123: 0 0", "20261130: 0 0"]
    );
    assert_eq!(
        world.database.text("SELECT count(*) FROM test").as_deref(),
        Some("1")
    );
}

#[test]
fn a_period_is_dropped_only_when_no_plan_shows_any_of_it() {
    let world = world();
    // Of one week, one run is 89 and one 93 days old: the week is not past retention.
    let (young, old) = (at("2026-08-21T13:00:00Z"), at("2026-08-17T13:00:00Z"));
    world.import(&report("young").at(young).test("x", "f"));
    world.import(&report("old").at(old).test("x", "f").test("y", "p"));
    assert_eq!(partitions(&world), ["20260817: 3 2"]);
    let dry = world.store.prune(NOW, true, &mut |_| ()).unwrap();
    let first = world.store.prune(NOW, false, &mut |_| ()).unwrap();
    assert_eq!(dry, first);
    assert_eq!(
        (
            first.projects[0].runs,
            first.projects[0].results,
            first.partitions
        ),
        (1, 2, 0)
    );
    let ahead = ["20261116: 0 0", "20261123: 0 0", "20261130: 0 0"];
    assert_eq!(partitions(&world), [&["20260817: 1 1"][..], &ahead].concat());
    // Five days later it is.
    let later = NOW.plus_days(5);
    let mut steps = Vec::new();
    let pruned = world
        .store
        .prune(later, false, &mut |step| steps.push(format!("{step:?}")))
        .unwrap();
    assert_eq!(
        (
            pruned.projects[0].runs,
            pruned.projects[0].results,
            pruned.partitions
        ),
        (1, 1, 1)
    );
    assert_eq!(
        steps,
        [
            "Runs { project: \"web\", done: 1, of: 1 }",
            "Partitions { done: 1, of: 1 }"
        ]
    );
    assert_eq!(partitions(&world)[..3], ahead);
    // The same report can be imported again.
    world.import(&report("young").at(young).test("x", "f"));
    assert_eq!(partitions(&world)[0], "20260817: 1 1");
}

#[test]
fn an_import_makes_a_missing_partition_in_a_transaction_of_its_own() {
    listen();
    let world = world();
    let of_import = |key: &str| recorded_statements(|| _ = world.import(&report(key).test("x", "f")));
    let first = of_import("first");
    let make_room_position = first
        .iter()
        .position(|statement| statement.contains("assay_create_partition"))
        .expect("the import creates the missing partition");
    let count_before = |word: &str| {
        first[..make_room_position]
            .iter()
            .filter(|statement| statement.starts_with(word))
            .count()
    };
    assert!(count_before("BEGIN") > 0, "{first:?}");
    assert_eq!(
        count_before("BEGIN"),
        count_before("COMMIT") + count_before("ROLLBACK"),
        "{first:?}"
    );
    assert!(
        !first[..make_room_position]
            .iter()
            .any(|statement| statement.contains("COPY")),
        "nothing was written"
    );
    let second = of_import("second");
    assert!(
        !second
            .iter()
            .any(|statement| statement.contains("assay_create_partition"))
    );
    assert_eq!(partitions(&world), ["20261116: 2 2"]);
}

#[test]
fn pruning_makes_the_partitions_of_this_week_and_the_next_two() {
    let world = world();
    world.store.prune(NOW, true, &mut |_| ()).unwrap();
    assert_eq!(partitions(&world), Vec::<String>::new());
    world.store.prune(NOW, false, &mut |_| ()).unwrap();
    let three_weeks = ["20261116: 0 0", "20261123: 0 0", "20261130: 0 0"];
    assert_eq!(partitions(&world), three_weeks);
    world.store.prune(NOW, false, &mut |_| ()).unwrap();
    assert_eq!(partitions(&world), three_weeks, "once");
}

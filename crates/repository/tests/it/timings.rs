//! The usual durations of tests.

use assay_domain::{
    attempt::AttemptStatus,
    execution::Executions,
    recording::RecordedTest,
    recording::Recording,
    store::{Recorder, Store},
    test::TestName,
    timestamp::Timestamp,
    timing::Timings,
};

use crate::fixture::*;

/// A report on main in which `pays` passed and took this long.
fn timed(run_key: &str, before_now_ms: i64, duration_ms: u64) -> Recording {
    timed_as(AttemptStatus::Passed, run_key, before_now_ms, duration_ms)
}

fn timed_as(status: AttemptStatus, run_key: &str, before_now_ms: i64, duration_ms: u64) -> Recording {
    let mut attempt = attempt(status, "");
    attempt.attempt.duration_ms = Some(duration_ms);
    let mut attempts = Executions::with_capacity(1);
    attempts.push([attempt]);
    let mut recording = report(run_key).at(before_now_ms);
    recording.tests.push(RecordedTest {
        shown_as: Default::default(),
        test: TestName {
            name: "pays".to_owned(),
            file_path: Some("cart.spec.ts".to_owned()),
        },
        attempts,
    });
    recording
}

fn timings(world: &World, before: Timestamp) -> Timings {
    world.store.timings(&world.project, before).unwrap()
}

fn durations(timings: &Timings) -> Vec<(&str, u64)> {
    let tests = timings.tests.iter();
    tests
        .map(|test| (test.test_name.as_str(), test.duration_ms))
        .collect()
}

#[test]
fn the_median_is_of_the_newest_ten_passed_runs_of_the_stable_branch() {
    let world = World::new();
    for (number, duration) in [900, 900, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]
        .iter()
        .enumerate()
    {
        let age = (20 - number as i64) * HOUR;
        world.import(&timed(&format!("run {number}"), age, *duration));
    }
    world.import(&timed("branch", HOUR, 5_000).branch("feature"));
    world.import(&timed("red", HOUR, 5_000).test("breaks", "f"));
    world.import(&timed("shard", HOUR, 5_000).shard(1, 2));
    let timings = timings(&world, NOW.plus_ms(1));
    assert_eq!(timings.stable_branch, "main");
    let numbers: Vec<_> = timings.runs.iter().map(|run| run.run_number).collect();
    assert_eq!(numbers, [12, 11, 10, 9, 8, 7, 6, 5, 4, 3]);
    assert_eq!(durations(&timings), [("pays", 14)]);
    assert_eq!(timings.tests[0].file_path.as_deref(), Some("cart.spec.ts"));
}

#[test]
fn an_expected_failure_takes_its_time_and_a_skipped_test_none() {
    let world = World::new();
    for (number, duration) in [2_800, 2_900, 3_000].into_iter().enumerate() {
        let age = (20 - number as i64) * HOUR;
        let run = timed_as(AttemptStatus::Skipped, &format!("run {number}"), age, duration);
        world.import(&run.test("passes", "p"));
    }
    assert_eq!(
        durations(&timings(&world, NOW.plus_ms(1))),
        [("passes", 100), ("pays", 2_900)]
    );
    for number in 3..7 {
        let age = (20 - number) * HOUR;
        world.import(&timed_as(AttemptStatus::Skipped, &format!("run {number}"), age, 0).test("passes", "p"));
    }
    assert_eq!(
        durations(&timings(&world, NOW.plus_ms(1))),
        [("passes", 100), ("pays", 0)]
    );
}

#[test]
fn each_suite_has_its_own_newest_runs() {
    let world = World::new();
    let mut rare = report("nightly").at(30 * HOUR).test("nightly", "p");
    rare.context.suite = Some("nightly".to_owned());
    world.import(&rare);
    for number in 0..12 {
        let age = (20 - number) * HOUR;
        world.import(&timed(&format!("run {number}"), age, 7));
    }
    let timings = timings(&world, NOW.plus_ms(1));
    assert_eq!(timings.runs.len(), 11);
    assert_eq!(durations(&timings), [("nightly", 100), ("pays", 7)]);
}

#[test]
fn what_arrives_later_changes_nothing() {
    let world = World::new();
    world.import(&timed("early", 3 * HOUR, 7));
    world.import(&timed("half", 2 * HOUR, 9).shard(1, 2));
    let before = NOW.plus_ms(1);
    let earlier = timings(&world, before);
    assert_eq!(durations(&earlier), [("pays", 7)]);
    let later = NOW.plus_ms(HOUR);
    for recording in [
        timed("late", 150 * MINUTE, 5_000),
        timed("half", 2 * HOUR, 9).shard(2, 2),
    ] {
        let recorded = world
            .store
            .record(world.project.id, &recording, &CountingJudge, later);
        recorded.unwrap();
    }
    assert_eq!(timings(&world, before), earlier);
    assert_eq!(timings(&world, later.plus_ms(1)).runs.len(), 3);
}

#[test]
fn a_project_without_runs_has_no_timings() {
    let world = World::new();
    let timings = timings(&world, NOW);
    assert!(timings.runs.is_empty() && timings.tests.is_empty());
}

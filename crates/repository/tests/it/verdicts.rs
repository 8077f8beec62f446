//! Stored verdicts: those of the last import, of the whole project.

use assay_domain::{
    attempt::AttemptStatus,
    observation::RunEnding,
    store::{Administration, ProjectChange, Recorder, Store},
    test::TestLookup,
    verdict::{Label, Signal, StoredVerdict, VerdictStatus},
};

use crate::fixture::*;

fn verdict(world: &World, name: &str) -> Option<StoredVerdict> {
    let lookup = world.store.verdict(&world.project, &any_file(name)).unwrap();
    let TestLookup::Found(answer) = lookup else {
        panic!("{name}: {lookup:?}")
    };
    answer.stored
}

#[test]
fn a_verdict_reads_back_to_the_last_digit() {
    let world = World::new();
    let mut recording = report("a").test("x", "fp").test("y", "p").test("z", "s");
    recording.tests[0].attempts[1].attempt.started_at = Some(NOW.plus_ms(-30 * MINUTE));
    let imported = world.import(&recording);
    let stored = verdict(&world, "x").unwrap();
    assert_eq!(
        (stored.status, stored.reason),
        (VerdictStatus::Broken, Some(Signal::RetryRate))
    );
    assert_eq!(stored.explanation, "1 of 1 runs on main");
    assert_eq!(stored.signals, [Signal::RetryRate, Signal::FlipRate]);
    assert_eq!(stored.labels, [Label::Retries]);
    assert_eq!(
        (stored.figures.flake_score, stored.figures.flake_rate),
        (1.0 / 3.0, 2e-5)
    );
    assert_eq!((stored.evaluated_at, stored.evidence.now), (NOW, NOW));
    let (status, run) = stored.last.unwrap();
    assert_eq!(status, NOW.plus_ms(-30 * MINUTE), "the final attempt's start");
    assert_eq!((run.run_id, run.run_number), (imported.run_id.to_string(), 1));
    assert_eq!(
        (run.status, run.started_at),
        (AttemptStatus::Passed, recording.started_at)
    );
    assert_eq!(verdict(&world, "y").unwrap().status, VerdictStatus::Healthy);
    assert_eq!(verdict(&world, "z").unwrap().last, None);
    let lookup = world
        .store
        .attempts(&world.project, imported.run_id, &any_file("x"))
        .unwrap()
        .unwrap();
    let TestLookup::Found(answer) = lookup else {
        panic!("{lookup:?}")
    };
    assert_eq!(answer.verdict, verdict(&world, "x"));
    assert_eq!(answer.commit_sha.as_deref(), Some("c0ffee"));
}

/// The parts of the fixture last ten minutes.
#[test]
fn the_judge_is_told_from_when_an_incomplete_run_counts() {
    let world = World::new();
    let ending = |world: &World| world.history(1).runs[0].ending;
    world.import(&report("build").shard(1, 3).at(HOUR).test("a", "f"));
    assert_eq!(ending(&world), RunEnding::incomplete(NOW.plus_ms(-50 * MINUTE)));
    let mut endless = report("build").shard(2, 3).at(20 * MINUTE).test("b", "p");
    endless.finished_at = None;
    world.import(&endless);
    assert_eq!(ending(&world), RunEnding::incomplete(NOW.plus_ms(-50 * MINUTE)));
    world.import(&report("build").shard(3, 3).at(20 * MINUTE).test("c", "p"));
    assert_eq!(ending(&world), RunEnding::default());
}

#[test]
fn a_test_outside_of_the_window_awaits_its_first_verdict() {
    let world = World::new();
    world.import(&report("a").at(20 * DAY).test("x", "f"));
    assert_eq!(verdict(&world, "x"), None);
}

#[test]
fn a_test_that_left_the_window_has_insufficient_data() {
    let world = World::new();
    world
        .store
        .record(
            world.project.id,
            &report("a").at(20 * DAY).test("x", "f"),
            &CountingJudge,
            NOW.plus_days(-19),
        )
        .unwrap();
    let first = verdict(&world, "x").unwrap();
    assert_eq!(
        (first.status, first.evaluated_at),
        (VerdictStatus::Broken, NOW.plus_days(-19))
    );
    world.import(&report("b").test("y", "p"));
    let verdict_after = verdict(&world, "x").unwrap();
    assert_eq!(
        (
            verdict_after.status,
            verdict_after.reason,
            verdict_after.evaluated_at
        ),
        (VerdictStatus::InsufficientData, None, NOW)
    );
    assert_eq!(
        (
            verdict_after.figures.runs_in_window,
            verdict_after.last,
            verdict_after.evidence.engine.as_str()
        ),
        (0, None, "counting")
    );
    world.import(&report("c").test("x", "p"));
    assert_eq!(verdict(&world, "x").unwrap().status, VerdictStatus::Healthy);
}

#[test]
fn only_rows_that_changed_are_written() {
    let world = World::new();
    world.import(&report("a").test("x", "f").test("y", "p"));
    let version = |table: &str| {
        let sql = format!("SELECT string_agg(xmin::text, ' ') FROM {table}");
        world.database.text(&sql).unwrap()
    };
    let (x, block) = (version("verdict_evidence"), version("verdict_block"));
    let later = NOW.plus_ms(HOUR);
    world
        .store
        .record(
            world.project.id,
            &report("b").test("y", "p"),
            &CountingJudge,
            later,
        )
        .unwrap();
    assert_eq!(version("verdict_evidence"), x, "that of the failed test");
    assert_ne!(version("verdict_block"), block);
    assert_eq!(
        verdict(&world, "x").unwrap().evaluated_at,
        later,
        "it is judged nevertheless"
    );
}

#[test]
fn another_stable_branch_is_judged_at_once() {
    let world = World::new();
    world.import(&report("a").test("x", "p"));
    let change = ProjectChange {
        stable_branch: Some("trunk".to_owned()),
        ..ProjectChange::default()
    };
    let later = NOW.plus_ms(HOUR);
    assert!(
        world
            .store
            .set_project(world.project.id, &change, &CountingJudge, later)
            .unwrap()
    );
    let stored = verdict(&world, "x").unwrap();
    assert_eq!(
        (stored.explanation.as_str(), stored.evaluated_at),
        ("0 of 1 runs on trunk", later)
    );
    assert!(
        world
            .store
            .set_project(world.project.id, &change, &CountingJudge, NOW.plus_days(1))
            .unwrap()
    );
    assert_eq!(
        verdict(&world, "x").unwrap().evaluated_at,
        later,
        "the same branch again changes nothing"
    );
}

//! Postgres is stopped, restarted, killed or frozen while requests arrive.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{
    load::{Load, LoadAnswer, assert_contract_failure},
    quiet,
    world::{Report, World},
};

/// Time limit for the server's recovery after Postgres answers again.
const RECOVERED_WITHIN: Duration = Duration::from_secs(2);

#[test]
fn postgres_stopped() {
    let answers = break_under_load(|world, load| {
        world.postgres().stop();
        load.until_more(10, is_unreachable);
        assert_not_ready(world);
        world.postgres().start_again()
    });
    assert_all_unreachable(&answers);
}

#[test]
fn postgres_restarted() {
    let answers = break_under_load(|world, _| {
        world.postgres().stop();
        world.postgres().start_again()
    });
    assert_all_unreachable(&answers);
}

#[test]
fn postgres_killed() {
    let answers = break_under_load(|world, load| {
        world.postgres().kill();
        load.until_more(10, is_unreachable);
        world.postgres().start_again()
    });
    assert_all_unreachable(&answers);
}

#[test]
fn postgres_frozen() {
    break_under_load(|world, load| {
        world.postgres().freeze();
        // All threads are busy with the first requests, so the server rejects later ones immediately.
        load.until_more(200, is_unreachable);
        assert!(world.server.is_healthy());
        assert_not_ready(world);
        world.postgres().thaw();
        world.postgres().wait_for_connection()
    });
}

/// An unreachable database results in 503, also for a request that it interrupted.
fn assert_all_unreachable(answers: &[LoadAnswer]) {
    let failed = answers.iter().filter(|answer| answer.status != 200);
    let others: Vec<_> = failed.filter(|answer| !is_unreachable(answer)).collect();
    assert!(others.is_empty(), "of {} answers: {others:?}", answers.len());
}

/// Breaks Postgres under load and returns every answer. The fault returns the time at which Postgres answered again.
fn break_under_load(fault: impl FnOnce(&mut World, &Load) -> Instant) -> Vec<LoadAnswer> {
    let _alone = quiet::alone();
    let mut world = World::with_own_postgres();
    for build in 1..=3 {
        world.import(&Report::whole(build, 40, 100 - i64::from(build)));
    }
    let before = world.get("/runs")["runs"].clone();
    let load = Load::start(&world, 8);
    load.until_more(20, |answer| answer.status == 200);

    let answered = fault(&mut world, &load);
    let first = world.ask("/branches");
    if first.status != 200 {
        assert_contract_failure(&first);
    }
    // After that time, a request succeeds even on a busy machine.
    thread::sleep(RECOVERED_WITHIN.saturating_sub(answered.elapsed()));
    let later = world.ask("/branches");
    assert_eq!(later.status, 200, "it does not recover: {}", later.text());

    load.until_more(20, |answer| answer.status == 200);
    let answers = load.stop();
    assert!(world.server.lives() && world.server.is_healthy());
    world.server.ready();
    assert_eq!(world.get("/runs")["runs"], before);
    answers
}

fn is_unreachable(answer: &LoadAnswer) -> bool {
    answer.status == 503
}

/// The readiness check reports it while Postgres is out of reach.
fn assert_not_ready(world: &World) {
    assert_eq!(world.server.admin().get("/readyz", None).status, 503);
}

//! Postgres stopped, restarted, killed, frozen, while requests come.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{
    load::{Load, Seen, is_a_failure_on_contract},
    quiet,
    world::{Report, World},
};

/// How soon after Postgres answers again the server must.
const RECOVERED_WITHIN: Duration = Duration::from_secs(2);
/// How long a request may take at most, whatever Postgres does. The server's own bound is ten seconds.
const ANSWERED_WITHIN: Duration = Duration::from_secs(15);

#[test]
fn postgres_stopped() {
    let seen = survives(|world, load| {
        world.postgres().stop();
        load.until_more(10, is_unreachable);
        not_ready(world);
        world.postgres().start_again()
    });
    assert_all_unreachable(&seen);
}

#[test]
fn postgres_restarted() {
    let seen = survives(|world, _| {
        world.postgres().stop();
        world.postgres().start_again()
    });
    assert_all_unreachable(&seen);
}

#[test]
fn postgres_killed() {
    let seen = survives(|world, load| {
        world.postgres().kill();
        load.until_more(10, is_unreachable);
        world.postgres().start_again()
    });
    assert_all_unreachable(&seen);
}

#[test]
fn postgres_frozen() {
    survives(|world, load| {
        world.postgres().freeze();
        // So many that the later ones found every thread held, and were turned away at once.
        load.until_more(200, is_unreachable);
        assert!(world.server.is_healthy());
        not_ready(world);
        world.postgres().thaw();
        world.postgres().answers()
    });
}

/// A database that is gone is told as 503, also by a request that it ended in the middle.
fn assert_all_unreachable(seen: &[Seen]) {
    let failed = seen.iter().filter(|seen| seen.status != 200);
    let others: Vec<_> = failed.filter(|seen| !is_unreachable(seen)).collect();
    assert!(others.is_empty(), "of {} answers: {others:?}", seen.len());
}

/// Breaks Postgres under load and returns every answer. The fault returns when Postgres answered again.
fn survives(fault: impl FnOnce(&mut World, &Load) -> Instant) -> Vec<Seen> {
    let _alone = quiet::alone();
    let mut world = World::with_own_postgres();
    for build in 1..=3 {
        world.import(&Report::whole(build, 40, 100 - i64::from(build)));
    }
    let before = world.get("/runs")["runs"].clone();
    let load = Load::start(&world, 8);
    load.until_more(20, |seen| seen.status == 200);

    let answered = fault(&mut world, &load);
    let first = world.ask("/branches");
    if first.status != 200 {
        is_a_failure_on_contract(&first);
    }
    // However busy the machine is: once that time has passed, a request succeeds.
    thread::sleep(RECOVERED_WITHIN.saturating_sub(answered.elapsed()));
    let later = world.ask("/branches");
    assert_eq!(later.status, 200, "it does not recover: {}", later.text());

    load.until_more(20, |seen| seen.status == 200);
    let seen = load.stop();
    let slowest = seen.iter().map(|seen| seen.took).max().unwrap();
    assert!(slowest < ANSWERED_WITHIN, "{slowest:?}");
    assert!(world.server.lives() && world.server.is_healthy());
    world.server.ready();
    assert_eq!(world.get("/runs")["runs"], before);
    seen
}

fn is_unreachable(seen: &Seen) -> bool {
    seen.status == 503
}

/// The platform is told, in bounded time.
fn not_ready(world: &World) {
    let began = Instant::now();
    assert_eq!(world.server.admin().get("/readyz", None).status, 503);
    assert!(began.elapsed() < ANSWERED_WITHIN);
}

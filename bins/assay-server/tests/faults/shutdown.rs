//! The server's end, by a signal.

use std::{thread, time::Instant};

use diesel::connection::SimpleConnection as _;

use crate::{
    postgres::until_waiting_for_locks,
    quiet,
    world::{Report, Source, World},
};

#[test]
fn admitted_requests_are_finished() {
    for signal in ["TERM", "INT"] {
        is_finished_on(signal);
    }
}

fn is_finished_on(signal: &str) {
    let _shared = quiet::shared();
    let mut world = World::new();
    world.import(&Report::whole(1, 10, 60));
    let Source::Shared(database) = &world.database else {
        unreachable!()
    };
    let (mut lock, mut other) = (database.connection(), database.connection());
    lock.batch_execute("BEGIN; LOCK TABLE run IN ACCESS EXCLUSIVE MODE")
        .unwrap();

    let (client, path, key) = (
        world.server.client().clone(),
        world.path("/runs"),
        world.key.clone(),
    );
    let reader = thread::spawn(move || client.get(&path, Some(&key)));
    until_waiting_for_locks(&mut other, 1);
    world.server.signal(signal);
    world
        .server
        .until("stopping", |server| server.log().contains("no new connections"));
    lock.batch_execute("ROLLBACK").unwrap();

    let answer = reader.join().unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["total"], 1);
    assert!(world.server.ended().success(), "{}", world.server.log());
}

#[test]
fn endless_requests_do_not_delay_it() {
    let _shared = quiet::shared();
    let mut world = World::with_own_postgres();
    world.import(&Report::whole(1, 10, 60));
    world.postgres().freeze();
    let (client, path, key) = (
        world.server.client().clone(),
        world.path("/runs"),
        world.key.clone(),
    );
    let reader = thread::spawn(move || {
        let authorization = format!("Bearer {key}");
        let _ = client.try_get(&path, &[("Authorization", &authorization)]);
    });
    world.server.until("under way", |server| {
        let metrics = server.admin().get("/metrics", None).text();
        metrics.contains("assay_http_requests_in_flight 1")
    });
    let began = Instant::now();
    world.server.signal("TERM");
    let status = world.server.ended();
    println!("ended with {status} after {:?}", began.elapsed());
    // It ended while the request still hung.
    world.postgres().thaw();
    reader.join().unwrap();
}

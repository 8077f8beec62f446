//! Other programs use all connections that Postgres allows.

use std::{
    thread,
    time::{Duration, Instant},
};

use assay_testkit::PATIENCE;
use diesel::{Connection as _, PgConnection};

use crate::{
    load::assert_contract_failure,
    postgres::number,
    quiet,
    world::{Report, World},
};

/// Time limit for the server's recovery after Postgres has free connections.
const RECOVERED_WITHIN: Duration = Duration::from_secs(2);

#[test]
fn the_server_answers_when_other_programs_use_every_connection() {
    let _alone = quiet::alone();
    let mut world = World::with_own_postgres();
    world.import(&Report::whole(1, 10, 60));
    let before = world.get("/runs")["runs"].clone();

    let crowd = crowd(world.postgres().url());
    for below in ["/runs", "/flaky", "/settings"] {
        let answer = world.ask(below);
        assert_contract_failure(&answer);
        assert_eq!(answer.status, 503);
    }
    assert_eq!(world.server.admin().get("/readyz", None).status, 503);
    assert!(world.server.is_healthy());

    drop(crowd);
    let answered = world.postgres().wait_for_connection();
    thread::sleep(RECOVERED_WITHIN.saturating_sub(answered.elapsed()));
    assert_eq!(world.get("/runs")["runs"], before);
    assert!(world.server.lives());
}

/// Opens connections until none is left, and ends the server's own.
fn crowd(url: &str) -> Vec<PgConnection> {
    let url = format!("{url}&application_name=crowd");
    let began = Instant::now();
    let mut crowd = vec![PgConnection::establish(&url).unwrap()];
    loop {
        assert!(began.elapsed() < PATIENCE, "the server keeps a connection");
        while let Ok(connection) = PgConnection::establish(&url) {
            crowd.push(connection);
        }
        let others =
            "FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> 'crowd'";
        if number(&mut crowd[0], &format!("SELECT count(*) AS value {others}")) == 0 {
            return crowd;
        }
        number(
            &mut crowd[0],
            &format!("SELECT count(pg_terminate_backend(pid)) AS value {others}"),
        );
    }
}

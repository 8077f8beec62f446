//! Errors for the caller when the database fails.

use std::{thread, time::Duration};

use assay_domain::{
    attempt::AttemptStatus,
    rules::RecordingRules,
    store::{RecordError, Recorder as _, Store, StoreError},
    timestamp::Timestamp,
};
use assay_repository::{Database, PoolOptions};

use crate::fixture::*;

#[test]
fn a_dead_connection_is_replaced_without_an_error() {
    let world = World::new();
    for _ in 0..3 {
        world.database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        );
        // Alone, in a transaction, and in one that writes.
        world.store.projects(&world.caller).unwrap();
        world.database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        );
        world.store.runs(&world.project, &run_query()).unwrap();
        world.database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        );
        world.import(&report("a").test("x", "p"));
    }
    assert_eq!(
        world.database.text("SELECT count(*) FROM run").as_deref(),
        Some("1")
    );
}

/// Postgres does so itself, but rarely: a session has an outdated list of partitions.
#[test]
fn sessions_that_do_not_see_a_partition_are_replaced_without_an_error() {
    let world = World::new();
    world.import(&report("a").test("x", "p"));
    let read = || world.store.projects(&world.caller).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(read);
        }
    });
    world.database.execute(
        "CREATE TABLE outdated AS SELECT pid FROM pg_stat_activity WHERE datname = current_database();
         GRANT SELECT ON outdated TO PUBLIC;
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF pg_backend_pid() IN (SELECT pid FROM outdated) THEN
                 RAISE 'no partition of relation found for row' USING ERRCODE = 'check_violation', TABLE = 'result_block';
             END IF;
             RETURN NULL;
         END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON result_block FOR EACH STATEMENT EXECUTE FUNCTION refuse()",
    );
    world.import(&report("b").test("x", "f"));
    assert_eq!(
        world.database.text("SELECT count(*) FROM result").as_deref(),
        Some("2")
    );
    // Only without a partition in any session it is an error.
    world.database.execute(
        "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             RAISE 'no partition of relation found for row' USING ERRCODE = 'check_violation', TABLE = 'result_block';
         END $$",
    );
    let refused = world.try_import(&report("c").test("x", "f"));
    assert!(
        matches!(refused, Err(RecordError::Store(StoreError::Failed { .. }))),
        "{refused:?}"
    );
}

#[test]
fn an_absent_database_is_reported_as_unreachable() {
    let options = PoolOptions {
        wait: Duration::from_millis(300),
        ..PoolOptions::default()
    };
    let refused = Database::connect("postgresql://127.0.0.1:1/none", options);
    assert!(matches!(refused, Err(StoreError::Unreachable(_))), "{refused:?}");
    assert!(matches!(
        assay_repository::pending("postgresql://127.0.0.1:1/none"),
        Err(StoreError::Unreachable(_))
    ));
}

#[test]
fn a_statement_that_takes_too_long_fails() {
    let world = World::new();
    let options = PoolOptions {
        size: 1,
        statement_timeout: Duration::from_millis(100),
        ..PoolOptions::default()
    };
    let store = Database::connect(world.database.url(), options).unwrap();
    let mut blocker = world.database.connection();
    diesel::connection::SimpleConnection::batch_execute(
        &mut blocker,
        "BEGIN; LOCK TABLE run IN ACCESS EXCLUSIVE MODE",
    )
    .unwrap();
    let answer = store.runs(&world.project, &run_query());
    assert!(
        matches!(
            answer,
            Err(StoreError::Failed {
                doing: "reading runs",
                ..
            })
        ),
        "{answer:?}"
    );
    drop(blocker);
    store.runs(&world.project, &run_query()).unwrap();
}

#[test]
fn an_unknown_stored_word_is_named_in_the_error() {
    let world = World::new();
    world.import(&report("a").test("x", "p"));
    world.database.execute("UPDATE run SET ci_provider = 'abacus'");
    let page = world.store.runs(&world.project, &run_query()).unwrap();
    let answer = world.store.run(&world.project, page.runs[0].id);
    assert!(
        matches!(&answer, Err(StoreError::Corrupt { what: "CI provider", value }) if value == "abacus"),
        "{answer:?}"
    );
    world.database.execute("UPDATE result_block SET status = '\\x4d'");
    // A list of tests is not lost for a damaged result of one of them.
    let results = world.final_results(&[result_key(0, 1, NOW)]).unwrap();
    assert_eq!(results[0].status, AttemptStatus::Interrupted);
}

#[test]
fn a_report_is_refused_while_the_clocks_of_server_and_postgres_differ() {
    let world = World::new();
    let options = PoolOptions {
        clocks_within: Some(Duration::from_secs(120)),
        ..PoolOptions::default()
    };
    let store = Database::connect(world.database.url(), options).unwrap();
    #[expect(
        clippy::disallowed_methods,
        reason = "the clock of the machine is compared with Postgres"
    )]
    let now = Timestamp::from(time::OffsetDateTime::now_utc());
    let store_at = |seconds: i64| {
        let now = now.plus_ms(seconds * 1_000);
        store.store_under(
            world.project.id,
            &report("a").test("x", "p"),
            RecordingRules::Unrestricted,
            now,
        )
    };
    for (seconds, word) in [
        (600, "s ahead of its database's"),
        (-600, "s behind its database's"),
    ] {
        let refused = store_at(seconds).unwrap_err();
        assert!(
            matches!(refused, RecordError::ClockDiffers { .. }) && refused.to_string().contains(word),
            "{refused}"
        );
    }
    store_at(0).unwrap();
}

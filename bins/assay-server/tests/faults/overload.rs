//! More requests than the server can answer.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use assay_testkit::{PATIENCE, free_address, program, text};
use diesel::connection::SimpleConnection as _;

use crate::{
    quiet,
    raw::{self, Answer, Connection},
    server,
    world::{Report, Source, World},
};

/// The permitted growth of the server's memory in a flood, in megabytes.
const GROWTH_MB: u64 = 300;

#[test]
fn with_a_hanging_database_requests_are_rejected_and_not_queued_without_limit() {
    let _alone = quiet::alone();
    raw::raise_descriptors();
    let mut world = World::new();
    world.import(&Report::whole(1, 10, 60));
    let Source::Shared(database) = &world.database else {
        unreachable!()
    };
    let mut lock = database.connection();
    lock.batch_execute("BEGIN; LOCK TABLE run IN ACCESS EXCLUSIVE MODE")
        .unwrap();

    let before = world.server.megabytes();
    let request = raw::request(&world.path("/runs"), &world.key);
    let answers = raw::run(async {
        let requests = (0..3_000)
            .map(|_| tokio::spawn(request_once(world.server.address().to_owned(), request.clone())));
        let mut answers = Vec::new();
        for requests in requests.collect::<Vec<_>>() {
            answers.push(requests.await.unwrap());
        }
        answers
    });
    // The database itself may have ended the statements of the few requests with a thread.
    let failed = answers.iter().filter(|answer| answer.status == 500).count();
    assert!(failed < 100, "{failed}");
    assert!(
        answers
            .iter()
            .all(|answer| answer.status == 500 || answer.is_rejected())
    );
    let slowest = answers.iter().map(|answer| answer.took).max().unwrap();
    let grown = world.server.megabytes().saturating_sub(before);
    println!("3,000 at once: slowest {slowest:?}, memory grew by {grown} MB");
    assert!(grown < GROWTH_MB, "{grown} MB");

    assert_ne!(world.ask("/runs").status, 200);
    assert!(world.server.is_healthy());

    // All answers arrived while the database still hung.
    lock.batch_execute("ROLLBACK").unwrap();
    let (path, key) = (world.path("/runs"), world.key.clone());
    world.server.until("answering again", |server| {
        server.client().get(&path, Some(&key)).status == 200
    });
}

#[test]
fn hanging_requests_do_not_delay_others_while_a_thread_is_free() {
    let _shared = quiet::shared();
    let mut world = World::new();
    let mut lock = lock_signatures(&mut world, &[]);
    let other = another_key(&world);
    let slow = |key: &str| raw::request(&world.path("/errors"), key);
    let quick = raw::request(&world.path("/branches"), &other);
    raw::run(async {
        let address = || world.server.address().to_owned();
        // One key may use two of the four threads.
        let hanging: Vec<_> = [&world.key, &world.key, &other]
            .map(|key| tokio::spawn(request_once(address(), slow(key))))
            .into_iter()
            .collect();
        wait_for_hanging_statements(&world, 3).await;
        // Eight new connections, so that every worker answers some.
        for _ in 0..8 {
            let answer = request_once(address(), quick.clone()).await;
            assert_eq!(answer.status, 200);
        }
        lock.batch_execute("ROLLBACK").unwrap();
        for request in hanging {
            assert_eq!(request.await.unwrap().status, 200);
        }
    });
}

#[test]
fn a_flood_of_one_keys_slow_requests_leaves_half_of_the_threads_to_other_keys() {
    let _shared = quiet::shared();
    let mut world = World::new();
    let mut lock = lock_signatures(&mut world, &[]);
    let other = another_key(&world);
    let slow = raw::request(&world.path("/errors"), &world.key);
    let quick = raw::request(&world.path("/branches"), &other);
    raw::run(async {
        let address = || world.server.address().to_owned();
        let flood: Vec<_> = (0..400)
            .map(|_| tokio::spawn(request_once(address(), slow.clone())))
            .collect();
        wait_for_hanging_statements(&world, 2).await;
        let quick: Vec<_> = (0..40)
            .map(|_| tokio::spawn(request_once(address(), quick.clone())))
            .collect();
        for quick in quick {
            let answer = quick.await.unwrap();
            assert_eq!(answer.status, 200, "{}", answer.summary());
        }
        assert_eq!(
            statements_waiting_for_lock(&world),
            "2",
            "more than half of the threads"
        );
        lock.batch_execute("ROLLBACK").unwrap();
        for flood in flood {
            let answer = flood.await.unwrap();
            assert!(
                answer.status == 200 || answer.is_rejected(),
                "{}",
                answer.summary()
            );
        }
    });
}

#[test]
fn a_keys_requests_and_its_agents_calls_share_half_of_the_threads() {
    let _shared = quiet::shared();
    let mut world = World::new();
    let front = free_address();
    let mut lock = lock_signatures(&mut world, &[("ASSAY_FRONT_LISTEN", &front)]);
    let call =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_errors","arguments":{}}}"#;
    let call = format!(
        "POST /mcp HTTP/1.1\r\nHost: {front}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{call}",
        world.key,
        call.len()
    );
    let request = raw::request(&world.path("/errors"), &world.key);
    raw::run(async {
        let calls: Vec<_> = (0..10)
            .map(|_| tokio::spawn(request_once(front.clone(), call.clone())))
            .collect();
        wait_for_hanging_statements(&world, 2).await;
        let address = || world.server.address().to_owned();
        let requests: Vec<_> = (0..10)
            .map(|_| tokio::spawn(request_once(address(), request.clone())))
            .collect();
        for request in requests {
            let answer = request.await.unwrap();
            assert!(answer.is_rejected(), "{}", answer.summary());
        }
        assert_eq!(
            statements_waiting_for_lock(&world),
            "2",
            "more than half of the threads"
        );
        lock.batch_execute("ROLLBACK").unwrap();
        for call in calls {
            call.await.unwrap();
        }
    });
}

/// Gives the world a server with four threads that wait for the database and with these further environment variables,
/// and locks the tables of `/errors`.
fn lock_signatures(world: &mut World, further: &[(&str, &str)]) -> diesel::PgConnection {
    world.import(&Report::whole(1, 10, 60));
    let Source::Shared(database) = &world.database else {
        unreachable!()
    };
    let environment = [
        ("ASSAY_DATABASE_URL", database.url()),
        ("ASSAY_WORKERS", "2"),
        ("ASSAY_POOL_SIZE", "5"),
    ];
    let environment = [&environment, further].concat();
    let command = Command::new(program("assay-server"));
    world.server = server::start_with(command, world.folder.path(), &environment);
    let mut lock = database.connection();
    lock.batch_execute("BEGIN; LOCK TABLE signature IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    lock
}

/// The number of statements that wait for a lock.
fn statements_waiting_for_lock(world: &World) -> String {
    let Source::Shared(database) = &world.database else {
        unreachable!()
    };
    let count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    database.text(count).unwrap()
}

async fn wait_for_hanging_statements(world: &World, count: u32) {
    let began = Instant::now();
    while statements_waiting_for_lock(world) != count.to_string() {
        assert!(
            began.elapsed() < PATIENCE,
            "the statements do not wait for the lock"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn another_key(world: &World) -> String {
    text(
        &world
            .cli
            .json(&["key", "create", "--org", "Shop", "--days", "90"])["key"],
    )
}

#[test]
fn a_flood_is_answered_in_time_or_rejected() {
    let _alone = quiet::alone();
    raw::raise_descriptors();
    let mut world = World::new();
    for build in 1..=10 {
        world.import(&Report::whole(build, 300, 600 - i64::from(build)));
    }
    let before = world.server.megabytes();
    let request = raw::request(&world.path("/flaky?explain=true&perPage=50"), &world.key);
    let until = Instant::now() + Duration::from_secs(5);
    let answers = raw::run(async {
        let readers = (0..1_500).map(|_| {
            tokio::spawn(repeat_requests(
                world.server.address().to_owned(),
                request.clone(),
                until,
            ))
        });
        let readers: Vec<_> = readers.collect();
        let healthy = tokio::task::spawn_blocking({
            let admin = world.server.admin().clone();
            move || {
                while Instant::now() < until {
                    assert_eq!(admin.get("/healthz", None).status, 200);
                }
            }
        });
        let mut answers = Vec::new();
        for reader in readers {
            answers.extend(reader.await.unwrap());
        }
        healthy.await.unwrap();
        answers
    });
    let over = Instant::now();
    assert_eq!(world.ask("/flaky").status, 200, "it recovers at once");
    println!("recovered after {:?}", over.elapsed());

    let (admitted, rejected): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert!(!admitted.is_empty());
    assert!(rejected.iter().all(|answer| answer.is_rejected()));
    let mut took: Vec<_> = admitted.iter().map(|answer| answer.took).collect();
    took.sort_unstable();
    let (median, slowest) = (took[took.len() / 2], took[took.len() - 1]);
    let grown = world.server.megabytes().saturating_sub(before);
    println!(
        "{} admitted (median {median:?}, slowest {slowest:?}), {} rejected, memory grew by {grown} MB",
        admitted.len(),
        rejected.len()
    );
    assert!(grown < GROWTH_MB, "{grown} MB");
    assert!(world.server.lives());
}

/// One request on a new connection, which must be answered.
async fn request_once(address: String, request: String) -> Answer {
    let mut connection = Connection::open(&address).await.unwrap();
    let answer = tokio::time::timeout(PATIENCE, connection.ask(&request)).await;
    answer.expect("an answer in time").unwrap().expect("an answer")
}

/// One request after the other on one connection.
async fn repeat_requests(address: String, request: String, until: Instant) -> Vec<Answer> {
    let mut connection = Connection::open(&address).await.unwrap();
    let mut answers = Vec::new();
    while Instant::now() < until {
        let answer = tokio::time::timeout(PATIENCE, connection.ask(&request)).await;
        let mut answer = answer.expect("an answer in time").unwrap().expect("an answer");
        if answer.status == 200 {
            // Checked only for rejections.
            answer.response.body = Vec::new();
        }
        answers.push(answer);
    }
    answers
}

//! A server with 512 MB of memory, and keys that request as much as permitted and read as slowly as permitted.

use std::{
    fs,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use assay_testkit::{Client, Server, TestDatabase, insert_results, program, text};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpSocket,
    time::sleep,
};

use crate::{
    quiet, raw, server,
    world::{Source, World},
};

/// The largest resident memory in megabytes. A container or a unit with this limit counts resident memory. A limit of
/// the process would count addresses, and the allocator keeps addresses whose memory it has given back.
const MEMORY: u64 = 512;
/// The duration of the four keys' load.
const LOAD_DURATION: Duration = Duration::from_secs(25);
/// The number of answers that each key requests and reads slowly. With the quick requests, a key stays within 60
/// requests a minute.
const SLOW_READERS_PER_KEY: usize = 35;

#[test]
fn four_keys_within_their_limits_do_not_stop_a_small_server_or_delay_a_fifth() {
    let _alone = quiet::alone();
    let mut world = World::new();
    let Source::Shared(database) = &world.database else {
        panic!("it is made so")
    };
    fill(database, &world.project);
    let environment = [
        ("ASSAY_DATABASE_URL", database.url()),
        ("ASSAY_RATE_LIMIT", "60"),
        ("ASSAY_POOL_SIZE", "9"),
    ];
    let run = database
        .text("SELECT id::text FROM run WHERE number = 1")
        .unwrap();
    let retried = database
        .text("SELECT id::text FROM run WHERE number = 8")
        .unwrap();
    let fingerprint = database.text("SELECT md5('0')").unwrap();
    let large = [
        format!("/runs/{run}"),
        format!("/errors/{fingerprint}?days=7"),
        format!("/runs/{retried}/tests/test%200"),
        "/tests/test%2060000?days=7".to_owned(),
        "/branches".to_owned(),
        "/errors?search=no%20such%20text&days=7&sort=firstSeen".to_owned(),
    ]
    .map(|below| world.path(&below));
    let command = Command::new(program("assay-server"));
    world.server = server::start_with(command, world.folder.path(), &environment);
    println!(
        "idle: {} MB resident, {} MB at most",
        world.server.megabytes(),
        peak(&world.server)
    );
    let keys: Vec<String> = (0..4)
        .map(|_| {
            text(
                &world
                    .cli
                    .json(&["key", "create", "--org", "Shop", "--days", "90"])["key"],
            )
        })
        .collect();

    // Later, the slow readers may hold a key's whole share of the memory, so that all its other requests are rejected.
    for key in &keys {
        let answer = world.server.client().get(&world.path("/branches"), Some(key));
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    let over = Arc::new(AtomicBool::new(false));
    let quick: Vec<_> = keys
        .iter()
        .enumerate()
        .map(|(number, key)| {
            let (client, key, over) = (world.server.client().clone(), key.clone(), over.clone());
            let paths: Vec<String> = large.iter().cycle().skip(number).take(20).cloned().collect();
            thread::spawn(move || quick_reader(&client, &key, &paths, &over))
        })
        .collect();
    let slow = {
        let (address, keys, paths) = (world.server.address().to_owned(), keys.clone(), large.clone());
        thread::spawn(move || raw::run(slow_readers(&address, &keys, &paths)))
    };
    let tries = cheap_requests(&world);
    over.store(true, Ordering::Relaxed);
    let statuses: Vec<u16> = quick
        .into_iter()
        .flat_map(|reader| reader.join().unwrap())
        .collect();
    let taken = slow.join().unwrap();
    assert!(world.server.lives());
    let peak = peak(&world.server);
    println!(
        "peak {peak} MB; {taken} bytes taken slowly; quick readers saw {statuses:?}; the fifth key's tries: {tries:?}"
    );
    assert!(peak <= MEMORY, "{peak} MB");
    assert!(taken > 0 && !statuses.is_empty(), "{taken} {statuses:?}");
    assert!(
        statuses.iter().all(|status| [200, 503].contains(status)),
        "{statuses:?}"
    );
}

/// The peak resident memory in megabytes.
fn peak(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1_024
}

/// Reads one answer after the other at full speed.
fn quick_reader(client: &Client, key: &str, paths: &[String], over: &AtomicBool) -> Vec<u16> {
    let mut statuses = Vec::new();
    for path in paths {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let header = format!("Bearer {key}");
        // An answer that has begun may end early if the server was too busy to continue it.
        if let Ok(answer) = client.try_get(path, &[("authorization", &header)]) {
            statuses.push(answer.status);
        }
    }
    statuses
}

/// Requests all large answers with all keys at once, and reads a kilobyte of each twice a second. Returns the bytes
/// read.
async fn slow_readers(address: &str, keys: &[String], paths: &[String]) -> usize {
    let address = address.parse().unwrap();
    let mut readers = Vec::new();
    for key in keys {
        for path in paths.iter().cycle().take(SLOW_READERS_PER_KEY) {
            let request = raw::request(path, key);
            readers.push(tokio::spawn(async move {
                let socket = TcpSocket::new_v4().unwrap();
                socket.set_recv_buffer_size(4_096).unwrap();
                let mut stream = socket.connect(address).await.unwrap();
                stream.write_all(request.as_bytes()).await.unwrap();
                let (began, mut taken, mut drop) = (Instant::now(), 0, [0; 1_024]);
                while began.elapsed() < LOAD_DURATION {
                    match stream.read(&mut drop).await {
                        Ok(bytes) if bytes > 0 => taken += bytes,
                        Ok(_) | Err(_) => break,
                    }
                    sleep(Duration::from_millis(500)).await;
                }
                taken
            }));
        }
    }
    let mut taken = 0;
    for reader in readers {
        taken += reader.await.unwrap();
    }
    taken
}

/// Makes cheap requests with a fifth key, each of which must succeed, and returns the number of attempts of each.
/// A rejected request is repeated a second later, as the API's rules require.
fn cheap_requests(world: &World) -> Vec<u64> {
    let began = Instant::now();
    let mut tries = Vec::new();
    let paths = ["/runs", "/settings", "/tests/test%201/status"].map(|below| world.path(below));
    for path in paths.iter().cycle() {
        if began.elapsed() >= LOAD_DURATION {
            break;
        }
        let mut tried = 1;
        loop {
            let answer = world.server.client().get(path, Some(&world.key));
            if answer.status == 200 {
                break;
            }
            // On a busy machine, the attempts may last as many seconds as the load.
            assert!(
                answer.status == 503 && tried < LOAD_DURATION.as_secs(),
                "{path}: {}",
                answer.text()
            );
            tried += 1;
            thread::sleep(Duration::from_secs(1));
        }
        tries.push(tried);
        thread::sleep(Duration::from_millis(700));
    }
    tries
}

/// Stores large answers: a run of 60,000 failures with messages of 16 kB, 1,000 attempts of 320 kB, and 30,000 runs of
/// one test. Stores 50,000 branches, a signature with 390,000 occurrences, and 30,000 signatures with one.
fn fill(database: &TestDatabase, project: &str) {
    let results = insert_results(
        "SELECT project_id, started_at, 5, number, test, NULL, 0, 1, 0, 1 FROM run, generate_series(0, 59999) AS test \
         WHERE number <= 7 UNION ALL \
         SELECT project_id, started_at, 5, number, CASE WHEN number = 8 THEN 0 ELSE 60000 END, NULL, 0, \
             CASE WHEN number = 8 THEN 1000 ELSE 0 END, 0, 1 FROM run WHERE number > 7",
    );
    database.execute(&format!(
        "SELECT assay_create_partition(now() - day * interval '1 day', now()) FROM generate_series(0, 8) AS day;
         UPDATE project SET runs = 30008, tests = 60001, signatures = 30001 WHERE id = '{project}';
         INSERT INTO test (project_id, ordinal, name, file_path, name_hash, file_hash) \
             SELECT '{project}', n, name, file, substring(sha256(convert_to(name, 'UTF8')) FOR 16), \
                 substring(sha256(convert_to(file, 'UTF8')) FOR 16) \
             FROM generate_series(0, 60000) AS n, LATERAL (SELECT 'test ' || n, 'file' || n % 500 || '.ts') AS of (name, file);
         INSERT INTO signature (project_id, ordinal, fingerprint, version, title, category) \
             SELECT '{project}', n, md5(n::text), 1, 'Title ' || n, 'assertion' FROM generate_series(0, 30000) AS n;
         INSERT INTO branch (project_id, name, newest) \
             SELECT '{project}', repeat('b', 400) || n, now() FROM generate_series(1, 50000) AS n;
         INSERT INTO run (project_id, number, id, key_hash, sharded, branch, status, started_at, shards_received, total, \
                 passed, failed, skipped, recovered) \
             SELECT '{project}', n, gen_random_uuid(), sha256(convert_to(n::text, 'UTF8')), false, 'main', 'failed', \
                 date_trunc('second', now()) - n * interval '10 seconds', 1, 60000, 0, 60000, 0, 0 \
             FROM generate_series(1, 30008) AS n;
         INSERT INTO part (project_id, run_number, number, id, shard_id, content, state, status, started_at, report_errors) \
             SELECT project_id, number, 0, id, id, '\\x00', 'completed', 'failed', started_at, '[]' FROM run WHERE number <= 8;
         {results}
         INSERT INTO attempt (project_id, started_at, occurred_at, duration_ms, run_number, test, browser, signature, place, \
                 retry, part, status, timed, message) \
             SELECT project_id, started_at, started_at, 5, number, test, 0, \
                 CASE WHEN number = 1 AND test < 30000 THEN test + 1 ELSE 0 END, 0, 0, 0, 1, false, \
                 CASE WHEN number = 1 THEN repeat(md5(test::text) || ' ', 485) ELSE 'it broke' END \
             FROM run, generate_series(0, 59999) AS test WHERE number <= 7;
         INSERT INTO attempt (project_id, started_at, occurred_at, duration_ms, run_number, test, browser, signature, place, \
                 retry, part, status, timed, message, texts, texts_place, is_final) \
             SELECT project_id, started_at, started_at, 5, number, 0, 0, 0, retry, retry, 0, 1, false, 'it broke', \
                 retry, 1, retry = 999 \
             FROM run, generate_series(0, 999) AS retry WHERE number = 8;
         INSERT INTO attempt_texts (project_id, started_at, run_number, part, number, errors) \
             SELECT project_id, started_at, number, 0, retry, ARRAY[(\
                 SELECT jsonb_agg(jsonb_build_object('message', repeat(md5(n::text) || E'\\n', 485))) \
                     FROM generate_series(1, 20) AS n)] \
             FROM run, generate_series(0, 999) AS retry WHERE number = 8;
         ANALYZE"
    ));
}

//! Generated requests to all routes. Each answer is checked against the contract.
//!
//! A seed determines the requests. `ASSAY_FUZZ_REQUESTS` sets their number, `ASSAY_FUZZ_SEED` the seed.

use std::{
    collections::BTreeMap,
    env,
    io::Write,
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use assay_testkit::{
    Response, Server, TestDatabase,
    wire::{self, PersistentConnection},
};

use crate::{contract::Contract, generator::Generator, world::World};

/// The number of requests by default.
const REQUESTS: u64 = 5_000;
/// The percentage of them that is not valid HTTP.
const NOISE: u64 = 6;
const THREADS: u64 = 2;

/// The number of answers of each kind.
type Counts = BTreeMap<String, u64>;

#[test]
fn every_request_gets_a_documented_answer() {
    let requests = number("ASSAY_FUZZ_REQUESTS").unwrap_or(REQUESTS);
    let seed = number("ASSAY_FUZZ_SEED").unwrap_or(20_261_121);
    let world = World::new();
    let contract = Contract::read();
    let results: Vec<_> = thread::scope(|scope| {
        let part = |place| {
            let (world, contract) = (&world, &contract);
            scope.spawn(move || send_requests(world, contract, seed ^ (place << 32), requests / THREADS))
        };
        let parts: Vec<_> = (0..THREADS).map(part).collect();
        parts.into_iter().map(|part| part.join().unwrap()).collect()
    });
    let mut counts = Counts::new();
    let mut wrong = Vec::new();
    for (part, failures) in results {
        part.into_iter()
            .for_each(|(kind, count)| *counts.entry(kind).or_default() += count);
        wrong.extend(failures);
    }
    let log = world.server.log();
    let is_known_panic = |line: &&str| line.contains("/actix-http-") && line.contains("/src/h1/decoder.rs:");
    for word in [" ERROR ", "panic"] {
        let lines = log
            .lines()
            .filter(|line| line.contains(word) && !is_known_panic(line));
        wrong.extend(lines.take(5).map(str::to_owned));
    }
    *counts
        .entry("panics over a header's name".to_owned())
        .or_default() += log.lines().filter(is_known_panic).count() as u64;
    // Written directly, because the test harness hides the output of passing tests.
    let _written = writeln!(std::io::stderr(), "{requests} requests, seed {seed}: {counts:#?}");
    assert!(
        wrong.is_empty(),
        "{} of seed {seed} went wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    let health = world.server.admin().get("/readyz", None);
    assert_eq!(health.status, 200, "after all that");
}

/// The HTTP parser panics on such a name. Other connections must not be affected.
#[test]
fn a_header_name_of_any_length_ends_its_own_connection_only() {
    let database = TestDatabase::new();
    let server = Server::start_with(database.url(), &[("ASSAY_RATE_LIMIT", "0"), ("RUST_LOG", "warn")]);
    let address = server.client().address();
    let request = b"GET /api/v1/projects HTTP/1.1\r\nHost: a\r\n\r\n";
    let ask = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request).unwrap();
        wire::read(stream, &mut Vec::new(), false).is_some_and(|answer| answer.status == 401)
    };
    for length in [65_534, 65_535, 65_536, 65_537, 100_000] {
        let attack = format!("GET / HTTP/1.1\r\nHost: a\r\n{}: x\r\n\r\n", "a".repeat(length));
        loop {
            let began = Instant::now();
            // There are more connections than workers, so that each worker has some.
            let mut others: Vec<_> = (0..16).map(|_| TcpStream::connect(address).unwrap()).collect();
            assert!(others.iter_mut().all(ask));
            wire::send(address, attack.as_bytes(), false);
            let answered = others.iter_mut().all(ask);
            // On a very slow machine the server may have closed them as idle.
            if began.elapsed() < Duration::from_secs(3) || answered {
                assert!(answered, "another's connection ended");
                break;
            }
        }
    }
    let log = server.log();
    assert!(!log.contains(" ERROR ") && log.contains(" WARN "), "{log}");
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is no number: {text}")),
    )
}

/// Sends this many requests. Counts the answers and returns the first few errors.
fn send_requests(world: &World, contract: &Contract, seed: u64, requests: u64) -> (Counts, Vec<String>) {
    let mut generator = Generator::new(seed, contract, world);
    let mut connection = PersistentConnection::new(world.address);
    let (mut counts, mut wrong) = (Counts::new(), Vec::new());
    for place in 0..requests {
        let (request, answer, is_head) = if place % 100 < NOISE {
            let noise = generator.noise();
            let is_head = noise.starts_with(b"HEAD ");
            let answer = wire::send(world.address, &noise, is_head);
            (noise, answer, is_head)
        } else {
            let draft = generator.draft();
            let answer = connection.send(&draft.bytes(), draft.is_head());
            (draft.bytes(), answer, draft.is_head())
        };
        let judged = match connection.unread().is_empty() {
            true => sound(contract, answer.as_ref(), is_head),
            false => Err("more than one answer".to_owned()),
        };
        let judged = judged.map_err(|why| {
            let mut request = request.escape_ascii().to_string();
            request.truncate(2_000);
            format!("{why}: {} to {request}", describe(answer.as_ref()))
        });
        match judged {
            Ok(kind) => *counts.entry(kind).or_default() += 1,
            Err(failure) if wrong.len() < 20 => wrong.push(failure),
            Err(_) => {}
        }
    }
    (counts, wrong)
}

fn describe(answer: Option<&Response>) -> String {
    answer.map_or_else(|| "no answer".to_owned(), Response::summary)
}

/// Checks any answer against the contract.
fn sound(contract: &Contract, answer: Option<&Response>, is_head: bool) -> Result<String, String> {
    let Some(answer) = answer else {
        return Ok("closed".to_owned());
    };
    match answer.status {
        200 | 304 => {
            let fits = |operation| contract.success(operation, answer, is_head).is_ok();
            let fits = contract.operations.iter().any(fits);
            if fits {
                Ok(answer.status.to_string())
            } else {
                Err("a success of no operation".to_owned())
            }
        }
        400 | 401 | 403 | 404 | 405 | 408 | 431 => {
            contract.refusal(answer, is_head)?;
            Ok(format!("{} {}", answer.status, answer.code()))
        }
        _ => Err("another status".to_owned()),
    }
}

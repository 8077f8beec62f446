//! Generated uploads: each gets a documented answer, and the log contains no key and no body.

use assay_testkit::assert_contains;
use std::{collections::BTreeMap, io::Write as _, net::Shutdown, sync::Mutex, thread};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::Value;

use crate::{
    ingest::{FAILS, IngestServer, PASSES, form, of_form},
    ingest_described::document,
    ingest_protection::exchange,
};

/// The number of requests. `ASSAY_FUZZ_REQUESTS` sets it, and `ASSAY_FUZZ_SEED` sets the seed.
const REQUESTS: u64 = 1_500;

#[test]
fn generated_requests_get_a_documented_answer_and_do_not_appear_in_the_log() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seed = number("ASSAY_FUZZ_SEED").unwrap_or(1);
    let requests = number("ASSAY_FUZZ_REQUESTS").unwrap_or(REQUESTS);
    let document = document();
    let responses = &document["paths"]["/reports"]["post"]["responses"];
    let codes = |status: &str| {
        responses[status]["x-codes"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let ingest = IngestServer::with(&[
        ("ASSAY_INGEST_RATE_LIMIT", "0"),
        ("ASSAY_INGEST_UNPACKED_MIB", "8"),
        ("RUST_LOG", "debug"),
    ]);
    let counts = Mutex::new(BTreeMap::<String, u64>::new());
    thread::scope(|scope| {
        for thread in 0..2 {
            let (ingest, counts, codes) = (&ingest, &counts, &codes);
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(seed ^ (thread << 32));
                for place in 0..requests / 2 {
                    let request = generated_upload(&mut random, ingest);
                    let answer = exchange(ingest.server.ingest(), "", |stream| {
                        let _ = stream.write_all(&request.bytes);
                        if request.is_cut {
                            let _ = stream.shutdown(Shutdown::Write);
                        }
                    });
                    // A connection that is cut off may end without an answer.
                    let status = answer.get(9..12).unwrap_or("none").to_owned();
                    let body = answer.rsplit("\r\n\r\n").next().unwrap_or_default();
                    let code =
                        serde_json::from_str::<Value>(body).map_or(Value::Null, |body| body["code"].clone());
                    let is_described = match status.as_str() {
                        "200" | "201" => true,
                        // Bytes that are not HTTP.
                        "400" | "431" if code.is_null() => true,
                        "none" => request.is_cut,
                        "500" => false,
                        status => codes(status).contains(&code),
                    };
                    assert!(
                        is_described,
                        "request {place} of seed {seed}, thread {thread}: {answer:?} to {}",
                        request.bytes.escape_ascii()
                    );
                    *counts
                        .lock()
                        .unwrap()
                        .entry(format!("{status} {code}"))
                        .or_default() += 1;
                }
            });
        }
    });
    let counts = counts.into_inner().unwrap();
    for expected in ["201", "200", "400", "401", "404", "405", "415", "422"] {
        assert!(
            counts.keys().any(|kind| kind.starts_with(expected)),
            "no {expected}: {counts:?}"
        );
    }
    let log = ingest.server.log();
    assert!(!log.contains("panic") && !log.contains(" ERROR "), "{log}");
    for secret in [ingest.key.as_str(), &ingest.read_key, "testcase", "made-up"] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
    let fields = [("runKey", "afterwards")];
    let answer = ingest.send(&ingest.key, &fields, &[("r.xml", PASSES.as_bytes())]);
    assert_eq!(answer.status, 201, "{}", answer.text());
    let metrics = ingest.server.admin().get("/metrics", None).text();
    assert_contains(&metrics, "assay_ingest_memory_reserved_bytes 0");
}

/// A request, possibly cut off.
struct GeneratedRequest {
    bytes: Vec<u8>,
    is_cut: bool,
}

/// An upload with a few errors or none.
fn generated_upload(random: &mut StdRng, ingest: &IngestServer) -> GeneratedRequest {
    const VALUES: [&str; 12] = [
        "main",
        "",
        "2/3",
        "0/0",
        "true",
        "-1",
        "7",
        "2026-13-01T00:00:00Z",
        "{}",
        "{\"job\": 1}",
        "\u{202e}made-up",
        "a\0b",
    ];
    const NAMES: [&str; 12] = [
        "branch",
        "shard",
        "ci",
        "startedAt",
        "dryRun",
        "runKey",
        "message",
        "brnach",
        "knownFiles",
        "root",
        "format",
        "",
    ];
    const FILES: [&str; 6] = ["r.xml", "a/b.json", "../r.xml", "/r.xml", "", "made-up\u{7}.xml"];
    let mut of = |choices: &[&str]| choices[random.random_range(0..choices.len())].to_owned();
    let mut fields: Vec<(String, String)> = (0..4).map(|_| (of(&NAMES), of(&VALUES))).collect();
    let file = of(&FILES);
    let report = of(&[
        PASSES,
        FAILS,
        "{\"config\": {}, \"suites\": []}",
        "TAP version 13\n1..1\nok 1 - a\n",
        "",
    ]);
    fields.truncate(random.random_range(0..5));
    let mut report = report.into_bytes();
    if random.random_bool(0.5) {
        mutate(random, &mut report);
    }
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let is_form = random.random_bool(0.7);
    let mut body = match is_form {
        true => form(&fields, &[(&file, &report)]),
        false => report,
    };
    if random.random_bool(0.2) {
        mutate(random, &mut body);
    }
    let coding = match random.random_range(0..10) {
        0 => "Content-Encoding: gzip\r\n",
        1 => "Content-Encoding: br\r\n",
        2 => {
            body = zstd::encode_all(body.as_slice(), 1).unwrap();
            if random.random_bool(0.5) {
                mutate(random, &mut body);
            }
            "Content-Encoding: zstd\r\n"
        }
        _ => "",
    };
    let media = match is_form {
        true => format!("Content-Type: {}\r\n", of_form()),
        false => String::new(),
    };
    let key = match random.random_range(0..20) {
        0 => "svc_made-up",
        1 => &ingest.read_key,
        _ => &ingest.key,
    };
    let method = if random.random_bool(0.05) { "PUT" } else { "POST" };
    let path = match random.random_range(0..20) {
        0 => "/ingest/v1/report".to_owned(),
        1..=6 if !is_form => format!(
            "/ingest/v1/reports?branch=%{:02x}&shard=1/{}",
            random.random_range(0..256),
            random.random_range(0..3)
        ),
        _ => "/ingest/v1/reports".to_owned(),
    };
    let is_cut = random.random_bool(0.05);
    let length = body.len() + usize::from(is_cut) * 100;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n{media}{coding}Content-Length: {length}\r\n\r\n"
    );
    GeneratedRequest {
        bytes: [head.into_bytes(), body].concat(),
        is_cut,
    }
}

/// Changes, removes or repeats a few bytes.
fn mutate(random: &mut StdRng, bytes: &mut Vec<u8>) {
    for _ in 0..random.random_range(1..6) {
        if bytes.is_empty() {
            return;
        }
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..4) {
            0 => bytes[at] = random.random(),
            1 => bytes.truncate(at),
            2 => drop(bytes.remove(at)),
            _ => {
                let end = (at + random.random_range(1..200)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
}

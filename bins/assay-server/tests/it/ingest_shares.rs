//! What a key may take: its share of the server at a time, and its budget of a day.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use assay_domain::ingest::IngestTerms;
use assay_testkit::{Response, Server, assert_contains, wait_until};

use crate::ingest::{self, FAILS, IngestServer, PASSES, assert_refused};

const PUBLIC: IngestTerms = IngestTerms {
    name: None,
    expires_at: None,
    backfill: false,
    pull_requests_only: true,
    trust: None,
};

/// A report whose tests share a long name.
fn large_report() -> String {
    let suite = "😀".repeat(1_000);
    let cases: String = (0..300)
        .map(|number| format!("<testcase name='{number}'/>"))
        .collect();
    format!("<testsuite name='{suite}'>{cases}</testsuite>")
}

#[test]
fn a_public_key_with_many_connections_delays_no_other_key() {
    let ingest = IngestServer::with(&[
        ("ASSAY_INGEST_MEMORY_MIB", "16"),
        ("ASSAY_INGEST_SPOOL_MIB", "1"),
        ("ASSAY_INGEST_WAITING", "9"),
        ("ASSAY_INGEST_RATE_LIMIT", "0"),
        ("ASSAY_INGEST_PUBLIC_DAY_TESTS", "0"),
        ("ASSAY_INGEST_PUBLIC_DAY_MIB", "0"),
    ]);
    let public = ingest.new_key(&PUBLIC);
    let foreign = ingest.foreign_key();
    let large = large_report();
    for connections in [8, 60] {
        let (is_over, sent, refused) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for connection in 0..connections {
                let (ingest, public, large) = (&ingest, &public, &large);
                let (is_over, sent, refused) = (&is_over, &sent, &refused);
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        let number = sent.fetch_add(1, Ordering::Relaxed);
                        let run_key = format!("public-{connections}-{connection}-{number}");
                        let fields = [
                            ("runKey", run_key.as_str()),
                            ("pullRequest", "7"),
                            ("branch", "topic"),
                        ];
                        let answer = ingest.send(public, &fields, &[("r.xml", large.as_bytes())]);
                        assert!([201, 503].contains(&answer.status), "{}", answer.text());
                        refused.fetch_add(usize::from(answer.status == 503), Ordering::Relaxed);
                    }
                });
            }
            wait_until("the public key sends", || {
                sent.load(Ordering::Relaxed) >= connections
            });
            let answers: Vec<Response> = (0..6)
                .map(|number| {
                    let run_key = format!("trusted-{connections}-{number}");
                    let key = if number % 2 == 0 { &ingest.key } else { &foreign };
                    ingest.send(
                        key,
                        &[("runKey", &run_key), ("branch", "main")],
                        &[("r.xml", PASSES.as_bytes())],
                    )
                })
                .collect();
            is_over.store(true, Ordering::Relaxed);
            for answer in answers {
                assert_eq!(answer.status, 201, "{connections}: {}", answer.text());
            }
        });
        println!(
            "{connections} connections: {} of {} public uploads refused",
            refused.into_inner(),
            sent.into_inner()
        );
    }
}

#[test]
fn a_key_stores_what_its_budget_of_a_day_permits_on_all_servers() {
    let environment = [("ASSAY_INGEST_PUBLIC_DAY_TESTS", "2"), ("ASSAY_RATE_LIMIT", "0")];
    let ingest = IngestServer::with(&environment);
    let second = Server::start_with_ingest(ingest.database.url(), &environment);
    let public = ingest.new_key(&PUBLIC);
    let send = |server: &Server, key: &str, run_key: &str, report: &str| {
        let fields = [("runKey", run_key), ("pullRequest", "7"), ("branch", "topic")];
        ingest::send(server, key, &fields, &[("r.xml", report.as_bytes())])
    };
    for (run_key, report, status) in [("a", PASSES, 201), ("a", PASSES, 200), ("b", FAILS, 201)] {
        let answer = send(&ingest.server, &public, run_key, report);
        assert_eq!(answer.status, status, "{run_key}: {}", answer.text());
    }
    for server in [&ingest.server, &second] {
        let refused = send(server, &public, "c", PASSES);
        assert_refused(&refused, 429, "budget_exceeded");
        assert!(
            refused.text().contains("more than 2 tests today"),
            "{}",
            refused.text()
        );
        let after: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=86_400).contains(&after), "{after}");
    }
    // What is stored already is still accepted, and other keys have their own budget.
    assert_eq!(send(&second, &public, "b", FAILS).status, 200);
    assert_eq!(send(&second, &ingest.key, "c", PASSES).status, 201);

    let listed = ingest.cli.json(&["uploads", "--project", "web"]);
    let today = listed["today"].as_array().unwrap();
    let tests: Vec<u64> = today.iter().map(|day| day["tests"].as_u64().unwrap()).collect();
    assert_eq!(tests, [2, 1], "{today:?}");
    let bytes = u64::try_from(PASSES.len() + FAILS.len()).unwrap();
    assert_eq!(today[0]["bytes"], bytes);
    let metrics = second.admin().get("/metrics", None).text();
    assert_contains(&metrics, "assay_ingest_uploads_over_budget_total 1");
}

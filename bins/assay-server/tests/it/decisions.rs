//! Decisions of gates on uploads, sent to the real server.

use assay_domain::ingest::IngestTerms;
use assay_testkit::{Response, text};
use serde_json::{Value, json};

use crate::{
    ingest::{FAILS, IngestServer, PASSES, assert_refused, code, now},
    ingest_described::{assert_conforms, document},
    ingest_terms::send_after,
};

const PATH: &str = "/ingest/v1/decisions";

/// Stores a report with a failed test; returns the answer.
fn failed_run(ingest: &IngestServer, key: &str, run_key: &str) -> Value {
    let fields = [
        ("branch", "feature/tax"),
        ("commit", "f1"),
        ("pullRequest", "7"),
        ("runKey", run_key),
    ];
    let answer = ingest.send(key, &fields, &[("r.xml", FAILS.as_bytes())]);
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()
}

fn excused() -> Value {
    json!({
        "testName": "cart > pays", "filePath": "cart.test.ts", "cause": "flake", "mine": 0.01,
        "reason": "Failed in 4 of 120 runs on good code",
    })
}

/// A decision that excuses the only failed test of a run.
fn decision(run: &Value) -> Value {
    json!({
        "runId": run["runId"], "shardId": run["shardId"], "outcome": "excused", "failed": 1, "excused": [excused()],
    })
}

fn send(ingest: &IngestServer, key: &str, decision: &Value) -> Response {
    let headers = [("Content-Type", "application/json")];
    ingest.post(PATH, key, &headers, decision.to_string().as_bytes())
}

fn stored(ingest: &IngestServer) -> Vec<Option<String>> {
    ingest
        .database
        .texts("SELECT decision->>'outcome' FROM upload WHERE decision IS NOT NULL ORDER BY at")
}

#[test]
fn a_decision_is_stored_once_and_replaced_by_another_one() {
    let ingest = IngestServer::new();
    let document = document();
    let operation = &document["paths"]["/decisions"]["post"];
    let run = failed_run(&ingest, &ingest.key, "build-1");
    let name = ingest.read(&format!("/runs/{}", text(&run["runId"])))["tests"][0]["testName"].clone();
    assert_eq!(name, excused()["testName"]);
    let first = send(&ingest, &ingest.key, &decision(&run));
    assert_eq!(first.status, 201, "{}", first.text());
    assert_conforms(&document, operation, &first, "a new decision");
    assert_eq!(
        first.json(),
        json!({
            "project": {"id": ingest.project, "name": "web"}, "runId": run["runId"], "runNumber": 1, "effect": "added",
        })
    );
    let again = send(&ingest, &ingest.key, &decision(&run));
    assert_conforms(&document, operation, &again, "the same decision");
    assert_eq!(
        (again.status, &again.json()["effect"]),
        (200, &"unchanged".into())
    );
    // Fields that a later client adds are ignored, and the body may be compressed.
    let mut later = decision(&run);
    (later["outcome"], later["excused"], later["later"]) = ("rerun".into(), json!([]), 1.into());
    let body = zstd::encode_all(later.to_string().as_bytes(), 1).unwrap();
    let later = ingest.post(PATH, &ingest.key, &[("Content-Encoding", "zstd")], &body);
    assert_eq!(
        (later.status, &later.json()["effect"]),
        (201, &"replaced".into()),
        "{}",
        later.text()
    );
    assert_eq!(stored(&ingest), [Some("rerun".to_owned())]);
    let mut failures = ingest.read(&format!("/runs/{}/failures", text(&run["runId"])));
    let decisions = failures["decisions"].take();
    let (shard, outcome) = (&decisions[0]["shard"], &decisions[0]["outcome"]);
    assert_eq!((shard, outcome), (&Value::Null, &json!("rerun")), "{decisions}");
    // The judgement is the same with and without a decision.
    assert!(!failures.to_string().contains("excused"), "{failures}");
}

#[test]
fn only_a_key_that_may_change_the_run_decides_on_it() {
    let ingest = IngestServer::new();
    let document = document();
    let operation = &document["paths"]["/decisions"]["post"];
    let foreign = ingest.foreign_key();
    let of_forks = ingest.new_key(&IngestTerms {
        pull_requests_only: true,
        ..IngestTerms::default()
    });
    let expired = ingest.new_key(&IngestTerms {
        expires_at: Some(now().plus_days(-1)),
        ..IngestTerms::default()
    });
    let run = failed_run(&ingest, &ingest.key, "build-1");
    let of_fork = failed_run(&ingest, &of_forks, "build-2");
    let absent = "019aa3f4-5b1c-7def-8a3b-000000000812";
    let unknown = json!({"runId": absent, "outcome": "excused", "failed": 1, "excused": [excused()]});
    for (key, decision, status, expected) in [
        ("", decision(&run), 401, "missing_key"),
        ("svc_nonsense", decision(&run), 401, "invalid_key"),
        (&ingest.read_key, decision(&run), 401, "wrong_key_type"),
        (&expired, decision(&run), 401, "key_expired"),
        (&foreign, decision(&run), 404, "unknown_run"),
        (&ingest.key, unknown.clone(), 404, "unknown_run"),
        (&of_forks, decision(&run), 403, "branch_not_allowed"),
    ] {
        let answer = send(&ingest, key, &decision);
        assert_eq!(
            (answer.status, code(&answer).as_str()),
            (status, expected),
            "{}",
            answer.text()
        );
        assert_conforms(&document, operation, &answer, expected);
    }
    let theirs = send(&ingest, &foreign, &decision(&run));
    let absent = send(&ingest, &foreign, &unknown);
    assert_eq!(theirs.text(), absent.text(), "a foreign run is an absent one");
    assert_eq!(stored(&ingest), []);

    assert_eq!(send(&ingest, &of_forks, &decision(&of_fork)).status, 201);
    assert_eq!(send(&ingest, &ingest.key, &decision(&run)).status, 201);
    assert_eq!(stored(&ingest).len(), 2);
    let log = ingest.server.log();
    for secret in [
        ingest.key.as_str(),
        &of_forks,
        &foreign,
        "cart > pays",
        "on good code",
    ] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

#[test]
fn a_decision_that_does_not_fit_is_refused_by_name() {
    let ingest = IngestServer::new();
    let document = document();
    let operation = &document["paths"]["/decisions"]["post"];
    let run = failed_run(&ingest, &ingest.key, "build-1");
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut changed = decision(&run);
        change(&mut changed);
        changed.to_string()
    };
    let many: Value = vec![excused(); 201].into();
    for (body, named) in [
        (String::new(), "the body"),
        ("[".to_owned(), "the body"),
        (
            changed(&|decision| decision["runId"] = "seven".into()),
            "the body",
        ),
        (
            changed(&|decision| decision["outcome"] = "mine".into()),
            "clean, excused, rerun, blocked",
        ),
        (
            changed(&|decision| decision["outcome"] = "clean".into()),
            "failed",
        ),
        (changed(&|decision| decision["failed"] = 2.into()), "excused"),
        (
            changed(&|decision| decision["excused"][0]["mine"] = 2.into()),
            "mine",
        ),
        (
            changed(&|decision| decision["excused"][0]["reason"] = "x".repeat(1_001).into()),
            "reason",
        ),
        (
            changed(&|decision| {
                decision["failed"] = 201.into();
                decision["excused"] = many.clone();
            }),
            "at most 200",
        ),
        (
            changed(&|decision| decision["excused"][0]["testName"] = "cart > pays twice".into()),
            "cart > pays twice",
        ),
        (
            changed(&|decision| decision["excused"][0]["reason"] = "x".repeat(1 << 20).into()),
            "1 MiB",
        ),
    ] {
        let answer = ingest.post(PATH, &ingest.key, &[], body.as_bytes());
        let expected = match named {
            "cart > pays twice" => (422, "unknown_test"),
            "1 MiB" => (413, "too_large"),
            _ => (400, "invalid_parameter"),
        };
        assert_eq!(
            (answer.status, code(&answer).as_str()),
            expected,
            "{named}: {}",
            answer.text()
        );
        assert!(answer.text().contains(named), "{named}: {}", answer.text());
        assert_conforms(&document, operation, &answer, named);
    }
    // A small body that is large when it is unpacked.
    let body = zstd::encode_all(&vec![b' '; 64 << 20][..], 1).unwrap();
    let headers = [("Content-Encoding", "zstd")];
    let answer = ingest.post(PATH, &ingest.key, &headers, &body);
    assert_refused(&answer, 413, "too_large");
    for (path, headers, status, expected) in [
        (format!("{PATH}?runId=1"), vec![], 400, "invalid_parameter"),
        (
            PATH.to_owned(),
            vec![("Content-Type", "multipart/form-data; boundary=x")],
            400,
            "invalid_parameter",
        ),
        (
            PATH.to_owned(),
            vec![("Content-Encoding", "br")],
            415,
            "unsupported_coding",
        ),
    ] {
        let answer = ingest.post(&path, &ingest.key, &headers, b"{}");
        assert_eq!((answer.status, code(&answer).as_str()), (status, expected));
        assert_conforms(&document, operation, &answer, expected);
    }
    let answer = ingest.server.ingest().get(PATH, Some(&ingest.key));
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
    assert_eq!(stored(&ingest), []);
    assert!(
        !ingest.server.log().contains(" ERROR "),
        "{}",
        ingest.server.log()
    );
}

#[test]
fn an_old_run_is_closed_to_decisions_and_the_rate_limit_counts_them() {
    let ingest = IngestServer::with(&[("ASSAY_INGEST_RATE_LIMIT", "4")]);
    let run = failed_run(&ingest, &ingest.key, "build-1");
    let nearly = send_after(&ingest, "23 hours 59 minutes", || {
        send(&ingest, &ingest.key, &decision(&run))
    });
    assert_eq!(nearly.status, 201, "{}", nearly.text());
    let closed = send_after(&ingest, "24 hours 1 minute", || {
        send(&ingest, &ingest.key, &decision(&run))
    });
    assert_refused(&closed, 409, "run_closed");
    // Of ten requests, five are in the same minute.
    let is_limited = (0..10).any(|_| {
        let answer = send(&ingest, &ingest.key, &json!({}));
        (answer.status, code(&answer).as_str()) == (429, "rate_limited")
    });
    assert!(is_limited);
    let other = ingest.new_key(&IngestTerms::default());
    let report = ingest.send(&other, &[], &[("r.xml", PASSES.as_bytes())]);
    assert_eq!(report.status, 201, "{}", report.text());
}

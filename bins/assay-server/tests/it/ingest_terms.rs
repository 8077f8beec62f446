//! The terms of ingest keys, and the time until which a run can be replaced.

use std::{fs, time::Duration};

use assay_domain::{
    ingest::IngestTerms,
    key::{KeyKind, mint},
};
use assay_testkit::{Response, text};

use crate::ingest::{FAILS, IngestServer, PASSES, code, now};

#[test]
fn only_a_valid_ingest_key_may_send_within_its_terms() {
    let ingest = IngestServer::new();
    let foreign = ingest.foreign_key();
    let expired = ingest.new_key(&IngestTerms {
        expires_at: Some(now().plus_days(-1)),
        ..IngestTerms::default()
    });
    let pull_requests_only = ingest.new_key(&IngestTerms {
        pull_requests_only: true,
        ..IngestTerms::default()
    });
    let backfill = ingest.new_key(&IngestTerms {
        backfill: true,
        ..IngestTerms::default()
    });
    let long_ago = now().plus_days(-20).to_string();
    let ahead = now().plus_days(1).to_string();
    let unknown = mint(KeyKind::Ingest, now()).0;
    let of_web = [("project", "web")];
    for (key, fields, status, expected) in [
        ("", &[][..], 401, "missing_key"),
        ("svc_nonsense", &[], 401, "invalid_key"),
        (unknown.reveal(), &[], 401, "invalid_key"),
        (&ingest.read_key, &[], 401, "wrong_key_type"),
        (&expired, &[], 401, "key_expired"),
        (&foreign, &of_web, 403, "wrong_project"),
        (
            &pull_requests_only,
            &[("branch", "feature")],
            403,
            "branch_not_allowed",
        ),
        (
            &pull_requests_only,
            &[("branch", "main"), ("pullRequest", "7")],
            403,
            "branch_not_allowed",
        ),
        (
            &pull_requests_only,
            &[("branch", "feature"), ("pullRequest", "7")],
            201,
            "",
        ),
        (
            &ingest.key,
            &[("startedAt", long_ago.as_str())],
            422,
            "date_not_allowed",
        ),
        (
            &ingest.key,
            &[("startedAt", ahead.as_str())],
            422,
            "date_not_allowed",
        ),
        (&backfill, &[("startedAt", long_ago.as_str())], 201, ""),
    ] {
        let answer = ingest.send(key, fields, &[("r.xml", PASSES.as_bytes())]);
        assert_eq!(answer.status, status, "{fields:?}: {}", answer.text());
        if status != 201 {
            assert_eq!(code(&answer), expected, "{fields:?}");
        }
    }
    let foreign = ingest.send(&foreign, &[], &[("r.xml", PASSES.as_bytes())]);
    assert_eq!(foreign.json()["project"]["name"], "theirs");

    // A revocation takes effect within a second.
    assert_eq!(
        ingest
            .send(&ingest.key, &[], &[("r.xml", PASSES.as_bytes())])
            .status,
        201
    );
    ingest.database.execute("UPDATE api_key SET revoked_at = now()");
    std::thread::sleep(Duration::from_secs(1));
    let answer = ingest.send(&ingest.key, &[], &[("r.xml", PASSES.as_bytes())]);
    assert_eq!(answer.status, 401, "{}", answer.text());
    assert_eq!(code(&answer), "key_revoked");
}

#[test]
fn a_run_can_be_changed_over_http_for_a_day_and_by_an_import_always() {
    let ingest = IngestServer::new();
    let send = |report: &str| {
        let fields = [("branch", "main"), ("runKey", "build-1"), ("replace", "true")];
        ingest.send(&ingest.key, &fields, &[("r.xml", report.as_bytes())])
    };
    assert_eq!(send(FAILS).status, 201);
    let nearly = send_after(&ingest, "23 hours 59 minutes", || send(PASSES));
    assert_eq!(
        (nearly.status, &nearly.json()["effect"]),
        (201, &"replaced".into()),
        "{}",
        nearly.text()
    );
    let closed = send_after(&ingest, "24 hours 1 minute", || send(FAILS));
    assert_eq!(
        (closed.status, code(&closed).as_str()),
        (409, "run_closed"),
        "{}",
        closed.text()
    );
    // A repetition changes nothing, so it is accepted.
    let again = send(PASSES);
    assert_eq!(
        (again.status, &again.json()["effect"]),
        (200, &"unchanged".into())
    );
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("r.xml");
    fs::write(&report, FAILS).unwrap();
    let report = report.display().to_string();
    let import = [
        "import",
        "--project",
        "web",
        "--branch",
        "main",
        "--run-key",
        "build-1",
    ];
    let imported = ingest.cli.json(&[&import[..], &[&report]].concat());
    assert_eq!(
        (&imported["changed"], &imported["runNumber"]),
        (&true.into(), &1.into())
    );
    assert_eq!(ingest.read("/runs")["total"], 1);
}

/// Makes the stored runs look older: a run's id begins with its arrival time.
pub(crate) fn send_after(ingest: &IngestServer, ago: &str, send: impl FnOnce() -> Response) -> Response {
    ingest.database.execute(&format!(
        "UPDATE run SET id = (substr(ms, 1, 8) || '-' || substr(ms, 9, 4) || substr(id::text, 14))::uuid \
         FROM (SELECT lpad(to_hex((extract(epoch FROM now() - interval '{ago}') * 1000)::bigint), 12, '0') AS ms) AS t"
    ));
    send()
}

#[test]
fn reports_of_a_pull_request_key_are_shown_and_do_not_count_in_verdicts() {
    let ingest = IngestServer::new();
    let pull_requests_only = ingest.new_key(&IngestTerms {
        pull_requests_only: true,
        ..IngestTerms::default()
    });
    for hours in 1..=6 {
        let start = now().plus_ms(-hours * 3_600_000).to_string();
        let run_key = format!("main-{hours}");
        let fields = [
            ("branch", "main"),
            ("runKey", run_key.as_str()),
            ("startedAt", start.as_str()),
        ];
        let sent = ingest.send(&ingest.key, &fields, &[("r.xml", PASSES.as_bytes())]);
        assert_eq!(sent.status, 201, "{}", sent.text());
    }
    let stored = "SELECT string_agg(verdict::text, ',' ORDER BY test) FROM verdict";
    let before = ingest.database.text(stored);
    assert!(before.is_some());
    let of_fork = FAILS.replace(
        "</testsuite>",
        "<testcase classname=\"cart\" name=\"only there\" file=\"cart.test.ts\"/></testsuite>",
    );
    let fields = [("branch", "fork"), ("pullRequest", "7"), ("runKey", "main-1")];
    let sent = ingest.send(&pull_requests_only, &fields, &[("r.xml", of_fork.as_bytes())]);
    assert_eq!(sent.status, 201, "{}", sent.text());
    assert_eq!(sent.json()["effect"], "added", "a run key of its own");
    assert_eq!(sent.json()["verdictsChangedTotal"], 0);

    assert_eq!(ingest.read("/runs")["total"], 7);
    let run = format!("/runs/{}", text(&sent.json()["runId"]));
    let shown = ingest.read(&run);
    assert_eq!(shown["counts"]["failed"], 1);
    let explained = ingest.read(&format!("{run}/failures"));
    assert_eq!(explained["page"]["total"], 1, "{explained}");
    assert_eq!(explained["failures"][0]["runsElsewhere"], 6, "{explained}");
    assert_ne!(explained["gate"]["action"], "pass", "{explained}");
    assert_eq!(ingest.database.text(stored), before);
    assert_eq!(ingest.read("/flaky")["failingCount"], 0);
    let rebuilt = &ingest.cli.json(&["rebuild", "--project", "web"])["projects"][0]["result"];
    assert_eq!(
        (&rebuilt["runsChanged"], &rebuilt["verdictsChanged"]),
        (&0.into(), &0.into()),
        "{rebuilt}"
    );
    // The same report with a key whose runs count.
    let sent = ingest.send(&ingest.key, &fields[..2], &[("r.xml", of_fork.as_bytes())]);
    assert_eq!(sent.status, 201, "{}", sent.text());
    assert_ne!(ingest.database.text(stored), before);
}

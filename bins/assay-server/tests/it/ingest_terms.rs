//! The terms of ingest keys, and the time until which a run can be replaced.

use std::time::Duration;

use assay_domain::{
    ingest::IngestTerms,
    key::{KeyKind, mint},
};
use assay_testkit::Response;

use crate::ingest::{IngestServer, PASSES, code, now};

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

/// Makes the stored runs look older: a run's id begins with its arrival time.
pub(crate) fn send_after(ingest: &IngestServer, ago: &str, send: impl FnOnce() -> Response) -> Response {
    ingest.database.execute(&format!(
        "UPDATE run SET id = (substr(ms, 1, 8) || '-' || substr(ms, 9, 4) || substr(id::text, 14))::uuid \
         FROM (SELECT lpad(to_hex((extract(epoch FROM now() - interval '{ago}') * 1000)::bigint), 12, '0') AS ms) AS t"
    ));
    send()
}

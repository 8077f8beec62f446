//! The headers of answers: budgets, request ids, content codings and their tags.

use std::collections::BTreeSet;

use actix_web::http::Method;

use crate::api::Api;

#[actix_web::test]
async fn a_successful_answer_has_the_remaining_budget_and_a_refusal_does_not() {
    let api = Api::with(60, 64);
    let path = api.fill("/projects/{projectId}/branches");
    let first = api.get(&path).await;
    first.ok();
    assert_eq!(first.header("ratelimit-policy"), Some("\"default\";q=60;w=60"));
    // The time of the requests is 3.120 seconds into its window.
    assert_eq!(first.header("ratelimit"), Some("\"default\";r=59;t=57"));
    let tag = first.header("etag").unwrap();
    let revalidated = api.get_with(&path, &[("If-None-Match", tag)]).await;
    assert_eq!(revalidated.status, 304);
    assert_eq!(revalidated.header("ratelimit"), Some("\"default\";r=58;t=57"));
    for path in [
        "/projects/none/branches",
        "/projects/none/runs?days=1",
        "/nowhere",
    ] {
        let refused = api.get(path).await;
        assert!(refused.status.is_client_error());
        let headers = [refused.header("ratelimit"), refused.header("ratelimit-policy")];
        assert_eq!(headers, [None, None], "{path}");
    }
    let unlimited = Api::new().get("/projects").await;
    unlimited.ok();
    let headers = [
        unlimited.header("ratelimit"),
        unlimited.header("ratelimit-policy"),
    ];
    assert_eq!(headers, [None, None]);
}

#[actix_web::test]
async fn bad_keys_have_a_budget_too_and_missing_ones_need_none() {
    let api = Api::with(2, 64);
    for status in [401, 401, 429] {
        let guess = [("Authorization", "Bearer guess")];
        assert_eq!(
            api.send(Method::GET, "/api/v1/projects", &guess).await.status,
            status
        );
    }
    for _ in 0..5 {
        let answer = api.send(Method::GET, "/api/v1/projects", &[]).await;
        answer.fails(401, "missing_key", "no header");
    }
    // The budget comes before the route and its parameters, and a key has one budget however the header is spelled.
    for spelling in ["bearer guess", "BEARER   guess"] {
        for path in ["/nowhere", "/projects/x/runs?days=8"] {
            let uri = format!("/api/v1{path}");
            let answer = api.send(Method::GET, &uri, &[("Authorization", spelling)]).await;
            assert_eq!((answer.status.as_u16(), answer.body.len()), (429, 0), "{path}");
        }
    }
    api.get("/projects").await.ok();
}

#[actix_web::test]
async fn a_good_answer_has_the_expiry_of_its_key_in_the_last_seven_days() {
    let mut api = Api::new();
    let path = api.fill("/projects/{projectId}/settings");
    for (left, expiry) in [
        ("7 days 1 second", None),
        ("7 days", Some("2026-11-27T18:46:03.120Z")),
    ] {
        api.database.execute(&format!(
            "UPDATE api_key SET expires_at = to_timestamp(1795200363.12) + interval '{left}'"
        ));
        api.restart();
        let answer = api.get(&path).await;
        assert_eq!(answer.header("service-key-expires-at"), expiry, "{left}");
        let tag = answer.header("etag").unwrap();
        let revalidated = api.get_with(&path, &[("If-None-Match", tag)]).await;
        assert_eq!(revalidated.status, 304);
        assert_eq!(revalidated.header("service-key-expires-at"), expiry, "{left}");
        let refused = api.get("/projects/x/runs").await;
        assert_eq!(refused.header("service-key-expires-at"), None);
    }
}

#[actix_web::test]
async fn a_valid_request_id_is_returned_and_any_other_replaced() {
    let api = Api::new();
    let echoed = api
        .get_with("/projects", &[("X-Request-Id", "abc-123.x_Y")])
        .await;
    assert_eq!(echoed.header("x-request-id"), Some("abc-123.x_Y"));
    let key = api.key.reveal();
    let without_prefix = &key["svc_ro_".len()..];
    let (ingest, ..) = &api.bad_keys[0];
    for bad in [
        "a b",
        "a\"b",
        "é",
        &"x".repeat(65),
        key,
        &key["svc_".len()..],
        without_prefix,
        &format!("req-{without_prefix}.1"),
        &ingest.reveal()["svc_".len()..],
    ] {
        let replaced = api.get_with("/projects", &[("X-Request-Id", bad)]).await;
        let id = replaced.header("x-request-id").unwrap();
        assert!(id.len() == 32 && id != bad, "{id}");
    }
    let refused = api
        .send(Method::GET, "/api/v1/projects", &[("X-Request-Id", "mine")])
        .await;
    assert_eq!(refused.header("x-request-id"), Some("mine"));
}

#[actix_web::test]
async fn a_large_body_is_compressed_under_a_tag_of_its_own_and_a_small_one_is_not() {
    let api = Api::new();
    api.database.execute(&format!(
        "INSERT INTO branch SELECT '{}', 'branch ' || n, to_timestamp(1795200000) FROM generate_series(1, 3000) AS n",
        api.project
    ));
    let path = api.fill("/projects/{projectId}/branches");
    let plain = api.get(&path).await;
    assert_eq!(plain.header("content-encoding"), None);
    let mut tags = BTreeSet::from([plain.header("etag").unwrap().to_owned()]);
    // The first bytes of each coding. Brotli has none of its own.
    for (name, magic) in [
        ("gzip", &b"\x1f\x8b"[..]),
        ("br", b""),
        ("zstd", b"\x28\xb5\x2f\xfd"),
    ] {
        let coded = api.get_with(&path, &[("Accept-Encoding", name)]).await;
        assert_eq!(coded.header("content-encoding"), Some(name));
        assert_eq!(coded.header("vary"), Some("Accept-Encoding"));
        assert!(
            coded.body.starts_with(magic) && coded.body.len() < plain.body.len() / 3,
            "{name}"
        );
        let tag = coded.header("etag").unwrap();
        let known = [("Accept-Encoding", name), ("If-None-Match", tag)];
        assert_eq!(api.get_with(&path, &known).await.status, 304);
        // A strong tag identifies its own bytes only.
        assert_eq!(api.get_with(&path, &[("If-None-Match", tag)]).await.status, 200);
        tags.insert(tag.to_owned());
    }
    assert_eq!(tags.len(), 4);
    let small = api
        .get_with("/projects", &[("Accept-Encoding", "gzip, br, zstd")])
        .await;
    small.ok();
    assert_eq!(small.header("content-encoding"), None);
}

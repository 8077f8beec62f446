//! Keys over HTTP: schemes, several headers, the notice of expiry, request ids.

use std::time::Duration;

use actix_web::http::Method;

use crate::{
    client::Api,
    ids::{NO_PROJECT, NOW, PROJECT},
};

#[actix_web::test]
async fn the_notice_of_expiry_is_on_successful_answers_within_seven_days_only() {
    let api = Api::new();
    let uri = format!("/api/v1/projects/{PROJECT}/branches");
    let expiring = format!("Bearer {}", api.seed.keys.expiring.reveal());
    let near = api.send(Method::GET, &uri, &[("Authorization", &expiring)]).await;
    near.ok();
    let expiry = NOW.plus_days(7).to_string();
    assert_eq!(near.header("service-key-expires-at"), Some(expiry.as_str()));

    let tag = near.header("etag").unwrap();
    let revalidated = api
        .send(
            Method::GET,
            &uri,
            &[("Authorization", &expiring), ("If-None-Match", tag)],
        )
        .await;
    assert_eq!(revalidated.status, 304);
    assert_eq!(
        revalidated.header("service-key-expires-at"),
        Some(expiry.as_str())
    );

    let missing = format!("/api/v1/projects/{NO_PROJECT}/branches");
    let missing = api
        .send(Method::GET, &missing, &[("Authorization", &expiring)])
        .await;
    missing.fails(404, "project_not_found", "near the expiry");

    assert_eq!(api.get("/projects").await.header("service-key-expires-at"), None);
}

#[actix_web::test]
async fn the_scheme_may_be_in_any_case_but_must_be_bearer() {
    let api = Api::new();
    let key = api.seed.keys.good.reveal();
    for header in [format!("bearer {key}"), format!("BEARER   {key}")] {
        api.send(Method::GET, "/api/v1/projects", &[("Authorization", &header)])
            .await
            .ok();
    }
    for header in [
        format!("Basic {key}"),
        key.to_owned(),
        "Bearer".to_owned(),
        String::new(),
    ] {
        let answer = api
            .send(Method::GET, "/api/v1/projects", &[("Authorization", &header)])
            .await;
        answer.fails(401, "missing_key", &header);
    }
    let twice = format!("Bearer {key}");
    let twice = [
        ("Authorization", twice.as_str()),
        ("Authorization", twice.as_str()),
    ];
    let answer = api.send(Method::GET, "/api/v1/projects", &twice).await;
    answer.fails(401, "invalid_key", "two headers");
}

#[actix_web::test]
async fn a_valid_request_id_is_returned_and_any_other_replaced() {
    let api = Api::new();
    let echoed = api
        .get_with("/projects", &[("X-Request-Id", "abc-123.x_Y")])
        .await;
    assert_eq!(echoed.header("x-request-id"), Some("abc-123.x_Y"));
    let key = api.seed.keys.good.reveal();
    let without_prefix = &key["svc_ro_".len()..];
    for bad in [
        "a b",
        "a\"b",
        "é",
        &"x".repeat(65),
        key,
        &key["svc_".len()..],
        without_prefix,
        &format!("req-{without_prefix}.1"),
        &api.seed.keys.ingest.reveal()["svc_".len()..],
    ] {
        let replaced = api.get_with("/projects", &[("X-Request-Id", bad)]).await;
        assert!(
            replaced
                .header("x-request-id")
                .is_some_and(|id| id.len() == 32 && id != bad)
        );
    }
    let refused = api
        .send(Method::GET, "/api/v1/projects", &[("X-Request-Id", "mine")])
        .await;
    assert_eq!(refused.header("x-request-id"), Some("mine"));
}

/// The processor time of this thread, independent of other load.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// Parsing these queries and tags takes a hundred times as long as reading them.
#[actix_web::test]
async fn a_request_is_not_parsed_before_its_key_is_known() {
    let api = Api::new();
    let unknown = format!("Bearer {}", api.seed.keys.unknown.reveal());
    let (one_name, many_names) = ("a".repeat(58_000), "a&".repeat(29_000));
    let (one_tag, many_tags) = (format!("\"{one_name}\""), "\"\",".repeat(14_500));
    let mut shortest = Vec::new();
    for (query, tags) in [
        (&one_name, &one_tag),
        (&many_names, &one_tag),
        (&one_name, &many_tags),
    ] {
        let uri = format!("/api/v1/projects?{query}");
        let headers = [
            ("Authorization", unknown.as_str()),
            ("If-None-Match", tags),
            ("Accept-Encoding", tags),
        ];
        let mut times = Vec::new();
        for _ in 0..10 {
            let before = processor_time();
            let answer = api.send(Method::GET, &uri, &headers).await;
            times.push(processor_time() - before);
            answer.fails(401, "invalid_key", "an unknown key");
        }
        shortest.push(times.into_iter().min().unwrap());
    }
    let allowed = shortest[0] * 3 + Duration::from_millis(2);
    assert!(shortest.iter().all(|took| *took < allowed), "{shortest:?}");
}

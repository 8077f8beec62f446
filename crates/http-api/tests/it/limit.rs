//! The rate limit over HTTP.

use actix_web::http::Method;

use crate::{client::Api, ids::PROJECT};

#[actix_web::test]
async fn the_sixty_first_request_gets_nothing_but_its_status() {
    let api = Api::limited(60);
    for _ in 0..60 {
        api.get("/projects").await.ok();
    }
    let refused = api.get("/projects").await;
    assert_eq!(refused.status, 429);
    assert!(refused.body.is_empty());
    for header in [
        "retry-after",
        "content-type",
        "service-key-expires-at",
        "x-request-id",
        "ratelimit",
        "ratelimit-policy",
    ] {
        assert_eq!(refused.header(header), None, "{header}");
    }
    let other = format!("Bearer {}", api.seed.keys.standard.reveal());
    api.send(Method::GET, "/api/v1/projects", &[("Authorization", &other)])
        .await
        .ok();
}

#[actix_web::test]
async fn all_spellings_of_the_header_share_the_budget_of_their_key() {
    let api = Api::limited(3);
    let key = api.seed.keys.good.reveal();
    let spellings = ["Bearer", "bearer", "BEARER", "Bearer ", "bEaReR\t"];
    for (scheme, status) in spellings.into_iter().zip([200, 200, 200, 429, 429]) {
        let header = format!("{scheme} {key}");
        let answer = api
            .send(Method::GET, "/api/v1/projects", &[("Authorization", &header)])
            .await;
        assert_eq!(answer.status, status, "{scheme:?}");
    }
}

#[actix_web::test]
async fn bad_keys_have_a_budget_too_and_missing_ones_need_none() {
    let api = Api::limited(2);
    for status in [401, 401, 429] {
        let answer = api
            .send(
                Method::GET,
                "/api/v1/projects",
                &[("Authorization", "Bearer guess")],
            )
            .await;
        assert_eq!(answer.status, status);
    }
    for _ in 0..5 {
        api.send(Method::GET, "/api/v1/projects", &[])
            .await
            .fails(401, "missing_key", "no header");
    }
}

#[actix_web::test]
async fn a_successful_answer_has_the_remaining_budget_and_a_refusal_does_not() {
    let api = Api::limited(60);
    let path = format!("/projects/{PROJECT}/branches");
    let first = api.get(&path).await;
    first.ok();
    assert_eq!(first.header("ratelimit-policy"), Some("\"default\";q=60;w=60"));
    // The seed's time is 3.120 seconds into its window.
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
        assert_eq!(refused.header("ratelimit"), None, "{path}");
        assert_eq!(refused.header("ratelimit-policy"), None, "{path}");
    }
}

#[actix_web::test]
async fn without_a_limit_answers_have_no_limit_headers() {
    let answer = Api::new().get("/projects").await;
    answer.ok();
    assert_eq!(answer.header("ratelimit"), None);
    assert_eq!(answer.header("ratelimit-policy"), None);
}

//! The rate limit over HTTP.

use actix_web::http::Method;

use crate::client::Api;

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
    ] {
        assert_eq!(refused.header(header), None, "{header}");
    }
    let other = format!("Bearer {}", api.seed.keys.standard.reveal());
    api.send(Method::GET, "/api/v1/projects", &[("Authorization", &other)])
        .await
        .ok();
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

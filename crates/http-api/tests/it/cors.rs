//! Requests of web pages from other origins.

use actix_web::http::Method;

use crate::api::{Api, NO_ID};

const ALLOWED_ORIGIN: &str = "https://dashboard.example.org";

fn api() -> Api {
    Api::with(3, 64).with_origins(&format!("{ALLOWED_ORIGIN}, http://localhost:3000"))
}

#[actix_web::test]
async fn a_preflight_request_of_a_listed_origin_is_answered_without_a_key_and_not_counted() {
    let api = api();
    for path in ["/api/v1/projects", "/api/v1/projects/x/runs", "/nowhere"] {
        for _ in 0..5 {
            let headers = [
                ("Origin", ALLOWED_ORIGIN),
                ("Access-Control-Request-Method", "GET"),
                ("Access-Control-Request-Headers", "authorization"),
            ];
            let answer = api.send(Method::OPTIONS, path, &headers).await;
            assert_eq!(answer.status, 204);
            assert!(answer.body.is_empty());
            assert_eq!(answer.header("access-control-allow-origin"), Some(ALLOWED_ORIGIN));
            assert_eq!(answer.header("access-control-allow-methods"), Some("GET, HEAD"));
            let allowed = answer.header("access-control-allow-headers").unwrap();
            assert!(allowed.contains("Authorization") && allowed.contains("If-None-Match"));
            assert_eq!(answer.header("access-control-allow-credentials"), None);
            assert_eq!(answer.header("vary"), Some("Origin"));
        }
    }
    api.get("/projects").await.ok();
}

#[actix_web::test]
async fn a_page_of_a_listed_origin_may_read_every_answer() {
    let api = api();
    for (path, status) in [
        (api.fill("/projects/{projectId}/branches"), 200),
        (format!("/projects/{NO_ID}/branches"), 404),
        ("/nowhere".to_owned(), 404),
        ("/projects".to_owned(), 429),
    ] {
        let answer = api.get_with(&path, &[("Origin", ALLOWED_ORIGIN)]).await;
        assert_eq!(answer.status, status);
        assert_eq!(
            answer.header("access-control-allow-origin"),
            Some(ALLOWED_ORIGIN),
            "{path}"
        );
        let exposed = answer.header("access-control-expose-headers").unwrap();
        assert!(exposed.contains("RateLimit") && exposed.contains("Service-Key-Expires-At"));
        assert!(
            answer.headers.get_all("vary").any(|vary| vary == "Origin"),
            "{path}"
        );
    }
}

#[actix_web::test]
async fn other_origins_are_answered_as_if_there_were_no_list() {
    for (api, varies) in [(api(), true), (Api::with(3, 64), false)] {
        for origin in [
            "https://evil.example",
            "https://dashboard.example.org.evil.example",
            "null",
        ] {
            let headers = [("Origin", origin), ("Access-Control-Request-Method", "GET")];
            let answer = api.send(Method::OPTIONS, "/api/v1/projects", &headers).await;
            answer.fails(401, "missing_key", origin);
            assert_eq!(answer.header("access-control-allow-origin"), None);
            assert_eq!(answer.header("vary"), varies.then_some("Origin"));
        }
        let answer = api
            .get_with("/projects", &[("Origin", "https://evil.example")])
            .await;
        answer.ok();
        assert_eq!(answer.header("access-control-allow-origin"), None);
        let varied = answer.headers.get_all("vary").any(|vary| vary == "Origin");
        assert_eq!(varied, varies);
        // A request of a listed origin needs a key unless it is a preflight request.
        let answer = api
            .send(Method::OPTIONS, "/api/v1/projects", &[("Origin", ALLOWED_ORIGIN)])
            .await;
        answer.fails(401, "missing_key", "no preflight request");
    }
}

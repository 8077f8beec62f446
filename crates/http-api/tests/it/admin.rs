//! The operators' listener.

use actix_web::{
    App as Actix,
    http::Method,
    test::{TestRequest, call_service, init_service, read_body},
};

use crate::{client::Api, ids::PROJECT, store::Mode};

async fn get(api: &Api, path: &str) -> (u16, String) {
    let service = init_service(Actix::new().configure(assay_http_api::admin(api.app()))).await;
    let response = call_service(&service, TestRequest::with_uri(path).to_request()).await;
    let status = response.status().as_u16();
    (
        status,
        String::from_utf8(read_body(response).await.to_vec()).unwrap(),
    )
}

#[actix_web::test]
async fn health_reports_the_process_and_readiness_the_store() {
    let api = Api::new();
    assert_eq!(get(&api, "/healthz").await, (200, "alive\n".to_owned()));
    assert_eq!(get(&api, "/readyz").await, (200, "ready\n".to_owned()));
    api.seed.set_mode(Mode::Unreachable);
    assert_eq!(get(&api, "/healthz").await.0, 200);
    assert_eq!(get(&api, "/readyz").await, (503, "not ready\n".to_owned()));
    assert_eq!(get(&api, "/api/v1/projects").await.0, 404);
}

#[actix_web::test]
async fn metrics_count_by_route_status_and_code() {
    let api = Api::limited(4);
    api.get("/projects").await.ok();
    api.get("/projects/not-an-id/runs").await;
    api.get("/nowhere").await;
    api.get(&format!("/projects/{PROJECT}/flaky")).await.ok();
    api.get("/projects").await;
    api.send(Method::GET, "/api/v1/projects", &[]).await;
    let (status, text) = get(&api, "/metrics").await;
    assert_eq!(status, 200);
    for line in [
        "assay_http_requests_total{route=\"/projects\",status=\"200\",code=\"ok\"} 1",
        "assay_http_requests_total{route=\"/projects\",status=\"401\",code=\"missing_key\"} 1",
        "assay_http_requests_total{route=\"/projects\",status=\"429\",code=\"rate_limited\"} 1",
        "assay_http_requests_total{route=\"/projects/{projectId}/runs\",status=\"404\",code=\"project_not_found\"} 1",
        "assay_http_requests_total{route=\"(no route)\",status=\"404\",code=\"invalid_parameter\"} 1",
        "assay_http_request_duration_seconds_count{route=\"/projects\"} 3",
        "assay_http_requests_in_flight 0",
        "assay_rate_limit_decisions_total{decision=\"admitted\"} 4",
        "assay_rate_limit_decisions_total{decision=\"refused\"} 1",
        "assay_engine_duration_seconds_count 1",
        "assay_engine_observations_total ",
        "assay_database_connections{state=\"busy\"} 1",
        "assay_database_connections{state=\"idle\"} 2",
        "assay_database_connections_max 4",
        "assay_database_reads_total{node=\"primary\"} 7",
        "assay_database_reads_total{node=\"10.0.0.12:5432\"} 70",
        "assay_database_standby_connections{node=\"10.0.0.12:5432\"} 3",
        concat!("assay_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
    ] {
        assert!(text.contains(line), "{line} is missing in:\n{text}");
    }
    assert!(!text.contains("not-an-id"));
}

#[actix_web::test]
async fn metrics_are_openmetrics_only_for_scrapers_that_accept_it() {
    let api = Api::new();
    api.get("/projects").await.ok();
    let service = init_service(Actix::new().configure(assay_http_api::admin(api.app()))).await;
    for (accept, content_type, counter) in [
        (
            None,
            "text/plain; version=0.0.4; charset=utf-8",
            "assay_http_requests_total",
        ),
        (
            Some("application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3"),
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            "assay_http_requests",
        ),
    ] {
        let request = TestRequest::with_uri("/metrics");
        let request = match accept {
            Some(accept) => request.insert_header(("Accept", accept)),
            None => request,
        };
        let response = call_service(&service, request.to_request()).await;
        assert_eq!(response.headers().get("Content-Type").unwrap(), content_type);
        let text = String::from_utf8(read_body(response).await.to_vec()).unwrap();
        assert!(text.contains(&format!("# TYPE {counter} counter\n")), "{text}");
        assert!(text.contains("\nassay_http_requests_total{"), "{text}");
        assert_eq!(text.ends_with("# EOF\n"), accept.is_some(), "{text}");
        assert_eq!(text.contains("# UNIT "), accept.is_some(), "{text}");
    }
}

#[actix_web::test]
async fn the_root_redirects_to_the_reference() {
    let service = init_service(Actix::new().configure(assay_http_api::admin(Api::new().app()))).await;
    let response = call_service(&service, TestRequest::with_uri("/").to_request()).await;
    assert_eq!(response.status().as_u16(), 307);
    assert_eq!(response.headers().get("Location").unwrap(), "/docs");
}

#[actix_web::test]
async fn the_description_is_served_to_programs_and_to_people_and_to_no_client() {
    let api = Api::new();
    let (status, document) = get(&api, "/openapi.json").await;
    assert_eq!(status, 200);
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["openapi"], "3.1.0");

    let (status, page) = get(&api, "/docs").await;
    assert_eq!(status, 200);
    for route in assay_http_api::ROUTES {
        assert!(
            page.contains(&format!("{}{}<", assay_http_api::BASE, route.path)),
            "{}",
            route.path
        );
    }
    // The only permitted script is the page's own; the policy has its hash.
    assert_eq!(page.matches("<script").count(), 1);
    assert_eq!(page.matches("<script>").count(), 1);
    // Addresses in examples are plain text. The page loads no address.
    for elsewhere in ["src=", "href=\"http", "href=\"//", "@import", "url("] {
        assert!(!page.contains(elsewhere), "{elsewhere}");
    }
    let key = format!("Bearer {}", api.seed.keys.good.reveal());
    for path in ["/openapi.json", "/docs"] {
        let answer = api.send(Method::GET, path, &[("Authorization", &key)]).await;
        answer.fails(404, "invalid_parameter", path);
    }
}

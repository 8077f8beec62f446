//! The operators' listener: health, metrics, the description. The dashboard and the alerts name only metrics that exist.

use std::collections::BTreeSet;

use actix_web::http::Method;

use crate::api::Api;

const DASHBOARD: &str = include_str!("../../../../docs/monitoring/grafana-dashboard.json");
const PROJECTS: &str = include_str!("../../../../docs/monitoring/test-health-dashboard.json");
const ALERTS: &str = include_str!("../../../../docs/monitoring/alerts.yaml");

#[actix_web::test]
async fn health_reports_the_process_and_readiness_the_database() {
    let api = Api::new();
    for (path, body) in [("/healthz", "alive\n"), ("/readyz", "ready\n")] {
        assert_eq!(api.get_as_operator(path, &[]).await.text(), body);
    }
    assert_eq!(api.get_as_operator("/api/v1/projects", &[]).await.status, 404);
    let api = api.without_database();
    assert_eq!(api.get_as_operator("/healthz", &[]).await.status, 200);
    let readiness = api.get_as_operator("/readyz", &[]).await;
    assert_eq!(
        (readiness.status.as_u16(), readiness.text().as_str()),
        (503, "not ready\n")
    );
}

/// The metrics after one request of each kind.
async fn metrics() -> String {
    let api = Api::with(4, 64);
    api.get("/projects").await.ok();
    api.get("/projects/not-an-id/runs").await;
    api.get("/nowhere").await;
    api.get(&api.fill("/projects/{projectId}/flaky")).await.ok();
    api.get("/projects").await;
    api.send(Method::GET, "/api/v1/projects", &[]).await;
    api.get_as_operator("/metrics", &[]).await.text()
}

#[actix_web::test]
async fn metrics_count_by_route_status_and_code() {
    let text = metrics().await;
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
        "assay_engine_observations_total 0",
        "assay_database_connections{state=\"busy\"} 0",
        "assay_database_connections{state=\"idle\"} ",
        "assay_database_connections_max 4",
        "assay_database_reads_total{node=\"primary\"} ",
        concat!("assay_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
    ] {
        assert!(text.contains(line), "{line} is missing in:\n{text}");
    }
    assert!(!text.contains("not-an-id"));
}

/// The names of our metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_')
        .filter(|word| word.starts_with("assay_"))
        .collect()
}

#[actix_web::test]
async fn the_dashboard_shows_every_metric_and_names_no_other_and_so_do_the_alerts() {
    let metrics = metrics().await;
    let existing = names(&metrics);
    for (file, text) in [("dashboard", DASHBOARD), ("alerts", ALERTS)] {
        let named = names(text);
        assert!(named.len() >= 5, "{file}: {named:?}");
        let missing: Vec<_> = named.difference(&existing).collect();
        assert!(
            missing.is_empty(),
            "the {file} names metrics that do not exist: {missing:?}\n{metrics}"
        );
    }
    let shown = names(DASHBOARD);
    for line in metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let family = line.split(' ').next().unwrap();
        assert!(
            shown.iter().any(|name| name.starts_with(family)),
            "no panel shows {family}"
        );
    }
}

#[actix_web::test]
async fn the_figures_of_projects_are_those_of_the_last_judgement_and_the_dashboard_shows_them() {
    let api = Api::new();
    // A project that was never judged has none.
    let empty = api.get_as_operator("/metrics/projects", &[]).await.text();
    assert!(!empty.contains(&api.project), "{empty}");
    api.database
        .execute("UPDATE project SET health = '{1,2,3,4,5,60,7,8000}', evaluated_at = now()");
    let text = api.get_as_operator("/metrics/projects", &[]).await.text();
    let project = format!("project_id=\"{}\",project=\"shop\"", api.project);
    for (name, more, value) in [
        ("tests", ",verdict=\"broken\"", 1),
        ("tests", ",verdict=\"failing\"", 2),
        ("tests", ",verdict=\"flaky\"", 3),
        ("tests", ",verdict=\"healthy\"", 4),
        ("tests", ",verdict=\"insufficient_data\"", 5),
        ("runs", "", 60),
        ("failed_runs", "", 7),
        ("flaky_lost_seconds", "", 8),
        ("flake_budget_exceeded", "", 0),
    ] {
        let line = format!("assay_project_{name}{{{project}{more}}} {value}\n");
        assert!(text.contains(&line), "{line} is missing in:\n{text}");
    }
    assert_eq!(names(PROJECTS), names(&text));
    let api = api.without_database();
    assert_eq!(api.get_as_operator("/metrics/projects", &[]).await.status, 503);
}

#[actix_web::test]
async fn metrics_are_openmetrics_only_for_scrapers_that_accept_it() {
    let api = Api::new();
    api.get("/projects").await.ok();
    let open = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3";
    for (accept, content_type, counter) in [
        (
            None,
            "text/plain; version=0.0.4; charset=utf-8",
            "assay_http_requests_total",
        ),
        (
            Some(open),
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            "assay_http_requests",
        ),
    ] {
        let headers: Vec<_> = accept.map(|accept| ("Accept", accept)).into_iter().collect();
        let answer = api.get_as_operator("/metrics", &headers).await;
        assert_eq!(answer.header("content-type"), Some(content_type));
        let text = answer.text();
        assert!(text.contains(&format!("# TYPE {counter} counter\n")), "{text}");
        assert!(text.contains("\nassay_http_requests_total{"), "{text}");
        assert_eq!(text.ends_with("# EOF\n"), accept.is_some(), "{text}");
        assert_eq!(text.contains("# UNIT "), accept.is_some(), "{text}");
    }
}

#[actix_web::test]
async fn the_description_is_served_to_programs_and_to_people_and_to_no_client() {
    let api = Api::new();
    let root = api.get_as_operator("/", &[]).await;
    assert_eq!(
        (root.status.as_u16(), root.header("location")),
        (307, Some("/docs"))
    );
    assert_eq!(
        api.get_as_operator("/openapi.json", &[]).await.ok()["openapi"],
        "3.1.0"
    );
    let page = api.get_as_operator("/docs", &[]).await.text();
    for route in assay_http_api::ROUTES {
        let address = format!("{}{}<", assay_http_api::BASE, route.path);
        assert!(page.contains(&address), "{address}");
    }
    // The only permitted script is the page's own; the policy has its hash.
    assert_eq!(page.matches("<script").count(), 1);
    assert_eq!(page.matches("<script>").count(), 1);
    // Addresses in examples are plain text. The page loads no address.
    for elsewhere in ["src=", "href=\"http", "href=\"//", "@import", "url("] {
        assert!(!page.contains(elsewhere), "{elsewhere}");
    }
    let authorization = format!("Bearer {}", api.key.reveal());
    for path in ["/openapi.json", "/docs"] {
        let answer = api
            .send(Method::GET, path, &[("Authorization", &authorization)])
            .await;
        answer.fails(404, "invalid_parameter", path);
    }
}

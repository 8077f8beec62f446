//! The dashboard and the alerts name only metrics that exist.

use std::collections::BTreeSet;

use actix_web::{
    App as Actix,
    test::{TestRequest, call_service, init_service, read_body},
};

use crate::{client::Api, ids::PROJECT};

const DASHBOARD: &str = include_str!("../../../../docs/monitoring/grafana-dashboard.json");
const ALERTS: &str = include_str!("../../../../docs/monitoring/alerts.yaml");

/// The names of our metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_')
        .filter(|word| word.starts_with("assay_"))
        .collect()
}

/// The metrics of a server after one request.
async fn metrics_text() -> String {
    let api = Api::limited(100);
    api.get(&format!("/projects/{PROJECT}/flaky")).await.ok();
    let service = init_service(Actix::new().configure(assay_http_api::admin(api.app()))).await;
    let response = call_service(&service, TestRequest::with_uri("/metrics").to_request()).await;
    String::from_utf8(read_body(response).await.to_vec()).unwrap()
}

#[actix_web::test]
async fn every_metric_of_the_dashboard_and_the_alerts_exists() {
    let metrics = metrics_text().await;
    let existing = names(&metrics);
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() >= 10);
    for (file, text) in [("dashboard", DASHBOARD), ("alerts", ALERTS)] {
        let metric_names = names(text);
        assert!(metric_names.len() >= 5, "{file}: {metric_names:?}");
        let missing: Vec<_> = metric_names.difference(&existing).collect();
        assert!(
            missing.is_empty(),
            "the {file} names metrics that do not exist: {missing:?}\n{metrics}"
        );
    }
}

#[actix_web::test]
async fn every_metric_is_shown_by_the_dashboard() {
    let metrics = metrics_text().await;
    let metric_names = names(DASHBOARD);
    for line in metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let family = line.split(' ').next().unwrap();
        assert!(
            metric_names.iter().any(|name| name.starts_with(family)),
            "no panel shows {family}"
        );
    }
}

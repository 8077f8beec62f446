//! The flaky list: its entries, order and pages.

use serde_json::{Value, json};

use crate::{
    client::Api,
    ids::{NOW, PROJECT, RUN},
};

async fn list(query: &str) -> Value {
    Api::new()
        .get(&format!("/projects/{PROJECT}/flaky{query}"))
        .await
        .ok()
}

fn names(body: &Value) -> Vec<&str> {
    body["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|test| test["testName"].as_str().unwrap())
        .collect()
}

#[actix_web::test]
async fn has_exactly_the_documented_fields() {
    let body = list("").await;
    let mut top: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
    top.sort_unstable();
    assert_eq!(
        top,
        [
            "failingCount",
            "gatheringDataCount",
            "page",
            "project",
            "sort",
            "stable",
            "tests",
            "windowDays"
        ]
    );
    assert_eq!(body["windowDays"], 14);
    assert_eq!(body["gatheringDataCount"], 1);
    assert_eq!(body["failingCount"], 1);
    assert_eq!(
        body["page"],
        json!({"page": 1, "perPage": 10, "total": 4, "pageCount": 1})
    );

    let mut entry: Vec<_> = body["tests"][0]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    entry.sort_unstable();
    assert_eq!(
        entry,
        [
            "alsoActive",
            "brokenProbability",
            "explanation",
            "failingOn",
            "failingSince",
            "failureRate",
            "failureStreak",
            "filePath",
            "firstFailedAt",
            "flakeRate",
            "flakeScore",
            "flipRate",
            "formerNames",
            "impact",
            "labels",
            "lastRun",
            "lastSeenAt",
            "owners",
            "ownersAmbiguous",
            "runsConsidered",
            "runsInWindow",
            "status",
            "statusReason",
            "testName",
            "timeLostMs",
        ]
    );
}

#[actix_web::test]
async fn the_flaky_list_has_the_requested_order_with_unknown_values_last() {
    let by_time = list("").await;
    assert_eq!(by_time["sort"], "timeLost");
    assert_eq!(
        names(&by_time),
        ["flaky dear", "broken", "flaky cheap", "flaky untimed"]
    );
    assert_eq!(by_time["tests"][3]["timeLostMs"], Value::Null);
    // Equal rates have equal scores, so the name decides.
    assert_eq!(
        names(&list("?sort=rate").await),
        ["broken", "flaky cheap", "flaky untimed", "flaky dear"]
    );
    let by_impact = list("?sort=impact").await;
    assert_eq!(
        (&by_impact["sort"], names(&by_impact)[0]),
        (&json!("impact"), "broken")
    );
}

#[actix_web::test]
async fn the_flaky_list_is_filtered_by_verdict_and_text() {
    assert_eq!(names(&list("?status=broken").await), ["broken"]);
    assert_eq!(list("?status=flaky").await["page"]["total"], 3);
    assert_eq!(names(&list("?search=DEAR").await), ["flaky dear"]);
    assert_eq!(list("?search=CART.spec").await["page"]["total"], 4);
    let none = list("?search=nothing").await;
    assert_eq!(
        none["page"],
        json!({"page": 1, "perPage": 10, "total": 0, "pageCount": 1})
    );
    assert_eq!(none["gatheringDataCount"], 1);
    for bad in ["status=healthy", "sort=name", "search=", "explain=yes"] {
        let answer = Api::new().get(&format!("/projects/{PROJECT}/flaky?{bad}")).await;
        answer.fails(400, "invalid_parameter", bad);
    }
}

#[actix_web::test]
async fn a_page_past_the_end_is_the_last() {
    let body = list("?page=99999999999999999999&perPage=25").await;
    assert_eq!(
        body["page"],
        json!({"page": 1, "perPage": 25, "total": 4, "pageCount": 1})
    );
    assert_eq!(body["tests"].as_array().unwrap().len(), 4);
}

#[actix_web::test]
async fn each_entry_has_the_status_of_its_last_run() {
    let body = list("?search=dear").await;
    let entry = &body["tests"][0];
    assert_eq!(entry["status"], "flaky");
    assert_eq!(entry["lastSeenAt"], NOW.plus_ms(20).to_string());
    assert_eq!(
        entry["lastRun"],
        json!({
            "runId": RUN, "runNumber": 20, "status": "timedOut",
            "startedAt": NOW.plus_ms(-6 * 3_600_000).to_string(),
        })
    );
}

#[actix_web::test]
async fn evidence_is_included_on_request() {
    let plain = list("?explain=false").await;
    assert!(plain["tests"][0].get("evidence").is_none());
    let explained = list("?explain=true").await;
    for entry in explained["tests"].as_array().unwrap() {
        let evidence = &entry["evidence"];
        assert_eq!(evidence["runsSeen"], entry["runsInWindow"]);
        let signals = evidence["signals"].as_array().unwrap();
        assert!(
            signals
                .iter()
                .any(|signal| signal["signal"] == entry["statusReason"]),
            "{entry}"
        );
    }
}

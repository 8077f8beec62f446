//! Parameters whose effect shows in the answer.

use actix_web::http::Method;

use crate::{
    client::Api,
    ids::{FILE, NOW, PROJECT, RUN, TEST, TEST_ENCODED, TWICE},
};

#[actix_web::test]
async fn the_period_ends_now_and_stays_within_the_plan() {
    let api = Api::new();
    let standard = format!("Bearer {}", api.seed.keys.standard.reveal());
    for path in [
        "runs",
        "errors",
        &format!("errors/{}", crate::ids::FINGERPRINT),
        &format!("tests/{TEST_ENCODED}"),
    ] {
        let path = format!("/projects/{PROJECT}/{path}");
        for (query, days) in [("", 30), ("?days=7", 7), ("?days=90", 90)] {
            let window = &api.get(&format!("{path}{query}")).await.ok()["window"];
            assert_eq!(window["days"], days);
            assert_eq!(window["to"], NOW.to_string());
            assert_eq!(window["from"], NOW.plus_days(-days).to_string());
        }
        let uri = format!("/api/v1{path}?days=90");
        let refused = api.send(Method::GET, &uri, &[("Authorization", &standard)]).await;
        refused.fails(400, "invalid_period", &uri);
        assert!(refused.sentence().contains("7, 30;") && refused.sentence().contains("60 days"));
    }
}

#[actix_web::test]
async fn an_ambiguous_name_lists_its_files() {
    let api = Api::new();
    for path in [
        format!("tests/{TWICE}"),
        format!("tests/{TWICE}/status"),
        format!("runs/{RUN}/tests/{TWICE}"),
    ] {
        let path = format!("/projects/{PROJECT}/{path}");
        let refused = api.get(&path).await;
        refused.fails(400, "ambiguous_test", &path);
        assert!(
            refused
                .sentence()
                .ends_with("one of: \"\", \"b \\\"quoted\\\".ts\""),
            "{}",
            refused.sentence()
        );

        let without = api.get(&format!("{path}?filePath=")).await.ok();
        assert_eq!(without["test"]["filePath"], serde_json::Value::Null);
        let with = api.get(&format!("{path}?filePath=b+%22quoted%22.ts")).await.ok();
        assert_eq!(with["test"]["filePath"], "b \"quoted\".ts");
        let none = api.get(&format!("{path}?filePath=c.ts")).await;
        none.fails(404, "test_not_found", &path);
    }
}

#[actix_web::test]
async fn a_name_is_found_exactly_as_it_is_stored() {
    let api = Api::new();
    let answer = api
        .get(&format!("/projects/{PROJECT}/tests/{TEST_ENCODED}"))
        .await
        .ok();
    assert_eq!(
        answer["test"],
        serde_json::json!({"name": TEST, "filePath": FILE})
    );
    // In a path a plus is a plus.
    let spaced = TEST_ENCODED.replace("%20", "+");
    api.get(&format!("/projects/{PROJECT}/tests/{spaced}"))
        .await
        .fails(404, "test_not_found", &spaced);
}

#[actix_web::test]
async fn cursors_lead_through_every_run_once_and_back() {
    let api = Api::new();
    let path = format!("/projects/{PROJECT}/runs");
    let mut numbers = Vec::new();
    let mut page = api.get(&path).await.ok();
    assert_eq!(page["prevCursor"], serde_json::Value::Null);
    loop {
        numbers.extend(
            page["runs"]
                .as_array()
                .unwrap()
                .iter()
                .map(|run| run["runNumber"].as_i64().unwrap()),
        );
        let Some(cursor) = page["nextCursor"].as_str() else {
            break;
        };
        page = api
            .get(&format!("{path}?cursor={cursor}&direction=next"))
            .await
            .ok();
        assert!(page["prevCursor"].is_string());
    }
    assert_eq!(numbers, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(page["total"], 10);
}

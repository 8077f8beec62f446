//! The failures of a run: their causes, the gate, pages.

use serde_json::{Value, json};

use crate::{
    client::Api,
    ids::{FILE, FINGERPRINT, NOW, PROJECT, RUN, SHARD},
};

async fn failures(query: &str) -> Value {
    Api::new()
        .get(&format!("/projects/{PROJECT}/runs/{RUN}/failures{query}"))
        .await
        .ok()
}

fn fields(value: &Value) -> String {
    let mut names: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names.join(" ")
}

#[actix_web::test]
async fn has_exactly_the_documented_fields() {
    let body = failures("").await;
    assert_eq!(
        fields(&body),
        "failures gate incomplete mode onStable page project run"
    );
    assert_eq!(
        body["run"],
        json!({"id": RUN, "runNumber": 20, "branch": "main", "commitSha": "c0ffee", "status": "failed", "trusted": true, "tests": 3})
    );
    assert_eq!(body["mode"], "at_the_time");
    assert_eq!(fields(&body["gate"]), "action byCause mine");
    assert_eq!(
        fields(&body["gate"]["byCause"]),
        "broken_before earlier_on_branch environment flake this_change unclear"
    );
    let failure = &body["failures"][0];
    assert_eq!(
        fields(failure),
        "action attempts breakage cause evidence explanation filePath fingerprint firstFailedAt inMassFailure mine owners ownersAmbiguous probabilities \
         runsElsewhere sameError stable status testName title verdict"
    );
    assert_eq!(
        fields(&failure["probabilities"]),
        "brokenBefore earlierOnBranch environment flake thisChange"
    );
    assert_eq!(
        fields(&failure["sameError"]),
        "asFlake here inThisRun onStable otherBranches otherTests"
    );
    assert_eq!(failure["verdict"]["evaluatedAt"], NOW.to_string());
    assert_eq!(body["failures"][1]["verdict"], Value::Null);
    assert_eq!(failure["fingerprint"], FINGERPRINT);
    assert_eq!(failure["filePath"], FILE);
}

#[actix_web::test]
async fn a_broken_test_was_broken_before_and_a_new_failure_comes_first() {
    let body = failures("").await;
    let names: Vec<_> = body["failures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|failure| failure["testName"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["failing", "broken"]);
    let broken = &body["failures"][1];
    assert_eq!(broken["cause"], "broken_before");
    assert_eq!(broken["explanation"], "Fails on main since run 15");
    assert_eq!(
        broken["stable"],
        json!({"lastStatus": "failed", "failureStreak": 6})
    );
    assert_eq!(
        broken["evidence"],
        json!({"runs": [{"runId": "run-14", "says": "failing_since"}], "runsTotal": 1})
    );
    assert_eq!(broken["action"], "pass");
    let sum: f64 = broken["probabilities"]
        .as_object()
        .unwrap()
        .values()
        .map(|share| share.as_f64().unwrap())
        .sum();
    assert!((sum - 1.0).abs() < 1e-9);
}

#[actix_web::test]
async fn a_shards_id_names_the_run_and_pages_are_cut() {
    let by_shard = Api::new()
        .get(&format!("/projects/{PROJECT}/runs/{SHARD}/failures"))
        .await
        .ok();
    assert_eq!(by_shard, failures("").await);
    for (query, page, per_page) in [("", 1, 10), ("?limit=200", 1, 200), ("?page=7&limit=25", 1, 25)] {
        let body = failures(query).await;
        let expected = json!({"page": page, "perPage": per_page, "total": 2, "pageCount": 1});
        assert_eq!(body["page"], expected, "{query}");
    }
    for bad in ["?limit=20", "?mode=later", "?page=0"] {
        let path = format!("/projects/{PROJECT}/runs/{RUN}/failures{bad}");
        Api::new().get(&path).await.fails(400, "invalid_parameter", &path);
    }
}

//! Every envelope has exactly the documented fields, with null for unknown values.

use serde_json::{Value, json};

use crate::{
    client::Api,
    ids::{FILE, FINGERPRINT, NOW, PROJECT, RUN, SHARD, TEST, TEST_ENCODED},
};

fn fields(value: &Value) -> String {
    let object = value
        .as_object()
        .unwrap_or_else(|| panic!("{value} is no object"));
    let mut names: Vec<_> = object.keys().map(String::as_str).collect();
    names.sort_unstable();
    names.join(" ")
}

async fn get(path: &str) -> Value {
    let body = Api::new().get(path).await.ok();
    if path != "/projects" {
        assert_eq!(body["project"], json!({"id": PROJECT, "name": "shop"}));
    }
    body
}

#[actix_web::test]
async fn project_list() {
    let entry = json!({
        "id": PROJECT, "name": "shop", "stableBranch": "main", "createdAt": NOW.plus_days(-100).to_string(),
    });
    assert_eq!(get("/projects").await, json!({"projects": [entry]}));
}

#[actix_web::test]
async fn run_list() {
    let body = get(&format!("/projects/{PROJECT}/runs")).await;
    assert_eq!(
        fields(&body),
        "nextCursor prevCursor project runs stableBranch total window"
    );
    assert_eq!(fields(&body["window"]), "days from to");
    assert_eq!(
        body["runs"][0],
        json!({
            "id": RUN, "runNumber": 10, "branch": "main", "commitSha": null, "testedRevision": null,
            "pullRequestNumber": null, "status": null, "startedAt": NOW.plus_ms(-90).to_string(),
            "finishedAt": null, "durationMs": null, "trusted": true, "suite": null,
            "counts": {"total": 3, "passed": 2, "failed": 1, "skipped": 0, "recovered": 1},
            "shards": {"received": 1, "expected": null},
        })
    );
}

#[actix_web::test]
async fn run_detail() {
    let body = get(&format!("/projects/{PROJECT}/runs/{RUN}")).await;
    assert_eq!(fields(&body), "counts project run tests");
    assert_eq!(
        body["run"],
        json!({
            "id": RUN, "runNumber": 41, "branch": null, "commitSha": null, "commitMessage": null, "authorName": null,
            "testedRevision": null, "pullRequestNumber": null, "pullRequestTitle": null, "ciProvider": null,
            "suite": null, "runUrl": null, "status": "incomplete", "startedAt": NOW.plus_ms(-5).to_string(), "finishedAt": null,
            "durationMs": null, "reportErrors": [], "omittedReportErrors": 0, "trusted": true,
            "shards": {
                "expected": 2,
                "received": [{"runId": SHARD, "index": 1, "runState": "completed", "status": "passed"}],
            },
        })
    );
    assert_eq!(
        body["tests"][0],
        json!({
            "testName": TEST, "filePath": FILE, "status": "passed", "attempts": 2, "durationMs": null,
            "errorMessage": null, "fingerprint": null, "browserName": null, "shard": null,
        })
    );
}

#[actix_web::test]
async fn attempts() {
    let mut body = get(&format!("/projects/{PROJECT}/runs/{RUN}/tests/{TEST_ENCODED}")).await;
    assert_eq!(fields(&body), "attempts omittedAttempts project run test");
    assert_eq!(body["run"], json!({"id": RUN, "runNumber": 41, "branch": "main"}));
    assert_eq!(body["test"], json!({"name": TEST, "filePath": FILE}));
    let prompt = body["attempts"][0]["copyPrompt"].take();
    assert!(prompt.as_str().unwrap().contains("expected 3, got 4"));
    let shard = json!({"index": 1, "runId": RUN});
    let location = json!({"file": FILE, "line": 12, "column": null});
    assert_eq!(
        body["attempts"],
        json!([
            {
                "execution": 0, "retry": 0, "label": "first try", "status": "failed", "durationMs": 1200, "browserName": null, "skipReason": null,
                "errors": [
                    {"message": "expected 3, got 4", "stack": null, "snippet": null, "location": location},
                    {"message": null, "stack": null, "snippet": null, "location": null},
                ],
                "omittedErrors": 0, "attachments": [], "output": null, "copyPrompt": null, "shard": shard,
            },
            {
                "execution": 0, "retry": 1, "label": "retry #1", "status": "passed", "durationMs": 1200, "browserName": null, "skipReason": null,
                "errors": [], "omittedErrors": 0, "attachments": [], "output": null, "copyPrompt": null, "shard": shard,
            },
        ])
    );
}

#[actix_web::test]
async fn signature_list_and_detail() {
    let list = get(&format!("/projects/{PROJECT}/errors")).await;
    assert_eq!(
        fields(&list),
        "errors page project sort unfingerprintedCount window"
    );
    assert_eq!(
        list["page"],
        json!({"page": 1, "perPage": 10, "total": 1, "pageCount": 1})
    );
    assert_eq!(
        (&list["sort"], &list["unfingerprintedCount"]),
        (&json!("occurrences"), &json!(4))
    );

    let detail = get(&format!("/projects/{PROJECT}/errors/{FINGERPRINT}")).await;
    assert_eq!(
        fields(&detail),
        "project runs signature tests truncated window windowEmpty"
    );
    assert_eq!(detail["signature"], list["errors"][0]);
    assert_eq!(
        detail["signature"],
        json!({
            "fingerprint": FINGERPRINT, "title": "expected 3, got 4", "message": null, "category": "assertion",
            "filePath": null, "fileCount": 0, "testCount": 1, "testNames": [TEST], "occurrenceCount": 1,
            "runCount": 1, "firstSeen": NOW.plus_ms(-5).to_string(), "lastSeen": NOW.plus_ms(-5).to_string(),
            "isNew": true, "truncated": false,
        })
    );
    assert_eq!(
        detail["tests"],
        json!([{"testName": TEST, "filePath": null, "occurrenceCount": 1}])
    );
    assert_eq!(
        detail["runs"],
        json!([{
            "runId": RUN, "runNumber": 41, "branch": null, "startedAt": NOW.plus_ms(-5).to_string(),
            "testName": TEST, "filePath": null, "attempts": 2, "occurrences": 1, "finalStatus": "passed",
        }])
    );
}

#[actix_web::test]
async fn history() {
    let body = get(&format!("/projects/{PROJECT}/tests/{TEST_ENCODED}")).await;
    assert_eq!(
        fields(&body),
        "occurrences project stableBranch test window writtenName"
    );
    assert_eq!(
        body["occurrences"],
        json!([{
            "runId": RUN, "runNumber": 41, "branch": null, "testedRevision": null, "commitSha": null, "suite": null,
            "startedAt": NOW.plus_ms(-5).to_string(), "status": "passed", "durationMs": null, "attempts": 2,
            "wastedMs": 1200, "lostMs": null, "anyFailedAttempt": true, "revisionBranch": null,
            "revisionSeenAt": NOW.plus_ms(-5).to_string(),
        }])
    );
}

#[actix_web::test]
async fn verdict_that_awaits_its_first_write() {
    let body = get(&format!("/projects/{PROJECT}/tests/{TEST_ENCODED}/status")).await;
    assert_eq!(
        body,
        json!({
            "project": {"id": PROJECT, "name": "shop"}, "test": {"name": TEST, "filePath": FILE},
            "status": "insufficient_data", "awaitingFirstWrite": true, "activeSignals": [], "labels": [], "failingOn": [],
            "statusReason": null, "explanation": null, "flakeScore": null, "flipRate": null, "failureRate": null,
            "runsConsidered": null, "failureStreak": null, "evaluatedAt": null, "lastRun": null, "evidence": null,
        })
    );
}

#[actix_web::test]
async fn settings_and_branches() {
    let body = get(&format!("/projects/{PROJECT}/settings")).await;
    assert_eq!(
        body["settings"],
        json!({
            "stableBranch": "main", "retentionDays": 90,
            "chat": {"configured": true, "events": ["test_flaky"]}, "repohost": {"prCommentsEnabled": true}, "stableNames": true,
        })
    );
    assert_eq!(fields(&body), "project settings");

    let body = get(&format!("/projects/{PROJECT}/branches")).await;
    assert_eq!(fields(&body), "branches project truncated");
    assert_eq!(body["branches"], json!(["Main", "main"]));
}

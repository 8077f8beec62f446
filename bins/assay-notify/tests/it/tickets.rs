//! Targets that open issues of Jira and Linear, as `deploy/notify.example.toml` has them. The receivers check the requests
//! by the forms that the two services document, and answer as they do.

use assay_testkit::{Answer, Receiver, assert_contains, stderr_text};
use serde_json::{Value, json};

use crate::{
    delivery::{import, outcomes, pass, world},
    program::run,
};

const EXAMPLE: &str = include_str!("../../../../deploy/notify.example.toml");

/// The example's target of this name, with the receiver's address.
fn target(name: &str, receiver: &Receiver) -> String {
    let of_target = EXAMPLE
        .split("[[target]]\n")
        .find(|text| text.starts_with(&format!("name = \"{name}\"")))
        .unwrap();
    let address = of_target
        .split('"')
        .find(|text| text.starts_with("https://"))
        .unwrap();
    let own = of_target.replace(address, &format!("http://127.0.0.1:{}/", receiver.port));
    format!("private_addresses = [\"127.0.0.1\"]\n[[target]]\n{own}")
}

/// What Jira's `POST /rest/api/3/issue` answers with status 400; none if the request is a valid one.
fn refused_by_jira(body: &str) -> Option<Value> {
    let refused = |field: &str, reason: &str| Some(json!({"errorMessages": [], "errors": {field: reason}}));
    let Ok(body) = serde_json::from_str::<Value>(body) else {
        return Some(json!({"errorMessages": ["There was an error parsing JSON."]}));
    };
    let fields = &body["fields"];
    let summary = fields["summary"].as_str().unwrap_or_default();
    let description = &fields["description"];
    let is_document = description["type"] == "doc"
        && description["version"] == 1
        && description["content"].as_array().is_some_and(|content| {
            let texts = content
                .iter()
                .flat_map(|block| block["content"].as_array().into_iter().flatten());
            texts.clone().count() > 0
                && texts.into_iter().all(|node| {
                    node["type"] == "text" && node["text"].as_str().is_some_and(|text| !text.is_empty())
                })
        });
    if !fields["project"]["key"].is_string() {
        refused("project", "project is required")
    } else if !fields["issuetype"]["name"].is_string() {
        refused("issuetype", "The issue type selected is invalid.")
    } else if summary.is_empty() {
        refused("summary", "You must specify a summary of the issue.")
    } else if summary.chars().count() > 255 || summary.contains('\n') {
        refused(
            "summary",
            "The summary is invalid because it contains newline characters or is too long.",
        )
    } else if !is_document {
        refused(
            "description",
            "Operation value must be an Atlassian Document (see the Atlassian Document Format)",
        )
    } else {
        None
    }
}

/// The message of Linear's error; none if the request is a valid one.
fn refused_by_linear(body: &str) -> Option<&'static str> {
    let body: Value = serde_json::from_str(body).unwrap();
    let query = body["query"].as_str().unwrap_or_default();
    let input = &body["variables"]["input"];
    if !query.contains("issueCreate(input: $input)") || !query.contains("$input: IssueCreateInput!") {
        Some("Syntax Error: Unexpected Name")
    } else if input["teamId"]
        .as_str()
        .is_none_or(|id| uuid::Uuid::try_parse(id).is_err())
    {
        Some("Argument Validation Error")
    } else if input["title"].as_str().is_none_or(str::is_empty) {
        Some("title should not be empty")
    } else {
        None
    }
}

#[test]
fn a_breakage_opens_an_issue_of_jira_by_the_form_that_jira_documents() {
    let (world, receiver) = (world(), Receiver::new());
    let jira = target("jira", &receiver);
    pass(&world, &jira);
    import(&world, 60, "c000000000", &outcomes(3, 1));
    let error = json!({"errorMessages": [], "errors": {"issuetype": "The issue type selected is invalid."}});
    receiver.answer(Answer::Status(400, error.to_string()));
    let refused = run(&world, &jira, &["--once"]);
    assert_contains(&stderr_text(&refused), "answers with status 400");
    receiver.answer(Answer::Status(
        201,
        r#"{"id": "10000", "key": "WEB-24", "self": "https://example"}"#.to_owned(),
    ));
    world
        .database
        .execute("UPDATE message SET next_attempt_at = now() - interval '1 second'");
    pass(&world, &jira);
    pass(&world, &jira);
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2, "an issue that was opened is not opened again");
    let created = &requests[1];
    assert_eq!(refused_by_jira(&created.body), None, "{}", created.body);
    assert_eq!(created.headers["authorization"], "Basic SECRET");
    let fields = &serde_json::from_str::<Value>(&created.body).unwrap()["fields"];
    assert_contains(
        fields["summary"].as_str().unwrap(),
        "web: 1 test broke since c0000000",
    );
    assert_contains(fields["description"].to_string().as_str(), "test 0");
    for part in ["\"project\"", "\"issuetype\"", "\"summary\"", "\"doc\""] {
        let without = created.body.replace(part, "\"other\"");
        assert!(refused_by_jira(&without).is_some(), "{part}");
    }
}

#[test]
fn a_breakage_opens_an_issue_of_linear_and_an_error_with_status_200_is_a_refusal() {
    let (world, receiver) = (world(), Receiver::new());
    let linear = target("linear", &receiver);
    pass(&world, &linear);
    import(&world, 60, "c000000000", &outcomes(3, 1));
    let error = json!({"errors": [{"message": "Argument Validation Error", "extensions": {"code": "INVALID_INPUT"}}]});
    receiver.answer(Answer::Status(200, error.to_string()));
    let refused = run(&world, &linear, &["--once"]);
    assert_contains(
        &stderr_text(&refused),
        "refuses the message: Argument Validation Error",
    );
    receiver.answer(Answer::Status(
        200,
        r#"{"data": {"issueCreate": {"success": true}}}"#.to_owned(),
    ));
    world
        .database
        .execute("UPDATE message SET next_attempt_at = now() - interval '1 second'");
    pass(&world, &linear);
    pass(&world, &linear);
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2);
    let created = &requests[1];
    assert_eq!(refused_by_linear(&created.body), None, "{}", created.body);
    assert_eq!(created.headers["authorization"], "SECRET");
    for part in ["issueCreate", "teamId", "title"] {
        assert!(
            refused_by_linear(&created.body.replace(part, "other")).is_some(),
            "{part}"
        );
    }
}

//! The responses of errors, each with its condition and the client's action.

use serde_json::Value;

use crate::{
    Failure, Operation,
    json::{object, reference},
};

/// All errors. The argument is the parameter in the example of a bad one.
pub type Failures = fn(&'static str) -> Vec<Failure>;

/// The errors that every route may answer, each status a component of this name.
const COMMON: [(u16, &str, &str); 5] = [
    (401, "Unauthorized", "The key is missing or not valid."),
    (
        403,
        "Forbidden",
        "The organization's plan does not include the read API.",
    ),
    (429, "TooManyRequests", ""),
    (500, "InternalError", "The server failed."),
    (
        503,
        "Unavailable",
        "The server cannot answer now: its database is unreachable or too slow, or the server is overloaded.",
    ),
];

/// The code for a rejection that has no body.
pub(crate) const RATE_LIMITED: &str = "rate_limited";

/// The responses of an operation besides its success: its own, then references to the common ones.
pub(crate) fn responses(failures: Failures, path: &str, operation: &Operation) -> Vec<(String, Value)> {
    let failures_of_route = failures_of_operation(failures, path, operation);
    let mut responses: Vec<_> = [
        (400, "The request is not valid."),
        (404, "There is no resource with this id or name."),
    ]
    .into_iter()
    .filter_map(|(status, summary)| {
        let failures: Vec<_> = failures_of_route
            .iter()
            .filter(|failure| failure.status == status)
            .collect();
        (!failures.is_empty()).then(|| (status.to_string(), response(summary, &failures)))
    })
    .collect();
    responses.extend(COMMON.map(|(status, name, _)| (status.to_string(), reference("responses", name))));
    responses.sort_by(|(left, _), (right, _)| left.cmp(right));
    responses
}

/// The common responses, by name.
pub(crate) fn components(failures: Failures) -> Value {
    let all = failures("");
    COMMON
        .into_iter()
        .map(|(status, name, summary)| {
            let failures: Vec<_> = all.iter().filter(|failure| failure.status == status).collect();
            let response = if failures.is_empty() {
                too_many_requests()
            } else {
                response(summary, &failures)
            };
            (name, response)
        })
        .collect()
}

/// Every code, in the order of the document.
pub(crate) fn codes(failures: Failures) -> Vec<&'static str> {
    let mut codes: Vec<_> = failures("").iter().map(|failure| failure.code).collect();
    codes.push(RATE_LIMITED);
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// The errors of an operation that follow from its path and parameters.
fn failures_of_operation(failures: Failures, path: &str, operation: &Operation) -> Vec<Failure> {
    let has_other_parameters = operation.query.iter().any(|name| *name != "days");
    let may = |failure: &Failure| match failure.code {
        "invalid_period" => operation.query.contains(&"days"),
        "invalid_parameter" => has_other_parameters,
        "ambiguous_test" | "test_not_found" => path.contains("{testName}"),
        "project_not_found" => path.contains("{projectId}"),
        "commit_not_found" => path.contains("{commitSha}"),
        "branch_not_found" => path.contains("{branchName}"),
        "run_not_found" => path.contains("{runId}"),
        "error_not_found" => path.contains("{fingerprint}"),
        _ if COMMON.iter().any(|(status, ..)| *status == failure.status) => false,
        other => panic!("the routes that answer {other} are not listed here"),
    };
    let parameter = operation.query.iter().find(|name| **name != "days");
    let parameter = if operation.query.contains(&"perPage") {
        "perPage"
    } else {
        parameter.unwrap_or(&"")
    };
    failures(parameter).into_iter().filter(may).collect()
}

fn response(summary: &str, failures: &[&Failure]) -> Value {
    let lines = failures
        .iter()
        .map(|failure| format!("\n- `{}`: {} {}", failure.code, failure.when, failure.action));
    let description: String = [summary.to_owned(), "\n".to_owned()]
        .into_iter()
        .chain(lines)
        .collect();
    let examples: Value = failures
        .iter()
        .map(|failure| {
            (
                failure.code,
                object([("summary", failure.when.into()), ("value", failure.body.clone())]),
            )
        })
        .collect();
    let codes = failures.iter().map(|failure| {
        object([
            ("code", failure.code.into()),
            ("when", failure.when.into()),
            ("action", failure.action.into()),
        ])
    });
    let body = object([
        ("schema", reference("schemas", "ErrorBody")),
        ("examples", examples),
    ]);
    object([
        ("description", description.into()),
        ("headers", headers(failures[0].status)),
        ("content", object([("application/json", body)])),
        ("x-codes", Value::Array(codes.collect())),
    ])
}

fn headers(status: u16) -> Value {
    let challenge = (status == 401).then_some("WWW-Authenticate");
    let retry_after = (status == 503).then_some("Retry-After");
    ["Cache-Control", "X-Request-Id"]
        .into_iter()
        .chain(challenge)
        .chain(retry_after)
        .map(|name| (name, reference("headers", name)))
        .collect()
}

fn too_many_requests() -> Value {
    let when = "More than 60 requests within a window of 60 seconds with one read key, however the header is spelled.";
    let action = "Wait 60 seconds, then retry.";
    let code = object([
        ("code", RATE_LIMITED.into()),
        ("when", when.into()),
        ("action", action.into()),
    ]);
    object([
        (
            "description",
            format!("{when} The body is empty, and there is no `Retry-After` header. {action}").into(),
        ),
        ("x-codes", Value::Array(vec![code])),
    ])
}

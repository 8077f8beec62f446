//! Every error, with its condition and the client's action.

use assay_access::check::Refusal;
use assay_domain::{plan::Plan, store::StoreError, test::CandidateFiles};
use assay_http::Problem;

use serde_json::Value;

use super::{
    json::{object, reference},
    operations::Operation,
};
use crate::error::{ApiError, ErrorBody};

/// An error that a route may answer.
pub(super) struct Failure {
    error: ApiError,
    when: &'static str,
    action: &'static str,
}

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
pub(super) const RATE_LIMITED: &str = "rate_limited";

/// The responses of an operation besides its success: its own, then references to the common ones.
pub(super) fn responses(path: &str, operation: &Operation) -> Vec<(String, Value)> {
    let failures_of_route = failures_of_operation(path, operation);
    let mut responses: Vec<_> = [
        (400, "The request is not valid."),
        (404, "There is no resource with this id or name."),
    ]
    .into_iter()
    .filter_map(|(status, summary)| {
        let failures: Vec<_> = failures_of_route
            .iter()
            .filter(|failure| failure.status() == status)
            .collect();
        (!failures.is_empty()).then(|| (status.to_string(), response(summary, &failures)))
    })
    .collect();
    responses.extend(COMMON.map(|(status, name, _)| (status.to_string(), reference("responses", name))));
    responses.sort_by(|(left, _), (right, _)| left.cmp(right));
    responses
}

/// The common responses, by name.
pub(super) fn components() -> Value {
    let common = common();
    COMMON
        .into_iter()
        .map(|(status, name, summary)| {
            let failures: Vec<_> = common
                .iter()
                .filter(|failure| failure.status() == status)
                .collect();
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
pub(super) fn codes() -> Vec<&'static str> {
    let mut codes: Vec<_> = common()
        .iter()
        .chain(&errors_of_some_routes("perPage"))
        .map(Failure::code)
        .collect();
    codes.push(RATE_LIMITED);
    codes.sort_unstable();
    codes.dedup();
    codes
}

impl Failure {
    const fn new(error: ApiError, when: &'static str, action: &'static str) -> Self {
        Self { error, when, action }
    }

    fn status(&self) -> u16 {
        self.error.status_and_code().0.as_u16()
    }

    const fn code(&self) -> &'static str {
        self.error.code()
    }
}

fn common() -> Vec<Failure> {
    let refused = |refusal: Refusal| ApiError::from(Problem::from(refusal));
    vec![
        Failure::new(
            refused(Refusal::MissingKey),
            "No `Authorization` header with a bearer key.",
            "Send the key; do not retry without it.",
        ),
        Failure::new(
            refused(Refusal::WrongKeyType),
            "A project's ingest key was used.",
            "Use an organization read key; do not retry.",
        ),
        Failure::new(
            refused(Refusal::InvalidKey),
            "The read key is unknown or malformed.",
            "Check the key or create one; do not retry.",
        ),
        Failure::new(
            refused(Refusal::KeyRevoked),
            "The read key was revoked.",
            "Create a new key.",
        ),
        Failure::new(
            refused(Refusal::KeyExpired),
            "The read key is past its expiry.",
            "Create a new key.",
        ),
        Failure::new(
            refused(Refusal::TierTooLow),
            "The organization is on the Free plan.",
            "Upgrade to Standard or Pro; the same key then works.",
        ),
        Failure::new(
            Problem::Panicked.into(),
            "A failure of the server.",
            "Retry with exponential backoff, from 1 to at most 30 seconds.",
        ),
        Failure::new(
            StoreError::Unreachable("".into()).into(),
            "The database is unreachable or too slow, or the server is overloaded.",
            "Retry with exponential backoff, from 1 to at most 30 seconds.",
        ),
    ]
}

/// The errors of an operation that follow from its path and parameters.
fn failures_of_operation(path: &str, operation: &Operation) -> Vec<Failure> {
    let has_other_parameters = operation.query.iter().any(|name| *name != "days");
    let may = |failure: &Failure| match failure.code() {
        "invalid_period" => operation.query.contains(&"days"),
        "invalid_parameter" => has_other_parameters,
        "ambiguous_test" | "test_not_found" => path.contains("{testName}"),
        "project_not_found" => path.contains("{projectId}"),
        "commit_not_found" => path.contains("{commitSha}"),
        "run_not_found" => path.contains("{runId}"),
        "error_not_found" => path.contains("{fingerprint}"),
        other => panic!("the routes that answer {other} are not listed here"),
    };
    let parameter = operation.query.iter().find(|name| **name != "days");
    let parameter = if operation.query.contains(&"perPage") {
        "perPage"
    } else {
        parameter.unwrap_or(&"")
    };
    errors_of_some_routes(parameter).into_iter().filter(may).collect()
}

/// The errors that only some routes have. `parameter` is the one in the example.
fn errors_of_some_routes(parameter: &'static str) -> Vec<Failure> {
    let files = ["tests/api/cart.spec.ts", "tests/ui/cart.spec.ts"];
    let files = CandidateFiles::first_of(files.map(|file| Some(file.to_owned())).into_iter());
    let bad = ApiError::BadParameter {
        name: parameter,
        rule: if parameter == "perPage" {
            "must be one of 10, 25, 50"
        } else {
            "must be given once"
        }
        .to_owned(),
    };
    vec![
        Failure::new(
            ApiError::BadPeriod(Plan::Standard),
            "`days` is not 7, 30 or 90, or exceeds the plan's retention (Standard 60, Pro 90).",
            "Use 7, 30 or 90 within the retention; do not retry.",
        ),
        Failure::new(
            bad,
            "A parameter is not valid or repeated. The sentence names it.",
            "Fix the request; do not retry.",
        ),
        Failure::new(
            ApiError::AmbiguousTest(files),
            "Several tests have the name. The sentence lists their files as JSON strings, a test without a file as `\"\"`: at most 50, and the number of the others.",
            "Repeat with `filePath` set to one of them.",
        ),
        Failure::new(
            ApiError::ProjectNotFound,
            "The organization has no project with this id.",
            "Take the id from `GET /projects`.",
        ),
        Failure::new(
            ApiError::RunNotFound,
            "The project has no visible run with this id.",
            "Take the id from the runs list.",
        ),
        Failure::new(
            ApiError::CommitNotFound,
            "The project has no visible run of this commit.",
            "Take the commit from the runs list.",
        ),
        Failure::new(
            ApiError::TestNotFound,
            "No test has this name, or not in this file.",
            "Check `testName` and `filePath` exactly as stored.",
        ),
        Failure::new(
            ApiError::SignatureNotFound,
            "The project has no error signature with this fingerprint.",
            "Take the fingerprint from the error-signature list.",
        ),
    ]
}

fn response(summary: &str, failures: &[&Failure]) -> Value {
    let lines = failures
        .iter()
        .map(|failure| format!("\n- `{}`: {} {}", failure.code(), failure.when, failure.action));
    let description: String = [summary.to_owned(), "\n".to_owned()]
        .into_iter()
        .chain(lines)
        .collect();
    let examples: Value = failures
        .iter()
        .map(|failure| {
            let body = serde_json::to_value(ErrorBody::of(&failure.error)).unwrap();
            (
                failure.code(),
                object([("summary", failure.when.into()), ("value", body)]),
            )
        })
        .collect();
    let codes = failures.iter().map(|failure| {
        object([
            ("code", failure.code().into()),
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
        ("headers", headers(failures[0].status())),
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

//! The description of the API, from what the routes declare and these errors.

use assay_access::check::Refusal;
use assay_domain::{plan::Plan, store::StoreError, test::CandidateFiles};
use assay_http::{Problem, Unanswerable};
use assay_openapi::{Api, Failure, assert_current, document, json::pretty, register, render};

use crate::{
    error::{ApiError, ErrorBody},
    route::BASE,
    routes::ROUTES,
};

#[test]
fn the_checked_in_description_equals_the_generated_one() {
    let operations = ROUTES.iter().map(|route| {
        let operation = route.operation.as_ref();
        (
            route.path,
            operation.unwrap_or_else(|| panic!("{} is not described", route.path)),
        )
    });
    let document = document(&Api {
        base: BASE,
        operations: operations.collect(),
        error: register::<ErrorBody>,
        failures: |parameter| common().into_iter().chain(of_some_routes(parameter)).collect(),
    });
    assert_current("openapi.json", &pretty(&document));
    assert_current("reference.html", &render(&document));
}

/// An error with its condition and the client's action.
fn failure(error: impl Into<ApiError>, when: &'static str, action: &'static str) -> Failure {
    let error = error.into();
    let (status, code) = error.status_and_code();
    Failure {
        status: status.as_u16(),
        code,
        body: serde_json::to_value(ErrorBody::of(&error)).unwrap(),
        when,
        action,
    }
}

/// The errors of every route.
fn common() -> Vec<Failure> {
    let refused = |refusal: Refusal| ApiError::from(Problem::from(refusal));
    vec![
        failure(
            refused(Refusal::MissingKey),
            "No `Authorization` header with a bearer key.",
            "Send the key; do not retry without it.",
        ),
        failure(
            refused(Refusal::WrongKeyType),
            "A project's ingest key was used.",
            "Use an organization read key; do not retry.",
        ),
        failure(
            refused(Refusal::InvalidKey),
            "The read key is unknown or malformed.",
            "Check the key or create one; do not retry.",
        ),
        failure(
            refused(Refusal::KeyRevoked),
            "The read key was revoked.",
            "Create a new key.",
        ),
        failure(
            refused(Refusal::KeyExpired),
            "The read key is past its expiry.",
            "Create a new key.",
        ),
        failure(
            refused(Refusal::TierTooLow),
            "The organization is on the Free plan.",
            "Upgrade to Standard or Pro; the same key then works.",
        ),
        failure(
            Problem::Panicked,
            "A failure of the server.",
            "Retry with exponential backoff, from 1 to at most 30 seconds.",
        ),
        failure(
            StoreError::Unreachable("".into()),
            "The database is unreachable or too slow, or the server is overloaded.",
            "Retry with exponential backoff, from 1 to at most 30 seconds.",
        ),
    ]
}

/// The errors that only some routes have. `parameter` is the one in the example.
fn of_some_routes(parameter: &'static str) -> Vec<Failure> {
    let files = ["tests/api/cart.spec.ts", "tests/ui/cart.spec.ts"];
    let files = CandidateFiles::first_of(files.map(|file| Some(file.to_owned())).into_iter());
    let bad = Unanswerable::BadParameter {
        name: parameter,
        rule: if parameter == "perPage" {
            "must be one of 10, 25, 50"
        } else {
            "must be given once"
        }
        .to_owned(),
    };
    vec![
        failure(
            Unanswerable::BadPeriod(Plan::Standard),
            "`days` is not 7, 30 or 90, or exceeds the plan's retention (Standard 60, Pro 90).",
            "Use 7, 30 or 90 within the retention; do not retry.",
        ),
        failure(
            bad,
            "A parameter is not valid or repeated. The sentence names it.",
            "Fix the request; do not retry.",
        ),
        failure(
            Unanswerable::AmbiguousTest(files),
            "Several tests have the name. The sentence lists their files as JSON strings, a test without a file as `\"\"`: at most 50, and the number of the others.",
            "Repeat with `filePath` set to one of them.",
        ),
        failure(
            Unanswerable::ProjectNotFound,
            "The organization has no project with this id.",
            "Take the id from `GET /projects`.",
        ),
        failure(
            Unanswerable::RunNotFound,
            "The project has no visible run with this id.",
            "Take the id from the runs list.",
        ),
        failure(
            Unanswerable::CommitNotFound,
            "The project has no visible run of this commit.",
            "Take the commit from the runs list.",
        ),
        failure(
            Unanswerable::BranchNotFound,
            "The project has no visible run of this branch.",
            "Take the branch from the list of branches.",
        ),
        failure(
            Unanswerable::TestNotFound,
            "No test has this name, or not in this file.",
            "Check `testName` and `filePath` exactly as stored.",
        ),
        failure(
            Unanswerable::SignatureNotFound,
            "The project has no error signature with this fingerprint.",
            "Take the fingerprint from the error-signature list.",
        ),
    ]
}

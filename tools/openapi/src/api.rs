//! The document of the read API.

use serde_json::Value;

use crate::{
    Failures, Operation, Register, errors, headers,
    json::{Fields, object, reference, texts},
    operation::TAGS,
    parameters, schemas,
};

const INTRODUCTION: &str = "\
The CI test results of every project of one organization, read-only. There are only GET operations (and HEAD, which \
answers as GET without a body). Any other method gets 405 and an unknown path 404, both with the code \
`invalid_parameter`.

Every request needs `Authorization: Bearer svc_ro_…`, an organization read key. A key expires 30, 60, 90 or 180 days \
after its creation and cannot be renewed. In the last seven days, answers have the header `Service-Key-Expires-At`.

Each route has a cost: cheap, moderate or expensive. Successful answers have the key's remaining budget in \
`RateLimit` and `RateLimit-Policy`.

Conventions:

- Every field is always present, with null for an unknown value. Fields may be added; ignore unknown ones.
- Timestamps are UTC with milliseconds: `2026-11-20T18:46:03.120Z`. Durations are whole milliseconds.
- An id that does not exist and one that belongs to another organization get the same 404, byte for byte.
- A repeated parameter is not valid; an unknown one is ignored.
- An error's `code` is stable; its sentence may be reworded.
- Retry only 429, after 60 seconds, and 5xx, with exponential backoff from 1 to 30 seconds. Never retry 400, 401, 403 \
or 404: the same request gets the same answer.
- Bodies above 16 KB are compressed with gzip, Brotli or Zstandard where `Accept-Encoding` allows it.

From a question to its requests:

- Is this test flaky, or did I break it? `getTestStatus`, by the exact name; `listFlakyTests` with `search` finds the name.
- Since when? `getTestHistory`: the oldest occurrence with `anyFailedAttempt`; `branch` is its branch.
- Which error is the cause? `listErrors` with the test's file as `search`: the entry whose `testNames` has the test. \
`getError` has its runs.
- What did my commit break? `listRuns` with `sha`, then `getRun`; each failed test's `fingerprint` leads to `getError`. \
The error of this test is older if an earlier entry of `runs` has the test's name. `firstSeen` alone is not enough: \
unrelated tests may share the text of an error.

The examples are real answers; long lists in them are shortened.";

/// What the read API says of itself.
pub struct Api<'a> {
    /// The prefix of every path.
    pub base: &'static str,
    /// Every path with its operation, in the order of the document.
    pub operations: Vec<(&'static str, &'a Operation)>,
    /// The body of every error.
    pub error: Register,
    pub failures: Failures,
}

/// The document of the read API.
pub fn document(api: &Api<'_>) -> Value {
    let mut named_schemas = Vec::new();
    let mut answers = vec![(api.error)(&mut named_schemas)];
    let paths: Value = api
        .operations
        .iter()
        .map(|(path, operation)| {
            let answer = (operation.answer)(&mut named_schemas);
            let get = object([("get", describe(api.failures, path, operation, &answer))]);
            answers.push(answer);
            (*path, get)
        })
        .collect();
    let schemas = schemas::without_unused(schemas::components(named_schemas), &answers);
    let tags =
        TAGS.map(|(name, description)| object([("name", name.into()), ("description", description.into())]));
    object([
        ("openapi", "3.1.0".into()),
        ("info", info()),
        ("servers", Value::Array(vec![server(api.base)])),
        (
            "security",
            Value::Array(vec![object([("readKey", Value::Array(Vec::new()))])]),
        ),
        ("tags", Value::Array(tags.to_vec())),
        ("paths", paths),
        ("components", components(api.failures, schemas)),
    ])
}

fn info() -> Value {
    object([
        ("title", "Assay test-results read API".into()),
        ("version", "1".into()),
        ("summary", "CI test results, read-only".into()),
        ("description", INTRODUCTION.into()),
        (
            "license",
            object([
                ("name", env!("CARGO_PKG_LICENSE").into()),
                ("identifier", env!("CARGO_PKG_LICENSE").into()),
            ]),
        ),
    ])
}

fn server(base: &str) -> Value {
    let origin = object([
        ("default", "http://127.0.0.1:8080".into()),
        ("description", "The address of the server.".into()),
    ]);
    object([
        ("url", format!("{{origin}}{base}").into()),
        ("description", "Your server".into()),
        ("variables", object([("origin", origin)])),
    ])
}

/// The targets of references.
fn components(failures: Failures, mut schemas: Fields) -> Value {
    schemas["ErrorBody"]["properties"]["code"]["enum"] = texts(errors::codes(failures));
    let key = object([
        ("type", "http".into()),
        ("scheme", "bearer".into()),
        ("bearerFormat", "svc_ro_…".into()),
        ("description", "An organization read key.".into()),
    ]);
    object([
        ("securitySchemes", object([("readKey", key)])),
        ("parameters", Value::Object(parameters::components())),
        ("headers", headers::components()),
        ("responses", errors::components(failures)),
        ("schemas", Value::Object(schemas)),
    ])
}

fn describe(failures: Failures, path: &str, operation: &Operation, answer: &str) -> Value {
    let of_path = path
        .split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    let of_headers = operation
        .tagged
        .then_some("ifNoneMatch")
        .into_iter()
        .chain(["requestId"]);
    let parameters = of_path
        .chain(operation.query.iter().copied())
        .chain(of_headers)
        .map(|name| reference("parameters", &parameters::component(name)));
    let mut responses = vec![("200".to_owned(), success(operation, answer))];
    if operation.tagged {
        responses.push(("304".to_owned(), not_modified()));
    }
    responses.extend(errors::responses(failures, path, operation));
    let (summary, description, cost) = operation.texts();
    object([
        ("operationId", operation.id.into()),
        ("tags", texts([operation.tag])),
        ("summary", summary.into()),
        ("description", description.into()),
        ("x-cost", cost.into()),
        ("parameters", Value::Array(parameters.collect())),
        ("responses", responses.into_iter().collect()),
    ])
}

fn success(operation: &Operation, answer: &str) -> Value {
    let body = object([
        ("schema", reference("schemas", answer)),
        ("example", serde_json::from_str(operation.example).unwrap()),
    ]);
    object([
        ("description", "Success.".into()),
        ("headers", headers::of_success(operation.tagged)),
        ("content", object([("application/json", body)])),
    ])
}

fn not_modified() -> Value {
    object([
        (
            "description",
            "The answer that the client has still holds. There is no body.".into(),
        ),
        ("headers", headers::of_success(true)),
    ])
}

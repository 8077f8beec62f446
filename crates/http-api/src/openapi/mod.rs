//! Generates the OpenAPI document and the reference page from the code's types.
//!
//! Both are checked in under `docs` and served by the operators' listener. A test here fails if they are out of date.
//! This command writes them:
//!
//! ```sh
//! ASSAY_WRITE_OPENAPI=1 cargo test -p assay-api openapi
//! ```

mod errors;
mod headers;
mod json;
mod operations;
mod page;
mod parameters;
mod schemas;

use std::{fs, path::Path};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use self::{
    json::{Fields, each_object, fields, object, pretty, reference, texts},
    operations::TAGS,
};
pub(crate) use self::{operations::Operation, schemas::register};
use crate::{error::ErrorBody, reference::PAGE_POLICY, route::BASE, routes::ROUTES};

/// Every path with its documentation, in the order of the route table.
fn operations() -> impl Iterator<Item = (&'static str, &'static Operation)> {
    ROUTES.iter().map(|route| {
        let operation = route.operation.as_ref();
        (
            route.path,
            operation.unwrap_or_else(|| panic!("{} is not documented", route.path)),
        )
    })
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test is a program")]
fn the_checked_in_description_equals_the_generated_one() {
    let document = document();
    let page = page::render(&document);
    for (file, text) in [("openapi.json", pretty(&document)), ("reference.html", page)] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../docs")
            .join(file);
        if std::env::var_os("ASSAY_WRITE_OPENAPI").is_some() {
            fs::write(&path, &text).unwrap();
        }
        // The file is read because the server's copy was included at compile time.
        let checked_in = fs::read_to_string(&path).unwrap();
        assert!(
            checked_in == text,
            "docs/{file} is out of date: ASSAY_WRITE_OPENAPI=1 cargo test -p assay-api openapi"
        );
    }
}

#[test]
fn the_content_security_policy_allows_the_script_of_the_page() {
    let hash = BASE64_STANDARD.encode(Sha256::digest(page::SCRIPT));
    let source = format!("script-src 'sha256-{hash}'");
    assert!(PAGE_POLICY.ends_with(&source), "{source}");
}

#[test]
fn every_example_conforms_to_its_schema() {
    let mut document = document();
    // Unknown fields are rejected, so that an example has only described fields.
    each_object(&mut document, &mut |fields| {
        if fields.contains_key("properties") {
            fields.insert("additionalProperties".to_owned(), false.into());
        }
    });
    let components = &document["components"];
    for (path, operation) in operations() {
        let mut named_schemas = Vec::new();
        let name = (operation.answer)(&mut named_schemas);
        let schema = object([
            ("$ref", format!("#/components/schemas/{name}").into()),
            ("components", components.clone()),
        ]);
        let validator = jsonschema::validator_for(&serde_json::to_value(schema).unwrap()).unwrap();
        let example = serde_json::from_str(operation.example).unwrap();
        let wrong: Vec<_> = validator
            .iter_errors(&example)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{path}: {wrong:?}");
    }
}

#[test]
fn every_generated_type_has_a_unique_name() {
    // Names that TypeScript, Python, Go, Java and C# predefine, or that generated code imports.
    const PREDEFINED: &[&str] = &[
        "abortsignal",
        "array",
        "blob",
        "boolean",
        "date",
        "datetime",
        "dict",
        "document",
        "element",
        "error",
        "event",
        "exception",
        "file",
        "float",
        "formdata",
        "function",
        "headers",
        "history",
        "image",
        "int",
        "integer",
        "iterator",
        "list",
        "location",
        "lock",
        "map",
        "navigator",
        "node",
        "notification",
        "number",
        "object",
        "option",
        "optional",
        "performance",
        "plugin",
        "promise",
        "proxy",
        "range",
        "record",
        "request",
        "response",
        "result",
        "screen",
        "selection",
        "set",
        "storage",
        "string",
        "symbol",
        "task",
        "text",
        "thread",
        "type",
        "url",
        "window",
        "worker",
    ];
    let document = document();
    let mut owners = std::collections::BTreeMap::<String, Vec<String>>::new();
    for name in PREDEFINED {
        owners
            .entry((*name).to_owned())
            .or_default()
            .push("a platform".to_owned());
    }
    for kind in ["parameters", "responses", "schemas"] {
        for name in fields(&document["components"][kind]).keys() {
            let plain = name
                .chars()
                .filter(|char| char.is_ascii_alphanumeric())
                .collect::<String>();
            owners
                .entry(plain.to_ascii_lowercase())
                .or_default()
                .push(format!("{kind}/{name}"));
        }
    }
    owners.retain(|_, owners| owners.len() > 1);
    assert!(owners.is_empty(), "{owners:?}");
}

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

/// The whole document.
fn document() -> Value {
    let mut named_schemas = Vec::new();
    let mut answers = vec![schemas::register::<ErrorBody>(&mut named_schemas)];
    let paths: Value = operations()
        .map(|(path, operation)| {
            let answer = (operation.answer)(&mut named_schemas);
            let get = object([("get", describe(path, operation, &answer))]);
            answers.push(answer);
            (path, get)
        })
        .collect();
    let schemas = schemas::without_unused(schemas::components(named_schemas), &answers);
    let tags =
        TAGS.map(|(name, description)| object([("name", name.into()), ("description", description.into())]));
    object([
        ("openapi", "3.1.0".into()),
        ("info", info()),
        ("servers", Value::Array(vec![server()])),
        (
            "security",
            Value::Array(vec![object([("readKey", Value::Array(Vec::new()))])]),
        ),
        ("tags", Value::Array(tags.to_vec())),
        ("paths", paths),
        ("components", components(schemas)),
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

fn server() -> Value {
    let origin = object([
        ("default", "http://127.0.0.1:8080".into()),
        ("description", "The address of the server.".into()),
    ]);
    object([
        ("url", format!("{{origin}}{BASE}").into()),
        ("description", "Your server".into()),
        ("variables", object([("origin", origin)])),
    ])
}

/// The targets of references.
fn components(mut schemas: Fields) -> Value {
    schemas["ErrorBody"]["properties"]["code"]["enum"] = texts(errors::codes());
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
        ("responses", errors::components()),
        ("schemas", Value::Object(schemas)),
    ])
}

fn describe(path: &str, operation: &Operation, answer: &str) -> Value {
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
    responses.extend(errors::responses(path, operation));
    let description = format!("{}\n\nCost: {}.", operation.description, operation.cost);
    let label = operation.cost.split(" (").next().unwrap_or_default();
    object([
        ("operationId", operation.id.into()),
        ("tags", texts([operation.tag])),
        ("summary", operation.summary.into()),
        ("description", description.into()),
        ("x-cost", label.into()),
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

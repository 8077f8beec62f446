//! The guarantees of docs/openapi.json, and checks of answers against them.

use std::{fs, path::Path};

use assay_testkit::Response;
use jsonschema::Validator;
use serde_json::{Value, json};

/// The permitted header fields of an answer. None names the software or its version.
const FIELDS: [&str; 12] = [
    "allow",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "etag",
    "service-key-expires-at",
    "vary",
    "www-authenticate",
    "x-request-id",
];

/// One operation of the document.
pub(crate) struct Operation {
    pub(crate) path: String,
    /// The names of its query parameters.
    pub(crate) query: Vec<String>,
    /// Whether answers have an entity tag.
    pub(crate) tagged: bool,
    /// Whether it also answers in CSV, by the header `Accept`.
    has_csv: bool,
    body: Validator,
}

/// The document.
pub(crate) struct Contract {
    pub(crate) operations: Vec<Operation>,
    codes: Vec<String>,
    error: Validator,
}

impl Contract {
    pub(crate) fn read() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        let mut document: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        close(&mut document);
        let components = &document["components"];
        let of = |reference: &Value| {
            jsonschema::validator_for(&json!({"$ref": reference, "components": components})).unwrap()
        };
        let operations = document["paths"].as_object().unwrap().iter().map(|(path, item)| {
            let operation = &item["get"];
            let parameters = operation["parameters"].as_array().unwrap();
            let query = parameters
                .iter()
                .map(|parameter| {
                    document
                        .pointer(&parameter["$ref"].as_str().unwrap()[1..])
                        .unwrap()
                })
                .filter(|parameter| parameter["in"] == "query")
                .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
                .collect();
            let answer = &operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"];
            Operation {
                path: path.clone(),
                query,
                tagged: operation["responses"]["304"].is_object(),
                has_csv: operation["responses"]["200"]["content"]["text/csv"].is_object(),
                body: of(answer),
            }
        });
        let codes = &components["schemas"]["ErrorBody"]["properties"]["code"]["enum"];
        Self {
            operations: operations.collect(),
            codes: codes
                .as_array()
                .unwrap()
                .iter()
                .map(|code| code.as_str().unwrap().to_owned())
                .collect(),
            error: of(&json!("#/components/schemas/ErrorBody")),
        }
    }

    /// Checks a success against the contract of an operation.
    pub(crate) fn success(
        &self,
        operation: &Operation,
        answer: &Response,
        is_head: bool,
    ) -> Result<(), String> {
        fields(answer)?;
        let vary = if operation.has_csv {
            "Accept, Accept-Encoding"
        } else {
            "Accept-Encoding"
        };
        same("vary", answer.header("vary"), Some(vary))?;
        same("etag", answer.header("etag").is_some(), operation.tagged)?;
        let caching = if operation.tagged {
            "private, no-cache"
        } else {
            "private, no-store"
        };
        same("cache-control", answer.header("cache-control"), Some(caching))?;
        same("x-request-id", answer.header("x-request-id").is_some(), true)?;
        same("www-authenticate", answer.header("www-authenticate"), None)?;
        same("allow", answer.header("allow"), None)?;
        if answer.status == 304 {
            return same("body", answer.body.len(), 0);
        }
        same(
            "content-type",
            answer.header("content-type"),
            Some("application/json"),
        )?;
        if is_head || answer.header("content-encoding").is_some() {
            return Ok(());
        }
        let body = serde_json::from_slice(&answer.body).map_err(|_| "the body is no JSON")?;
        let wrong: Vec<_> = operation
            .body
            .iter_errors(&body)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .take(3)
            .collect();
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(format!("against its schema: {wrong:?}"))
        }
    }

    /// Checks a refusal against the contract: a closed list of codes, one form of body, the matching headers.
    pub(crate) fn refusal(&self, answer: &Response, is_head: bool) -> Result<(), String> {
        fields(answer)?;
        let challenge = (answer.status == 401).then_some("Bearer");
        same("www-authenticate", answer.header("www-authenticate"), challenge)?;
        let allow = (answer.status == 405).then_some("GET, HEAD");
        same("allow", answer.header("allow"), allow)?;
        same(
            "cache-control",
            answer.header("cache-control"),
            Some("private, no-store"),
        )?;
        same(
            "content-type",
            answer.header("content-type"),
            Some("application/json"),
        )?;
        same("etag", answer.header("etag"), None)?;
        same("content-encoding", answer.header("content-encoding"), None)?;
        if is_head {
            return Ok(());
        }
        let body = serde_json::from_slice(&answer.body).map_err(|_| "the body is no JSON")?;
        same("error body", self.error.is_valid(&body), true)?;
        same("code", self.codes.contains(&answer.code()), true)?;
        let sentence = body["error"].as_str().unwrap_or_default();
        let sound = !sentence.is_empty() && !sentence.contains(char::is_control);
        same("sentence", sound && !sentence.contains("svc_ro_0"), true)
    }
}

fn fields(answer: &Response) -> Result<(), String> {
    match answer
        .headers
        .iter()
        .find(|(name, _)| !FIELDS.contains(&name.as_str()))
    {
        Some(field) => Err(format!("the field {field:?}")),
        None => Ok(()),
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, is: T, should: T) -> Result<(), String> {
    if is == should {
        Ok(())
    } else {
        Err(format!("{what} is {is:?}, not {should:?}"))
    }
}

/// Rejects fields that the schemas lack.
fn close(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(close);
            if fields.contains_key("properties") {
                fields.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

//! The document against the real answers.

use serde_json::{Value, json};

use crate::{
    client::{Answer, Api},
    ids::{FINGERPRINT, PROJECT, RUN, TEST_ENCODED},
    store::Mode,
};

fn document() -> Value {
    serde_json::from_str(include_str!("../../../../docs/openapi.json")).unwrap()
}

/// The value, or the target of its reference.
fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    value["$ref"]
        .as_str()
        .map_or(value, |path| document.pointer(&path[1..]).unwrap())
}

/// The paths of the document with their operations.
fn operations(document: &Value) -> Vec<(&String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    paths.iter().map(|(path, item)| (path, &item["get"])).collect()
}

/// The query parameters of an operation.
fn query<'a>(document: &'a Value, operation: &'a Value) -> Vec<&'a Value> {
    let parameters = operation["parameters"].as_array().unwrap().iter();
    parameters
        .map(|parameter| resolve(document, parameter))
        .filter(|parameter| parameter["in"] == "query")
        .collect()
}

fn fill(path: &str) -> String {
    path.replace("{projectId}", PROJECT)
        .replace("{runId}", RUN)
        .replace("{commitSha}", "c0ffee")
        .replace("{testName}", TEST_ENCODED)
        .replace("{fingerprint}", FINGERPRINT)
}

/// Makes the schemas reject unknown fields, so that an answer cannot get a field without the document.
fn close(value: &mut Value) {
    if let Value::Object(fields) = value {
        if fields.contains_key("properties") && fields.get("type") == Some(&json!("object")) {
            fields.insert("additionalProperties".to_owned(), json!(false));
        }
        fields.values_mut().for_each(close);
    } else if let Value::Array(items) = value {
        items.iter_mut().for_each(close);
    }
}

/// Asserts that an answer's body and headers conform to the document for its status.
#[track_caller]
fn conforms(document: &Value, operation: &Value, answer: &Answer, context: &str) {
    let response = &operation["responses"][answer.status.as_str()];
    assert!(
        response.is_object(),
        "{context}: {} is not documented",
        answer.status
    );
    let response = resolve(document, response);
    let nothing = serde_json::Map::new();
    let headers = response["headers"].as_object().unwrap_or(&nothing);
    for (name, header) in headers {
        if resolve(document, header)["required"] == true {
            assert!(answer.header(name).is_some(), "{context}: {name} is missing");
        }
    }
    for name in answer.headers.keys() {
        let is_documented = headers
            .keys()
            .any(|documented| name.as_str().eq_ignore_ascii_case(documented));
        assert!(
            is_documented || name == "content-type",
            "{context}: {name} is not documented"
        );
    }
    let Some(schema) = response.pointer("/content/application~1json/schema") else {
        assert!(answer.body.is_empty(), "{context}: {:?}", answer.body);
        return;
    };
    let mut components = document["components"].clone();
    close(&mut components);
    let schema = json!({"$ref": schema["$ref"], "components": components});
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(&schema)
        .unwrap();
    let body = answer.json();
    let wrong: Vec<_> = validator
        .iter_errors(&body)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(wrong.is_empty(), "{context}: {wrong:#?} in {body:#}");
    if let Some(code) = body.get("code") {
        let codes = response["x-codes"].as_array().unwrap();
        assert!(
            codes.iter().any(|documented| documented["code"] == *code),
            "{context}: {code}"
        );
    }
}

#[actix_web::test]
async fn every_answer_conforms_to_the_document() {
    let document = document();
    let api = Api::limited(10_000);
    for (path, operation) in operations(&document) {
        let path = fill(path);
        let answer = api.get(&path).await;
        answer.ok();
        conforms(&document, operation, &answer, &path);
        if let Some(tag) = answer.header("etag") {
            let revalidated = api.get_with(&path, &[("If-None-Match", tag)]).await;
            assert_eq!(revalidated.status, 304);
            conforms(&document, operation, &revalidated, &path);
        }
    }
    // Fields that the plain requests lack: evidence, a stored verdict.
    for (template, path, pointer) in [
        (
            "/projects/{projectId}/flaky",
            "/flaky?explain=true",
            "/tests/0/evidence/signals/0",
        ),
        (
            "/projects/{projectId}/tests/{testName}/status",
            "/tests/twice/status?filePath=b%20%22quoted%22.ts",
            "/evidence/signals/0",
        ),
    ] {
        let path = format!("/projects/{PROJECT}{path}");
        let answer = api.get(&path).await;
        assert!(
            answer.ok().pointer(pointer).is_some_and(Value::is_object),
            "{path}"
        );
        conforms(&document, &document["paths"][template]["get"], &answer, &path);
    }
}

#[actix_web::test]
async fn every_error_conforms_to_the_document() {
    let document = document();
    let api = Api::new();
    let keys = &api.seed.keys;
    let bad_keys = [
        &keys.ingest,
        &keys.unknown,
        &keys.revoked,
        &keys.expired,
        &keys.free,
    ];
    let mut headers: Vec<_> = bad_keys.map(|key| format!("Bearer {}", key.reveal())).to_vec();
    headers.push(String::new());
    for (template, operation) in operations(&document) {
        let path = fill(template);
        for header in &headers {
            let uri = format!("{}{path}", assay_http_api::BASE);
            let answer = api
                .send(actix_web::http::Method::GET, &uri, &[("Authorization", header)])
                .await;
            assert!(answer.status == 401 || answer.status == 403);
            conforms(&document, operation, &answer, &path);
        }
        for (from, to) in [
            (PROJECT, "none"),
            (RUN, "none"),
            ("c0ffee", "none"),
            (TEST_ENCODED, "none"),
            (FINGERPRINT, "none"),
            (TEST_ENCODED, "twice"),
        ] {
            if path.contains(from) {
                let answer = api.get(&path.replace(from, to)).await;
                assert!(answer.status == 404 || answer.status == 400);
                conforms(&document, operation, &answer, &path);
            }
        }
        for parameter in query(&document, operation) {
            let name = parameter["name"].as_str().unwrap();
            let answer = api.get(&format!("{path}?{name}=%FF")).await;
            assert_eq!(answer.status, 400);
            conforms(&document, operation, &answer, &path);
        }
        for mode in [Mode::ReadsFail, Mode::Unreachable] {
            let failing = Api::in_mode(mode);
            conforms(&document, operation, &failing.get(&path).await, &path);
        }
        let limited = Api::limited(1);
        limited.get(&path).await.ok();
        let refused = limited.get(&path).await;
        assert_eq!(refused.status, 429);
        conforms(&document, operation, &refused, &path);
    }
}

#[actix_web::test]
async fn every_parameter_is_read_as_the_document_describes() {
    let document = document();
    let api = Api::new();
    for (template, operation) in operations(&document) {
        let path = fill(template);
        let plain = api.get(&path).await.ok();
        for parameter in query(&document, operation) {
            let name = parameter["name"].as_str().unwrap();
            let schema = &parameter["schema"];
            let in_query = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let path_with = |value: &str| format!("{path}?{name}={value}");
            if let Some(default) = schema.get("default") {
                assert_eq!(
                    api.get(&path_with(&in_query(default))).await.ok(),
                    plain,
                    "{path} {name}"
                );
            }
            for word in schema["enum"].as_array().into_iter().flatten() {
                let word = in_query(word);
                let answer = api.get(&path_with(&word)).await;
                if word == "prev" {
                    answer.fails(400, "invalid_parameter", "prev without a cursor");
                } else {
                    answer.ok();
                }
            }
            if let Some(longest) = schema["maxLength"].as_u64() {
                api.get(&path_with(&"x".repeat(longest as usize))).await.ok();
                let answer = api.get(&path_with(&"x".repeat(longest as usize + 1))).await;
                assert_eq!(answer.status, 400, "{path} {name}");
            }
            if let Some(least) = schema["minimum"].as_i64() {
                api.get(&path_with(&least.to_string())).await.ok();
                assert_eq!(api.get(&path_with(&(least - 1).to_string())).await.status, 400);
            }
            for (text, escaped) in [("~", "~"), ("a\0", "a%00")] {
                let fits = jsonschema::is_valid(schema, &Value::from(text));
                let answer = api.get(&path_with(escaped)).await;
                assert_eq!(answer.status == 400, !fits, "{path} {name}={escaped}");
            }
        }
    }
}

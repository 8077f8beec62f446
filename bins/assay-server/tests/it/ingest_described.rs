//! The ingest routes against their description, docs/ingest-openapi.json.

use std::{fs, path::Path};

use assay_domain::ingest::IngestTerms;
use assay_testkit::{Response, text};
use serde_json::Value;

use crate::ingest::{FAILS, IngestServer, now};

pub(crate) fn document() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ingest-openapi.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Asserts that the document has this answer for its status.
pub(crate) fn assert_conforms(document: &Value, operation: &Value, answer: &Response, what: &str) {
    let response = &operation["responses"][answer.status.to_string()];
    assert!(response.is_object(), "{what}: {} is not described", answer.status);
    let mut schemas = document["components"]["schemas"].clone();
    // A schema that another one extends must accept the additional fields.
    let extended: Vec<String> = schemas
        .as_object()
        .unwrap()
        .values()
        .filter_map(|schema| schema["allOf"].as_array())
        .flatten()
        .filter_map(|part| part["$ref"].as_str()?.rsplit('/').next().map(str::to_owned))
        .collect();
    for (name, schema) in schemas.as_object_mut().unwrap() {
        if schema["properties"].is_object() && !extended.contains(name) {
            schema["additionalProperties"] = false.into();
        }
    }
    let schema = &response["content"]["application/json"]["schema"]["$ref"];
    let schema = serde_json::json!({"$ref": schema, "components": {"schemas": schemas}});
    let validator = jsonschema::validator_for(&schema).unwrap();
    let wrong: Vec<_> = validator
        .iter_errors(&answer.json())
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(wrong.is_empty(), "{what}: {wrong:?} in {}", answer.text());
    if answer.status >= 400 {
        let codes = response["x-codes"].as_array().unwrap();
        assert!(
            codes.contains(&answer.json()["code"]),
            "{what}: {}",
            answer.text()
        );
        for name in response["headers"]
            .as_object()
            .into_iter()
            .flat_map(|headers| headers.keys())
        {
            assert!(answer.header(&name.to_lowercase()).is_some(), "{what}: {name}");
        }
    }
}

#[test]
fn requests_and_answers_conform_to_the_description() {
    let document = document();
    let base = document["servers"][0]["url"].as_str().unwrap();
    let base = base.strip_prefix("{origin}").unwrap();
    let ingest = IngestServer::new();
    // Every field is for such a key.
    let key = ingest.new_key(&IngestTerms {
        backfill: true,
        ..IngestTerms::default()
    });
    let operation = &document["paths"]["/reports"]["post"];
    let path = format!("{base}/reports");
    let form = &operation["requestBody"]["content"]["multipart/form-data"]["schema"]["properties"];
    let fields: Vec<(String, String)> = form
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| *name != "report")
        .map(|(name, schema)| match name.as_str() {
            // The date of the example is too old.
            "startedAt" => (name.clone(), now().to_string()),
            _ => (name.clone(), text(&schema["examples"][0])),
        })
        .collect();
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let files = [("r.xml", FAILS.as_bytes())];
    let stored = ingest.send(&key, &fields, &files);
    assert_eq!(stored.status, 201, "{}", stored.text());
    assert_conforms(&document, operation, &stored, "a form with every field");
    let again = ingest.send(&key, &fields, &files);
    assert_eq!(again.status, 200, "{}", again.text());
    assert_conforms(&document, operation, &again, "the same form again");
    let dry = ingest.send(&key, &[("dryRun", "true")], &files);
    assert_conforms(&document, operation, &dry, "a dry run");

    // A raw body of each content type, with the fields as parameters.
    let mut of_query = Vec::new();
    for parameter in operation["parameters"].as_array().unwrap() {
        if parameter["in"] == "query" {
            let name = parameter["name"].as_str().unwrap();
            let (_, value) = fields.iter().find(|(field, _)| *field == name).unwrap();
            let value: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
            of_query.push(format!("{name}={value}"));
        }
    }
    assert_eq!(of_query.len(), fields.len());
    let with_query = format!("{path}?{}", of_query.join("&"));
    for media in operation["requestBody"]["content"].as_object().unwrap().keys() {
        if media != "multipart/form-data" {
            let raw = ingest.post(&with_query, &key, &[("Content-Type", media)], FAILS.as_bytes());
            assert!(raw.status == 200 || raw.status == 201, "{media}: {}", raw.text());
            assert_conforms(&document, operation, &raw, media);
        }
    }

    for (what, answer) in [
        ("no key", ingest.send("", &[], &files)),
        (
            "another project",
            ingest.send(&ingest.key, &[("project", "other")], &files),
        ),
        (
            "an unknown field",
            ingest.send(&ingest.key, &[("brnach", "main")], &files),
        ),
        ("no report", ingest.send(&ingest.key, &[], &[("r.txt", b"hello")])),
        (
            "a broken report",
            ingest.send(&ingest.key, &[], &[("r.xml", b"<testsuite><testcase></a>")]),
        ),
        (
            "an empty report",
            ingest.send(&ingest.key, &[], &[("r.xml", b"<testsuite/>")]),
        ),
        (
            "a late start",
            ingest.send(&ingest.key, &[("startedAt", "2020-01-01T00:00:00Z")], &files),
        ),
        ("a shard of a whole run", {
            ingest.send(&ingest.key, &[("runKey", "whole")], &files);
            ingest.send(&ingest.key, &[("runKey", "whole"), ("shard", "1/2")], &files)
        }),
        (
            "another coding",
            ingest.post(&path, &ingest.key, &[("Content-Encoding", "br")], b"x"),
        ),
        (
            "too long a field",
            ingest.send(&ingest.key, &[("commit", &"a".repeat(501))], &files),
        ),
        (
            "another method",
            ingest.server.ingest().get(&path, Some(&ingest.key)),
        ),
    ] {
        assert!((400..500).contains(&answer.status), "{what}: {}", answer.text());
        assert_conforms(&document, operation, &answer, what);
    }
    for (key, status) in [(ingest.key.as_str(), 200), ("svc_nonsense", 401)] {
        let about = ingest.server.ingest().get(&format!("{base}/key"), Some(key));
        assert_eq!(about.status, status, "{}", about.text());
        assert_conforms(
            &document,
            &document["paths"]["/key"]["get"],
            &about,
            "a question about a key",
        );
    }
}

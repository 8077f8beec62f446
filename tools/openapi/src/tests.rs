//! The checked-in document of the read API.

use std::fs;

use serde_json::Value;

use crate::{
    docs,
    json::{each_object, fields, object},
};

fn checked_in(file: &str) -> Value {
    serde_json::from_slice(&fs::read(docs(file)).unwrap()).unwrap()
}

#[test]
fn every_example_conforms_to_its_schema() {
    let mut document = checked_in("openapi.json");
    // Unknown fields are rejected, so that an example has only described fields.
    each_object(&mut document, &mut |fields| {
        if fields.contains_key("properties") {
            fields.insert("additionalProperties".to_owned(), false.into());
        }
    });
    for (path, item) in fields(&document["paths"]) {
        let answer = &item["get"]["responses"]["200"]["content"]["application/json"];
        let reference = answer["schema"]["$ref"].clone();
        let schema = object([
            ("$ref", reference),
            ("components", document["components"].clone()),
        ]);
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors = validator.iter_errors(&answer["example"]);
        let wrong: Vec<_> = errors
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{path}: {wrong:?}");
    }
}

#[test]
fn every_generated_type_has_a_unique_name() {
    // Names that TypeScript, Python, Go, Java and C# predefine, or that generated code imports.
    const PREDEFINED: &str = "abortsignal array blob boolean date datetime dict document element error event \
                              exception file float formdata function headers history image int integer iterator \
                              list location lock map navigator node notification number object option optional \
                              performance plugin promise proxy range record request response result screen \
                              selection set storage string symbol task text thread type url window worker";
    let document = checked_in("openapi.json");
    let mut owners = std::collections::BTreeMap::<String, Vec<String>>::new();
    for name in PREDEFINED.split_whitespace() {
        owners
            .entry(name.to_owned())
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

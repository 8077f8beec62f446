//! The routes with their parameters, and hostile values for them.

use std::sync::LazyLock;

use serde_json::Value;

/// The parts of requests that are hostile, by kind.
static PARTS: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../testdata/requests.json")).expect("the parts are JSON")
});

/// The description of the API.
static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../docs/openapi.json")).expect("the description is JSON")
});

/// The texts of an array.
fn array(value: &'static Value) -> Vec<&'static str> {
    let texts = value.as_array().into_iter().flatten();
    texts.map(|text| text.as_str().expect("a text")).collect()
}

/// The parts of this kind in their sent form: `segments` of paths, `texts` and `invalidValues` of queries, and others.
pub fn texts(kind: &str) -> Vec<&'static str> {
    let texts = array(&PARTS[kind]);
    assert!(!texts.is_empty(), "there are no {kind}");
    texts
}

/// Every error code.
pub fn codes() -> Vec<&'static str> {
    array(&DESCRIPTION["components"]["schemas"]["ErrorBody"]["properties"]["code"]["enum"])
}

/// A route and its parameters.
pub struct Route {
    /// Its path below the base. Segments in braces are parameters.
    pub path: String,
    /// Query parameters.
    pub parameters: Vec<String>,
}

/// Every route of the description of the API.
pub fn routes() -> Vec<Route> {
    let document = &*DESCRIPTION;
    let paths = document["paths"].as_object().unwrap().iter();
    paths
        .map(|(path, item)| {
            let parameters = item["get"]["parameters"].as_array().unwrap().iter();
            let parameters = parameters.map(|reference| {
                document
                    .pointer(&reference["$ref"].as_str().unwrap()[1..])
                    .unwrap()
            });
            Route {
                path: path.clone(),
                parameters: parameters
                    .filter(|parameter| parameter["in"] == "query")
                    .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
                    .collect(),
            }
        })
        .collect()
}

/// Parameters that permit any text, limited at most in length.
pub const FREE: [&str; 7] = [
    "branch", "search", "owner", "filePath", "file", "variant", "error",
];

//! Hostile parts of requests.

use std::sync::LazyLock;

use serde_json::Value;

/// The parts of requests that are hostile, by kind.
static PARTS: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../testdata/requests.json")).expect("the parts are JSON")
});

/// The parts of this kind in their sent form: `segments` of paths, `texts` and `invalidValues` of queries, and others.
pub fn texts(kind: &str) -> Vec<&'static str> {
    let texts = PARTS[kind].as_array().into_iter().flatten();
    let texts: Vec<_> = texts.map(|text| text.as_str().expect("a text")).collect();
    assert!(!texts.is_empty(), "there are no {kind}");
    texts
}

//! Every route's answer over one world, for comparing two databases or two logins.

use std::collections::BTreeSet;

use assay_testkit::{Client, text, wire::escape};
use serde_json::Value;

/// Path and body of every route, for a project with at least one run, test and error. All requests must succeed.
pub(crate) fn of(client: &Client, key: &str, project: &str) -> Vec<(String, String)> {
    of_period(client, key, project, 90)
}

/// The same for a period of this many days.
pub(crate) fn of_period(client: &Client, key: &str, project: &str, days: u32) -> Vec<(String, String)> {
    let mut answers = Vec::new();
    let mut ask = |path: String| -> Value {
        let answer = client.get(&format!("/api/v1{path}"), Some(key));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answers.push((path, without_times(answer.json()).to_string()));
        answer.json()
    };
    ask("/projects".to_owned());
    let below = |path: &str| format!("/projects/{project}{path}");
    for path in [
        "/settings",
        "/branches",
        "/durations",
        "/uploads?limit=200",
        "/flaky?explain=true&perPage=50",
    ] {
        ask(below(path));
    }
    let runs = ask(below(&format!("/runs?days={days}&perPage=50")));
    let mut known_paths = BTreeSet::new();
    for run in runs["runs"].as_array().unwrap() {
        let run = text(&run["id"]);
        let detail = ask(below(&format!("/runs/{run}")));
        for test in detail["tests"].as_array().unwrap() {
            let name = escape(&text(&test["testName"]));
            // Tests of several files may share a name. An empty file means none.
            let file = test["filePath"].as_str().unwrap_or_default();
            let query = format!("filePath={}", escape(file));
            ask(below(&format!("/runs/{run}/tests/{name}?{query}")));
            if known_paths.insert(format!("{name}?{query}")) {
                ask(below(&format!("/tests/{name}?days={days}&{query}")));
                ask(below(&format!("/tests/{name}/status?{query}")));
            }
        }
        ask(below(&format!("/runs/{run}/failures?limit=200")));
    }
    let errors = ask(below(&format!("/errors?days={days}&perPage=50")));
    for error in errors["errors"].as_array().unwrap() {
        ask(below(&format!(
            "/errors/{}?days={days}",
            text(&error["fingerprint"])
        )));
    }
    answers
}

/// Fields that depend on the request's time are removed.
fn without_times(mut value: Value) -> Value {
    if let Value::Object(fields) = &mut value {
        for name in ["from", "to", "now"] {
            fields.remove(name);
        }
        for field in fields.values_mut() {
            *field = without_times(field.take());
        }
    } else if let Value::Array(values) = &mut value {
        for value in values {
            *value = without_times(value.take());
        }
    }
    value
}

//! The measured requests: the rows of docs/performance.md. Their parameters are read through the API.

use anyhow::{Context as _, ensure};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::{
    client::{Client, Request},
    dataset::{Dataset, Role},
};

/// A request with its name in the tables.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) request: Request,
}

/// The requests over this data set.
pub(crate) fn cases(client: &Client, data: &Dataset) -> anyhow::Result<Vec<Case>> {
    let large = data.large()?;
    let base = format!("/api/v1/projects/{}", large.id);
    let read = |path: &str| -> anyhow::Result<Value> {
        let answer = client.once(&Request::Get(path.to_owned()))?;
        ensure!(answer.status == 200, "GET {path} answered {}", answer.status);
        serde_json::from_slice(&answer.body).with_context(|| format!("reading {path}"))
    };
    let text = |value: &Value, pointer: &str, what: &str| {
        value
            .pointer(pointer)
            .and_then(Value::as_str)
            .map(str::to_owned)
            .with_context(|| format!("the data set has no {what}"))
    };
    // The newest of the unsharded runs with the most tests.
    let runs = read(&format!("{base}/runs?perPage=50"))?;
    let all = runs
        .get("runs")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let total = |run: &Value| run.pointer("/counts/total").and_then(Value::as_u64);
    let most = all.iter().filter_map(total).max();
    let whole = all
        .iter()
        .find(|run| total(run) == most && run.get("shards").is_none_or(Value::is_null));
    let run = text(
        whole.or_else(|| all.first()).unwrap_or(&Value::Null),
        "/id",
        "run",
    )?;
    // A test that fails sometimes; in a tiny data set any test.
    let flaky = read(&format!("{base}/flaky"))?;
    let detail = read(&format!("{base}/runs/{run}"))?;
    let name_of = |value: &Value| {
        Some((
            text(value, "/tests/0/testName", "").ok()?,
            text(value, "/tests/0/filePath", "").ok()?,
        ))
    };
    let (test, file) = name_of(&flaky)
        .or_else(|| name_of(&detail))
        .context("the data set has no test")?;
    let signatures = read(&format!("{base}/errors?days=90"))?;
    let signature = signatures
        .pointer("/errors/0/fingerprint")
        .and_then(Value::as_str);
    let (name, in_file) = (encoded(&test), encoded(&file));
    let history = format!("{base}/tests/{name}?filePath={in_file}");
    let mut cases = vec![
        ("projects", "/api/v1/projects".to_owned()),
        ("branches", format!("{base}/branches")),
        ("durations", format!("{base}/durations")),
        (
            "test status",
            format!("{base}/tests/{name}/status?filePath={in_file}"),
        ),
        (
            "attempts",
            format!("{base}/runs/{run}/tests/{name}?filePath={in_file}"),
        ),
        ("runs list", format!("{base}/runs")),
        ("run detail", format!("{base}/runs/{run}")),
        ("failures of a run", format!("{base}/runs/{run}/failures")),
        ("test history, 30 days", history.clone()),
        ("test history, 90 days", format!("{history}&days=90")),
        ("flaky list", format!("{base}/flaky")),
        ("list of tests", format!("{base}/tests")),
        ("health", format!("{base}/health")),
    ];
    if let Some(storm) = data.of(Role::Storm) {
        let path = format!("/api/v1/projects/{}/flaky", storm.id);
        cases.push(("flaky list of the storm", path));
    }
    cases.push(("error signatures, 30 days", format!("{base}/errors")));
    if let Some(fingerprint) = signature {
        cases.push(("error signature", format!("{base}/errors/{fingerprint}")));
    }
    let routes = cases.into_iter().map(|(name, path)| Case {
        name,
        request: Request::Get(path),
    });
    let tools = [
        ("explain_failures of a run", json!({"run": run})),
        ("explain_test", json!({"test": test})),
        ("list_flaky", json!({})),
    ];
    let tool = |(name, mut arguments): (&'static str, Value)| {
        if let Some(arguments) = arguments.as_object_mut() {
            arguments.insert("project".to_owned(), json!(large.id));
        }
        let params = json!({"name": name.split(' ').next(), "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = Request::Tool(message.to_string());
        let answer = String::from_utf8(client.once(&request)?.body)?;
        ensure!(answer.contains("\"isError\":false"), "{name} answered {answer}");
        Ok(Case { name, request })
    };
    routes.map(Ok).chain(tools.into_iter().map(tool)).collect()
}

/// A text as part of a path or a query.
fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

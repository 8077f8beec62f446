//! The measured requests, one per route. Their parameters are read through the API.

use anyhow::{Context as _, ensure};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::{client::Client, dataset::Dataset, generate::Role};

/// A request with its name in the tables.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) path: String,
}

/// The requests over this data set.
pub(crate) fn cases(client: &Client, data: &Dataset) -> anyhow::Result<Vec<Case>> {
    let large = data.large()?;
    let base = format!("/api/v1/projects/{}", large.id);
    let json = |path: &str| -> anyhow::Result<Value> {
        let answer = client.once(path)?;
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
    // The newest whole run.
    let runs = json(&format!("{base}/runs?perPage=50"))?;
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
    let flaky = json(&format!("{base}/flaky"))?;
    let detail = json(&format!("{base}/runs/{run}"))?;
    let named = |value: &Value| {
        Some((
            text(value, "/tests/0/testName", "").ok()?,
            text(value, "/tests/0/filePath", "").ok()?,
        ))
    };
    let (test, file) = named(&flaky)
        .or_else(|| named(&detail))
        .context("the data set has no test")?;
    let signatures = json(&format!("{base}/errors?days=90"))?;
    let signature = signatures
        .pointer("/errors/0/fingerprint")
        .and_then(Value::as_str);
    let (name, in_file) = (encoded(&test), encoded(&file));
    let history = format!("{base}/tests/{name}?filePath={in_file}");
    let mut cases = vec![
        ("projects", "/api/v1/projects".to_owned()),
        ("settings", format!("{base}/settings")),
        ("branches", format!("{base}/branches")),
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
        ("test history, 30 days", history.clone()),
        ("test history, 90 days", format!("{history}&days=90")),
        ("flaky list, some tests failing", format!("{base}/flaky")),
    ];
    if let Some(storm) = data.of(Role::Storm) {
        let path = format!("/api/v1/projects/{}/flaky", storm.id);
        cases.push(("flaky list, every test failing", path));
    }
    cases.push(("error signatures, 30 days", format!("{base}/errors")));
    if let Some(fingerprint) = signature {
        cases.push(("error signature", format!("{base}/errors/{fingerprint}")));
    }
    let case = |(name, path)| Case { name, path };
    Ok(cases.into_iter().map(case).collect())
}

/// A text as part of a path or a query.
fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

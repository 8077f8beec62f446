//! The measured requests, one a route, with their parameters, which are read through the API.

use anyhow::{Context as _, ensure};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::{
    client::{Client, Request},
    dataset::Dataset,
    generate::Role,
};

/// A request with its name in the tables.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Below the API's base.
    pub(crate) path: String,
    /// Whether it answers from a few rows.
    pub(crate) cheap: bool,
}

/// The names that other modules look up.
pub(crate) const STATUS: &str = "test status";
pub(crate) const RUNS: &str = "runs list";
pub(crate) const RUN: &str = "run detail";
pub(crate) const FLAKY: &str = "flaky list, some tests failing";
pub(crate) const STORM: &str = "flaky list, every test failing";
pub(crate) const HISTORY: &str = "test history, 30 days";
pub(crate) const LONG_HISTORY: &str = "test history, 90 days";
pub(crate) const SIGNATURES: &str = "error signatures, 30 days";
pub(crate) const SIGNATURE: &str = "error signature";

/// The parameters of the requests on a data set.
#[derive(Debug, Clone)]
pub(crate) struct Targets {
    pub(crate) run: String,
    pub(crate) test: String,
    pub(crate) cases: Vec<Case>,
}

impl Case {
    /// The request with the data set's key and more headers.
    pub(crate) fn request(&self, data: &Dataset, headers: &[(&str, &str)]) -> Request {
        request(data, &self.path, headers)
    }
}

fn request(data: &Dataset, path: &str, headers: &[(&str, &str)]) -> Request {
    let authorization = format!("Bearer {}", data.key);
    let mut all = vec![("Authorization", authorization.as_str())];
    all.extend_from_slice(headers);
    Request::get(&format!("/api/v1{path}"), &all)
}

/// The requests over this data set.
pub(crate) fn targets(client: &Client, data: &Dataset) -> anyhow::Result<Targets> {
    let large = data.large()?;
    let base = format!("/projects/{}", large.id);
    let json = |path: &str| -> anyhow::Result<Value> {
        let answer = client.once(&request(data, path, &[]))?;
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
    // A test that fails now and then; in a tiny data set any.
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
    let case = |name, path: String, cheap| Case { name, path, cheap };
    let mut cases = vec![
        case("projects", "/projects".to_owned(), true),
        case("settings", format!("{base}/settings"), true),
        case("branches", format!("{base}/branches"), true),
        case(
            STATUS,
            format!("{base}/tests/{name}/status?filePath={in_file}"),
            true,
        ),
        case(
            "attempts",
            format!("{base}/runs/{run}/tests/{name}?filePath={in_file}"),
            true,
        ),
        case(RUNS, format!("{base}/runs"), true),
        case(RUN, format!("{base}/runs/{run}"), false),
        case(HISTORY, format!("{base}/tests/{name}?filePath={in_file}"), false),
        case(
            LONG_HISTORY,
            format!("{base}/tests/{name}?filePath={in_file}&days=90"),
            false,
        ),
        case(FLAKY, format!("{base}/flaky"), false),
    ];
    if let Some(storm) = data.of(Role::Storm) {
        cases.push(case(STORM, format!("/projects/{}/flaky", storm.id), false));
    }
    cases.push(case(SIGNATURES, format!("{base}/errors"), false));
    if let Some(fingerprint) = signature {
        cases.push(case(SIGNATURE, format!("{base}/errors/{fingerprint}"), false));
    }
    Ok(Targets { run, test, cases })
}

/// A text as part of a path or a query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The case of this name.
pub(crate) fn find<'a>(cases: &'a [Case], name: &str) -> anyhow::Result<&'a Case> {
    cases
        .iter()
        .find(|case| case.name == name)
        .with_context(|| format!("the data set has nothing for {name:?}"))
}

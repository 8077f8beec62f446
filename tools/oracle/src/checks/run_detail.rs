//! `GET /projects/{projectId}/runs/{runId}`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{ProjectChecks, refused};
use crate::{
    comparison::Comparison,
    oracle,
    world::{ExpectedTest, Run},
};

/// Checks every field of every visible run, by its own id and by each of its shards' ids.
pub fn run_details(comparison: &mut Comparison, checks: &mut ProjectChecks<'_>) {
    for run in oracle::visible(checks.project, checks.organization.plan, checks.now) {
        run_detail(comparison, checks, run);
    }
    let hidden =
        checks.project.runs.iter().filter(|run| {
            run.started() < checks.now - checks.organization.plan.retention() * crate::clock::DAY
        });
    for run in hidden {
        let path = checks.path(&["runs", &run.id]);
        refused(comparison, &path, &checks.client.get(&path), 404, "run_not_found");
    }
}

/// One run.
pub fn run_detail(comparison: &mut Comparison, checks: &mut ProjectChecks<'_>, run: &Run) {
    let path = checks.path(&["runs", &run.id]);
    let answer = checks.client.get(&path);
    super::good(comparison, &path, &answer);
    let body = answer.json_or_null();
    comparison.matches(
        &format!("GET {path}"),
        &body,
        &oracle::run_detail(checks.project, run),
    );
    let tests = run.tests();
    let got: BTreeMap<(String, Option<String>), &Value> = body["tests"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            let text = |name: &str| entry[name].as_str().map(str::to_owned);
            ((text("testName").unwrap_or_default(), text("filePath")), entry)
        })
        .collect();
    comparison.same(
        &format!("GET {path}: entries"),
        &body["tests"].as_array().map_or(0, Vec::len),
        &tests.len(),
    );
    for test in &tests {
        let what = format!("GET {path}: test {:?} of {:?}", test.name, test.file);
        let Some(entry) = got.get(&(test.name.clone(), test.file.clone())) else {
            comparison.holds(false, || format!("{what} is missing"));
            continue;
        };
        record_fingerprints(comparison, checks, test, entry);
        let mut expected = oracle::test_entry(run, test, &checks.fingerprints);
        trim_ends(&mut expected);
        let mut entry = (*entry).clone();
        trim_ends(&mut entry);
        comparison.matches(&what, &entry, &expected);
    }
    for shard in &run.shards {
        let same = checks.client.get(&checks.path(&["runs", &shard.id]));
        comparison.holds(same.body == answer.body, || {
            format!("GET {path}: shard id {} answers otherwise", shard.id)
        });
    }
}

/// The last line break of a message may be kept or dropped.
fn trim_ends(entry: &mut Value) {
    if let Some(text) = entry["errorMessage"].as_str().map(|text| text.trim().to_owned()) {
        entry["errorMessage"] = Value::String(text);
    }
}

/// A class has one fingerprint, and two classes have different ones.
fn record_fingerprints(
    comparison: &mut Comparison,
    checks: &mut ProjectChecks<'_>,
    test: &ExpectedTest,
    entry: &Value,
) {
    if let (Some(class), Some(fingerprint)) = (oracle::class(test.last()), entry["fingerprint"].as_str()) {
        note(comparison, checks, class, fingerprint);
    }
}

/// Records the stored fingerprint of a class.
pub fn note(comparison: &mut Comparison, checks: &mut ProjectChecks<'_>, class: &str, fingerprint: &str) {
    let shaped = (1..=128).contains(&fingerprint.len())
        && fingerprint
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    comparison.holds(shaped, || {
        format!("the fingerprint {fingerprint:?} has another shape")
    });
    if let Some(known) = checks.fingerprints.get(class) {
        let known = known.clone();
        comparison.same(
            &format!("the fingerprint of {class:?}"),
            &fingerprint.to_owned(),
            &known,
        );
    } else {
        let other = checks
            .fingerprints
            .iter()
            .find(|(_, known)| *known == fingerprint);
        comparison.holds(other.is_none(), || {
            format!("{class:?} has the fingerprint of {other:?}")
        });
        checks
            .fingerprints
            .insert(class.to_owned(), fingerprint.to_owned());
    }
}

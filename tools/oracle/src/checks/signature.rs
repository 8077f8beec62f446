//! `GET /projects/{projectId}/errors/{fingerprint}`, and the checks that the list shares with it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::ProjectChecks;
use crate::{
    clock::{self, DAY},
    comparison::{ANY, Comparison, TEXT},
    oracle::{Occurrence, excerpt},
    world::UNEXPECTED_PASS_CLASS,
};

/// The kinds of errors.
pub(super) const CATEGORIES: [&str; 7] = [
    "assertion",
    "timeout",
    "element",
    "network",
    "crash",
    "setup",
    "other",
];

/// Checks one signature over one period.
pub(super) fn detail(
    comparison: &mut Comparison,
    checks: &ProjectChecks<'_>,
    fingerprint: &str,
    stored: &[Occurrence<'_>],
    days: i64,
) {
    let from = checks.now - days * DAY;
    let within: Vec<Occurrence<'_>> = stored
        .iter()
        .filter(|occurrence| occurrence.run.started() >= from)
        .cloned()
        .collect();
    let empty = within.is_empty();
    let counted = if empty { stored.to_vec() } else { within };
    let class = &stored[0].class;
    let path = format!("{}?days={days}", checks.path(&["errors", fingerprint]));
    let answer = checks.get_window(comparison, &path, days);
    comparison.matches(
        &format!("GET {path}"),
        &answer,
        &json!({
            "project": {"id": checks.project.id, "name": checks.project.name},
            "windowEmpty": empty,
            "signature": signature(class, &counted, stored, from, empty),
        }),
    );
    comparison.same(
        &format!("GET {path}: fingerprint"),
        &answer["signature"]["fingerprint"],
        &json!(fingerprint),
    );
    figures(
        comparison,
        &format!("GET {path}"),
        &answer["signature"],
        class,
        &counted,
    );
    tests(comparison, &path, &answer, &counted);
    runs(comparison, &path, &answer, &counted);
}

fn tests(comparison: &mut Comparison, path: &str, answer: &Value, counted: &[Occurrence<'_>]) {
    let mut wanted: BTreeMap<(String, Option<String>), u64> = BTreeMap::new();
    for occurrence in counted {
        *wanted
            .entry((occurrence.test.name.clone(), occurrence.test.file.clone()))
            .or_default() += 1;
    }
    let entries = answer["tests"].as_array().cloned().unwrap_or_default();
    let got: BTreeMap<(String, Option<String>), u64> = entries
        .iter()
        .map(|entry| {
            let text = |name: &str| entry[name].as_str().map(str::to_owned);
            let key = (text("testName").unwrap_or_default(), text("filePath"));
            (key, entry["occurrenceCount"].as_u64().unwrap_or_default())
        })
        .collect();
    comparison.same(&format!("GET {path}: tests"), &got, &wanted);
    comparison.same(
        &format!("GET {path}: tests, each once"),
        &entries.len(),
        &wanted.len(),
    );
    let hits: Vec<u64> = entries
        .iter()
        .filter_map(|entry| entry["occurrenceCount"].as_u64())
        .collect();
    comparison.holds(hits.windows(2).all(|pair| pair[0] >= pair[1]), || {
        format!("GET {path}: tests are not sorted: {hits:?}")
    });
}

fn runs(comparison: &mut Comparison, path: &str, answer: &Value, counted: &[Occurrence<'_>]) {
    let mut wanted: BTreeMap<(String, String, Option<String>), Value> = BTreeMap::new();
    for occurrence in counted {
        let test = &occurrence.test;
        let key = (occurrence.run.id.clone(), test.name.clone(), test.file.clone());
        let hits = counted
            .iter()
            .filter(|other| other.run.id == key.0 && other.test.name == key.1 && other.test.file == key.2)
            .count();
        wanted.entry(key).or_insert_with(|| {
            json!({
                "runId": occurrence.run.id,
                "runNumber": occurrence.run.number,
                "branch": occurrence.run.branch,
                "startedAt": clock::text(occurrence.run.started()),
                "testName": test.name,
                "filePath": test.file,
                "attempts": test.max_attempts(),
                "occurrences": hits,
                "finalStatus": test.status(),
            })
        });
    }
    let entries = answer["runs"].as_array().cloned().unwrap_or_default();
    comparison.same(&format!("GET {path}: runs"), &entries.len(), &wanted.len());
    for entry in &entries {
        let text = |name: &str| entry[name].as_str().map(str::to_owned);
        let key = (
            text("runId").unwrap_or_default(),
            text("testName").unwrap_or_default(),
            text("filePath"),
        );
        match wanted.get(&key) {
            Some(expected) => comparison.matches(&format!("GET {path}: runs {key:?}"), entry, expected),
            None => {
                comparison.holds(false, || format!("GET {path}: it never occurred in {key:?}"));
            }
        }
    }
    let times: Vec<String> = entries
        .iter()
        .map(|entry| entry["startedAt"].to_string())
        .collect();
    comparison.holds(times.windows(2).all(|pair| pair[0] >= pair[1]), || {
        format!("GET {path}: runs are not newest first")
    });
}

/// The exact fields of a signature.
pub(super) fn signature(
    class: &str,
    counted: &[Occurrence<'_>],
    stored: &[Occurrence<'_>],
    from: i64,
    empty: bool,
) -> Value {
    let distinct =
        |of: &dyn Fn(&Occurrence<'_>) -> String| counted.iter().map(of).collect::<BTreeSet<_>>().len();
    let first = stored
        .iter()
        .map(|occurrence| occurrence.at)
        .min()
        .unwrap_or_default();
    let last = counted
        .iter()
        .map(|occurrence| occurrence.at)
        .max()
        .unwrap_or_default();
    json!({
        "fingerprint": TEXT,
        "title": TEXT,
        "message": TEXT,
        "category": match class.split(' ').next() {
            Some("to-be" | "have") => json!("assertion"),
            Some("refused") => json!("network"),
            Some("test") => json!("timeout"),
            _ => json!(ANY),
        },
        "fileCount": distinct(&|occurrence| occurrence.test.file.clone().unwrap_or_default()),
        "testCount": distinct(&|occurrence| format!("{:?}", (&occurrence.test.name, &occurrence.test.file))),
        "occurrenceCount": counted.len(),
        "runCount": distinct(&|occurrence| occurrence.run.id.clone()),
        "firstSeen": clock::text(first),
        "lastSeen": clock::text(last),
        "isNew": !empty && first >= from,
    })
}

/// The fields in which the order of equal entries is unspecified.
pub(super) fn figures(
    comparison: &mut Comparison,
    what: &str,
    got: &Value,
    class: &str,
    counted: &[Occurrence<'_>],
) {
    let category = got["category"].as_str().unwrap_or_default();
    comparison.holds(CATEGORIES.contains(&category), || {
        format!("{what}: category {category:?}")
    });
    let title = got["title"].as_str().unwrap_or_default();
    comparison.holds(
        title.chars().count() <= 120 && !title.contains(['\u{1b}', '\n', '\0']),
        || format!("{what}: title {title:?}"),
    );
    let newest = counted.iter().max_by_key(|occurrence| occurrence.at).unwrap();
    if class != UNEXPECTED_PASS_CLASS {
        let message = got["message"].as_str().unwrap_or_default().trim().to_owned();
        comparison.same(
            &format!("{what}: message"),
            &message,
            &excerpt(newest.message.trim().to_owned()),
        );
    }
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut files: BTreeMap<(String, Option<String>), usize> = BTreeMap::new();
    for occurrence in counted {
        *names.entry(occurrence.test.name.clone()).or_default() += 1;
        *files
            .entry((occurrence.test.name.clone(), occurrence.test.file.clone()))
            .or_default() += 1;
    }
    let listed: Vec<String> = got["testNames"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    comparison.same(
        &format!("{what}: testNames"),
        &listed.iter().cloned().collect(),
        &names.keys().cloned().collect::<BTreeSet<_>>(),
    );
    comparison.same(
        &format!("{what}: testNames, each once"),
        &listed.len(),
        &names.len(),
    );
    let most = files.values().max().copied().unwrap_or_default();
    let file = got["filePath"].as_str().map(str::to_owned);
    comparison.holds(
        files.iter().any(|((_, f), hits)| *hits == most && *f == file),
        || format!("{what}: filePath {file:?} is not of a test that it hits most: {files:?}"),
    );
}

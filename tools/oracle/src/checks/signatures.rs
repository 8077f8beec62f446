//! `GET /projects/{projectId}/errors`, and every signature that it lists.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{
    List, ProjectChecks, all_pages,
    run_detail::note,
    signature::{CATEGORIES, detail, figures, signature},
};
use crate::{
    clock::DAY,
    comparison::Comparison,
    http::escape,
    oracle::{self, Occurrence},
    texts::folded,
    world::{UNEXPECTED_PASS_CLASS, is_failure},
};

/// Checks the list in every order, filter and page, then every signature over every period.
pub fn signatures(comparison: &mut Comparison, checks: &mut ProjectChecks<'_>) {
    for days in checks.periods() {
        list(comparison, checks, days);
    }
    let project = checks.project;
    let visible = oracle::visible(project, checks.organization.plan, checks.now);
    let all = by_class(oracle::occurrences(&visible));
    for (class, stored) in &all {
        let Some(fingerprint) = checks.fingerprints.get(class).cloned() else {
            // The error occurred only in runs outside of the list's periods.
            continue;
        };
        for days in checks.periods() {
            detail(comparison, checks, &fingerprint, stored, days);
        }
    }
    let any_failed = visible
        .iter()
        .any(|run| run.tests().iter().any(|test| is_failure(test.status())));
    comparison.holds(!any_failed || !checks.fingerprints.is_empty(), || {
        "no signature at all".to_owned()
    });
    let base = checks.path(&["errors"]);
    checks.get_window(comparison, &base, 30);
    if let Some(print) = checks.fingerprints.values().next() {
        let path = checks.path(&["errors", print]);
        checks.get_window(comparison, &path, 30);
    }
}

fn by_class(occurrences: Vec<Occurrence<'_>>) -> BTreeMap<String, Vec<Occurrence<'_>>> {
    let mut classes: BTreeMap<String, Vec<Occurrence<'_>>> = BTreeMap::new();
    for occurrence in occurrences {
        classes
            .entry(occurrence.class.clone())
            .or_default()
            .push(occurrence);
    }
    classes
}

fn list(comparison: &mut Comparison, checks: &mut ProjectChecks<'_>, days: i64) {
    let (project, now) = (checks.project, checks.now);
    let runs = oracle::within(project, days, now);
    let visible = oracle::visible(project, checks.organization.plan, now);
    let stored = by_class(oracle::occurrences(&visible));
    let counted = by_class(oracle::occurrences(&runs));
    let base = checks.path(&["errors"]);
    let entries = signature_entries(
        comparison,
        checks,
        &format!("{base}?days={days}"),
        "occurrences",
        counted.len(),
    );
    // Each entry shows the beginning of its latest text, which identifies its class.
    let classes: BTreeMap<String, String> = counted
        .values()
        .flatten()
        .map(|occurrence| {
            let shown = oracle::excerpt(occurrence.message.trim().to_owned());
            (shown, occurrence.class.clone())
        })
        .collect();
    let mut found = BTreeSet::new();
    for entry in &entries {
        let message = entry["message"].as_str().unwrap_or_default().trim();
        let class = if message.to_lowercase().contains(UNEXPECTED_PASS_CLASS) {
            Some(UNEXPECTED_PASS_CLASS.to_owned())
        } else {
            classes.get(message).cloned()
        };
        let known = class.filter(|class| counted.contains_key(class));
        let Some(class) = known else {
            comparison.holds(false, || {
                format!("GET {base}?days={days}: no run has the error {entry}")
            });
            continue;
        };
        note(
            comparison,
            checks,
            &class,
            entry["fingerprint"].as_str().unwrap_or_default(),
        );
        comparison.matches(
            &format!("GET {base}?days={days}: {class}"),
            entry,
            &signature(&class, &counted[&class], &stored[&class], now - days * DAY, false),
        );
        figures(
            comparison,
            &format!("GET {base}?days={days}: {class}"),
            entry,
            &class,
            &counted[&class],
        );
        found.insert(class);
    }
    comparison.same(
        &format!("GET {base}?days={days}: classes"),
        &found,
        &counted.keys().cloned().collect(),
    );
    let answer = checks.get_window(comparison, &format!("{base}?days={days}"), days);
    comparison.same(
        &format!("GET {base}?days={days}: unfingerprintedCount"),
        &answer["unfingerprintedCount"].as_u64(),
        &Some(oracle::failures_without_text(&runs) as u64),
    );
    comparison.same(
        "the default sort of errors",
        &answer["sort"],
        &json!("occurrences"),
    );
    orders(comparison, checks, days, &entries);
    filters(comparison, checks, days, &entries, &counted);
}

/// All entries of a list of signatures.
fn signature_entries(
    comparison: &mut Comparison,
    checks: &ProjectChecks<'_>,
    query: &str,
    sort: &str,
    total: usize,
) -> Vec<Value> {
    let list = List {
        field: "errors",
        sort,
        key: Value::clone,
    };
    all_pages(comparison, checks, query, &list, total)
}

fn orders(comparison: &mut Comparison, checks: &ProjectChecks<'_>, days: i64, entries: &[Value]) {
    for (sort, field) in [
        ("occurrences", "occurrenceCount"),
        ("tests", "testCount"),
        ("lastSeen", "lastSeen"),
        ("firstSeen", "firstSeen"),
    ] {
        let query = format!("{}?days={days}&sort={sort}", checks.path(&["errors"]));
        let sorted = signature_entries(comparison, checks, &query, sort, entries.len());
        let keys: Vec<String> = sorted
            .iter()
            .map(|entry| {
                entry[field]
                    .as_u64()
                    .map_or_else(|| entry[field].to_string(), |n| format!("{n:09}"))
            })
            .collect();
        comparison.holds(keys.windows(2).all(|pair| pair[0] >= pair[1]), || {
            format!("GET {query} is not sorted: {keys:?}")
        });
        let answer = checks.get(comparison, &query);
        comparison.same(&format!("GET {query}: sort"), &answer["sort"], &json!(sort));
    }
}

fn filters(
    comparison: &mut Comparison,
    checks: &ProjectChecks<'_>,
    days: i64,
    entries: &[Value],
    counted: &BTreeMap<String, Vec<Occurrence<'_>>>,
) {
    let base = checks.path(&["errors"]);
    let prints = |entries: &[Value]| -> BTreeSet<String> {
        entries
            .iter()
            .filter_map(|entry| entry["fingerprint"].as_str().map(str::to_owned))
            .collect()
    };
    let ask = |comparison: &mut Comparison, query: &str| -> Vec<Value> {
        let path = format!("{base}?days={days}&{query}&perPage=50");
        let first = checks.get(comparison, &path);
        let mut entries = first["errors"].as_array().cloned().unwrap_or_default();
        for number in 2..=first["page"]["pageCount"].as_i64().unwrap_or(1) {
            let more = checks.get(comparison, &format!("{path}&page={number}"));
            entries.extend(more["errors"].as_array().cloned().unwrap_or_default());
        }
        entries
    };
    for category in CATEGORIES {
        let got = ask(comparison, &format!("category={category}"));
        let wanted: Vec<Value> = entries
            .iter()
            .filter(|entry| entry["category"] == category)
            .cloned()
            .collect();
        comparison.same(
            &format!("GET {base}?days={days}&category={category}"),
            &prints(&got),
            &prints(&wanted),
        );
    }
    let branches: BTreeSet<_> = counted
        .values()
        .flatten()
        .filter_map(|occurrence| occurrence.run.branch.clone())
        .collect();
    for branch in branches {
        let got = ask(comparison, &format!("branch={}", escape(&branch)));
        let here: BTreeMap<&String, Vec<&Occurrence<'_>>> = counted
            .iter()
            .map(|(class, all)| {
                (
                    class,
                    all.iter()
                        .filter(|occurrence| occurrence.run.branch.as_ref() == Some(&branch))
                        .collect(),
                )
            })
            .filter(|(_, some): &(_, Vec<_>)| !some.is_empty())
            .collect();
        let counts: BTreeMap<String, u64> = got
            .iter()
            .map(|entry| {
                let print = entry["fingerprint"].as_str().unwrap_or_default().to_owned();
                (print, entry["occurrenceCount"].as_u64().unwrap_or_default())
            })
            .collect();
        let wanted: BTreeMap<String, u64> = here
            .iter()
            .map(|(class, some)| {
                (
                    checks.fingerprints.get(*class).cloned().unwrap_or_default(),
                    some.len() as u64,
                )
            })
            .collect();
        comparison.same(
            &format!("GET {base}?days={days}&branch={branch}: occurrenceCount"),
            &counts,
            &wanted,
        );
    }
    for needle in [
        "BASKET",
        "exceeded",
        "ui/home",
        "no such text at all",
        "%",
        "_",
        "\\",
        "'",
    ] {
        let got = prints(&ask(comparison, &format!("search={}", escape(needle))));
        let low = folded(needle);
        let holds = |text: Option<&str>| text.is_some_and(|text| folded(text).contains(&low));
        for entry in entries {
            let print = entry["fingerprint"].as_str().unwrap_or_default();
            let shown = ["title", "message", "filePath"]
                .iter()
                .any(|name| holds(entry[*name].as_str()));
            let class = checks
                .fingerprints
                .iter()
                .find(|(_, known)| *known == print)
                .map(|(class, _)| class);
            let in_a_file = class.and_then(|class| counted.get(class)).is_some_and(|all| {
                all.iter().any(|occurrence| {
                    holds(occurrence.test.file.as_deref()) || holds(Some(&occurrence.message))
                })
            });
            let fine = if got.contains(print) {
                shown || in_a_file
            } else {
                !shown
            };
            comparison.holds(fine, || {
                format!("GET {base}?days={days}&search={needle}: wrong about {entry}")
            });
        }
    }
}

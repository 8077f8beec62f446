//! `GET /projects/{projectId}/flaky`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    ProjectChecks, listed_tests, test_key,
    verdicts::{Verdicts, count},
};
use crate::{
    clock,
    comparison::{ANY, Comparison, NUMBER},
    http::escape,
    texts::folded,
};

/// Checks the list in every order, filter and page, and against the stored verdicts.
pub fn flaky(comparison: &mut Comparison, checks: &ProjectChecks<'_>, verdicts: &Verdicts) {
    let base = checks.path(&["flaky"]);
    let judged: Vec<&(String, Option<String>)> = verdicts
        .iter()
        .filter(|(_, verdict)| verdict["status"] == "flaky" || verdict["status"] == "broken")
        .map(|(test, _)| test)
        .collect();
    let entries = listed_tests(comparison, checks, &base, "timeLost", judged.len());
    let listed: BTreeSet<(String, Option<String>)> = entries.iter().map(test_key).collect();
    comparison.same(
        &format!("GET {base}: tests"),
        &listed,
        &judged.into_iter().cloned().collect(),
    );
    let young = verdicts
        .values()
        .filter(|verdict| verdict["status"] == "insufficient_data" && verdict["awaitingFirstWrite"] == false)
        .count();
    let failing = verdicts
        .values()
        .filter(|verdict| verdict["status"] == "failing")
        .count();
    let answer = checks.get(comparison, &base);
    comparison.matches(
        &format!("GET {base}"),
        &answer,
        &json!({
            "project": {"id": checks.project.id, "name": checks.project.name},
            "windowDays": 14,
            "sort": "timeLost",
            "gatheringDataCount": young,
            "failingCount": failing,
        }),
    );
    for listed in &entries {
        entry(comparison, checks, listed, verdicts);
    }
    orders(comparison, checks, &entries);
    filters(comparison, checks, &entries);
}

fn entry(comparison: &mut Comparison, checks: &ProjectChecks<'_>, entry: &Value, verdicts: &Verdicts) {
    let test = test_key(entry);
    let what = format!("GET {}: {test:?}", checks.path(&["flaky"]));
    let figures = count(checks, &test.0, test.1.as_deref());
    let (last_run, seen) = figures.last.clone().unwrap_or((json!(ANY), ANY.to_owned()));
    comparison.matches(
        &what,
        entry,
        &json!({
            "statusReason": ANY,
            "alsoActive": ANY,
            "timeLostMs": figures.time_lost,
            "flakeScore": NUMBER,
            "flipRate": NUMBER,
            "failureRate": ANY,
            "runsInWindow": figures.runs.len(),
            "failureStreak": figures.streak,
            "lastSeenAt": seen,
            "lastRun": last_run,
        }),
    );
    let Some(stored) = verdicts.get(&test) else { return };
    // A stored verdict differs from the live one only by the time between them.
    for field in [
        "status",
        "statusReason",
        "failingOn",
        "runsConsidered",
        "failureStreak",
        "failureRate",
        "flipRate",
        "flakeScore",
        "lastRun",
    ] {
        comparison.matches(
            &format!("{what}: {field} as stored"),
            &entry[field],
            &stored[field],
        );
    }
    let mut signals: Vec<&str> = entry["alsoActive"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    signals.extend(entry["statusReason"].as_str());
    let stored: BTreeSet<&str> = stored["activeSignals"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|signal| signal["signal"].as_str())
        .collect();
    comparison.same(
        &format!("{what}: signals"),
        &signals.iter().copied().collect(),
        &stored,
    );
    let reasons: &[&str] = match entry["status"].as_str() {
        Some("broken") => &["consecutive_failures", "failure_rate_broken"],
        _ => &["retry_rate", "same_sha_flip", "failure_rate_flaky", "flip_rate"],
    };
    let reason = entry["statusReason"].as_str().unwrap_or_default();
    comparison.holds(reasons.contains(&reason), || {
        format!("{what}: {} because of {reason:?}", entry["status"])
    });
    let explained = checks.get(
        comparison,
        &format!("{}?explain=true&perPage=50", checks.path(&["flaky"])),
    );
    let found = explained["tests"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|other| test_key(other) == test)
        .cloned();
    comparison.holds(found.is_none_or(|found| found["evidence"].is_object()), || {
        format!("{what}: no evidence")
    });
    let time = entry["lastSeenAt"].as_str().and_then(clock::parse);
    comparison.holds(time.is_some(), || {
        format!("{what}: lastSeenAt {}", entry["lastSeenAt"])
    });
}

fn orders(comparison: &mut Comparison, checks: &ProjectChecks<'_>, entries: &[Value]) {
    for (sort, field) in [
        ("timeLost", "timeLostMs"),
        ("rate", "failureRate"),
        ("impact", "impact"),
    ] {
        let query = format!("{}?sort={sort}", checks.path(&["flaky"]));
        let sorted = listed_tests(comparison, checks, &query, sort, entries.len());
        // Unknown figures come last. Equal ones are ordered by score, then name, then file.
        let inverse = |value: &Value| -value.as_f64().unwrap_or(f64::NEG_INFINITY);
        let rank = |entry: &Value| {
            (
                inverse(&entry[field]),
                inverse(&entry["flakeScore"]),
                test_key(entry),
            )
        };
        for pair in sorted.windows(2) {
            comparison.holds(rank(&pair[0]) <= rank(&pair[1]), || {
                format!(
                    "GET {query}: {:?} comes before {:?}",
                    rank(&pair[0]),
                    rank(&pair[1])
                )
            });
        }
    }
}

fn filters(comparison: &mut Comparison, checks: &ProjectChecks<'_>, entries: &[Value]) {
    let base = checks.path(&["flaky"]);
    for status in ["flaky", "broken"] {
        let wanted: Vec<_> = entries
            .iter()
            .filter(|entry| entry["status"] == status)
            .map(test_key)
            .collect();
        let got = listed_tests(
            comparison,
            checks,
            &format!("{base}?status={status}"),
            "timeLost",
            wanted.len(),
        );
        comparison.same(
            &format!("GET {base}?status={status}"),
            &got.iter().map(test_key).collect::<Vec<_>>(),
            &wanted,
        );
    }
    let mut needles: Vec<String> = [
        "SPEC.TS",
        "does step",
        "no such test",
        "%",
        "_",
        "\\",
        " > ",
        "日本",
        "ÜBERSICHT",
        "webkit",
    ]
    .map(str::to_owned)
    .to_vec();
    needles.extend(entries.first().map(|entry| {
        test_key(entry)
            .0
            .chars()
            .take(200)
            .collect::<String>()
            .to_uppercase()
    }));
    for needle in needles.iter().filter(|needle| needle.chars().count() <= 200) {
        let low = folded(needle);
        let wanted: Vec<_> = entries
            .iter()
            .map(test_key)
            .filter(|(name, file)| {
                folded(name).contains(&low) || folded(file.as_deref().unwrap_or_default()).contains(&low)
            })
            .collect();
        let query = format!("{base}?search={}", escape(needle));
        let got = listed_tests(comparison, checks, &query, "timeLost", wanted.len());
        comparison.same(
            &format!("GET {query}"),
            &got.iter().map(test_key).collect::<Vec<_>>(),
            &wanted,
        );
    }
}

//! `GET /projects/{projectId}/tests/{testName}/status`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::ProjectChecks;
use crate::{
    clock::{self, DAY},
    comparison::{ANY, BOOL, Comparison, NUMBER},
    http::escape,
    oracle,
    world::{ExpectedTest, Run, is_failure},
};

/// Verdicts of the status route by test name and file.
pub type Verdicts = BTreeMap<(String, Option<String>), Value>;

/// The signals of the contract and of the engine's description.
const SIGNALS: [&str; 13] = [
    "consecutive_failures",
    "failure_rate_broken",
    "same_sha_flip",
    "retry_rate",
    "failure_rate_flaky",
    "flip_rate",
    "isolated_failure",
    "mass_failure",
    "failing_off_stable",
    "variant_specific",
    "unrelated_branches",
    "calendar",
    "resolved",
];

/// Figures that can be counted from a test's results in the engine's window.
pub struct Figures {
    pub runs: Vec<(i64, ExpectedTest)>,
    pub failing: usize,
    /// None if no attempt reported a duration.
    pub time_lost: Option<i64>,
    pub streak: usize,
    /// None if two runs share a revision: the engine defines their order.
    pub flip_rate: Option<f64>,
    pub last: Option<(Value, String)>,
}

/// Counts the figures.
pub fn count(checks: &ProjectChecks<'_>, name: &str, file: Option<&str>) -> Figures {
    let project = checks.project;
    let window: Vec<(&Run, ExpectedTest)> = oracle::within(project, 14, checks.now)
        .into_iter()
        .filter_map(|run| oracle::find(run, name, file).map(|test| (run, test)))
        .filter(|(_, test)| !test.skipped())
        .collect();
    let stable: Vec<&(&Run, ExpectedTest)> = window
        .iter()
        .filter(|(run, _)| run.branch.as_deref() == Some(project.stable.as_str()))
        .collect();
    let chain: Vec<&(&Run, ExpectedTest)> = if stable.is_empty() {
        window.iter().collect()
    } else {
        stable
    };
    let failures = |test: &ExpectedTest| -> i64 {
        test.attempts
            .iter()
            .filter(|a| is_failure(a.status))
            .filter_map(|a| a.duration)
            .sum()
    };
    let measured = window
        .iter()
        .flat_map(|(_, test)| &test.attempts)
        .any(|attempt| attempt.duration.is_some());
    Figures {
        failing: window
            .iter()
            .filter(|(_, test)| test.attempts.iter().any(|a| is_failure(a.status)))
            .count(),
        time_lost: measured.then(|| window.iter().map(|(_, test)| failures(test)).sum()),
        flip_rate: flip_rate(&window, &project.stable),
        streak: chain.iter().take_while(|(_, test)| test.failed()).count(),
        last: window.first().map(|(run, test)| {
            let seen = clock::text(test.last().started.unwrap_or_else(|| run.started()));
            let run = json!({
                "runId": run.id,
                "runNumber": run.number,
                "status": test.status(),
                "startedAt": clock::text(run.started()),
            });
            (run, seen)
        }),
        runs: window
            .iter()
            .map(|(run, test)| (run.started(), test.clone()))
            .collect(),
    }
}

/// Changes between neighbouring runs of a branch, or of the merges of a branch, as a share of the neighbours.
fn flip_rate(window: &[(&Run, ExpectedTest)], stable: &str) -> Option<f64> {
    let revisions: BTreeSet<_> = window
        .iter()
        .filter_map(|(run, _)| run.tested_revision.as_ref().or(run.commit.as_ref()))
        .collect();
    if revisions.len() != window.len() {
        return None;
    }
    let mut branches: BTreeMap<(Option<&String>, bool), Vec<bool>> = BTreeMap::new();
    for (run, test) in window {
        let failed = test.attempts.iter().any(|attempt| is_failure(attempt.status));
        let is_merge = run.merge().is_some() && run.branch.as_deref() != Some(stable);
        let line = (run.branch.as_ref(), is_merge);
        branches.entry(line).or_default().push(failed);
    }
    let pairs: Vec<bool> = branches
        .values()
        .flat_map(|runs| runs.windows(2).map(|pair| pair[0] != pair[1]))
        .collect();
    let flips = pairs.iter().filter(|flip| **flip).count();
    Some(if pairs.is_empty() {
        0.0
    } else {
        flips as f64 / pairs.len() as f64
    })
}

/// Checks the stored verdict of every visible test against the counted figures.
pub fn verdicts(comparison: &mut Comparison, checks: &ProjectChecks<'_>) -> Verdicts {
    let visible = oracle::visible(checks.project, checks.organization.plan, checks.now);
    let mut all = Verdicts::new();
    for (name, file) in oracle::tests_of(&visible) {
        let path = checks.path(&["tests", &name, "status"])
            + &format!("?filePath={}", escape(file.as_deref().unwrap_or_default()));
        let answer = checks.get(comparison, &path);
        let bare = checks.client.get(&checks.path(&["tests", &name, "status"]));
        comparison.holds(bare.json_or_null() == answer, || {
            format!("GET {path}: otherwise without filePath")
        });
        verdict(comparison, checks, &path, &answer, (&name, file.as_deref()));
        all.insert((name, file), answer);
    }
    all
}

fn verdict(
    comparison: &mut Comparison,
    checks: &ProjectChecks<'_>,
    path: &str,
    answer: &Value,
    (name, file): (&str, Option<&str>),
) {
    let what = format!("GET {path}");
    let in_window = oracle::within(checks.project, 14, checks.now)
        .into_iter()
        .any(|run| oracle::find(run, name, file).is_some());
    let figures = count(checks, name, file);
    let judged = !figures.runs.is_empty();
    comparison.matches(
        &what,
        answer,
        &json!({
            "project": {"id": checks.project.id, "name": checks.project.name},
            "test": {"name": name, "filePath": file},
            // The specification does not define whether skips alone lead to a verdict.
            "awaitingFirstWrite": if in_window && !judged { json!(BOOL) } else { json!(!in_window) },
            "statusReason": ANY,
            "evidence": ANY,
            "failingOn": ANY,
            "lastRun": figures.last.as_ref().map(|(run, _)| run),
        }),
    );
    let status = answer["status"].as_str().unwrap_or_default();
    comparison.holds(
        ["insufficient_data", "healthy", "failing", "flaky", "broken"].contains(&status),
        || format!("{what}: status {status:?}"),
    );
    let labels = answer["labels"].as_array().cloned().unwrap_or_default();
    comparison.holds(
        labels.iter().all(|label| label == "flips" || label == "retries"),
        || format!("{what}: labels {labels:?}"),
    );
    let signals = answer["activeSignals"].as_array().cloned().unwrap_or_default();
    let known = signals.iter().all(|signal| {
        SIGNALS.contains(&signal["signal"].as_str().unwrap_or_default())
            && signal["label"].as_str().is_some_and(|label| !label.is_empty())
    });
    comparison.holds(known && answer["activeSignals"].is_array(), || {
        format!("{what}: activeSignals {signals:?}")
    });
    if answer["awaitingFirstWrite"] == true {
        comparison.same(
            &format!("{what}: status of a test without a verdict"),
            &status,
            &"insufficient_data",
        );
        for field in [
            "statusReason",
            "flakeScore",
            "flipRate",
            "failureRate",
            "runsConsidered",
            "failureStreak",
            "evaluatedAt",
            "lastRun",
            "evidence",
        ] {
            comparison.same(
                &format!("{what}: {field} without a verdict"),
                &answer[field],
                &Value::Null,
            );
        }
        comparison.holds(signals.is_empty() && labels.is_empty(), || {
            format!("{what}: signals without a verdict")
        });
        return;
    }
    if judged {
        numbers(comparison, &what, answer, &figures);
        check_conclusions(comparison, &what, answer, &figures);
    }
}

fn numbers(comparison: &mut Comparison, what: &str, answer: &Value, figures: &Figures) {
    comparison.matches(
        what,
        answer,
        &json!({"flakeScore": NUMBER, "flipRate": NUMBER, "failureStreak": figures.streak}),
    );
    for field in ["flakeScore", "flipRate"] {
        let value = answer[field].as_f64().unwrap_or(-1.0);
        comparison.holds((0.0..=1.0).contains(&value), || {
            format!("{what}: {field} {value}")
        });
    }
    let considered = answer["runsConsidered"].as_u64().unwrap_or(u64::MAX) as usize;
    let dropped = answer["evidence"]["runsDropped"].as_u64().unwrap_or_default() as usize;
    comparison.same(
        &format!("{what}: runsConsidered + dropped"),
        &(considered + dropped),
        &figures.runs.len(),
    );
    if let Some(rate) = figures.flip_rate.filter(|_| dropped == 0) {
        let got = answer["flipRate"].as_f64().unwrap_or(-1.0);
        comparison.holds((got - rate).abs() < 1e-9, || {
            format!("{what}: flipRate {got}, expected {rate}")
        });
    }
    if dropped == 0 {
        let rate = figures.failing as f64 / figures.runs.len() as f64;
        let got = answer["failureRate"].as_f64().unwrap_or(-1.0);
        comparison.holds((got - rate).abs() < 1e-9, || {
            format!("{what}: failureRate {got}, expected {rate}")
        });
    }
    let evaluated = answer["evaluatedAt"]
        .as_str()
        .and_then(clock::parse)
        .unwrap_or_default();
    comparison.holds((clock::now() - evaluated).abs() < DAY, || {
        format!("{what}: evaluatedAt {}", answer["evaluatedAt"])
    });
}

/// Checks conclusions that follow from the figures in any interpretation.
fn check_conclusions(comparison: &mut Comparison, what: &str, answer: &Value, figures: &Figures) {
    let status = answer["status"].as_str().unwrap_or_default();
    // A run in which nearly everything failed is not evidence.
    let dropped = answer["evidence"]["runsDropped"].as_u64().unwrap_or_default() as usize;
    let count = figures.runs.len() - dropped.min(figures.runs.len());
    let recovered = figures.runs.iter().filter(|(_, test)| test.recovered()).count();
    if figures.failing == 0 {
        // Three or four runs are enough for a test that had five.
        let expected: &[&str] = match count {
            0..3 => &["insufficient_data"],
            3..5 => &["insufficient_data", "healthy"],
            5.. => &["healthy"],
        };
        comparison.holds(expected.contains(&status), || {
            format!("{what}: {status} on {count} green runs")
        });
    }
    // Without reruns, revisions are in the order of time.
    let has_left = answer["explanation"]
        .as_str()
        .is_some_and(|explanation| explanation.to_lowercase().contains("not run on"));
    if figures.streak > 0 && figures.flip_rate.is_some() && dropped == 0 && !has_left {
        comparison.holds(["failing", "flaky", "broken"].contains(&status), || {
            format!("{what}: {status} though its newest run failed")
        });
    }
    if count < 5 && dropped == 0 && recovered == 0 && figures.failing == 1 && figures.streak == 0 {
        comparison.same(
            &format!("{what}: one failure in {count} runs"),
            &status,
            &"insufficient_data",
        );
    }
}

//! Compares `assay analyze` over a table of attempts with the stored results: the verdicts must be equal to the last
//! digit.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    checks::{ProjectChecks, verdicts::Verdicts},
    clock,
    comparison::Comparison,
    oracle,
    stack::Stack,
    world::Run,
};

/// The fields of a stored verdict that an analysis has, too.
const FIELDS: [&str; 10] = [
    "status",
    "statusReason",
    "explanation",
    "labels",
    "flakeScore",
    "flipRate",
    "failureRate",
    "runsConsidered",
    "failureStreak",
    "evidence",
];

/// Compares the status route's verdicts of a project with an analysis of its runs at the time of the verdicts.
pub fn analyze(comparison: &mut Comparison, stack: &Stack, checks: &ProjectChecks<'_>, verdicts: &Verdicts) {
    let judged = || {
        verdicts
            .iter()
            .filter(|(_, verdict)| verdict["awaitingFirstWrite"] == false)
    };
    let Some((_, first)) = judged().next() else { return };
    let runs = oracle::within(checks.project, 30, checks.now);
    let evaluated_at = first["evaluatedAt"].as_str().unwrap_or_default();
    let Some(analysis) = analysis(comparison, stack, checks, &runs, evaluated_at) else {
        return;
    };
    comparison.same("assay analyze: windowDays", &analysis["windowDays"], &json!(14));
    let entries: BTreeMap<(String, Option<String>), &Value> = analysis["tests"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            let text = |name: &str| entry[name].as_str().map(str::to_owned);
            ((text("testName").unwrap_or_default(), text("filePath")), entry)
        })
        .collect();
    comparison.same("assay analyze: tests", &entries.len(), &judged().count());
    for (test, verdict) in judged() {
        let Some(entry) = entries.get(test) else {
            comparison.holds(false, || format!("assay analyze does not know {test:?}"));
            continue;
        };
        for field in FIELDS {
            comparison.same(
                &format!("assay analyze: {field} of {test:?}"),
                &without_run_numbers(&entry[field]),
                &without_run_numbers(&verdict[field]),
            );
        }
    }
}

/// What `assay analyze` answers about these runs of a project as of a time.
pub fn analysis(
    comparison: &mut Comparison,
    stack: &Stack,
    checks: &ProjectChecks<'_>,
    runs: &[&Run],
    now: &str,
) -> Option<Value> {
    let name = format!("attempts-{}-{}.csv", checks.project.id, now.replace(':', ""));
    let file = stack.file(&name, table(runs).as_bytes());
    let arguments = [
        "analyze",
        "--format",
        "csv",
        "--output",
        "json",
        "--now",
        now,
        // The service has no branch if none is stored.
        "--without-branch",
        "unknown",
        "--stable-branch",
        &checks.project.stable,
        &file,
    ]
    .map(str::to_owned);
    let output = stack.assay(&arguments, &BTreeMap::new());
    comparison
        .same(&format!("assay analyze: {}", output.err), &output.status, &0)
        .then(|| serde_json::from_str(&output.out).unwrap_or_default())
}

/// A value as text, in which numbers agree to the last digit, without the numbers of runs: an analysis counts its own.
fn without_run_numbers(value: &Value) -> String {
    let text = value.to_string();
    let parts = text.split("run ");
    let parts: Vec<&str> = parts
        .map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()))
        .collect();
    parts.join("run ")
}

/// One row per attempt of these runs.
fn table(runs: &[&Run]) -> String {
    let mut rows = vec![
        "ignored,test,file,run,started_at,status,branch,revision,merge,execution,retry,duration_ms"
            .to_owned(),
    ];
    for run in runs {
        let revision = run.tested_revision.as_deref().or(run.commit.as_deref());
        let merge = run.merge();
        for test in run.tests() {
            for (execution, retry, attempt) in test.numbered() {
                let cells = [
                    "x".to_owned(),
                    test.name.clone(),
                    test.file.clone().unwrap_or_default(),
                    run.id.clone(),
                    clock::text(run.started()),
                    attempt.status.to_owned(),
                    run.branch.clone().unwrap_or_default(),
                    revision.unwrap_or_default().to_owned(),
                    merge.unwrap_or_default().to_owned(),
                    execution.to_string(),
                    retry.to_string(),
                    attempt
                        .duration
                        .map(|duration| duration.to_string())
                        .unwrap_or_default(),
                ];
                rows.push(
                    cells
                        .map(|cell| format!("\"{}\"", cell.replace('"', "\"\"")))
                        .join(","),
                );
            }
        }
    }
    rows.join("\r\n")
}

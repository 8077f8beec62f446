//! Compares `assay analyze` over a table of attempts with the stored results: the verdicts must be equal to the last
//! digit.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    checks::{ProjectChecks, verdicts::Verdicts},
    clock,
    comparison::Comparison,
    oracle,
    stack::Stack,
};

/// The figures that do not depend on the input's form.
const FIELDS: [&str; 8] = [
    "status",
    "statusReason",
    "flakeScore",
    "flipRate",
    "failureRate",
    "runsConsidered",
    "failureStreak",
    "labels",
];

/// Compares the status route's verdicts of a project with an analysis of its runs.
pub fn analyze(comparison: &mut Comparison, stack: &Stack, checks: &ProjectChecks<'_>, verdicts: &Verdicts) {
    // Projects are checked in parallel.
    let name = format!("attempts-{}.csv", checks.project.id);
    let file = stack.file(&name, table(checks).as_bytes());
    let now = clock::text(checks.now + clock::MINUTE);
    let arguments = [
        "analyze",
        "--format",
        "csv",
        "--output",
        "json",
        "--now",
        &now,
        // The service has no branch if none is stored.
        "--without-branch",
        "unknown",
        "--stable-branch",
        &checks.project.stable,
        &file,
    ]
    .map(str::to_owned);
    let output = stack.assay(&arguments, &BTreeMap::new(), b"");
    if !comparison.same(&format!("assay analyze: {}", output.err), &output.status, &0) {
        return;
    }
    let analysis: Value = serde_json::from_str(&output.out).unwrap_or_default();
    comparison.same(
        "assay analyze: windowDays",
        &analysis["windowDays"].as_i64(),
        &Some(14),
    );
    let entries: BTreeMap<(String, Option<String>), &Value> = analysis["tests"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            let text = |name: &str| entry[name].as_str().map(str::to_owned);
            ((text("testName").unwrap_or_default(), text("filePath")), entry)
        })
        .collect();
    for (test, verdict) in verdicts
        .iter()
        .filter(|(_, verdict)| verdict["awaitingFirstWrite"] == false)
    {
        let Some(entry) = entries.get(test) else {
            comparison.holds(false, || format!("assay analyze does not know {test:?}"));
            continue;
        };
        for field in FIELDS {
            comparison.same(
                &format!("assay analyze: {field} of {test:?}"),
                &entry[field],
                &verdict[field],
            );
        }
    }
}

/// One row per attempt of the last thirty days.
fn table(checks: &ProjectChecks<'_>) -> String {
    let mut rows = vec![
        "ignored,test,file,run,started_at,status,branch,revision,execution,retry,duration_ms".to_owned(),
    ];
    for run in oracle::within(checks.project, 30, checks.now) {
        let revision = run.tested_revision.as_deref().or(run.commit.as_deref());
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

//! Renamed tests, from an upload to the answers.

use assay_testkit::{Cli, text};
use serde_json::{Value, json};

use crate::{
    gate_decisions::Pages,
    ingest::{FAILS, IngestServer, PASSES, now},
};

/// Sends a report of the stable branch, and returns the answer.
fn send(ingest: &IngestServer, key: &str, minutes: i64, report: &str, renames: Option<&str>) -> Value {
    let started = now().plus_ms(-minutes * 60_000).to_string();
    let mut fields = vec![
        ("branch", "main"),
        ("commit", key),
        ("runKey", key),
        ("startedAt", started.as_str()),
    ];
    fields.extend(renames.map(|text| ("renames", text)));
    let answer = ingest.send(&ingest.key, &fields, &[("r.xml", report.as_bytes())]);
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()
}

/// The lines of `assay quarantine --format txt`.
fn quarantine(ingest: &IngestServer) -> String {
    let arguments = ["quarantine", "--project", &ingest.project, "--format", "txt"];
    let output = Cli::new("postgresql://127.0.0.1:1/nowhere")
        .command(&arguments)
        .env(
            "ASSAY_API_URL",
            format!("http://{}/api/v1", ingest.server.address()),
        )
        .env("ASSAY_READ_KEY", &ingest.read_key)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn renamed(report: &str) -> String {
    report
        .replace("\"pays\"", "\"pays by card\"")
        .replace("cart.test.ts", "shop/cart.test.ts")
}

const LINES: &str =
    "2026-11-20 test cart > pays -> cart > pays by card\n2026-11-20 file cart.test.ts -> shop/cart.test.ts\n";

#[test]
fn a_renamed_test_keeps_its_history_until_the_line_is_removed() {
    let ingest = IngestServer::new();
    for number in 0..12 {
        let report = if number % 3 == 0 { FAILS } else { PASSES };
        send(
            &ingest,
            &format!("{number:02}c0ffee"),
            240 - number * 10,
            report,
            None,
        );
    }
    let old = ingest.read("/tests/cart%20%3E%20pays?days=7");
    let before = old["occurrences"].as_array().unwrap().len();
    assert_eq!(before, 12);
    let first = send(&ingest, "a0c0ffee", 60, &renamed(PASSES), Some(LINES));
    let second = send(&ingest, "a1c0ffee", 50, &renamed(PASSES), Some(LINES));
    let pair = json!({
        "from": {"name": "cart > pays", "filePath": "cart.test.ts"},
        "to": {"name": "cart > pays by card", "filePath": "shop/cart.test.ts"},
        "guessed": false,
    });
    // Only the first run with the new name renamed the test.
    for (run, expected) in [(first, json!([pair])), (second, json!([]))] {
        let changes = ingest.read(&format!("/runs/{}/changes", text(&run["runId"])));
        assert_eq!(changes["renamed"]["tests"], expected, "{changes}");
    }
    let path = "/tests/cart%20%3E%20pays%20by%20card?days=7";
    let history = ingest.read(path);
    assert_eq!(history["occurrences"].as_array().unwrap().len(), 14);
    // The former name finds the test.
    assert_eq!(
        ingest.read("/tests/cart%20%3E%20pays?days=7")["test"],
        history["test"]
    );
    let flaky = ingest.read("/flaky");
    let names: Vec<String> = flaky["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|test| text(&test["testName"]))
        .collect();
    assert_eq!(names, ["cart > pays by card"], "{flaky}");
    assert_eq!(flaky["tests"][0]["formerNames"], json!([pair["from"]]));
    // A branch that lacks the rename runs the test under its former name.
    assert_eq!(
        quarantine(&ingest),
        "shop/cart.test.ts\tcart > pays by card\ncart.test.ts\tcart > pays\n"
    );
    let pages = Pages::over(ingest.database.url(), &ingest.read_key, &ingest.project);
    assert!(pages.page("/test?name=cart+%3E+pays").contains("pays by card"));

    // An older branch reports the old name. Its failure is explained by the history, under the name that it has there.
    let fields = [("branch", "topic"), ("commit", "b0c0ffee"), ("runKey", "topic")];
    let answer = ingest.send(&ingest.key, &fields, &[("r.xml", FAILS.as_bytes())]);
    let run = text(&answer.json()["runId"]);
    let failures = ingest.read(&format!("/runs/{run}/failures"));
    let failure = &failures["failures"][0];
    assert_eq!(failure["testName"], "cart > pays", "{failures}");
    assert_ne!(failure["cause"], "new_test", "{failures}");
    let changes = ingest.read(&format!("/runs/{run}/changes"));
    for list in ["noLongerReported", "added", "renamed"] {
        assert_eq!(changes[list]["total"], 0, "{list}: {changes}");
    }

    let both = format!(
        "{}{}",
        FAILS.trim_end_matches("</testsuites>"),
        renamed(PASSES).trim_start_matches("<testsuites>")
    )
    .replace("shop/cart.test.ts", "cart.test.ts");
    let lines = "2026-11-20 test cart > pays -> cart > pays by card\nnonsense\n";
    let answer = send(&ingest, "c0c0ffee", 30, &both, Some(lines));
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("line 1 is ignored for this run"), "{warnings}");
    assert!(warnings.contains(".assay/renames: line 2:"), "{warnings}");

    send(&ingest, "d0c0ffee", 20, &renamed(PASSES), Some(""));
    let history = ingest.read(&format!("{path}&file=shop/cart.test.ts").replace("&file=", "&filePath="));
    assert_eq!(history["occurrences"].as_array().unwrap().len(), 3);
}

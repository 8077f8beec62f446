//! What everybody who is asked says about the newest run: the gate, the comment, the page, the tool for agents, and
//! `assay analyze` about the same file.

use serde_json::{Value, json};

use crate::{
    conditions::{self, list},
    outcome::{Outcome, Run},
};

/// The answers that contradict the stored status of the newest run.
pub(crate) fn contradictions(outcome: &Outcome<'_>, expected: &Value) -> Vec<String> {
    let Some(run) = outcome.runs.last() else {
        return Vec::new();
    };
    let status = run.detail["run"]["status"].as_str();
    let has_failed = status == Some("failed");
    let is_whole = run.failures["incomplete"].is_null();
    let mut wrong = Vec::new();
    let mut check = |who: &str, is_so: bool, says: String| {
        if !is_so {
            wrong.push(format!("{who} about a run that is stored as {status:?}: {says}"));
        }
    };
    // An earlier run may excuse a failure.
    let gate = conditions::gate(outcome, run);
    let may_excuse = has_failed && outcome.runs.len() > 1;
    let passes = gate == Some(0);
    check(
        "assay gate",
        may_excuse || passes != (has_failed || !is_whole),
        format!("{gate:?}"),
    );
    let comment = conditions::comment_of(outcome, run);
    check(
        "the comment",
        comment["clean"] == false || comment["clean"] == true && !has_failed,
        comment.to_string(),
    );
    let explained = explained(outcome, run);
    let of_run = &explained["run"]["status"];
    let is_same = *of_run == json!(status) || !is_whole;
    check("explain_failures", is_same, of_run.to_string());
    let page = page(outcome, run);
    let chip = format!("class=\"chip {}\"", status.unwrap_or("incomplete"));
    check("the page", page.contains(&chip), page);
    if let Some(analyzed) = analyzed(outcome, expected) {
        let tests = list(&analyzed["tests"]).iter();
        let failed = ["failed", "timedOut"].map(Value::from);
        let mut ends = tests.map(|test| &test["lastRun"]["status"]);
        let is_red = ends.any(|status| failed.contains(status)) || !analyzed["reportErrors"].is_null();
        check("assay analyze", is_red == has_failed, analyzed.to_string());
    }
    wrong
}

/// The answer of the tool for agents.
fn explained(outcome: &Outcome<'_>, run: &Run) -> Value {
    let arguments = json!({"project": outcome.project, "run": run.id});
    let call = json!({"name": "explain_failures", "arguments": arguments});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call});
    let bearer = format!("Bearer {}", outcome.world.key);
    let headers = [
        ("Accept", "application/json, text/event-stream"),
        ("Authorization", &*bearer),
        ("MCP-Protocol-Version", "2025-06-18"),
    ];
    let answer = outcome.world.server.front().post_json("/mcp", &headers, &message);
    answer.json()["result"]["structuredContent"].clone()
}

/// The heading of the page of the run.
fn page(outcome: &Outcome<'_>, run: &Run) -> String {
    let front = outcome.world.server.front();
    let cookie = front.sign_in(&outcome.world.key);
    let path = format!("/p/{}/runs/{}", outcome.project, run.id);
    let text = front.get_with(&path, &[("Cookie", &cookie)]).text();
    let (_, heading) = text.split_once("<h1>").expect("the page has a heading");
    heading.split("</h1>").next().unwrap_or_default().to_owned()
}

/// What `assay analyze` says of the case's only file. Several files may be several runs there.
fn analyzed(outcome: &Outcome<'_>, expected: &Value) -> Option<Value> {
    let [step] = list(&expected["steps"]) else {
        return None;
    };
    let [file] = list(&step["files"]) else { return None };
    let path = outcome.folder.path().join(file.as_str()?);
    let is_told = list(&step["flags"]).contains(&json!("--retries-as-attempts"));
    if is_told || !path.is_file() {
        return None;
    }
    let done = outcome
        .world
        .cli
        .run(&["analyze", "--json", &path.display().to_string()]);
    serde_json::from_slice(&done.stdout).ok()
}

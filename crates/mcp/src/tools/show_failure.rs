//! `show_failure`: the attempts of one test in one run.

use assay_domain::attempt::{ErrorDetail, StoredAttempt};
use assay_explain::{failures::failure_of, prompt};
use serde_json::{Value, json};

use super::{Call, Properties};
use crate::{budget::Draft, error::ToolError};

pub(super) fn properties() -> Properties {
    vec![
        ("run", json!({"type": "string", "description": "the run's id"})),
        (
            "test",
            json!({"type": "string", "description": "the test's whole name"}),
        ),
        (
            "file",
            json!({"type": "string", "description": "where several files have a test of this name"}),
        ),
        (
            "attempt",
            json!({"type": "integer", "minimum": 1, "description": "only this attempt, from 1"}),
        ),
    ]
}

pub(super) fn answer(call: &Call<'_>) -> Result<Draft, ToolError> {
    let chosen = call.arguments.number("attempt", 1..=1_000)?;
    let run = call.run_id()?;
    let selector = call.test()?;
    let project = call.project()?;
    let found = call.store.attempts(&project, run, &selector)?.ok_or_else(|| {
        ToolError::new("There is no such run in this project.")
            .with_call(call.arguments.other_call("list_runs", &[]))
    })?;
    let found = call.single_test(&project, &selector, found)?;
    let numbered: Vec<_> = (1_i64..).zip(&found.attempts).collect();
    let shown = numbered
        .iter()
        .filter(|(number, _)| chosen.is_none_or(|chosen| chosen == *number));
    let entries: Vec<_> = shown.map(|(number, attempt)| entry(*number, attempt)).collect();
    if entries.is_empty() {
        let message = format!("The test has {} attempt(s) in this run.", numbered.len());
        let all = call.arguments.call("show_failure", &[("attempt", Value::Null)]);
        return Err(ToolError::new(message).with_call(all));
    }
    let last_failed = numbered.iter().rev().find(|(number, attempt)| {
        attempt.status.is_failure() && chosen.is_none_or(|chosen| chosen == *number)
    });
    let explained = failure_of(call.store, call.engine, &project, &found, call.now)?;
    // Quotes and line breaks take two bytes in JSON, and the attempts need space beside the prompt.
    let room = call.arguments.max_bytes()? / 2;
    let prompt = last_failed.and_then(|(_, attempt)| {
        prompt::of_size(&project.name, &found, attempt, explained.as_ref(), call.now, room)
    });
    Ok(Draft::default()
        .fact("project", project.name.as_str())
        .fact(
            "run",
            json!({"run": found.run.id, "number": found.run.run_number, "branch": found.run.branch}),
        )
        .fact("commit", found.tested_revision.or(found.commit_sha))
        .fact("test", found.test.name.as_str())
        .fact("file", found.test.file_path.as_deref())
        .entries("attempts", entries)
        .whole("copyPrompt", prompt))
}

fn entry(number: i64, attempt: &StoredAttempt) -> Value {
    json!({
        "attempt": number,
        "status": attempt.status,
        "durationMs": attempt.duration_ms,
        "browser": attempt.browser_name,
        "errors": attempt.errors.iter().map(error).collect::<Vec<_>>(),
    })
}

fn error(error: &ErrorDetail) -> Value {
    json!({
        "message": error.message,
        "at": error.location.as_ref().map(|place| match place.line {
            Some(line) => format!("{}:{line}", place.file),
            None => place.file.clone(),
        }),
        "codeFrame": error.snippet,
        "stack": prompt::frames(error).filter(|frames| !frames.is_empty()),
    })
}

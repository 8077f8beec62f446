//! `show_failure`: the attempts of one test in one run.

use assay_answers::{
    failures::failure_of,
    prompt::{self, Place},
};
use assay_domain::{attempt::ErrorDetail, revision::tested_or_commit, test_attempts::StoredAttempt};
use serde_json::{Value, json};

use super::call::{Call, Properties};
use crate::{budget::Draft, error::ToolError};

pub(super) fn properties() -> Properties {
    vec![
        (
            "run",
            json!({"type": ["string", "integer"], "description": "the run's id or number"}),
        ),
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
    let number_filter = call.arguments.number("attempt", 1..=1_000)?;
    let selector = call.arguments.test()?;
    let project = call.project()?;
    let run = call.run_id(&project)?;
    let attempts = call.store.attempts(&project, run, &selector)?.ok_or_else(|| {
        ToolError::new("There is no such run in this project.")
            .with_call(call.arguments.other_call("list_runs", &[]))
    })?;
    let attempts = call.single_test(&project, &selector, attempts)?;
    let numbered: Vec<_> = (1_i64..).zip(&attempts.attempts).collect();
    let selected = numbered
        .iter()
        .filter(|(number, _)| number_filter.is_none_or(|number_filter| number_filter == *number));
    let entries: Vec<_> = selected
        .map(|(number, attempt)| entry(*number, attempt))
        .collect();
    if entries.is_empty() {
        let message = format!("The test has {} attempt(s) in this run.", numbered.len());
        let all = call.arguments.call("show_failure", &[("attempt", Value::Null)]);
        return Err(ToolError::new(message).with_call(all));
    }
    let last_failed = numbered.iter().rev().find(|(number, attempt)| {
        attempt.status.is_failure() && number_filter.is_none_or(|number_filter| number_filter == *number)
    });
    let explained = failure_of(call.store, call.engine, &project, &attempts, call.now)?;
    // Quotes and line breaks take two bytes in JSON, and the attempts need space beside the prompt.
    let room = call.arguments.max_bytes()? / 2;
    let page = call.pages.map(|pages| {
        let test = &attempts.test;
        pages.attempts(
            project.id,
            &attempts.run.id,
            &test.name,
            test.file_path.as_deref(),
        )
    });
    let place = Place {
        project: &project.name,
        page: page.as_deref(),
    };
    let prompt = last_failed
        .and_then(|(_, attempt)| prompt::of_size(place, &attempts, attempt, explained.as_ref(), room));
    Ok(Draft::default()
        .fact("project", project.name.as_str())
        .fact(
            "run",
            json!({"run": attempts.run.id, "number": attempts.run.run_number, "branch": attempts.run.branch}),
        )
        .fact(
            "commit",
            tested_or_commit(attempts.tested_revision, attempts.commit_sha),
        )
        .fact("test", attempts.test.name.as_str())
        .fact("file", attempts.test.file_path.as_deref())
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
        "at": error.location.as_ref().map(|location| match location.line {
            Some(line) => format!("{}:{line}", location.file),
            None => location.file.clone(),
        }),
        "codeFrame": error.snippet,
        "stack": prompt::frames(error).filter(|frames| !frames.is_empty()),
    })
}

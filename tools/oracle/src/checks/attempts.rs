//! `GET /projects/{projectId}/runs/{runId}/tests/{testName}`.

use serde_json::Value;

use super::ProjectChecks;
use crate::{
    comparison::Comparison,
    http::escape,
    oracle, playwright, texts,
    world::{Attempt, ExpectedTest, Fault, Run, UNEXPECTED_PASS_CLASS, is_failure},
};

/// Checks every test that did not simply pass, and some that did, in every visible run.
pub fn attempts(comparison: &mut Comparison, checks: &ProjectChecks<'_>) {
    for (number, run) in oracle::visible(checks.project, checks.organization.plan, checks.now)
        .iter()
        .enumerate()
    {
        for (place, test) in run.tests().iter().enumerate() {
            if test.attempts.len() > 1 || test.status() != "passed" || (place + number) % 12 == 0 {
                check_test(comparison, checks, run, test);
            }
        }
    }
}

fn check_test(comparison: &mut Comparison, checks: &ProjectChecks<'_>, run: &Run, test: &ExpectedTest) {
    let id = &run.shards[test.shard].id;
    let mut path = checks.path(&["runs", id, "tests", &test.name]);
    if test.attempts.len().is_multiple_of(2) {
        path.push_str(&format!(
            "?filePath={}",
            escape(test.file.as_deref().unwrap_or_default())
        ));
    }
    let answer = checks.get(comparison, &path);
    comparison.matches(
        &format!("GET {path}"),
        &answer,
        &oracle::attempts(checks.project, run, test),
    );
    for (place, attempt) in test.attempts.iter().enumerate() {
        let got = &answer["attempts"][place];
        let what = format!("GET {path}: attempts[{place}]");
        let count = got["errors"].as_array().map_or(usize::MAX, Vec::len);
        if comparison.same(&format!("{what}.errors"), &count, &attempt.faults.len()) {
            for (number, fault) in attempt.faults.iter().enumerate() {
                error(
                    comparison,
                    checks,
                    &format!("{what}.errors[{number}]"),
                    &got["errors"][number],
                    fault,
                    number == 0,
                );
            }
        }
        prompt(comparison, checks, &what, &got["copyPrompt"], test, attempt);
    }
}

fn error(
    comparison: &mut Comparison,
    checks: &ProjectChecks<'_>,
    what: &str,
    got: &Value,
    fault: &Fault,
    first: bool,
) {
    let text = |name: &str| got[name].as_str().unwrap_or_default().trim().to_owned();
    for name in ["message", "stack", "snippet", "location"] {
        comparison.holds(got.get(name).is_some(), || {
            format!("{what}: {name} is missing in {got}")
        });
        let codes = text(name)
            .chars()
            .any(|c| c.is_control() && c != '\n' && c != '\t');
        comparison.holds(!codes, || {
            format!("{what}: {name} holds control characters: {got}")
        });
    }
    if fault.class == UNEXPECTED_PASS_CLASS {
        let message = text("message").to_lowercase();
        comparison.holds(message.contains(UNEXPECTED_PASS_CLASS), || {
            format!("{what}: expected {UNEXPECTED_PASS_CLASS:?}, got {message:?}")
        });
        return;
    }
    comparison.same(
        &format!("{what}.message"),
        &text("message"),
        &oracle::message(fault).trim().to_owned(),
    );
    match &fault.spot {
        Some(spot) => {
            let file = checks.project.stored_path(&spot.file);
            let expected = serde_json::json!({"file": file, "line": spot.line, "column": spot.column});
            comparison.matches(&format!("{what}.location"), &got["location"], &expected);
        }
        None => {
            comparison.same(&format!("{what}.location"), &got["location"], &Value::Null);
        }
    }
    // A report has only the first error in parts. The reader must guess the parts of the others.
    if first && !fault.bare {
        comparison.same(
            &format!("{what}.stack"),
            &text("stack"),
            &texts::stripped(&playwright::stack(fault)).trim().to_owned(),
        );
        let snippet = fault
            .snippet
            .as_deref()
            .map(|snippet| texts::stripped(snippet).trim().to_owned());
        comparison.same(
            &format!("{what}.snippet"),
            &got["snippet"].as_str().map(|s| s.trim().to_owned()),
            &snippet,
        );
    }
}

fn prompt(
    comparison: &mut Comparison,
    checks: &ProjectChecks<'_>,
    what: &str,
    got: &Value,
    test: &ExpectedTest,
    attempt: &Attempt,
) {
    if !is_failure(attempt.status) {
        comparison.same(&format!("{what}.copyPrompt"), got, &Value::Null);
        return;
    }
    let prompt = got.as_str().unwrap_or_default();
    let mut parts = vec![
        test.name.clone(),
        test.file.clone().unwrap_or_default(),
        checks.project.name.clone(),
    ];
    if let Some(fault) = attempt
        .faults
        .first()
        .filter(|fault| fault.class != UNEXPECTED_PASS_CLASS)
    {
        parts.push(
            oracle::message(fault)
                .lines()
                .next()
                .unwrap_or_default()
                .trim_end()
                .to_owned(),
        );
    }
    for part in parts {
        // A name is quoted as stored, with escaped line breaks.
        let first = part.lines().next().unwrap_or_default();
        comparison.holds(prompt.contains(first), || {
            format!("{what}.copyPrompt does not say {first:?}: {prompt:?}")
        });
    }
    // No quoted text can end its own quotation, and every quotation is bounded.
    let inside = attempt
        .faults
        .iter()
        .map(|fault| ticks(&fault.message))
        .max()
        .unwrap_or_default();
    let fence = prompt
        .lines()
        .filter(|line| line.starts_with("```"))
        .map(ticks)
        .max()
        .unwrap_or_default();
    comparison.holds(attempt.faults.is_empty() || fence > inside.max(2), || {
        format!("{what}.copyPrompt: a fence of {fence} ticks: {prompt:?}")
    });
    comparison.holds(prompt.len() <= 12_000, || {
        format!("{what}.copyPrompt has {} bytes", prompt.len())
    });
    comparison.holds(!prompt.contains('\u{1b}') && !prompt.contains('\0'), || {
        format!("{what}.copyPrompt holds control characters")
    });
}

/// The longest run of backticks.
fn ticks(text: &str) -> usize {
    text.split(|character| character != '`')
        .map(str::len)
        .max()
        .unwrap_or_default()
}

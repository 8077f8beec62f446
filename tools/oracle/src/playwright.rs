//! Writes a shard in the form of Playwright's JSON reporter.

use serde_json::{Map, Value, json};

use crate::{
    clock, texts,
    world::{Attempt, CHECKOUT, Case, Fault, Manner, Run, Shard, TEST_DIR, is_failure},
};

/// The report of a shard. `is_sharded_by_playwright` is set if Playwright itself sharded the run.
pub fn report(run: &Run, shard: &Shard, is_sharded_by_playwright: bool) -> Value {
    let place = run
        .expected
        .filter(|_| is_sharded_by_playwright)
        .map(|total| json!({"current": shard.index, "total": total}));
    json!({
        "config": {
            "argv": ["/usr/bin/node", format!("{CHECKOUT}/node_modules/.bin/playwright"), "test"],
            "configFile": format!("{CHECKOUT}/playwright.config.ts"),
            "rootDir": format!("{CHECKOUT}/{TEST_DIR}"),
            "forbidOnly": false,
            "fullyParallel": true,
            "globalTimeout": 0,
            "grep": {},
            "maxFailures": 0,
            "metadata": {"actualWorkers": 2},
            "projects": [],
            "quiet": false,
            "shard": place,
            "version": "1.65.1",
            "workers": 2,
        },
        "suites": suites(shard),
        "errors": shard.errors.iter().map(|text| json!({"message": text, "stack": text})).collect::<Vec<_>>(),
        "stats": {
            "startTime": clock::text(shard.started),
            "duration": shard.duration,
            "expected": 0,
            "skipped": 0,
            "unexpected": 0,
            "flaky": 0,
        },
    })
}

fn suites(shard: &Shard) -> Vec<Value> {
    let mut files: Vec<&str> = Vec::new();
    for case in &shard.cases {
        if !files.contains(&case.suite.as_str()) {
            files.push(&case.suite);
        }
    }
    files
        .into_iter()
        .map(|file| {
            let cases: Vec<&Case> = shard.cases.iter().filter(|case| case.suite == file).collect();
            suite(file, file, &cases, 0)
        })
        .collect()
}

/// A file, or the `describe` at this depth that all these cases share.
fn suite(title: &str, file: &str, cases: &[&Case], depth: usize) -> Value {
    let mut specs: Vec<(&str, Vec<&Case>)> = Vec::new();
    let mut inner: Vec<(&str, Vec<&Case>)> = Vec::new();
    for case in cases {
        let (list, key) = match case.describes.get(depth) {
            Some(describe) => (&mut inner, describe.as_str()),
            None => (&mut specs, case.title.as_str()),
        };
        match list.iter_mut().find(|(found, _)| *found == key) {
            Some((_, members)) => members.push(case),
            None => list.push((key, vec![case])),
        }
    }
    let mut fields = Map::from_iter([
        ("title".to_owned(), json!(title)),
        ("file".to_owned(), json!(file)),
        ("line".to_owned(), json!(depth)),
        ("column".to_owned(), json!(0)),
        (
            "specs".to_owned(),
            specs
                .iter()
                .map(|(title, cases)| spec(title, file, cases))
                .collect(),
        ),
    ]);
    if !inner.is_empty() {
        let suites = inner
            .iter()
            .map(|(describe, cases)| suite(describe, file, cases, depth + 1))
            .collect();
        fields.insert("suites".to_owned(), suites);
    }
    Value::Object(fields)
}

fn spec(title: &str, file: &str, cases: &[&Case]) -> Value {
    let tests: Vec<Value> = cases.iter().flat_map(|case| tests(case)).collect();
    let ok = tests.iter().all(|test| test["status"] != "unexpected");
    json!({
        "title": title,
        "ok": ok,
        "tags": ["smoke"],
        "tests": tests,
        "id": format!("{:016x}", title.len() * 7_919 + file.len()),
        "file": file,
        "line": 3,
        "column": 1,
    })
}

/// One entry, or one per execution with `--repeat-each`.
fn tests(case: &Case) -> Vec<Value> {
    let none = [Vec::new()];
    let executions: &[Vec<Attempt>] = if case.executions.is_empty() {
        &none
    } else {
        &case.executions
    };
    executions
        .iter()
        .map(|attempts| {
            let (expected, status) = verdict(case.manner, attempts);
            json!({
                "timeout": 30_000,
                "annotations": [],
                "expectedStatus": expected,
                "projectId": case.browser,
                "projectName": case.browser,
                "results": attempts.iter().enumerate().map(|(retry, attempt)| result(retry, attempt)).collect::<Vec<_>>(),
                "status": status,
            })
        })
        .collect()
}

fn verdict(manner: Manner, attempts: &[Attempt]) -> (&'static str, &'static str) {
    let last = attempts.last().map_or("skipped", |attempt| attempt.status);
    match manner {
        Manner::ExpectedFailure => ("failed", "expected"),
        Manner::UnexpectedPass => ("failed", "unexpected"),
        Manner::Skipped => ("skipped", "skipped"),
        Manner::NeverStarted => ("passed", "skipped"),
        Manner::Plain if last == "interrupted" => ("passed", "skipped"),
        Manner::Plain if is_failure(last) => ("passed", "unexpected"),
        Manner::Plain if attempts.iter().any(|attempt| is_failure(attempt.status)) => ("passed", "flaky"),
        Manner::Plain => ("passed", "expected"),
    }
}

fn result(retry: usize, attempt: &Attempt) -> Value {
    let mut result = json!({
        "workerIndex": retry,
        "parallelIndex": 0,
        "status": attempt.status,
        "errors": attempt.faults.iter().map(whole_error).collect::<Vec<_>>(),
        "stdout": [{"text": "a line with \u{1b}[31mcolour\u{1b}[39m and a NUL\u{0}\n"}, {"buffer": "AAEC"}],
        "stderr": [],
        "retry": retry,
        "steps": [{"title": "a step", "duration": 3}],
        "annotations": [],
        "attachments": [{"name": "shot", "contentType": "image/png", "body": "iVBORw0KGgo="}],
    });
    if let Some(duration) = attempt.duration {
        result["duration"] = json!(duration);
    }
    if let Some(started) = attempt.started {
        result["startTime"] = json!(clock::text(started));
    }
    if let Some(first) = attempt.faults.first() {
        result["error"] = first_error(first);
        result["errorLocation"] = location(first);
    }
    result
}

/// The first error, the only one whose message, stack, snippet and location are separate fields.
fn first_error(fault: &Fault) -> Value {
    if fault.bare {
        return json!({"value": fault.message});
    }
    let mut error = json!({"message": fault.message, "stack": stack(fault)});
    if let Some(snippet) = &fault.snippet {
        error["snippet"] = json!(snippet);
    }
    if fault.spot.is_some() {
        error["location"] = location(fault);
    }
    error
}

/// Message, code frame and stack in one text.
fn whole_error(fault: &Fault) -> Value {
    let mut text = fault.message.clone();
    if let Some(snippet) = &fault.snippet {
        text.push_str(&format!("\n\n{}", texts::stripped(snippet)));
    }
    for frame in &fault.frames {
        text.push_str(&format!("\n{frame}"));
    }
    let mut error = json!({"message": text});
    if fault.spot.is_some() {
        error["location"] = location(fault);
    }
    error
}

/// The message with its frames after it.
pub fn stack(fault: &Fault) -> String {
    let mut text = fault.message.clone();
    for frame in &fault.frames {
        text.push_str(&format!("\n{frame}"));
    }
    text
}

fn location(fault: &Fault) -> Value {
    match &fault.spot {
        Some(spot) => json!({"file": spot.file, "line": spot.line, "column": spot.column}),
        None => Value::Null,
    }
}

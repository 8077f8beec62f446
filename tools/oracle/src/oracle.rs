//! The expected answer of each route, computed naively from the world.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{
    clock::{self, DAY},
    comparison::ANY,
    texts,
    world::{
        Attempt, ExpectedTest, Fault, Plan, Project, ReportSource, Run, Shard, UNEXPECTED_PASS_CLASS,
        is_failure,
    },
};

/// The outcome of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Passed,
    Failed,
    Unknown,
}

/// The stored fingerprints by the class of the error.
pub type Fingerprints = BTreeMap<String, String>;

/// `counts` of these tests, each counted once.
pub fn counts(tests: &[ExpectedTest]) -> Value {
    let of = |holds: &dyn Fn(&ExpectedTest) -> bool| tests.iter().filter(|test| holds(test)).count();
    json!({
        "total": tests.len(),
        "passed": of(&|test| test.status() == "passed"),
        "failed": of(&ExpectedTest::failed),
        "skipped": of(&ExpectedTest::skipped),
        "recovered": of(&ExpectedTest::recovered),
    })
}

/// The outcome of a run.
pub fn outcome(run: &Run) -> Outcome {
    if (0..run.shards.len()).any(|shard| shard_failed(run, shard)) {
        Outcome::Failed
    } else if run.incomplete() || run.shards.iter().any(Shard::interrupted) {
        Outcome::Unknown
    } else {
        Outcome::Passed
    }
}

fn shard_failed(run: &Run, shard: usize) -> bool {
    !run.shards[shard].errors.is_empty()
        || run.shards[shard]
            .cases
            .iter()
            .any(|case| case.stored(shard).failed())
}

/// The visible runs of a plan, newest first.
pub fn visible(project: &Project, plan: Plan, now: i64) -> Vec<&Run> {
    within(project, plan.retention(), now)
}

/// The runs of the last days, newest first.
pub fn within(project: &Project, days: i64, now: i64) -> Vec<&Run> {
    let mut runs: Vec<&Run> = project
        .runs
        .iter()
        .filter(|run| run.started() >= now - days * DAY && run.started() <= now)
        .collect();
    runs.sort_by_key(|run| std::cmp::Reverse((run.started(), run.number)));
    runs
}

/// A row of the runs list.
pub fn run_row(run: &Run) -> Value {
    json!({
        "id": run.id,
        "runNumber": run.number,
        "branch": run.branch,
        "commitSha": run.commit,
        "testedRevision": run.tested_revision,
        "pullRequestNumber": run.pr,
        "status": match outcome(run) {
            Outcome::Passed => json!("passed"),
            Outcome::Failed => json!("failed"),
            Outcome::Unknown => Value::Null,
        },
        "startedAt": clock::text(run.started()),
        "finishedAt": clock::text(run.ended()),
        "durationMs": run.ran_ms(),
        "counts": counts(&run.tests()),
        "shards": run.expected.map(|expected| json!({"received": run.shards.len(), "expected": expected})),
    })
}

/// The run detail without its tests.
pub fn run_detail(project: &Project, run: &Run) -> Value {
    json!({
        "project": {"id": project.id, "name": project.name},
        "run": {
            "id": run.id,
            "runNumber": run.number,
            "branch": run.branch,
            "commitSha": run.commit,
            // The oracle does not predict values that git provides if CI does not.
            "commitMessage": expected_text(project, run.message.as_deref()),
            "authorName": if project.source == ReportSource::Gitlab { json!(ANY) } else { expected_text(project, run.author.as_deref()) },
            "testedRevision": run.tested_revision,
            "pullRequestNumber": run.pr,
            "pullRequestTitle": run.pr_title,
            "ciProvider": run.ci,
            "status": match outcome(run) {
                Outcome::Passed => "passed",
                Outcome::Failed => "failed",
                Outcome::Unknown => "incomplete",
            },
            "startedAt": clock::text(run.started()),
            "finishedAt": clock::text(run.ended()),
            "durationMs": run.ran_ms(),
            "shards": shards(run),
        },
        "counts": counts(&run.tests()),
    })
}

fn expected_text(project: &Project, text: Option<&str>) -> Value {
    match (text, project.source) {
        (None, ReportSource::Github | ReportSource::Gitlab) => json!(ANY),
        (text, _) => json!(text),
    }
}

fn shards(run: &Run) -> Value {
    let Some(expected) = run.expected else {
        return Value::Null;
    };
    let mut received: Vec<(usize, &Shard)> = run.shards.iter().enumerate().collect();
    received.sort_by_key(|(_, shard)| shard.index);
    let received: Vec<Value> = received
        .into_iter()
        .map(|(place, shard)| {
            let status = match (shard_failed(run, place), shard.interrupted()) {
                (true, _) => json!("failed"),
                (false, true) => Value::Null,
                (false, false) => json!("passed"),
            };
            json!({
                "runId": shard.id,
                "index": shard.index,
                "runState": if shard.interrupted() { "interrupted" } else { "completed" },
                "status": status,
            })
        })
        .collect();
    json!({"expected": expected, "received": received})
}

/// The shard of a test.
pub fn shard_tag(run: &Run, test: &ExpectedTest) -> Value {
    match run.expected {
        None => Value::Null,
        Some(_) => json!({"index": run.shards[test.shard].index, "runId": run.shards[test.shard].id}),
    }
}

/// A test entry of the run detail.
pub fn test_entry(run: &Run, test: &ExpectedTest, fingerprints: &Fingerprints) -> Value {
    let last = test.last();
    let message = last.faults.first().map(message).map(excerpt);
    json!({
        "testName": test.name,
        "filePath": test.file,
        "status": last.status,
        "attempts": test.max_attempts(),
        "durationMs": last.duration,
        "errorMessage": match last.faults.first() {
            Some(fault) if fault.class == UNEXPECTED_PASS_CLASS => json!(ANY),
            _ => json!(message),
        },
        "fingerprint": class(last).map(|class| fingerprints.get(class).map_or(json!(ANY), |known| json!(known))),
        "browserName": test.browser,
        "shard": shard_tag(run, test),
    })
}

/// The class of an attempt's failure, which is that of its first error.
pub fn class(attempt: &Attempt) -> Option<&str> {
    attempt
        .faults
        .first()
        .filter(|_| is_failure(attempt.status))
        .map(|fault| fault.class.as_str())
}

/// A message in lists: at most 2,000 characters.
pub fn excerpt(message: String) -> String {
    if message.chars().count() <= 2_000 {
        return message;
    }
    message.chars().take(1_999).chain(['…']).collect()
}

/// A message in its displayed form.
pub fn message(fault: &Fault) -> String {
    texts::stripped(&fault.message)
}

/// The attempts of a test in a run.
pub fn attempts(project: &Project, run: &Run, test: &ExpectedTest) -> Value {
    let attempts: Vec<Value> = test
        .numbered()
        .into_iter()
        .map(|(execution, retry, attempt)| {
            json!({
                "execution": execution,
                "retry": retry,
                "label": if retry == 0 { "first try".to_owned() } else { format!("retry #{retry}") },
                "status": attempt.status,
                "durationMs": attempt.duration,
                "browserName": test.browser,
                "shard": shard_tag(run, test),
            })
        })
        .collect();
    json!({
        "project": {"id": project.id, "name": project.name},
        "run": {"id": run.id, "runNumber": run.number, "branch": run.branch},
        "test": {"name": test.name, "filePath": test.file},
        "attempts": attempts,
    })
}

/// The test of this name and file in a run.
pub fn find(run: &Run, name: &str, file: Option<&str>) -> Option<ExpectedTest> {
    run.tests()
        .into_iter()
        .find(|test| test.name == name && test.file.as_deref() == file)
}

/// Every test of these runs, by name and file.
pub fn tests_of(runs: &[&Run]) -> Vec<(String, Option<String>)> {
    let all: BTreeSet<_> = runs
        .iter()
        .flat_map(|run| run.tests())
        .map(|test| (test.name, test.file))
        .collect();
    all.into_iter().collect()
}

/// The occurrences of a test's history.
pub fn history(runs: &[&Run], name: &str, file: Option<&str>) -> Vec<Value> {
    runs.iter()
        .filter_map(|run| find(run, name, file).map(|test| (run, test)))
        .map(|(run, test)| {
            json!({
                "runId": run.id,
                "runNumber": run.number,
                "branch": run.branch,
                "commitSha": run.commit,
                "testedRevision": run.tested_revision,
                "suite": run.suite,
                "startedAt": clock::text(run.started()),
                "status": test.status(),
                "anyFailedAttempt": test.attempts.iter().any(|attempt| is_failure(attempt.status)),
                "lostMs": test.lost_ms(),
                "durationMs": test.last().duration,
                "attempts": test.max_attempts(),
                "wastedMs": test.wasted_ms(),
            })
        })
        .collect()
}

/// One failed attempt that a signature counts.
#[derive(Clone)]
pub struct Occurrence<'a> {
    pub run: &'a Run,
    pub test: ExpectedTest,
    pub at: i64,
    pub class: String,
    pub message: String,
}

/// Every failed attempt of these runs with an error text.
pub fn occurrences<'a>(runs: &[&'a Run]) -> Vec<Occurrence<'a>> {
    let mut all = Vec::new();
    for run in runs {
        for test in run.tests() {
            for attempt in &test.attempts {
                if let Some(class) = class(attempt) {
                    all.push(Occurrence {
                        run,
                        test: test.clone(),
                        at: attempt.started.unwrap_or_else(|| run.started()),
                        class: class.to_owned(),
                        message: message(&attempt.faults[0]),
                    });
                }
            }
        }
    }
    all
}

/// The number of failed attempts of these runs without an error text.
pub fn failures_without_text(runs: &[&Run]) -> usize {
    runs.iter()
        .flat_map(|run| run.tests())
        .flat_map(|test| test.attempts)
        .filter(|attempt| is_failure(attempt.status) && attempt.faults.is_empty())
        .count()
}

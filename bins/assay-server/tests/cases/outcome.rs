//! What the steps of a case answered, and what the read API shows of its project.

use std::{collections::BTreeMap, fmt, process::Output};

use assay_testkit::{ServedWorld, text, wire};
use serde_json::Value;
use tempfile::TempDir;

/// The answer of a step.
pub(crate) struct Answer {
    pub(crate) command: String,
    pub(crate) succeeded: bool,
    pub(crate) errors: String,
    pub(crate) json: Value,
}

impl Answer {
    pub(crate) fn of(command: &str, output: &Output) -> Self {
        Self {
            command: command.to_owned(),
            succeeded: output.status.success(),
            errors: String::from_utf8_lossy(&output.stderr).into_owned(),
            json: serde_json::from_slice(&output.stdout).unwrap_or(Value::Null),
        }
    }
}

/// A test of a run.
pub(crate) struct RunTest {
    pub(crate) name: String,
    pub(crate) file: Value,
    pub(crate) status: String,
    pub(crate) duration: Value,
    pub(crate) executions: usize,
    pub(crate) attempts: Vec<String>,
}

/// A run of the case's project.
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) detail: Value,
    pub(crate) failures: Value,
    pub(crate) tests: Vec<RunTest>,
}

pub(crate) struct Outcome<'w> {
    pub(crate) world: &'w ServedWorld,
    pub(crate) project: String,
    pub(crate) folder: TempDir,
    pub(crate) answers: Vec<Answer>,
    /// Oldest first.
    pub(crate) runs: Vec<Run>,
}

impl<'w> Outcome<'w> {
    pub(crate) fn new(world: &'w ServedWorld, project: String, folder: TempDir) -> Self {
        Self {
            world,
            project,
            folder,
            answers: Vec::new(),
            runs: Vec::new(),
        }
    }

    pub(crate) fn get(&self, below: &str) -> Value {
        self.world
            .ask(&format!("/projects/{}{below}", self.project))
            .json()
    }

    pub(crate) fn read(&mut self) {
        let listed = self.get("/runs?days=90&perPage=50");
        let mut runs: Vec<Value> = listed["runs"].as_array().cloned().unwrap_or_default();
        runs.sort_by_key(|run| run["runNumber"].as_i64());
        self.runs = runs.iter().map(|run| self.run(&text(&run["id"]))).collect();
    }

    fn run(&self, id: &str) -> Run {
        let detail = self.get(&format!("/runs/{id}"));
        let tests = detail["tests"].as_array().cloned().unwrap_or_default();
        Run {
            id: id.to_owned(),
            failures: self.get(&format!("/runs/{id}/failures")),
            tests: tests.iter().map(|test| self.test(id, test)).collect(),
            detail,
        }
    }

    fn test(&self, run: &str, test: &Value) -> RunTest {
        let (name, file) = (
            text(&test["testName"]),
            test["filePath"].as_str().unwrap_or_default(),
        );
        let path = format!(
            "/runs/{run}/tests/{}?filePath={}",
            wire::escape(&name),
            wire::escape(file)
        );
        let mut executions: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for attempt in self.get(&path)["attempts"].as_array().into_iter().flatten() {
            let execution = executions
                .entry(attempt["execution"].as_u64().unwrap_or_default())
                .or_default();
            execution.push(text(&attempt["status"]));
        }
        RunTest {
            name,
            file: test["filePath"].clone(),
            status: text(&test["status"]),
            duration: test["durationMs"].clone(),
            executions: executions.len(),
            attempts: executions.into_values().flatten().collect(),
        }
    }

    /// The results of a test in all runs, oldest first: the run's id and the status.
    pub(crate) fn history(&self, test: &RunTest) -> Vec<(String, String)> {
        let path = format!("/tests/{}?days=90", wire::escape(&test.name));
        let mut answer = self.get(&path);
        if answer["occurrences"].is_null() {
            let file = test.file.as_str().unwrap_or_default();
            answer = self.get(&format!("{path}&filePath={}", wire::escape(file)));
        }
        let occurrences = answer["occurrences"].as_array().into_iter().flatten().rev();
        occurrences
            .map(|result| (text(&result["runId"]), text(&result["status"])))
            .collect()
    }
}

impl fmt::Display for Outcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for answer in &self.answers {
            let warnings = &answer.json["warnings"];
            writeln!(
                f,
                "{}: success {}, warnings {warnings}, {}",
                answer.command,
                answer.succeeded,
                answer.errors.trim()
            )?;
            for test in answer.json["tests"].as_array().into_iter().flatten() {
                writeln!(
                    f,
                    "    {} is {}: {}",
                    test["testName"], test["status"], test["explanation"]
                )?;
            }
        }
        for run in &self.runs {
            let of = &run.detail["run"];
            writeln!(
                f,
                "run {}: {}, incomplete: {}, errors: {}",
                of["runNumber"], of["status"], run.failures["incomplete"], of["reportErrors"]
            )?;
            for test in run.tests.iter().take(10) {
                writeln!(
                    f,
                    "    {} in {} {} {:?} in {} executions, {} ms",
                    test.name, test.file, test.status, test.attempts, test.executions, test.duration
                )?;
            }
        }
        Ok(())
    }
}

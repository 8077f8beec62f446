//! A generated history, imported by the real command line or sent over HTTP.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use assay_testkit::{ServedWorld, text, wire::escape};
use serde_json::Value;

use crate::{
    generated_history::{GeneratedHistory, STABLE, identity, instant},
    ingest,
};

/// A test by name and file.
pub(crate) type Test = (String, String);

/// A history in a served database, with the reports that were stored.
pub(crate) struct ImportedHistory {
    pub(crate) world: ServedWorld,
    pub(crate) history: GeneratedHistory,
    /// The ids by run.
    pub(crate) run_ids: Vec<String>,
    /// Each run's name in the evidence of an analysis: the name of its first file.
    pub(crate) files: BTreeMap<String, String>,
}

impl ImportedHistory {
    /// Stores a history that ends now, run by run, with shards in any order: by the command line, or over HTTP with the
    /// fields that a report does not contain.
    pub(crate) fn new(seed: u64, full: bool) -> Self {
        let now = (time::OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000) as i64;
        let world = ServedWorld::with_ingest(&[]);
        let key = full.then(|| {
            let create = [
                "key",
                "create-ingest",
                "--project",
                "web",
                "--name",
                "history",
                "--backfill",
            ];
            text(&world.cli.json(&create)["key"])
        });
        let mut imported = Self {
            world,
            history: GeneratedHistory::new(seed, now, full),
            run_ids: Vec::new(),
            files: BTreeMap::new(),
        };
        fs::create_dir(imported.reports()).unwrap();
        for number in 0..imported.history.runs.len() {
            if number == imported.history.renamed_after {
                imported
                    .world
                    .cli
                    .json(&["project", "set", "web", "--stable-branch", STABLE]);
            }
            imported.store(number, key.as_deref());
        }
        imported
    }

    /// The folder of the reports.
    pub(crate) fn reports(&self) -> PathBuf {
        self.world.folder.path().join("reports")
    }

    fn store(&mut self, number: usize, key: Option<&str>) {
        let run = &self.history.runs[number];
        let mut order: Vec<usize> = (0..run.parts.len()).collect();
        // A late first shard must not change the result.
        if number % 2 == 1 {
            order.reverse();
        }
        let mut run_id = String::new();
        for index in order {
            let name = format!("run-{number:03}-{index}.json");
            let path = self.reports().join(&name);
            let report = run.report(index).to_string();
            fs::write(&path, &report).unwrap();
            let answer = match key {
                None => {
                    let path = path.to_str().unwrap();
                    let answer = self.world.cli.json(&["import", "--project", "web", path]);
                    assert_eq!(answer["changed"], true, "{name}");
                    answer
                }
                Some(key) => {
                    let mut fields = vec![("runKey", format!("build-{}", run.build))];
                    fields.extend(run.suite.map(|suite| ("suite", suite.to_owned())));
                    fields.extend(
                        run.tested_revision
                            .clone()
                            .map(|tested| ("testedRevision", tested)),
                    );
                    fields.extend(run.pull_request.map(|number| ("pullRequest", number.to_string())));
                    let fields: Vec<(&str, &str)> = fields
                        .iter()
                        .map(|(field, value)| (*field, value.as_str()))
                        .collect();
                    let files = [(&*name, report.as_bytes())];
                    let answer = ingest::send(&self.world.server, key, &fields, &files);
                    assert_eq!(answer.status, 201, "{name}: {}", answer.text());
                    answer.json()
                }
            };
            assert_eq!(answer["runNumber"], number + 1, "{name}");
            run_id = text(&answer["runId"]);
            self.files.insert(name, run_id.clone());
        }
        self.run_ids.push(run_id);
    }

    /// Every test in a run.
    pub(crate) fn tests(&self) -> BTreeSet<Test> {
        let parts = self.history.runs.iter().flat_map(|run| &run.parts);
        parts
            .flat_map(|part| &part.results)
            .map(|result| identity(result.test))
            .collect()
    }

    /// The answer of a route below a test's path.
    pub(crate) fn get_test(&self, (name, file): &Test, rest: &str) -> Value {
        self.world
            .get(&format!("/tests/{}{rest}filePath={}", escape(name), escape(file)))
    }

    /// The stored verdict of every test.
    pub(crate) fn stored_verdicts(&self) -> BTreeMap<Test, Value> {
        let tests = self.tests().into_iter();
        tests
            .map(|test| {
                let verdict = self.get_test(&test, "/status?");
                (test, verdict)
            })
            .collect()
    }

    /// Every entry of the flaky list with its evidence, in order, and the count of tests that are gathering data.
    pub(crate) fn flaky_list(&self) -> (Vec<Value>, u64) {
        let list = self.world.get("/flaky?explain=true&perPage=50");
        assert_eq!(list["page"]["pageCount"], 1, "{}", list["page"]);
        let tests = list["tests"].as_array().unwrap().clone();
        (tests, list["gatheringDataCount"].as_u64().unwrap())
    }

    /// The history as a table of attempts.
    pub(crate) fn table(&self) -> String {
        let mut rows =
            "test,file,run,started_at,status,branch,revision,execution,retry,duration_ms,variant\n"
                .to_owned();
        for (run, id) in self.history.runs.iter().zip(&self.run_ids) {
            for (test, executions) in run.executions() {
                let (name, file) = identity(test);
                let executions = executions.iter().enumerate();
                let attempts = executions.flat_map(|(execution, attempts)| {
                    attempts.iter().enumerate().map(move |one| (execution, one))
                });
                for (execution, (retry, attempt)) in attempts {
                    let cells = [
                        name.as_str(),
                        &file,
                        id,
                        &instant(attempt.started.unwrap_or(run.started)),
                        attempt.status,
                        run.branch.as_deref().unwrap_or_default(),
                        run.revision().unwrap_or_default(),
                        &execution.to_string(),
                        &retry.to_string(),
                        &attempt.duration.map(|ms| ms.to_string()).unwrap_or_default(),
                        run.suite.unwrap_or_default(),
                    ];
                    rows.push_str(&cells.join(","));
                    rows.push('\n');
                }
            }
        }
        rows
    }
}

/// The test of an answer's entry.
pub(crate) fn test_of(entry: &Value) -> Test {
    (text(&entry["testName"]), text(&entry["filePath"]))
}

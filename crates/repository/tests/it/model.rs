//! Random imports, replacements and late shards, compared with a simple model that stores the recordings.

use std::collections::BTreeMap;

use assay_domain::{
    attempt::AttemptStatus,
    period::Days,
    recording::Recording,
    run::Counts,
    store::{Administration, Recorder, Store},
    test::TestLookup,
};
use proptest::{prelude::*, test_runner::TestRunner};

use crate::fixture::*;

/// One import: run, shard (0: the run has none), version of the content, start, and each test's attempts.
#[derive(Debug, Clone)]
struct Step {
    run: u8,
    shard: u32,
    version: u8,
    hours: i64,
    tests: BTreeMap<u8, String>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let attempts = prop_oneof![4 => Just("p"), 1 => Just("f"), 1 => Just("fp"), 1 => Just("ff"), 1 => Just("s"),
        1 => Just("tp"), 1 => Just("i"), 1 => Just("pf"), 1 => Just("fs"), 1 => Just("fpi"), 1 => Just("p p"),
        1 => Just("p fp"), 1 => Just("ff p")];
    let tests = prop::collection::btree_map(0u8..6, attempts.prop_map(str::to_owned), 0..6);
    let step =
        (0u8..3, 1u32..4, 0u8..3, 1i64..6, tests).prop_map(|(run, shard, version, hours, tests)| Step {
            run,
            // The last of the runs has no shards.
            shard: if run == 2 { 0 } else { shard },
            version,
            hours,
            tests,
        });
    prop::collection::vec(step, 1..10)
}

impl Step {
    fn recording(&self, salt: usize) -> Recording {
        let mut recording = report(&format!("run {}", self.run)).at(self.hours * HOUR);
        if self.shard > 0 {
            recording = recording.shard(self.shard, 3);
        }
        recording = recording.content(self.version).replacing();
        recording.content[29] = salt as u8;
        for (test, attempts) in &self.tests {
            recording = recording.test(&format!("test {test}"), attempts);
        }
        recording
    }
}

/// The statuses of a test's attempts by execution.
type Executions = Vec<Vec<AttemptStatus>>;

/// The outcome of an execution: that of its last attempt that ran.
fn end(execution: &[AttemptStatus]) -> AttemptStatus {
    let mut ran = execution.iter().rev().filter(|status| !status.is_skip());
    *ran.next().or(execution.last()).unwrap()
}

/// Each test's executions in a run: those of its shards and repeats, the worst one last.
fn expected(shards: &BTreeMap<u32, Recording>) -> BTreeMap<String, Executions> {
    let mut tests: BTreeMap<String, Executions> = BTreeMap::new();
    for recording in shards.values() {
        for test in &recording.tests {
            let executions = test.attempts.executions();
            let statuses =
                executions.map(|execution| execution.iter().map(|attempt| attempt.attempt.status).collect());
            tests.entry(test.test.name.clone()).or_default().extend(statuses);
        }
    }
    for executions in tests.values_mut() {
        executions.sort_by_key(|execution| match end(execution) {
            AttemptStatus::Skipped => 0,
            AttemptStatus::Interrupted => 1,
            AttemptStatus::Passed => 2,
            AttemptStatus::Failed | AttemptStatus::TimedOut => 3,
        });
    }
    tests
}

fn counts(tests: &BTreeMap<String, Executions>) -> Counts {
    let mut counts = Counts::default();
    for executions in tests.values() {
        let last = end(executions.last().unwrap());
        counts.total += 1;
        counts.failed += u32::from(last.is_failure());
        counts.skipped += u32::from(last.is_skip());
        counts.passed += u32::from(last == AttemptStatus::Passed);
        let any_failed = executions.concat().iter().any(|status| status.is_failure());
        counts.recovered += u32::from(last == AttemptStatus::Passed && any_failed);
    }
    counts
}

#[test]
fn any_order_of_imports_stores_the_recordings() {
    let world = World::new();
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let strategy = steps();
    runner
        .run(&strategy, |steps| {
            // A separate project for each case, in one database.
            let case = world.store.all_projects().unwrap().len();
            let project = world.another_project(&format!("case {case}"));
            let mut runs: BTreeMap<u8, BTreeMap<u32, Recording>> = BTreeMap::new();
            let mut ids = BTreeMap::new();
            for (salt, step) in steps.iter().enumerate() {
                let recording = step.recording(salt);
                let imported = world
                    .store
                    .record(project.id, &recording, &CountingJudge, NOW)
                    .unwrap();
                runs.entry(step.run).or_default().insert(step.shard, recording);
                ids.insert(step.run, imported.run_id);
            }
            for (run, shards) in &runs {
                let detail = world.store.run(&project, ids[run]).unwrap().unwrap();
                let tests = expected(shards);
                prop_assert_eq!(detail.counts, counts(&tests));
                prop_assert_eq!(
                    detail.run.started_at,
                    shards.values().map(|shard| shard.started_at).min().unwrap()
                );
                prop_assert_eq!(detail.tests.len(), tests.len());
                for entry in &detail.tests {
                    let executions = &tests[&entry.test_name];
                    let last = executions.last().unwrap();
                    prop_assert_eq!(entry.status, end(last));
                    prop_assert_eq!(
                        entry.attempts as usize,
                        executions.iter().map(Vec::len).max().unwrap()
                    );
                    prop_assert_eq!(entry.error_message.is_some(), end(last).is_failure());
                    let lookup = world
                        .store
                        .attempts(&project, ids[run], &any_file(&entry.test_name))
                        .unwrap()
                        .unwrap();
                    let TestLookup::Found(attempts) = lookup else {
                        panic!("{lookup:?}")
                    };
                    let stored: Vec<_> = attempts
                        .attempts
                        .iter()
                        .map(|attempt| (attempt.execution, attempt.retry, attempt.status))
                        .collect();
                    let expected_attempts = (0..).zip(executions).flat_map(|(number, execution)| {
                        (0..)
                            .zip(execution)
                            .map(move |(retry, status)| (number, retry, *status))
                    });
                    prop_assert_eq!(stored, expected_attempts.collect::<Vec<_>>());
                    let TestLookup::Found(history) = world
                        .store
                        .history(&project, &any_file(&entry.test_name), &period(Days::Seven))
                        .unwrap()
                    else {
                        panic!("the test was not found")
                    };
                    let occurrence = history
                        .occurrences
                        .iter()
                        .find(|occurrence| occurrence.run_id == ids[run])
                        .unwrap();
                    prop_assert_eq!(
                        (occurrence.status, occurrence.attempts),
                        (entry.status, entry.attempts)
                    );
                    // Each attempt takes 100 ms. Attempts after the last one that ran are not wasted time.
                    let wasted = executions.iter().map(|execution| {
                        let ran = execution.iter().rposition(|status| !status.is_skip());
                        100 * ran.unwrap_or(execution.len() - 1) as u64
                    });
                    prop_assert_eq!(occurrence.wasted_ms, wasted.sum::<u64>());
                }
            }
            let packs = |world: &World| {
                world.database.texts(&format!(
                    "SELECT run_number || ' ' || started_at || ' ' || encode(pack, 'hex') FROM run_pack \
                     WHERE project_id = '{}' ORDER BY run_number",
                    project.id
                ))
            };
            let before = packs(&world);
            prop_assert_eq!(before.len(), runs.len());
            prop_assert_eq!(world.rebuild(project.id).runs_changed, 0);
            prop_assert_eq!(
                packs(&world),
                before,
                "a pack that is built again from the rows is the same"
            );
            Ok(())
        })
        .unwrap();
}

//! A project in a separate database, a short notation for recordings, and a judge that counts.

use std::sync::Arc;

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    cause::Cause,
    decision::ExcusedTest,
    execution::Executions,
    history::TestHistory,
    id::{KeyId, ProjectId},
    key::{KeyHash, NewKey},
    observation::History,
    page::PerPage,
    period::{Days, Period},
    plan::Plan,
    project::{Caller, Project},
    recording::{
        CheckoutFiles, ImportReceipt, RecordedAttempt, RecordedTest, Recording, RunContext, Sender,
        ShardIndex,
    },
    run::{RunDetail, RunQuery, RunState},
    signature::{Category, ErrorClass},
    store::{
        Administration, FinalResult, PrunedCounts, ReadKeys, RecordError, Recorder, ResultKey, Store,
        StoreError, in_snapshot,
    },
    test::{FileSelector, TestLookup, TestName, TestOrdinal, TestSelector},
    timestamp::Timestamp,
    verdict::{
        Evidence, FailingOn, Figures, Judge, Judgement, Label, Signal, SignalEvidence, Verdict, VerdictStatus,
    },
};
use assay_repository::{Database, RebuildCounts};
use assay_testkit::TestDatabase;
pub(crate) use assay_testkit::{insert_results, update_results};

/// The time of most imports and requests.
pub(crate) const NOW: Timestamp = Timestamp::from_unix_ms(1_795_000_000_000);
pub(crate) const MINUTE: i64 = 60_000;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;

pub(crate) struct World {
    pub(crate) store: Database,
    /// A login that has only the rights of an import.
    pub(crate) importer: Database,
    pub(crate) project: Project,
    pub(crate) caller: Caller,
    /// Dropped last.
    pub(crate) database: TestDatabase,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::on(Plan::Pro)
    }

    pub(crate) fn on(plan: Plan) -> Self {
        let database = TestDatabase::new();
        let store = database.connect();
        let organization = store.create_organization("Acme", plan, NOW).unwrap();
        let caller = Caller {
            organization: organization.id,
            plan,
            only: None,
        };
        let project = create_project(&store, &caller, "web");
        Self {
            importer: database.connect_as_importer(),
            store,
            project,
            caller,
            database,
        }
    }

    /// Another project of the same organization.
    pub(crate) fn another_project(&self, name: &str) -> Project {
        create_project(&self.store, &self.caller, name)
    }

    pub(crate) fn try_import(&self, recording: &Recording) -> Result<ImportReceipt, RecordError> {
        self.importer
            .record(self.project.id, recording, &CountingJudge, NOW)
    }

    pub(crate) fn import(&self, recording: &Recording) -> ImportReceipt {
        self.try_import(recording).unwrap()
    }

    pub(crate) fn detail(&self, imported: &ImportReceipt) -> RunDetail {
        self.store.run(&self.project, imported.run_id).unwrap().unwrap()
    }

    /// The history of a test that one file has.
    pub(crate) fn test_history(&self, name: &str, days: Days) -> TestHistory {
        let lookup = self
            .store
            .history(&self.project, &any_file(name), &period(days))
            .unwrap();
        let TestLookup::Found(history) = lookup else {
            panic!("the test was not found")
        };
        history
    }

    /// The stored packs, by run.
    pub(crate) fn packs(&self) -> Vec<Option<String>> {
        self.database.texts("SELECT run_number || ' ' || started_at || ' ' || encode(pack, 'hex') FROM run_pack ORDER BY run_number")
    }

    /// Recomputes all derived rows.
    pub(crate) fn rebuild(&self, project: ProjectId) -> RebuildCounts {
        let rebuilt = self.store.rebuild(project, &CountingJudge, NOW, &mut |_, _| ());
        rebuilt.unwrap().unwrap()
    }

    /// The rows of projects that pruning deletes or would delete.
    pub(crate) fn prune(&self, dry_run: bool) -> Vec<PrunedCounts> {
        self.store.prune(NOW, dry_run, &mut |_| ()).unwrap().projects
    }

    pub(crate) fn history(&self, days: i64) -> Arc<History> {
        observations(&self.store, &self.project, (NOW.plus_days(-days), NOW)).unwrap()
    }

    pub(crate) fn final_results(&self, keys: &[ResultKey]) -> Result<Vec<FinalResult>, StoreError> {
        in_snapshot(&self.store, &self.project, |snapshot| {
            snapshot.final_results(keys)
        })
    }

    pub(crate) fn test_names(&self, keys: &[TestOrdinal]) -> Result<Vec<TestName>, StoreError> {
        in_snapshot(&self.store, &self.project, |snapshot| snapshot.test_names(keys))
    }
}

/// The engine's input in a period.
pub(crate) fn observations(
    store: &Database,
    project: &Project,
    (from, to): (Timestamp, Timestamp),
) -> Result<Arc<History>, StoreError> {
    in_snapshot(store, project, |snapshot| snapshot.observations(from, to))
}

fn create_project(store: &Database, caller: &Caller, name: &str) -> Project {
    let entry = store
        .create_project(caller.organization, name, "main", NOW)
        .unwrap();
    store.project(caller, entry.id, NOW).unwrap().unwrap()
}

/// The branch of each occurrence's revision, and how many units of this length ago its first run started.
pub(crate) fn revision_origins(history: &TestHistory, unit_ms: i64) -> Vec<(Option<&str>, Option<i64>)> {
    let origins = history.occurrences.iter().map(|occurrence| &occurrence.revision);
    let units_ago = |at| NOW.since_ms(at) / unit_ms;
    origins
        .map(|origin| {
            (
                origin.revision_branch.as_deref(),
                origin.revision_seen_at.map(units_ago),
            )
        })
        .collect()
}

pub(crate) fn period(days: Days) -> Period {
    Period::ending(NOW, days)
}

/// A key whose hash repeats one byte.
pub(crate) fn key(seed: u8) -> NewKey {
    NewKey {
        id: KeyId(uuid::Uuid::from_bytes([seed; 16])),
        hash: KeyHash([seed; 32]),
        prefix: format!("svc_{seed:08}"),
        created_at: NOW,
    }
}

pub(crate) fn run_query() -> RunQuery {
    RunQuery::newest(period(Days::Thirty), PerPage::Ten)
}

pub(crate) fn any_file(name: &str) -> TestSelector {
    TestSelector {
        name: name.to_owned(),
        file: FileSelector::Any,
    }
}

pub(crate) fn in_file(name: &str, file: Option<&str>) -> TestSelector {
    TestSelector {
        name: name.to_owned(),
        file: FileSelector::Exactly(file.map(str::to_owned)),
    }
}

/// A complete, unsharded report without tests, an hour old, on main.
pub(crate) fn report(run_key: &str) -> Recording {
    let mut content = [0; 32];
    for (index, byte) in run_key.bytes().enumerate() {
        content[index % 32] ^= byte.wrapping_add(index as u8);
    }
    Recording {
        run_key: run_key.to_owned(),
        content,
        shard: None,
        context: RunContext {
            branch: Some("main".to_owned()),
            commit_sha: Some("c0ffee".to_owned()),
            ..RunContext::default()
        },
        sender: Sender::default(),
        replaces: false,
        is_backfilled: false,
        started_at: NOW.plus_ms(-HOUR),
        finished_at: Some(NOW.plus_ms(-HOUR + 10 * MINUTE)),
        state: RunState::Completed,
        report_errors: Vec::new(),
        tests: Vec::new(),
        passed_groups: Vec::new(),
        checkout: CheckoutFiles::default(),
    }
}

/// Changes a recording.
pub(crate) trait Build: Sized {
    fn shard(self, index: u32, total: u32) -> Self;
    fn content(self, content: u8) -> Self;
    /// Takes the place of what is stored for its run and shard.
    fn replacing(self) -> Self;
    /// Sent by this attempt of a job, on a machine of its own.
    fn attempt_of(self, job: &str, attempt: u64) -> Self;
    fn at(self, before_now_ms: i64) -> Self;
    fn branch(self, branch: &str) -> Self;
    /// A test in `a.spec.ts`; each letter is an attempt of 100 ms: p, f, t, s, i. Spaces separate executions.
    fn test(self, name: &str, attempts: &str) -> Self;
    fn test_in(self, name: &str, file: Option<&str>, attempts: &str) -> Self;
}

impl Build for Recording {
    fn shard(mut self, index: u32, total: u32) -> Self {
        self.shard = Some(ShardIndex {
            index,
            total: Some(total),
        });
        self.content[31] = index as u8;
        self
    }

    fn content(mut self, content: u8) -> Self {
        self.content[30] = content;
        self
    }

    fn replacing(mut self) -> Self {
        self.replaces = true;
        self
    }

    fn attempt_of(mut self, job: &str, attempt: u64) -> Self {
        self.sender.job = Some(job.to_owned());
        self.sender.runner = Some(format!("machine {attempt}"));
        self.sender.attempt.of_job = attempt;
        self
    }

    fn at(mut self, before_now_ms: i64) -> Self {
        self.started_at = NOW.plus_ms(-before_now_ms);
        self.finished_at = Some(self.started_at.plus_ms(10 * MINUTE));
        self
    }

    fn branch(mut self, branch: &str) -> Self {
        self.context.branch = Some(branch.to_owned());
        self
    }

    fn test(self, name: &str, attempts: &str) -> Self {
        self.test_in(name, Some("a.spec.ts"), attempts)
    }

    fn test_in(mut self, name: &str, file: Option<&str>, attempts: &str) -> Self {
        self.tests.push(RecordedTest {
            shown_as: Default::default(),
            test: TestName {
                name: name.to_owned(),
                file_path: file.map(str::to_owned),
            },
            attempts: executions(attempts),
        });
        self
    }
}

/// An excuse of a test in `a.spec.ts`.
pub(crate) fn excused(name: &str) -> ExcusedTest {
    ExcusedTest {
        test_name: name.to_owned(),
        file_path: Some("a.spec.ts".to_owned()),
        cause: Cause::Flake,
        mine: 0.01,
        reason: "Failed in 4 of 120 runs on good code".to_owned(),
    }
}

fn executions(letters: &str) -> Executions<RecordedAttempt> {
    let mut executions = Executions::with_capacity(letters.len());
    for execution in letters.split(' ') {
        executions.push(
            execution
                .chars()
                .map(|letter| attempt(status(letter), "it broke")),
        );
    }
    executions
}

pub(crate) fn status(letter: char) -> AttemptStatus {
    match letter {
        'p' => AttemptStatus::Passed,
        'f' => AttemptStatus::Failed,
        't' => AttemptStatus::TimedOut,
        's' => AttemptStatus::Skipped,
        'i' => AttemptStatus::Interrupted,
        other => panic!("no status is called {other}"),
    }
}

/// An attempt of 100 ms. If it failed, its error has `message`, which determines its class.
pub(crate) fn attempt(status: AttemptStatus, message: &str) -> RecordedAttempt {
    let error = ErrorDetail {
        message: Some(message.to_owned()),
        ..ErrorDetail::default()
    };
    RecordedAttempt {
        attempt: Attempt {
            status,
            duration_ms: Some(100),
            started_at: None,
            browser: None,
            skip_reason: None,
            output: None,
            errors: if status.is_failure() {
                vec![error]
            } else {
                Vec::new()
            },
        },
        class: status.is_failure().then(|| class(message)),
    }
}

pub(crate) fn class(message: &str) -> ErrorClass {
    ErrorClass {
        fingerprint: fingerprint(message),
        version: 1,
        title: format!("Title of {message}"),
        category: Category::Assertion,
    }
}

pub(crate) fn fingerprint(message: &str) -> String {
    let hash = message.bytes().fold(7_u128, |hash, byte| {
        hash.wrapping_mul(1_000_003) ^ u128::from(byte)
    });
    format!("{hash:032x}")
}

/// A judge that counts: a test is broken if its newest run failed, flaky if any run failed, else healthy.
pub(crate) struct CountingJudge;

impl Judge for CountingJudge {
    fn judge(&self, history: &History, now: Timestamp) -> Vec<Judgement> {
        let mut newest: Vec<usize> = (0..history.runs.len()).collect();
        newest.sort_by_key(|index| {
            let run = &history.runs[*index].run;
            std::cmp::Reverse((run.started_at, run.number))
        });
        (0..history.tests)
            .filter(|test| history.runs.iter().any(|run| run.present.contains(*test)))
            .map(|test| judgement(history, &newest, test, now))
            .collect()
    }

    fn builds_needed(&self, _: Option<f64>) -> u32 {
        3
    }
}

fn judgement(history: &History, newest: &[usize], test: u32, now: Timestamp) -> Judgement {
    let ran: Vec<usize> = newest
        .iter()
        .copied()
        .filter(|index| {
            history.runs[*index].present.contains(test) && !history.runs[*index].skipped.contains(test)
        })
        .collect();
    let failed = |index: &usize| {
        history.runs[*index]
            .failures
            .iter()
            .any(|failure| failure.test == test)
    };
    let failures = ran.iter().filter(|index| failed(index)).count();
    let failing_on = |index: usize| FailingOn {
        branch: history.runs[index].run.branch.as_deref().map(str::to_owned),
        streak: 1,
        since_run: history.runs[index].run.number,
    };
    let status = if ran.first().is_some_and(failed) {
        VerdictStatus::Broken
    } else if failures > 0 {
        VerdictStatus::Flaky
    } else {
        VerdictStatus::Healthy
    };
    let runs = ran.len() as u32;
    Judgement {
        verdict: Verdict {
            test,
            status,
            reason: (failures > 0).then_some(Signal::RetryRate),
            explanation: format!("{failures} of {runs} runs on {}", history.stable_branch),
            signals: if failures > 0 {
                vec![Signal::RetryRate, Signal::FlipRate]
            } else {
                Vec::new()
            },
            labels: if failures > 0 {
                vec![Label::Retries]
            } else {
                Vec::new()
            },
            failing_on: ran
                .iter()
                .copied()
                .filter(failed)
                .take(1)
                .map(failing_on)
                .collect(),
            figures: Figures {
                time_lost_ms: (failures > 0).then_some(u64::MAX),
                flake_score: failures as f64 / 3.0,
                flake_rate: 2e-5,
                flip_rate: 0.1,
                failure_rate: (runs > 0).then(|| failures as f64 / f64::from(runs)),
                broken_probability: None,
                runs_in_window: runs,
                runs_considered: runs,
                failure_streak: 0,
                impact: 0.0,
            },
            last_run: ran.first().copied(),
        },
        evidence: Evidence {
            engine: "counting".to_owned(),
            now,
            window_days: 14,
            runs_seen: runs,
            runs_skipped: 0,
            runs_dropped: 0,
            dropped: Vec::new(),
            signals: [ran.into_iter().filter(failed).collect(), Vec::new()]
                .map(|runs: Vec<usize>| SignalEvidence {
                    signal: Signal::RetryRate,
                    label: Signal::RetryRate.label().to_owned(),
                    value: failures as f64,
                    threshold: 1.0,
                    detail: format!("{failures} failures"),
                    runs: runs
                        .iter()
                        .map(|run| history.runs[*run].run.id.to_string())
                        .collect(),
                    runs_total: runs.len() as u32,
                })
                .into_iter()
                .filter(|_| failures > 0)
                .collect(),
        },
    }
}

/// The observations of a history as comparable text, one line per run and test.
pub(crate) fn words(history: &History) -> Vec<String> {
    let mut lines = Vec::new();
    for run in &history.runs {
        for test in run.present.iter() {
            let failure = run.failures.iter().find(|failure| failure.test == test);
            let skipped = if run.skipped.contains(test) {
                " skipped"
            } else {
                ""
            };
            let untimed = if run.untimed.contains(test) {
                " untimed"
            } else {
                ""
            };
            let failed = failure.map_or_else(String::new, |failure| {
                format!(
                    " failed {} recovered {} lost {:?}",
                    failure.failed_attempts, failure.recovered, failure.lost_ms
                )
            });
            lines.push(format!(
                "run {} test {test}{skipped}{untimed}{failed}",
                run.run.number
            ));
        }
    }
    lines
}

/// Identifies the result of a test in a run.
pub(crate) fn result_key(test: u32, run_number: i32, run_started_at: Timestamp) -> ResultKey {
    ResultKey {
        test,
        run_number,
        run_started_at,
    }
}

/// Shared text, for comparisons with facts of a run.
pub(crate) fn shared(text: &str) -> Option<Arc<str>> {
    Some(Arc::from(text))
}

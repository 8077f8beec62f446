//! The causes of a run's failures: cause, sentence and action for each failure, and the gate of the run.

mod evidence;
mod gate;
mod local;
mod report;
mod sentence;

use std::{
    cmp::Ordering,
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use assay_domain::{
    attempt::{AttemptStatus, TestAttempts},
    cause::{
        Action, Cause, ErrorName, EvidenceWord, FailedRun, FinalStatus, Knowledge, StoredFacts, VerdictTag,
        WindowErrors,
    },
    id::RunId,
    observation::{History, RunObservations},
    page::Page,
    project::{Project, ProjectTag},
    store::{SharedKey, Snapshot, Store, StoreError, in_snapshot, shared},
    test::{TestName, TestOrdinal},
    timestamp::Timestamp,
};
use assay_flakiness::{Diagnose, ErrorTexts, FailureCause};
use serde::Serialize;

pub use evidence::runs_elsewhere;
pub use gate::{ByCause, Gate, action, cause, combined, gate};
pub use local::{LocalFailure, LocalFailures, LocalRun, local_failures};
pub use report::{ReportFailures, report_failures};
pub use sentence::explanation;

/// The failures of a run as of one state of the project, the most probable breakages of the branch first. `None` if the
/// project has no such run.
pub fn run_failures(
    store: &dyn Store,
    engine: &dyn Diagnose,
    project: &Project,
    query: &FailuresQuery,
    now: Timestamp,
) -> Result<Option<RunFailures>, StoreError> {
    in_snapshot(store, project, |snapshot| {
        let Some(run) = snapshot.failed_run(query.run)? else {
            return Ok(None);
        };
        let explained = UnpagedFailures::read(snapshot, engine, &run, query.knowledge, now)?;
        let gate = gate(explained.causes());
        let listed = explained.only(query.listed.filter());
        let place = (query.page, query.per_page);
        let (page, failures) = explained.entries(snapshot, query.knowledge, &listed, place)?;
        Ok(Some(RunFailures {
            project: project.tag(),
            incomplete: run.incomplete.clone(),
            run,
            mode: query.knowledge,
            gate,
            page,
            failures,
        }))
    })
}

/// The cause of a test's failed attempts, judged by the runs that started until theirs; `None` if no attempt failed.
pub fn failure_of(
    store: &dyn Store,
    engine: &dyn Diagnose,
    project: &Project,
    attempts: &TestAttempts,
    now: Timestamp,
) -> Result<Option<ExplainedFailure>, StoreError> {
    if !attempts
        .attempts
        .iter()
        .any(|attempt| attempt.status.is_failure())
    {
        return Ok(None);
    }
    in_snapshot(store, project, |snapshot| {
        let Some(run) = snapshot.failed_run(attempts.run.id)? else {
            return Ok(None);
        };
        let explained = UnpagedFailures::read(snapshot, engine, &run, Knowledge::AtTheTime, now)?;
        let of_test = explained.only(|failure| failure.name == attempts.test);
        let (_, failures) = explained.entries(snapshot, Knowledge::AtTheTime, &of_test, (1, 1))?;
        Ok(failures.into_iter().next())
    })
}

/// Which failures to explain.
#[derive(Debug, Clone, Copy)]
pub struct FailuresQuery {
    /// The run, or any of its shards.
    pub run: RunId,
    /// Whether later runs count.
    pub knowledge: Knowledge,
    /// The requested page, from 1.
    pub page: u64,
    /// Failures per page.
    pub per_page: u32,
    /// Which failures the list has. The gate is always of all.
    pub listed: ListedFailures,
}

/// Which failures of a run a list has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListedFailures {
    /// Every failed or recovered execution.
    #[default]
    All,
    /// The failed tests, each with the execution whose failure this branch most probably caused.
    FailedTests,
    /// The same of the recovered tests.
    RecoveredTests,
}

impl ListedFailures {
    /// A filter that is called once for each failure, in their order, and returns whether the failure is listed.
    fn filter(self) -> impl FnMut(&&JudgedFailure) -> bool {
        let mut tests = HashSet::new();
        move |failure| {
            let status = failure.ended.status;
            let is_listed = match self {
                Self::All => return true,
                Self::FailedTests => status.is_failure(),
                Self::RecoveredTests => !status.is_failure() && !status.is_skip(),
            };
            is_listed && tests.insert(failure.cause.test)
        }
    }
}

/// The failures of a run, each with its cause.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunFailures {
    /// The project.
    pub project: ProjectTag,
    /// The run.
    pub run: FailedRun,
    /// Whether later runs count.
    pub mode: Knowledge,
    /// The action for the run.
    pub gate: Gate,
    /// Why the run may lack results, such as a missing shard; null if it is complete.
    pub incomplete: Option<String>,
    /// The position of this page in the list.
    pub page: Page,
    /// The failed and recovered tests of this page. The failures that this branch most probably caused come first.
    pub failures: Vec<ExplainedFailure>,
}

/// A test that failed or recovered in the run.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExplainedFailure {
    /// The test, for pages.
    #[serde(skip)]
    pub test: TestOrdinal,
    /// The full stored name.
    pub test_name: String,
    /// The stored file of the test.
    pub file_path: Option<String>,
    /// The final attempt's status: `passed` where a retry passed.
    pub status: AttemptStatus,
    /// Attempts in this run.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub attempts: u32,
    /// The most probable cause, or `unclear` if none reaches 0.6.
    pub cause: Cause,
    /// The probability of each cause. They add up to 1.
    pub probabilities: CauseProbabilities,
    /// P(this branch broke it): `thisChange` + `earlierOnBranch`.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub mine: f64,
    /// The action for this failure alone.
    pub action: Action,
    /// One sentence with the counts that support the cause.
    pub explanation: String,
    /// The runs behind the sentence.
    pub evidence: CauseEvidence,
    /// Where the same error occurred in the window, besides this failure.
    pub same_error: SameErrors,
    /// The stored verdict on the test; null before the first one.
    pub verdict: Option<VerdictTag>,
    /// The state of the test on the stable branch, as far as it was known.
    pub stable: StableState,
    /// The fingerprint of its error, if it has one.
    pub fingerprint: Option<String>,
    /// The title of its error.
    pub title: Option<String>,
    /// The number of runs on other branches in which the test ran before. For a failure on the stable branch, all
    /// earlier runs count.
    pub runs_elsewhere: u32,
    /// The start of the first stored run in which the test failed.
    pub first_failed_at: Option<Timestamp>,
}

impl ExplainedFailure {
    fn of(
        history: &History,
        failure: &JudgedFailure,
        knowledge: Knowledge,
        stored: StoredFacts,
        error: Option<&ErrorName>,
    ) -> Self {
        let JudgedFailure {
            cause,
            ended,
            name,
            runs_elsewhere,
        } = failure;
        Self {
            explanation: explanation(history, cause, knowledge),
            evidence: evidence::of(history, cause),
            test: cause.test,
            test_name: name.name.clone(),
            file_path: name.file_path.clone(),
            status: ended.status,
            attempts: ended.attempts,
            cause: gate::cause(cause),
            probabilities: cause.probabilities.into(),
            mine: cause.probabilities.mine().clamp(0.0, 1.0),
            action: action(cause.probabilities.mine()),
            same_error: cause.facts.same_error.into(),
            verdict: stored.verdict,
            stable: StableState::of(cause),
            fingerprint: error.map(|error| error.fingerprint.clone()),
            title: error.map(|error| error.title.clone()),
            runs_elsewhere: *runs_elsewhere,
            first_failed_at: stored.first_failed_at,
        }
    }
}

/// The probability of each cause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CauseProbabilities {
    /// The test is flaky: it failed on good code.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub flake: f64,
    /// Many tests failed together, or something outside of the code changed.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub environment: f64,
    /// The code was broken before this branch.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub broken_before: f64,
    /// An earlier revision of this branch broke it.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub earlier_on_branch: f64,
    /// This revision broke it.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub this_change: f64,
}

impl From<assay_flakiness::Probabilities> for CauseProbabilities {
    fn from(of: assay_flakiness::Probabilities) -> Self {
        let share = |share: f64| share.clamp(0.0, 1.0);
        Self {
            flake: share(of.flake),
            environment: share(of.environment),
            broken_before: share(of.broken_before),
            earlier_on_branch: share(of.earlier_on_branch),
            this_change: share(of.this_change),
        }
    }
}

/// The runs behind a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CauseEvidence {
    /// The newest of them, at most 20.
    #[cfg_attr(feature = "openapi", schema(max_items = 20))]
    pub runs: Vec<EvidenceRun>,
    /// The total number of them.
    pub runs_total: u32,
}

impl CauseEvidence {
    /// Removes a run without an id, because it is not stored.
    fn leave_out(&mut self, run_id: &str) {
        let before = self.runs.len();
        self.runs.retain(|run| run.run_id != run_id);
        let left_out = u32::try_from(before - self.runs.len()).unwrap_or(u32::MAX);
        self.runs_total = self.runs_total.saturating_sub(left_out);
    }
}

/// A run of the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EvidenceRun {
    /// The run's id.
    pub run_id: String,
    /// Its contribution to the evidence.
    pub says: EvidenceWord,
    /// The run's number, for pages.
    #[serde(skip)]
    pub run_number: i32,
}

/// How often the error of a failure occurred elsewhere in the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SameErrors {
    /// Other failures of the test.
    pub here: u32,
    /// Those of them that are most probably flakes.
    pub as_flake: u32,
    /// Those of them on the stable branch.
    pub on_stable: u32,
    /// Those of them on other branches than the run's and the stable one.
    pub other_branches: u32,
    /// Other tests.
    pub other_tests: u32,
    /// Other tests of this run.
    pub in_this_run: u32,
}

impl From<assay_flakiness::SameError> for SameErrors {
    fn from(of: assay_flakiness::SameError) -> Self {
        Self {
            here: of.here,
            as_flake: of.as_flake,
            on_stable: of.on_stable,
            other_branches: of.other_branches,
            other_tests: of.other_tests,
            in_this_run: of.in_this_run,
        }
    }
}

/// The state of a test on the stable branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct StableState {
    /// The status in the newest run of the stable branch: `passed` or `failed`; null if it never ran there.
    pub last_status: Option<AttemptStatus>,
    /// The number of failed runs at the end of the history of the stable branch.
    pub failure_streak: u32,
}

impl StableState {
    /// The state of a failure's test on the stable branch.
    pub fn of(failure: &FailureCause) -> Self {
        Self {
            last_status: failure.facts.stable_last_failed.map(|failed| match failed {
                true => AttemptStatus::Failed,
                false => AttemptStatus::Passed,
            }),
            failure_streak: failure.facts.stable_streak,
        }
    }
}

/// The failures of a run before they are paged.
struct UnpagedFailures {
    history: Arc<History>,
    judged: Arc<JudgedFailures>,
}

impl UnpagedFailures {
    /// Requests over the same runs share the judgement.
    fn read(
        snapshot: &mut dyn Snapshot,
        engine: &dyn Diagnose,
        run: &FailedRun,
        knowledge: Knowledge,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let (from, to) = engine.causes_window(run.started_at, knowledge, now);
        let mut history = snapshot.observations(from, to)?;
        let window = (from, to);
        let judge = |snapshot: &mut dyn Snapshot, history: &History| {
            JudgedFailures::read(snapshot, engine, history, run, (knowledge, window, now))
        };
        let is_known = history
            .runs
            .iter()
            .any(|observed| observed.run.number == run.run_number);
        let uncounted = if is_known {
            None
        } else {
            snapshot.uncounted_run(run)?
        };
        let judged = match uncounted {
            Some(uncounted) => {
                let place = |observed: &RunObservations| (observed.run.started_at, observed.run.number);
                let at = history
                    .runs
                    .partition_point(|other| place(other) < place(&uncounted));
                Arc::make_mut(&mut history).runs.insert(at, uncounted);
                Arc::new(judge(snapshot, &history)?)
            }
            None => {
                let key = SharedKey {
                    kind: knowledge.as_str(),
                    of: run.run_number,
                };
                shared(snapshot, key, window, |snapshot| {
                    let judged = judge(snapshot, &history)?;
                    let bytes = judged.bytes();
                    Ok((judged, bytes))
                })?
            }
        };
        Ok(Self { history, judged })
    }

    fn causes(&self) -> impl Iterator<Item = &FailureCause> {
        self.judged.failures.iter().map(|failure| &failure.cause)
    }

    /// The failures that `is_listed` admits.
    fn only(&self, is_listed: impl FnMut(&&JudgedFailure) -> bool) -> Vec<&JudgedFailure> {
        self.judged.failures.iter().filter(is_listed).collect()
    }

    /// One page of `listed` failures.
    fn entries(
        &self,
        snapshot: &mut dyn Snapshot,
        knowledge: Knowledge,
        listed: &[&JudgedFailure],
        (page, per_page): (u64, u32),
    ) -> Result<(Page, Vec<ExplainedFailure>), StoreError> {
        let total = u64::try_from(listed.len()).unwrap_or(u64::MAX);
        let page = Page::of_size(page, per_page, total);
        let offset = usize::try_from(page.offset()).unwrap_or(usize::MAX);
        let per_page = usize::try_from(page.per_page).unwrap_or(usize::MAX);
        let shown = || listed.iter().skip(offset).take(per_page);
        let tests: Vec<TestOrdinal> = shown().map(|failure| failure.cause.test).collect();
        let facts = snapshot.stored_facts(&tests)?;
        let entries = shown().map(|failure| {
            let error = failure.cause.text.and_then(|text| self.judged.errors.get(&text));
            let facts = facts.get(&failure.cause.test).copied().unwrap_or_default();
            ExplainedFailure::of(&self.history, failure, knowledge, facts, error)
        });
        Ok((page, entries.collect()))
    }
}

/// A failure with what requests over the same runs share.
struct JudgedFailure {
    cause: FailureCause,
    /// How its test ended in the run.
    ended: FinalStatus,
    /// The test's name.
    name: TestName,
    runs_elsewhere: u32,
}

impl JudgedFailure {
    fn new(history: &History, cause: FailureCause, ended: FinalStatus, name: TestName) -> Self {
        Self {
            runs_elsewhere: runs_elsewhere(history, &cause),
            cause,
            ended,
            name,
        }
    }
}

/// The causes of a run's failures, which depend on the runs of the window and on nothing else.
struct JudgedFailures {
    /// In the order of [`listed_before`], then by name.
    failures: Vec<JudgedFailure>,
    /// The names of their errors.
    errors: HashMap<u32, ErrorName>,
}

impl JudgedFailures {
    fn read(
        snapshot: &mut dyn Snapshot,
        engine: &dyn Diagnose,
        history: &History,
        run: &FailedRun,
        (knowledge, (from, to), now): (Knowledge, (Timestamp, Timestamp), Timestamp),
    ) -> Result<Self, StoreError> {
        let of_run = history
            .runs
            .iter()
            .filter(|observed| observed.run.number == run.run_number);
        let failures = of_run.flat_map(|observed| observed.failures.iter().map(|failure| failure.test));
        let failed: BTreeSet<TestOrdinal> = failures.collect();
        if failed.is_empty() {
            return Ok(Self::new(
                history,
                Vec::new(),
                Vec::new(),
                WindowErrors::default(),
            ));
        }
        let failed = Vec::from_iter(failed);
        let errors = snapshot.window_errors(run.run_number, &failed, from, to)?;
        let texts = texts(history, &errors);
        let causes = engine.causes_of_run(history, &texts, run.run_number, knowledge, now);
        let tests: Vec<TestOrdinal> = causes.iter().map(|cause| cause.test).collect();
        let ends = snapshot.final_statuses(run, &tests)?;
        Ok(Self::new(history, causes, ends, errors))
    }

    /// `ends` has the same order as the causes.
    fn new(
        history: &History,
        causes: Vec<FailureCause>,
        ends: Vec<(FinalStatus, TestName)>,
        errors: WindowErrors,
    ) -> Self {
        let failures = causes.into_iter().zip(ends);
        let mut failures: Vec<JudgedFailure> = failures
            .map(|(cause, (ended, name))| JudgedFailure::new(history, cause, ended, name))
            .collect();
        failures.sort_by(|left, right| {
            listed_before(&left.cause, &right.cause).then_with(|| left.name.cmp(&right.name))
        });
        Self {
            failures,
            errors: errors.names.into_iter().collect(),
        }
    }

    /// About the memory that it takes.
    fn bytes(&self) -> usize {
        let failures = self.failures.iter().map(|failure| {
            let TestName { name, file_path } = &failure.name;
            let facts = &failure.cause.facts;
            let file = file_path.as_ref().map_or(0, String::len);
            let runs = size_of_val(&*facts.stable_passes) + size_of_val(&*facts.flakes);
            size_of_val(failure) + name.len() + file + runs
        });
        let errors = self
            .errors
            .values()
            .map(|error| size_of_val(error) + error.fingerprint.len() + error.title.len());
        failures.chain(errors).sum()
    }
}

/// The order of failures in lists: failed before recovered, then the most probable breakages of the branch first. The
/// caller orders the rest by name.
fn listed_before(left: &FailureCause, right: &FailureCause) -> Ordering {
    let mine = |cause: &FailureCause| cause.probabilities.mine();
    left.recovered
        .cmp(&right.recovered)
        .then_with(|| mine(right).total_cmp(&mine(left)))
}

/// The numbers of error signatures. A signature that is not stored gets an unused number.
struct SignatureNumbers {
    numbers: HashMap<String, u32>,
    unused: u32,
}

impl SignatureNumbers {
    fn new(stored: HashMap<String, u32>) -> Self {
        Self {
            numbers: stored,
            unused: u32::MAX,
        }
    }

    fn number(&mut self, fingerprint: &str) -> u32 {
        if let Some(number) = self.numbers.get(fingerprint) {
            return *number;
        }
        self.unused -= 1;
        self.numbers.insert(fingerprint.to_owned(), self.unused);
        self.unused
    }
}

/// The errors of a window as the engine reads them.
fn texts(history: &History, errors: &WindowErrors) -> ErrorTexts {
    let places: HashMap<i32, usize> = history
        .runs
        .iter()
        .enumerate()
        .map(|(place, observed)| (observed.run.number, place))
        .collect();
    let mut texts = ErrorTexts::new();
    for (run_number, test, text) in &errors.failures {
        if let Some(place) = places.get(run_number) {
            texts.insert(*place, *test, *text);
        }
    }
    texts.set_window(errors.tests.iter().copied());
    texts
}

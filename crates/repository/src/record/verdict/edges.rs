//! The edges of a judgement: what changed on the stable branch, written to the outbox in the judgement's transaction.

mod rows;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use assay_domain::{
    observation::{History, RunObservations, failing_since},
    settings::ChatEvent,
    store::{DueJudgement, JudgedFigures},
    timestamp::Timestamp,
    verdict::VerdictStatus,
};
use diesel::{
    dsl::{min, not},
    prelude::*,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{fixes::DecidedFixes, flakes::Flakes};
use crate::{
    db::{
        column::{At, int, storable},
        schema::{attempt, edge, project as projects},
    },
    read::{
        judged_figures::{flaky_tests, stored},
        verdict_block::OwnFigures,
    },
};
use rows::{Before, Row};

/// Most edges of one judgement. A message counts the failed tests of a run itself, so it needs no edge for each.
const MOST_EDGES: usize = 2_000;
/// Most suites whose state is kept between judgements.
const MOST_SUITES: usize = 1_000;

/// One or two failed runs never name a commit to revert.
const LASTING: usize = 3;

/// The probability from which broken code, or a flaky test, is likely.
const LIKELY: f64 = 0.5;

/// Whether a test that failed in the newest run makes its suite fail, by its new verdict: the failure probably comes from
/// the code or the environment, and not from the test.
pub(super) fn is_red(status: VerdictStatus, of: &OwnFigures) -> bool {
    match status {
        VerdictStatus::Flaky => false,
        // Too few runs to know better.
        VerdictStatus::InsufficientData => true,
        VerdictStatus::Healthy | VerdictStatus::Failing | VerdictStatus::Broken => {
            of.flake_score < LIKELY || of.broken_probability.is_none_or(|broken| broken >= LIKELY)
        }
    }
}

/// Whether a judgement writes edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EdgeRecording {
    /// It does: the runs changed.
    Write,
    /// It only keeps the state that the next judgement compares with: the configuration or the engine changed, or the
    /// runs are old.
    KeepState,
}

impl EdgeRecording {
    /// Edges of a judgement after an import.
    pub(crate) const fn unless_silent(due: &DueJudgement) -> Self {
        match due.is_silent {
            true => Self::KeepState,
            false => Self::Write,
        }
    }
}

/// A suite with its release branch; none for the stable branch.
type Line = (Option<Arc<str>>, Arc<str>);

/// The state of the stable branch and the release branches in a judged history, and the tests whose state changed on the
/// former.
#[derive(Debug, Default)]
pub(super) struct JudgedEdges {
    suites: BTreeMap<Line, SuiteState>,
    tests: Vec<TestChange>,
    /// The runs on the stable branch by their numbers.
    stable_runs: BTreeMap<i32, Uuid>,
    health: JudgedFigures,
    pub(super) fixes: DecidedFixes,
}

/// The newest run of a suite that counts.
#[derive(Debug)]
struct SuiteState {
    run: RunId,
    /// Whether it failed, apart from flaky tests.
    failed: bool,
    /// Whether it failed apart from flaky tests, is not complete, or a test fails that an edge called broken. A new verdict
    /// about the same run never makes a failed suite pass, and neither does a run without some of its parts.
    still_fails: bool,
    /// Whether this run was just completed, and it and those before it failed: it may name a commit to revert.
    goes_on: bool,
}

#[derive(Debug, Clone, Copy)]
struct RunId {
    id: Uuid,
    number: i32,
}

/// A test whose state differs from what its last edge says.
#[derive(Debug)]
struct TestChange {
    event: ChatEvent,
    test: i32,
    from: VerdictStatus,
    to: VerdictStatus,
    /// The newest run with the test on the stable branch, with its suite.
    place: Option<Place>,
}

#[derive(Debug)]
struct Place {
    suite: Arc<str>,
    run: RunId,
    /// An incomplete run proves no repair.
    is_of_complete_run: bool,
    failing_since: Option<i32>,
}

/// The judged tests, as edges need them.
pub(super) struct JudgedTests<'a> {
    /// The new status of each test.
    pub(super) status: &'a dyn Fn(i32) -> VerdictStatus,
    /// Whether a test that failed in the newest run makes its suite fail.
    pub(super) is_red: &'a dyn Fn(i32) -> bool,
    /// The changed verdicts with the former and the new status.
    pub(super) changes: &'a [(i32, VerdictStatus, VerdictStatus)],
    /// The run that was imported.
    pub(super) imported: Option<i32>,
    pub(super) health: JudgedFigures,
}

impl JudgedTests<'_> {
    fn imported_failures<'h>(&self, history: &'h History) -> impl Iterator<Item = i32> + use<'h> {
        let number = self.imported;
        let runs = history.runs.iter();
        let imported = runs.filter(move |observed| Some(observed.run.number) == number);
        imported
            .flat_map(|observed| &observed.failures)
            .map(|failure| int(failure.test))
    }

    /// The flaky tests that changed, failed now or are told something else.
    fn flaky(
        &self,
        history: &History,
        suites: &BTreeMap<Arc<str>, Vec<&RunObservations>>,
        edges: &HashMap<i32, ChatEvent>,
    ) -> BTreeSet<i32> {
        let newest = suites.values().filter_map(|oldest_first| oldest_first.last());
        let failed = newest.flat_map(|run| &run.failures);
        let mut tests: BTreeSet<i32> = failed.map(|failure| int(failure.test)).collect();
        tests.extend(self.imported_failures(history));
        tests.extend(self.changes.iter().map(|(test, ..)| test));
        let told = edges.iter().filter(|(_, event)| **event != ChatEvent::TestFlaky);
        tests.extend(told.map(|(test, _)| test));
        tests.retain(|test| (self.status)(*test) == VerdictStatus::Flaky);
        tests
    }
}

impl JudgedEdges {
    /// Compares a judged history with what the last edges of its tests say.
    pub(super) fn of(
        connection: &mut PgConnection,
        project: Uuid,
        history: &History,
        now: Timestamp,
        judged: &JudgedTests<'_>,
    ) -> QueryResult<Self> {
        let mut stable_runs = BTreeMap::new();
        for runs in history.stable_runs().into_values() {
            let runs = runs.into_iter().filter_map(|run| run_id(history.runs.get(run)?));
            stable_runs.extend(runs.map(|run| (run.number, run.id)));
        }
        let counts = |run: &RunObservations| run.ending.complete || run.is_settled(now);
        let suites = history.counted_runs_of(&history.stable_branch, counts);
        let edges = last_edges(connection, project)?;
        let flaky = judged.flaky(history, &suites, &edges);
        let flakes = Flakes::of(connection, project, history, &flaky)?;
        let (mut red, mut fail_now) = (BTreeSet::new(), BTreeSet::new());
        let mut states = BTreeMap::new();
        let of_stable = suites
            .iter()
            .map(|(suite, runs)| ((None, Arc::clone(suite)), runs.clone()));
        let of_release = history.release_branches().into_iter().flat_map(|branch| {
            let suites = history.counted_runs_of(&branch, counts).into_iter();
            suites.map(move |(suite, runs)| ((Some(Arc::clone(&branch)), suite), runs))
        });
        for (line, oldest_first) in of_stable.chain(of_release).take(MOST_SUITES) {
            let Some((newest, run)) = oldest_first.last().and_then(|run| Some((*run, run_id(run)?))) else {
                continue;
            };
            let on_stable = line.0.is_none();
            let streak = oldest_first.iter().rev().take_while(|run| run.has_failed());
            let is_imported = judged.imported == Some(run.number) && newest.ending.complete;
            let goes_on = is_imported && streak.count() >= LASTING;
            // A test that is flaky may have been broken, too.
            let is_red = |test| {
                let is_unexplained = || flaky.contains(&test) && !flakes.explain(test, newest.run.number);
                (judged.is_red)(test) || on_stable && is_unexplained()
            };
            let red_tests = red_tests(connection, project, newest, &is_red)?;
            let failed = newest.ending.failed_outside_tests || !red_tests.is_empty();
            let failing: BTreeSet<i32> = failing_since(&oldest_first).into_keys().map(int).collect();
            // A release branch has no edges of tests.
            let is_told = |test| !on_stable || edges.get(test) == Some(&ChatEvent::TestBroken);
            let still_fails = failed || !newest.ending.complete || failing.iter().any(is_told);
            if on_stable {
                fail_now.extend(failing);
                red.extend(red_tests);
            }
            let state = SuiteState {
                run,
                failed,
                still_fails,
                goes_on,
            };
            states.insert(line, state);
        }
        let mut candidates: BTreeSet<i32> = red.iter().chain(edges.keys()).copied().collect();
        candidates.extend(judged.changes.iter().map(|(test, ..)| *test));
        candidates.extend(judged.imported_failures(history));
        let changed: HashSet<i32> = judged.changes.iter().map(|(test, ..)| *test).collect();
        let change = |test: i32| {
            let place = place(&suites, test);
            let edge = edges.get(&test).copied();
            let (from, to) = (state(edge), (judged.status)(test));
            let failing_since = place.as_ref().and_then(|place| place.failing_since);
            let is_broken = to == VerdictStatus::Broken || red.contains(&test);
            let event = match (edge, failing_since) {
                (Some(ChatEvent::TestBroken), Some(_)) => None,
                (Some(ChatEvent::TestBroken), None) => {
                    let has_recovered = place.as_ref().is_some_and(|place| place.is_of_complete_run);
                    has_recovered.then_some(ChatEvent::TestResolved)
                }
                (_, Some(since)) if is_broken && fail_now.contains(&test) => {
                    // A breakage that was there before edges were written is none.
                    let began = place.as_ref().is_some_and(|place| place.run.number == since);
                    (began || changed.contains(&test)).then_some(ChatEvent::TestBroken)
                }
                (Some(ChatEvent::TestFlaky), _) => {
                    (to == VerdictStatus::Healthy).then_some(ChatEvent::TestResolved)
                }
                (_, _) => (flaky.contains(&test) && flakes.prove(test)).then_some(ChatEvent::TestFlaky),
            }?;
            let to = state(Some(event));
            Some(TestChange {
                event,
                test,
                from,
                to,
                place,
            })
        };
        Ok(Self {
            tests: candidates.into_iter().filter_map(change).collect(),
            suites: states,
            stable_runs,
            health: judged.health,
            fixes: DecidedFixes::default(),
        })
    }

    /// Writes the edges, and the state that the next judgement compares with. The caller holds the project's lock.
    pub(super) fn store(
        &self,
        connection: &mut PgConnection,
        project: Uuid,
        now: Timestamp,
        recording: EdgeRecording,
    ) -> QueryResult<()> {
        let before = Before::find(connection, project)?;
        let mut written = 0;
        if recording == EdgeRecording::Write && before.has_events() {
            let rows = self.rows(connection, project, now, &before)?;
            written = rows.len();
            diesel::insert_into(edge::table)
                .values(rows)
                .execute(connection)?;
        }
        let failed = self
            .suites
            .iter()
            .filter(|(line, state)| state.failed || state.still_fails && before.has_failed(line));
        let failed = failed.map(|(line, _)| line);
        let (on_release, on_stable): (Vec<_>, Vec<_>) = failed.partition(|(branch, _)| branch.is_some());
        let failed: Vec<&str> = on_stable.iter().map(|(_, suite)| &**suite).collect();
        let failed_on_release = on_release.iter().map(|line| json!(line)).collect();
        diesel::update(projects::table.find(project))
            .set((
                projects::failed_suites.eq(failed),
                projects::failed_release_suites.eq(Value::Array(failed_on_release)),
                projects::is_budget_exceeded.eq(self.exceeds_budget(&before)),
                projects::health.eq(stored(&self.health)),
                projects::judged_signatures.eq(projects::signatures),
                projects::edges.eq(projects::edges + int(written)),
            ))
            .execute(connection)?;
        Ok(())
    }

    fn exceeds_budget(&self, before: &Before) -> bool {
        let flaky = flaky_tests(&self.health);
        before
            .budget()
            .is_some_and(|budget| budget.is_exceeded(before.is_budget_exceeded, flaky))
    }

    /// The rows of the edges, those of suites first.
    fn rows(
        &self,
        connection: &mut PgConnection,
        project: Uuid,
        now: Timestamp,
        before: &Before,
    ) -> QueryResult<Vec<Row>> {
        let mut rows = Vec::new();
        for (line, state) in &self.suites {
            let event = match (before.has_failed(line), state.failed, state.still_fails) {
                (false, true, _) => ChatEvent::RunFailed,
                (true, true, _) if state.goes_on && before.wants(ChatEvent::RevertCandidate) => {
                    ChatEvent::RevertCandidate
                }
                (true, _, false) => ChatEvent::RunRecovered,
                (false, false, _) | (true, _, true) => continue,
            };
            let (release_branch, suite) = line;
            rows.push(Row {
                release_branch: release_branch.as_deref().map(storable),
                ..Row::of_run(event, suite, state.run, state.failed)
            });
        }
        let is_exceeded = self.exceeds_budget(before);
        if before.budget().is_some() && is_exceeded != before.is_budget_exceeded {
            let event = match is_exceeded {
                true => ChatEvent::FlakeBudgetExceeded,
                false => ChatEvent::FlakeBudgetMet,
            };
            rows.push(Row {
                flaky_tests: Some(flaky_tests(&self.health)),
                ..Row::of(event, "")
            });
        }
        for (signature, number) in self.new_errors(connection, project, before)? {
            let newest = self.suites.iter().find(|(_, state)| state.run.number == number);
            rows.push(Row {
                signature: Some(signature),
                run_number: Some(number),
                ..match newest {
                    Some(((_, suite), state)) => Row::of_run(ChatEvent::NewError, suite, state.run, true),
                    None => Row {
                        run_id: self.stable_runs.get(&number).copied(),
                        ..Row::of(ChatEvent::NewError, "")
                    },
                }
            });
        }
        rows.extend(self.fixes.newest().map(Row::of_fix));
        rows.extend(self.tests.iter().map(Row::of_test));
        rows.truncate(MOST_EDGES);
        for (number, row) in (before.edges..).zip(&mut rows) {
            row.project_id = project;
            row.judged_at = At(now);
            row.number = number;
        }
        Ok(rows)
    }

    /// The signatures that are new since the last judgement, and the newest run of each on the stable branch.
    fn new_errors(
        &self,
        connection: &mut PgConnection,
        project: Uuid,
        before: &Before,
    ) -> QueryResult<Vec<(i32, i32)>> {
        if before.signatures == before.judged_signatures {
            return Ok(Vec::new());
        }
        let found: Vec<(Option<i32>, Option<i32>)> = attempt::table
            .filter(attempt::project_id.eq(project))
            .filter(attempt::signature.ge(before.judged_signatures))
            .filter(
                attempt::run_number
                    .eq_any(self.stable_runs.keys())
                    .and(attempt::is_final),
            )
            .group_by(attempt::signature)
            .order(attempt::signature)
            .limit(i64::try_from(MOST_EDGES).unwrap_or(i64::MAX))
            .select((attempt::signature, min(attempt::run_number)))
            .load(connection)?;
        Ok(found
            .into_iter()
            .filter_map(|(signature, run)| Some((signature?, run?)))
            .collect())
    }
}

/// What an edge calls a test.
const fn state(edge: Option<ChatEvent>) -> VerdictStatus {
    match edge {
        Some(ChatEvent::TestBroken) => VerdictStatus::Broken,
        Some(ChatEvent::TestFlaky) => VerdictStatus::Flaky,
        Some(
            ChatEvent::TestResolved
            | ChatEvent::RunFailed
            | ChatEvent::RunRecovered
            | ChatEvent::NewError
            | ChatEvent::FlakeBudgetExceeded
            | ChatEvent::FlakeBudgetMet
            | ChatEvent::FixHeld
            | ChatEvent::FixDidNotHold
            | ChatEvent::RevertCandidate,
        )
        | None => VerdictStatus::Healthy,
    }
}

/// The event of the last edge of each test's verdict.
fn last_edges(connection: &mut PgConnection, project: Uuid) -> QueryResult<HashMap<i32, ChatEvent>> {
    let rows: Vec<(Option<i32>, String)> = edge::table
        .filter(edge::project_id.eq(project))
        .filter(edge::test.is_not_null().and(not(edge::is_cancelled)))
        .filter(edge::event.ne_all(ChatEvent::OF_FIXES.map(ChatEvent::as_str)))
        .distinct_on(edge::test)
        .order((edge::test, edge::number.desc()))
        .select((edge::test, edge::event))
        .load(connection)?;
    let known = rows.into_iter();
    Ok(known
        .filter_map(|(test, event)| Some((test?, event.parse().ok()?)))
        .collect())
}

/// The failed tests of a run that make its suite fail, with those that failed by the same error, whatever their verdicts.
fn red_tests(
    connection: &mut PgConnection,
    project: Uuid,
    run: &RunObservations,
    is_red: &dyn Fn(i32) -> bool,
) -> QueryResult<BTreeSet<i32>> {
    let failed = run.failed_tests();
    let failed = failed.iter().map(int);
    let (mut red, others): (BTreeSet<i32>, BTreeSet<i32>) = failed.partition(|test| is_red(*test));
    if red.is_empty() || others.is_empty() {
        return Ok(red);
    }
    let errors: Vec<(i32, Option<i32>)> = attempt::table
        .filter(attempt::project_id.eq(project))
        .filter(attempt::run_number.eq(run.run.number))
        .filter(attempt::started_at.eq(At(run.run.started_at)))
        .filter(attempt::is_final.and(attempt::signature.is_not_null()))
        .select((attempt::test, attempt::signature))
        .load(connection)?;
    let of_red: HashSet<Option<i32>> = errors
        .iter()
        .filter(|(test, _)| red.contains(test))
        .map(|(_, error)| *error)
        .collect();
    let alike = errors
        .iter()
        .filter(|(test, error)| others.contains(test) && of_red.contains(error));
    red.extend(alike.map(|(test, _)| *test));
    Ok(red)
}

/// The newest run with a test on the stable branch, among the runs of each suite. A suite in which it fails comes before one
/// in which it passes.
fn place(suites: &BTreeMap<Arc<str>, Vec<&RunObservations>>, test: i32) -> Option<Place> {
    let test = u32::try_from(test).ok()?;
    let newest = suites.iter().filter_map(|(suite, oldest_first)| {
        let newest = oldest_first.iter().rfind(|observed| observed.ran(test))?;
        Some((suite, *newest, oldest_first))
    });
    let (suite, newest, oldest_first) = newest
        .max_by_key(|(_, newest, _)| (newest.failed(test), newest.run.started_at, newest.run.number))?;
    let results = oldest_first.iter().rev().filter(|observed| observed.ran(test));
    let failing_since = results
        .take_while(|observed| observed.failed(test))
        .last()
        .map(|first| first.run.number);
    Some(Place {
        suite: Arc::clone(suite),
        run: run_id(newest)?,
        is_of_complete_run: newest.ending.complete,
        failing_since,
    })
}

fn run_id(observed: &RunObservations) -> Option<RunId> {
    Some(RunId {
        id: Uuid::try_parse(&observed.run.id).ok()?,
        number: observed.run.number,
    })
}

//! The edges of a judgement: what changed on the stable branch, written to the outbox in the judgement's transaction.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use assay_domain::{
    observation::{History, RunObservations},
    settings::ChatEvent,
    timestamp::Timestamp,
    verdict::VerdictStatus,
};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, Insertable, PgConnection, QueryDsl, QueryResult, RunQueryDsl,
    dsl::min,
};
use uuid::Uuid;

use crate::db::{
    column::{At, int},
    schema::{attempt, edge, project as projects},
};

/// Most edges of one judgement. A message counts the failed tests of a run itself, so it needs no edge for each.
const MOST_EDGES: usize = 2_000;
/// Most suites whose state is kept between judgements.
const MOST_SUITES: usize = 1_000;

/// The probability of broken code from which a failed test makes its suite fail.
const LEAST_BROKEN: f64 = 0.5;
/// The number of failed tests that make a suite fail whatever their verdicts are, as for the gate.
const CROWD: usize = 10;

/// Whether a test that failed in the newest run shows broken code, by its new verdict and P(its code is broken).
pub(super) fn may_be_broken(status: VerdictStatus, broken: Option<f64>) -> bool {
    match status {
        VerdictStatus::Flaky => false,
        // Too few runs to know better.
        VerdictStatus::InsufficientData => true,
        VerdictStatus::Healthy | VerdictStatus::Failing | VerdictStatus::Broken => {
            broken.is_none_or(|broken| broken >= LEAST_BROKEN)
        }
    }
}

/// Whether a judgement writes edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EdgeRecording {
    /// It does: the runs changed.
    Write,
    /// It only keeps the state that the next judgement compares with: the configuration or the engine changed.
    KeepState,
}

/// The state of the stable branch in a judged history, and the changed verdicts.
#[derive(Debug, Default)]
pub(super) struct JudgedEdges {
    suites: BTreeMap<Arc<str>, SuiteState>,
    tests: Vec<TestChange>,
    /// The numbers of the runs on the stable branch.
    stable_runs: Vec<i32>,
}

/// The newest complete run of a suite.
#[derive(Debug)]
struct SuiteState {
    run: RunId,
    /// Whether it failed, apart from flaky tests.
    failed: bool,
}

#[derive(Debug, Clone, Copy)]
struct RunId {
    id: Uuid,
    number: i32,
}

/// A changed verdict that is an edge.
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
    failing_since: Option<i32>,
}

impl JudgedEdges {
    /// Reads a judged history. `changes` are the changed verdicts with the former and the new status, and `may_be_broken`
    /// returns whether a test that failed in the newest run shows broken code.
    pub(super) fn of(
        history: &History,
        now: Timestamp,
        changes: &[(i32, VerdictStatus, VerdictStatus)],
        may_be_broken: impl Fn(i32) -> bool,
    ) -> Self {
        let stable = history.stable();
        let mut suites: BTreeMap<Arc<str>, Vec<&RunObservations>> = BTreeMap::new();
        let mut stable_runs = BTreeSet::new();
        for observed in &history.runs {
            if stable.is(observed.run.branch.as_deref()) {
                stable_runs.insert(observed.run.number);
                if observed.ending.complete || observed.is_settled(now) {
                    suites
                        .entry(Arc::clone(&observed.run.variant))
                        .or_default()
                        .push(observed);
                }
            }
        }
        for runs in suites.values_mut() {
            runs.sort_unstable_by_key(|observed| Reverse((observed.run.started_at, observed.run.number)));
        }
        let tests = changes.iter().filter_map(|(test, from, to)| {
            let change = TestChange {
                event: event(*from, *to)?,
                test: *test,
                from: *from,
                to: *to,
                place: place(&suites, *test),
            };
            // A breakage of another branch is none.
            let is_failing = change
                .place
                .as_ref()
                .is_some_and(|place| place.failing_since.is_some());
            (change.event != ChatEvent::TestBroken || is_failing).then_some(change)
        });
        let tests = tests.collect();
        let suites = suites.iter().filter_map(|(suite, newest_first)| {
            let newest = newest_first.first()?;
            let failures = || newest.failures.iter().filter(|failure| !failure.recovered);
            let state = SuiteState {
                run: run_id(newest)?,
                failed: newest.ending.failed_outside_tests
                    || failures().count() >= CROWD
                    || failures().any(|failure| may_be_broken(int(failure.test))),
            };
            Some((Arc::clone(suite), state))
        });
        Self {
            suites: suites.take(MOST_SUITES).collect(),
            tests,
            stable_runs: stable_runs.into_iter().collect(),
        }
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
        if recording == EdgeRecording::Write && before.has_events && before.is_judged {
            let rows = self.rows(connection, project, now, &before)?;
            written = rows.len();
            diesel::insert_into(edge::table)
                .values(rows)
                .execute(connection)?;
        }
        let failed: Vec<&str> = self.failed_suites().collect();
        diesel::update(projects::table.find(project))
            .set((
                projects::failed_suites.eq(failed),
                projects::judged_signatures.eq(projects::signatures),
                projects::edges.eq(projects::edges + int(written)),
            ))
            .execute(connection)?;
        Ok(())
    }

    fn failed_suites(&self) -> impl Iterator<Item = &str> {
        let failed = self.suites.iter().filter(|(_, state)| state.failed);
        failed.map(|(suite, _)| &**suite)
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
        for (suite, state) in &self.suites {
            let event = match (before.failed_suites.contains(&**suite), state.failed) {
                (false, true) => ChatEvent::RunFailed,
                (true, false) => ChatEvent::RunRecovered,
                (false, false) | (true, true) => continue,
            };
            rows.push(Row::of_run(event, suite, state.run, state.failed));
        }
        for (signature, number) in self.new_errors(connection, project, before)? {
            let newest = self.suites.iter().find(|(_, state)| state.run.number == number);
            rows.push(Row {
                signature: Some(signature),
                run_number: Some(number),
                ..match newest {
                    Some((suite, state)) => Row::of_run(ChatEvent::NewError, suite, state.run, true),
                    None => Row::of(ChatEvent::NewError, ""),
                }
            });
        }
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
                    .eq_any(&self.stable_runs)
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

/// The state of the project before the judgement.
struct Before {
    has_events: bool,
    is_judged: bool,
    failed_suites: BTreeSet<String>,
    signatures: i32,
    judged_signatures: i32,
    edges: i32,
}

impl Before {
    fn find(connection: &mut PgConnection, project: Uuid) -> QueryResult<Self> {
        type Columns = (Option<Vec<String>>, Option<At>, Vec<String>, i32, i32, i32);
        let (events, evaluated_at, failed_suites, signatures, judged_signatures, edges): Columns =
            projects::table
                .find(project)
                .select((
                    projects::chat_events,
                    projects::evaluated_at,
                    projects::failed_suites,
                    projects::signatures,
                    projects::judged_signatures,
                    projects::edges,
                ))
                .first(connection)?;
        Ok(Self {
            has_events: events.is_some(),
            is_judged: evaluated_at.is_some(),
            failed_suites: failed_suites.into_iter().collect(),
            signatures,
            judged_signatures,
            edges,
        })
    }
}

#[derive(Debug, Insertable)]
#[diesel(table_name = edge)]
struct Row {
    project_id: Uuid,
    number: i32,
    judged_at: At,
    event: &'static str,
    suite: String,
    test: Option<i32>,
    signature: Option<i32>,
    from_status: Option<&'static str>,
    to_status: Option<&'static str>,
    run_id: Option<Uuid>,
    run_number: Option<i32>,
    since_run: Option<i32>,
    is_red: bool,
}

impl Row {
    fn of(event: ChatEvent, suite: &str) -> Self {
        Self {
            project_id: Uuid::nil(),
            number: 0,
            judged_at: At(Timestamp::from_unix_ms(0)),
            event: event.as_str(),
            suite: crate::db::column::storable(suite),
            test: None,
            signature: None,
            from_status: None,
            to_status: None,
            run_id: None,
            run_number: None,
            since_run: None,
            is_red: false,
        }
    }

    fn of_run(event: ChatEvent, suite: &str, run: RunId, is_red: bool) -> Self {
        Self {
            run_id: Some(run.id),
            run_number: Some(run.number),
            is_red,
            ..Self::of(event, suite)
        }
    }

    fn of_test(change: &TestChange) -> Self {
        let row = match &change.place {
            Some(place) => Self {
                since_run: place.failing_since,
                ..Self::of_run(
                    change.event,
                    &place.suite,
                    place.run,
                    place.failing_since.is_some(),
                )
            },
            None => Self::of(change.event, ""),
        };
        Self {
            test: Some(change.test),
            from_status: Some(change.from.as_str()),
            to_status: Some(change.to.as_str()),
            ..row
        }
    }
}

/// The event of a changed verdict, if it is an edge.
const fn event(from: VerdictStatus, to: VerdictStatus) -> Option<ChatEvent> {
    match (from, to) {
        (_, VerdictStatus::Broken) => Some(ChatEvent::TestBroken),
        (_, VerdictStatus::Flaky) => Some(ChatEvent::TestFlaky),
        (VerdictStatus::Broken | VerdictStatus::Flaky, VerdictStatus::Healthy) => {
            Some(ChatEvent::TestResolved)
        }
        (
            VerdictStatus::InsufficientData
            | VerdictStatus::Healthy
            | VerdictStatus::Failing
            | VerdictStatus::Flaky
            | VerdictStatus::Broken,
            VerdictStatus::InsufficientData | VerdictStatus::Healthy | VerdictStatus::Failing,
        ) => None,
    }
}

/// The newest run with a test on the stable branch, among the runs of each suite, the newest first.
fn place(suites: &BTreeMap<Arc<str>, Vec<&RunObservations>>, test: i32) -> Option<Place> {
    let test = u32::try_from(test).ok()?;
    let newest = suites.iter().filter_map(|(suite, newest_first)| {
        let mut ran = newest_first.iter().filter(|observed| observed.ran(test));
        let newest = ran.next()?;
        Some((suite, *newest, newest_first))
    });
    let (suite, newest, newest_first) =
        newest.max_by_key(|(_, newest, _)| (newest.run.started_at, newest.run.number))?;
    let mut results = newest_first.iter().filter(|observed| observed.ran(test));
    let failing_since = results
        .by_ref()
        .take_while(|observed| observed.failed(test))
        .last()
        .map(|first| first.run.number);
    Some(Place {
        suite: Arc::clone(suite),
        run: run_id(newest)?,
        failing_since,
    })
}

fn run_id(observed: &RunObservations) -> Option<RunId> {
    Some(RunId {
        id: Uuid::try_parse(&observed.run.id).ok()?,
        number: observed.run.number,
    })
}

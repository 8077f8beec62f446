//! The tests of one run, put together from its shards.
//!
//! A test that several shards ran, or that a shard ran several times, has several executions. In the run they are one
//! test. The worst outcome is last, and its final attempt is the test's.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use assay_domain::{
    attempt::AttemptStatus,
    execution::TestOutcome,
    observation::{Failure, Repetition},
    recording::{RecordedAttempt, Recording},
    run::Counts,
    timestamp::Timestamp,
};
use diesel::{ExpressionMethods, PgConnection, QueryDsl, RunQueryDsl};
use uuid::Uuid;

use super::intern::RecordingOrdinals;
use crate::{
    db::{
        column::{At, bigint, int, status},
        pool::Read,
        schema::{attempt, result},
    },
    read::pack::Pack,
};

/// An attempt, without its errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttemptFacts {
    pub(super) status: AttemptStatus,
    pub(super) duration_ms: Option<i64>,
    /// Its own start, if known.
    pub(super) at: Option<Timestamp>,
    pub(super) browser: i32,
    has_errors: bool,
}

/// The place where an execution's attempts are stored.
#[derive(Debug, Clone)]
pub(super) enum Source<'a> {
    /// In the test's row of `result` alone.
    Result,
    /// In rows of `attempt`, at these positions.
    Rows(Vec<Position>),
    /// In the recording that is being stored.
    New(Vec<&'a RecordedAttempt>),
}

/// The position of a row of `attempt` among the attempts of its test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) execution: i32,
    pub(super) retry: i32,
    pub(super) is_final: bool,
}

/// One execution of a test in a shard.
#[derive(Debug, Clone)]
pub(super) struct Execution<'a> {
    pub(super) slot: i16,
    /// The place of its first attempt among those of the shard.
    pub(super) first_place: i32,
    /// In the order in which they ran; never empty.
    pub(super) attempts: Vec<AttemptFacts>,
    pub(super) source: Source<'a>,
}

/// A test's row of `result`, as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredResult {
    pub(super) slot: i16,
    pub(super) status: i16,
    pub(super) start_offset_ms: Option<i32>,
    pub(super) duration_ms: Option<i64>,
    pub(super) browser: i32,
    pub(super) attempts: i32,
}

impl<'a> Execution<'a> {
    /// The executions of a recording, by test.
    pub(super) fn of_recording(
        recording: &'a Recording,
        interned: &RecordingOrdinals,
        slot: i16,
    ) -> BTreeMap<i32, Vec<Execution<'a>>> {
        let mut tests: BTreeMap<i32, Vec<Execution<'a>>> = BTreeMap::new();
        for (test, ordinal) in recording.tests.iter().zip(&interned.tests) {
            for recorded in test.attempts.executions() {
                let executions = tests.entry(*ordinal).or_default();
                let first_place = executions
                    .iter()
                    .map(|execution| execution.attempts.len())
                    .sum::<usize>();
                executions.push(Execution {
                    slot,
                    first_place: int(first_place),
                    attempts: recorded
                        .iter()
                        .map(|recorded| AttemptFacts::of(recorded, interned))
                        .collect(),
                    source: Source::New(recorded.iter().collect()),
                });
            }
        }
        tests
    }

    /// Whether it is a single attempt that a row of `result` describes completely.
    pub(super) fn is_plain(&self) -> bool {
        match self.attempts.as_slice() {
            [only] => !only.status.is_failure() && !only.has_errors,
            _ => false,
        }
    }

    /// Its outcome.
    fn outcome(&self) -> Option<TestOutcome> {
        outcome(std::slice::from_ref(self))
    }
}

impl AttemptFacts {
    fn of(recorded: &RecordedAttempt, interned: &RecordingOrdinals) -> Self {
        let attempt = &recorded.attempt;
        Self {
            status: attempt.status,
            duration_ms: attempt.duration_ms.map(bigint),
            at: attempt.started_at,
            browser: interned.browser(attempt.browser.as_deref()),
            has_errors: !attempt.errors.is_empty(),
        }
    }
}

/// The outcome of a test with these executions; none without executions.
pub(super) fn outcome(executions: &[Execution<'_>]) -> Option<TestOutcome> {
    TestOutcome::of(executions.iter().map(|execution| {
        execution.attempts.iter().map(|attempt| {
            let measured = attempt.duration_ms.and_then(|ms| u64::try_from(ms).ok());
            (attempt.status, measured)
        })
    }))
}

/// The tests of a run.
#[derive(Debug, Default)]
pub(crate) struct RunContents<'a> {
    tests: BTreeMap<i32, Vec<Execution<'a>>>,
    /// The stored rows of `result`, by test.
    results: HashMap<i32, StoredResult>,
}

impl<'a> RunContents<'a> {
    /// The stored rows of a run.
    pub(crate) fn load(connection: &mut PgConnection, project: Uuid, run: i32, started_at: At) -> Read<Self> {
        type ResultRow = (i32, i16, i16, Option<i32>, Option<i64>, i32, i32);
        let rows: Vec<ResultRow> = result::table
            .filter(result::project_id.eq(project))
            .filter(result::run_number.eq(run))
            .filter(result::started_at.eq(started_at))
            .select((
                result::test,
                result::slot,
                result::status,
                result::start_offset_ms,
                result::duration_ms,
                result::browser,
                result::attempts,
            ))
            .load(connection)?;
        let mut contents = Self::default();
        for (test, slot, code, start_offset_ms, duration_ms, browser, attempts) in rows {
            let stored = StoredResult {
                slot,
                status: code,
                start_offset_ms,
                duration_ms,
                browser,
                attempts,
            };
            contents.results.insert(test, stored);
            if attempts > 0 {
                continue;
            }
            let only = AttemptFacts {
                status: status(code)?,
                duration_ms,
                at: start_offset_ms.map(|offset| started_at.0.plus_ms(i64::from(offset))),
                browser,
                has_errors: false,
            };
            contents.tests.entry(test).or_default().push(Execution {
                slot,
                first_place: 0,
                attempts: vec![only],
                source: Source::Result,
            });
        }
        contents.load_rows(connection, project, run, started_at)?;
        Ok(contents)
    }

    fn load_rows(
        &mut self,
        connection: &mut PgConnection,
        project: Uuid,
        run: i32,
        started_at: At,
    ) -> Read<()> {
        type RowKey = (i32, i16, i32, i32, i32, bool);
        type RowValues = (i16, bool, At, Option<i64>, i32, bool);
        let rows: Vec<(RowKey, RowValues)> = attempt::table
            .filter(attempt::project_id.eq(project))
            .filter(attempt::run_number.eq(run))
            .filter(attempt::started_at.eq(started_at))
            .order((attempt::test, attempt::slot, attempt::place))
            .select((
                (
                    attempt::test,
                    attempt::slot,
                    attempt::place,
                    attempt::execution,
                    attempt::retry,
                    attempt::is_final,
                ),
                (
                    attempt::status,
                    attempt::timed,
                    attempt::occurred_at,
                    attempt::duration_ms,
                    attempt::browser,
                    attempt::errors.is_not_null(),
                ),
            ))
            .load(connection)?;
        for ((test, slot, place, execution, retry, is_final), values) in rows {
            let (code, timed, occurred_at, duration_ms, browser, has_errors) = values;
            let facts = AttemptFacts {
                status: status(code)?,
                duration_ms,
                at: timed.then_some(occurred_at.0),
                browser,
                has_errors,
            };
            let position = Position {
                execution,
                retry,
                is_final,
            };
            let executions = self.tests.entry(test).or_default();
            match executions.last_mut() {
                Some(Execution {
                    slot: last,
                    attempts,
                    source: Source::Rows(positions),
                    ..
                }) if *last == slot && positions.last().is_some_and(|last| last.execution == execution) => {
                    attempts.push(facts);
                    positions.push(position);
                }
                Some(_) | None => executions.push(Execution {
                    slot,
                    first_place: place,
                    attempts: vec![facts],
                    source: Source::Rows(vec![position]),
                }),
            }
        }
        Ok(())
    }

    /// Replaces a shard's executions and returns the changed tests.
    pub(super) fn replace(&mut self, slot: i16, new: BTreeMap<i32, Vec<Execution<'a>>>) -> BTreeSet<i32> {
        let mut changed = BTreeSet::new();
        self.tests.retain(|test, executions| {
            let before = executions.len();
            executions.retain(|execution| execution.slot != slot);
            if executions.len() < before {
                changed.insert(*test);
            }
            !executions.is_empty()
        });
        for (test, executions) in new {
            changed.insert(test);
            self.tests.entry(test).or_default().extend(executions);
        }
        changed
    }

    /// Orders each test's executions by outcome, the worst last, then by the shards' indexes and their reports' order.
    /// The order of arrival does not matter.
    pub(crate) fn order(&mut self, shards: impl Iterator<Item = (i16, Option<i32>)>) {
        let indexes: HashMap<i16, Option<i32>> = shards.collect();
        for executions in self.tests.values_mut().filter(|executions| executions.len() > 1) {
            executions.sort_by_key(|execution| {
                (
                    execution.outcome().map(|outcome| outcome.status.severity()),
                    indexes.get(&execution.slot).copied().flatten(),
                    execution.slot,
                    execution.first_place,
                )
            });
        }
    }

    /// The slots of the shards in which a test failed finally.
    pub(crate) fn failed_slots(&self) -> BTreeSet<i16> {
        let executions = self.tests.values().flatten();
        executions
            .filter(|execution| {
                execution
                    .outcome()
                    .is_some_and(|outcome| outcome.status.is_failure())
            })
            .map(|execution| execution.slot)
            .collect()
    }

    /// A test's row of `result`.
    pub(super) fn stored_result(&self, test: i32) -> Option<&StoredResult> {
        self.results.get(&test)
    }

    /// The executions of a test, ordered; none if no shard has it any more.
    pub(super) fn executions(&self, test: i32) -> &[Execution<'a>] {
        self.tests.get(&test).map(Vec::as_slice).unwrap_or_default()
    }

    /// The tests.
    pub(super) fn ordinals(&self) -> impl Iterator<Item = i32> {
        self.tests.keys().copied()
    }

    /// The counts of the outcomes.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for outcome in self.tests.values().filter_map(|executions| outcome(executions)) {
            counts.add(&outcome);
        }
        counts
    }

    /// The engine's input.
    pub(crate) fn pack(&self) -> Pack {
        let mut pack = Pack::default();
        for (test, executions) in &self.tests {
            let (Ok(test), Some(outcome)) = (u32::try_from(*test), outcome(executions)) else {
                continue;
            };
            pack.present.insert(test);
            if !outcome.timed {
                pack.untimed.insert(test);
            }
            if outcome.status.is_skip() {
                pack.skipped.insert(test);
            }
            pack.failures.extend(Failure::of(test, &outcome));
            pack.repeated.extend(Repetition::of(test, &outcome));
        }
        pack
    }
}

//! The tests of one run, put together from its parts.
//!
//! A test that several shards ran, or that a shard ran several times, has several executions. In the run they are one
//! test. The worst outcome is last, and its final attempt is the test's. Which results of parts belong to one execution
//! is decided by [`merge_parts`].

use std::collections::{BTreeMap, BTreeSet, HashMap};

use assay_domain::{
    attempt::AttemptStatus,
    execution::TestOutcome,
    observation::{Failure, Repetition},
    part::{ExecutionRef, MergedParts, PartRole, RunPart, merge_parts},
    recording::{RecordedAttempt, RecordedTest},
    run::Counts,
    store::StoreError,
    timestamp::Timestamp,
};
use diesel::prelude::*;
use uuid::Uuid;

use super::intern::RecordingOrdinals;
use crate::{
    db::{
        column::{At, bigint, count, int, status},
        pool::Read,
        schema::{attempt, test},
    },
    read::{
        pack::Pack,
        part::StoredPart,
        result_block::{self, ResultBlock},
    },
};

/// An attempt, without its texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttemptFacts {
    pub(super) status: AttemptStatus,
    pub(super) duration_ms: Option<i64>,
    /// Its own start, if known.
    pub(super) at: Option<Timestamp>,
    pub(super) browser: i32,
    /// Whether it has errors or a reason for skipping, which only a row of `attempt` can hold.
    has_texts: bool,
}

/// The place where attempts are stored.
#[derive(Debug, Clone)]
pub(super) enum Source<'a> {
    /// In the test's result alone.
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

/// One execution of a test in a part.
#[derive(Debug, Clone)]
pub(super) struct PartExecution<'a> {
    pub(super) part: i16,
    /// The place of its first attempt among those of the part.
    pub(super) first_place: i32,
    /// In the order in which they ran; never empty.
    pub(super) attempts: Vec<AttemptFacts>,
    pub(super) source: Source<'a>,
}

/// One execution of a test in a run: that of a part, and those of later parts that go on with it.
#[derive(Debug, Clone)]
pub(super) struct Execution<'a> {
    first: PartExecution<'a>,
    /// Empty for almost every execution, which then needs no allocation.
    later: Vec<PartExecution<'a>>,
}

impl<'a> PartExecution<'a> {
    /// The executions of tests with these ordinals, in a part of this number.
    pub(super) fn of_tests(
        tests: impl Iterator<Item = (&'a RecordedTest, i32)>,
        interned: &RecordingOrdinals,
        part: i16,
    ) -> BTreeMap<i32, Vec<Self>> {
        let mut by_test: BTreeMap<i32, Vec<Self>> = BTreeMap::new();
        for (test, ordinal) in tests {
            for recorded in test.attempts.executions() {
                let executions = by_test.entry(ordinal).or_default();
                let first_place = executions
                    .iter()
                    .map(|execution| execution.attempts.len())
                    .sum::<usize>();
                executions.push(Self {
                    part,
                    first_place: int(first_place),
                    attempts: recorded
                        .iter()
                        .map(|recorded| AttemptFacts::of(recorded, interned))
                        .collect(),
                    source: Source::New(recorded.iter().collect()),
                });
            }
        }
        by_test
    }

    /// The set-up of a class or a group of subtests, which passed without being reported.
    fn of_unreported_pass(part: i16) -> Self {
        Self {
            part,
            first_place: 0,
            attempts: vec![AttemptFacts {
                status: AttemptStatus::Passed,
                duration_ms: None,
                at: None,
                browser: 0,
                has_texts: false,
            }],
            source: Source::Result,
        }
    }

    /// The status with which it ended.
    fn status(&self) -> AttemptStatus {
        let outcome = TestOutcome::of([self.attempts.iter().map(|attempt| (attempt.status, None))]);
        outcome.map_or(AttemptStatus::Skipped, |outcome| outcome.status)
    }
}

impl<'a> From<PartExecution<'a>> for Execution<'a> {
    fn from(first: PartExecution<'a>) -> Self {
        Self {
            first,
            later: Vec::new(),
        }
    }
}

impl<'a> Execution<'a> {
    /// The execution of these parts; none if there are none.
    fn of(parts: impl IntoIterator<Item = PartExecution<'a>>) -> Option<Self> {
        let mut parts = parts.into_iter();
        let first = parts.next()?;
        Some(Self {
            first,
            later: parts.collect(),
        })
    }

    /// Its parts, oldest first.
    pub(super) fn parts(&self) -> impl Iterator<Item = &PartExecution<'a>> {
        std::iter::once(&self.first).chain(&self.later)
    }

    fn into_parts(self) -> impl Iterator<Item = PartExecution<'a>> {
        std::iter::once(self.first).chain(self.later)
    }

    /// Its attempts with their parts, oldest first.
    pub(super) fn attempts(&self) -> impl Iterator<Item = (i16, &AttemptFacts)> {
        self.parts()
            .flat_map(|part| part.attempts.iter().map(|attempt| (part.part, attempt)))
    }

    /// The only part of a single attempt that the test's result describes completely.
    pub(super) fn plain(&self) -> Option<&PartExecution<'a>> {
        match (self.first.attempts.as_slice(), self.later.as_slice()) {
            ([only], []) if !only.status.is_failure() && !only.has_texts => Some(&self.first),
            _ => None,
        }
    }

    fn is_of(&self, part: i16) -> bool {
        self.parts().any(|execution| execution.part == part)
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
            has_texts: !attempt.errors.is_empty()
                || attempt.skip_reason.is_some()
                || attempt.output.is_some(),
        }
    }
}

/// The outcome of a test with these executions; none without executions.
pub(super) fn outcome<'e, 'a: 'e>(
    executions: impl IntoIterator<Item = &'e Execution<'a>>,
) -> Option<TestOutcome> {
    TestOutcome::of(executions.into_iter().map(|execution| {
        execution.attempts().map(|(_, attempt)| {
            let measured = attempt.duration_ms.and_then(|ms| u64::try_from(ms).ok());
            (attempt.status, measured)
        })
    }))
}

/// The tests of a run.
#[derive(Debug, Default)]
pub(crate) struct RunContents<'a> {
    tests: BTreeMap<i32, Vec<Execution<'a>>>,
    /// The stored blocks of results.
    blocks: Vec<ResultBlock>,
}

impl<'a> RunContents<'a> {
    /// The stored rows of a run. Call [`Self::merge`] before reading executions.
    pub(crate) fn load(connection: &mut PgConnection, project: Uuid, run: i32, started_at: At) -> Read<Self> {
        let mut contents = Self {
            blocks: result_block::of_run(connection, project, run, started_at)?,
            ..Self::default()
        };
        for block in &contents.blocks {
            for result in block.results()? {
                let status = status(result.status)?;
                if result.attempts > 0 {
                    continue;
                }
                let only = AttemptFacts {
                    status,
                    duration_ms: result.duration_ms,
                    at: result
                        .start_offset_ms
                        .map(|offset| started_at.0.plus_ms(i64::from(offset))),
                    browser: result.browser,
                    has_texts: false,
                };
                let only = PartExecution {
                    part: result.part,
                    first_place: 0,
                    attempts: vec![only],
                    source: Source::Result,
                };
                contents.tests.entry(result.test).or_default().push(only.into());
            }
        }
        contents.load_rows(connection, project, run, started_at)?;
        Ok(contents)
    }

    /// Whether some results are of tests that the project does not have.
    pub(crate) fn names_unknown_tests(&self, connection: &mut PgConnection, project: Uuid) -> Read<bool> {
        let mut tests: BTreeSet<i32> = self.tests.keys().copied().collect();
        for block in &self.blocks {
            tests.extend(block.results()?.into_iter().map(|result| result.test));
        }
        let known: i64 = test::table
            .filter(test::project_id.eq(project))
            .filter(test::ordinal.eq_any(tests.iter().copied()))
            .count()
            .get_result(connection)?;
        Ok(usize::try_from(known).ok() != Some(tests.len()))
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
            .order((attempt::test, attempt::part, attempt::place))
            .select((
                (
                    attempt::test,
                    attempt::part,
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
                    attempt::texts
                        .is_not_null()
                        .or(attempt::skip_reason.is_not_null()),
                ),
            ))
            .load(connection)?;
        for ((test, part, place, execution, retry, is_final), values) in rows {
            let (code, timed, occurred_at, duration_ms, browser, has_texts) = values;
            let facts = AttemptFacts {
                status: status(code)?,
                duration_ms,
                at: timed.then_some(occurred_at.0),
                browser,
                has_texts,
            };
            let position = Position {
                execution,
                retry,
                is_final,
            };
            let executions = self.tests.entry(test).or_default();
            match executions.last_mut().map(|last| &mut last.first) {
                Some(PartExecution {
                    part: last,
                    attempts,
                    source: Source::Rows(positions),
                    ..
                }) if *last == part && positions.last().is_some_and(|last| last.execution == execution) => {
                    attempts.push(facts);
                    positions.push(position);
                }
                Some(_) | None => executions.push(
                    PartExecution {
                        part,
                        first_place: place,
                        attempts: vec![facts],
                        source: Source::Rows(vec![position]),
                    }
                    .into(),
                ),
            }
        }
        Ok(())
    }

    /// Removes the executions of some parts, and returns the tests that had any. Call [`Self::merge`] afterwards.
    pub(super) fn remove(&mut self, parts: &[i16]) -> BTreeSet<i32> {
        let mut changed = BTreeSet::new();
        self.tests.retain(|test, executions| {
            if executions
                .iter()
                .any(|execution| parts.iter().any(|part| execution.is_of(*part)))
            {
                changed.insert(*test);
                let others = executions.drain(..).flat_map(Execution::into_parts);
                *executions = others
                    .filter(|execution| !parts.contains(&execution.part))
                    .map(Execution::from)
                    .collect();
            }
            !executions.is_empty()
        });
        changed
    }

    /// Whether an execution of a test passed.
    fn has_passed(&self, test: i32) -> bool {
        let mut parts = self.executions(test).iter().flat_map(Execution::parts);
        parts.any(|execution| execution.status() == AttemptStatus::Passed)
    }

    /// The passes of set-ups and groups in a part that reports these tests. Where the part only ran failed tests again, a
    /// set-up that passed before is none of them.
    pub(super) fn new_passes(
        &self,
        passes: &[i32],
        mut reported: impl Iterator<Item = Option<i32>>,
        part: i16,
    ) -> BTreeMap<i32, Vec<PartExecution<'a>>> {
        let failed_before = |test: i32| self.tests.contains_key(&test) && !self.has_passed(test);
        let is_rerun = reported.all(|test| test.is_some_and(failed_before));
        let new = passes.iter().filter(|test| !is_rerun || failed_before(**test));
        new.map(|test| (*test, vec![PartExecution::of_unreported_pass(part)]))
            .collect()
    }

    /// Adds the executions of a part. Call [`Self::merge`] afterwards.
    pub(super) fn add(&mut self, new: BTreeMap<i32, Vec<PartExecution<'a>>>) {
        for (test, executions) in new {
            let executions = executions.into_iter().map(Execution::from);
            self.tests.entry(test).or_default().extend(executions);
        }
    }

    /// Puts the executions of the parts together, and orders each test's by outcome, the worst last, then by shard and by
    /// the order of the parts. The order of arrival does not matter. Returns the role of each part in its run.
    pub(crate) fn merge(&mut self, parts: &[StoredPart]) -> Result<HashMap<i16, PartRole>, StoreError> {
        // Parts of different shards and one attempt are apart. A run of many shards is not compared with itself for each.
        let mut places = BTreeSet::new();
        let is_repeated = parts.iter().any(|part| !places.insert(part.index))
            || parts
                .iter()
                .any(|part| Some(part.job_attempt) != parts.first().map(|first| first.job_attempt));
        let merged = is_repeated.then(|| self.merged(parts)).transpose()?;
        let indexes: HashMap<i16, Option<i32>> = parts.iter().map(|part| (part.number, part.index)).collect();
        for (test, executions) in self.tests.iter_mut().filter(|(_, all)| all.len() > 1) {
            let of_parts: Vec<PartExecution<'a>> =
                executions.drain(..).flat_map(Execution::into_parts).collect();
            match merged.as_ref().and_then(|merged| merged.executions.get(test)) {
                Some(merged) => executions.extend(put_together(of_parts, parts, merged)),
                None => executions.extend(of_parts.into_iter().map(Execution::from)),
            }
            executions.sort_by_key(|execution| {
                let severity = execution.outcome().map(|outcome| outcome.status.severity());
                (severity, indexes.get(&execution.first.part).copied().flatten())
            });
        }
        let roles = merged.map(|merged| merged.roles).unwrap_or_default();
        Ok(parts.iter().map(|part| part.number).zip(roles).collect())
    }

    /// The executions of several parts.
    fn merged(&self, parts: &[StoredPart]) -> Result<MergedParts<i32>, StoreError> {
        let mut tests: HashMap<i16, BTreeMap<i32, Vec<AttemptStatus>>> = HashMap::new();
        for (test, executions) in &self.tests {
            for execution in executions.iter().flat_map(Execution::parts) {
                let of_part = tests.entry(execution.part).or_default();
                of_part.entry(*test).or_default().push(execution.status());
            }
        }
        let senders = parts
            .iter()
            .map(StoredPart::sender)
            .collect::<Result<Vec<_>, _>>()?;
        let run_part = |(part, sender)| {
            let part: &StoredPart = part;
            Ok(RunPart {
                shard: part.index.map(count).transpose()?,
                sender,
                started_at: part.started_at.0,
                content: &part.content,
                tests: tests.remove(&part.number).unwrap_or_default(),
            })
        };
        let run_parts: Result<Vec<RunPart<'_, i32>>, StoreError> =
            parts.iter().zip(&senders).map(run_part).collect();
        Ok(merge_parts(&run_parts?))
    }

    /// The tests with several executions of parts. Another part may change how they belong together.
    pub(super) fn repeated(&self) -> impl Iterator<Item = i32> {
        let repeated = self.tests.iter().filter(|(_, executions)| {
            let parts = executions.iter().flat_map(Execution::parts);
            parts.count() > 1
        });
        repeated.map(|(test, _)| *test)
    }

    /// The parts in which an execution ended with such a status.
    pub(crate) fn parts_with(&self, is_such: impl Fn(AttemptStatus) -> bool) -> BTreeSet<i16> {
        let executions = self.tests.values().flatten();
        executions
            .filter_map(|execution| {
                let outcome = execution.outcome().filter(|outcome| is_such(outcome.status))?;
                let (part, _) = execution.attempts().nth(outcome.final_retry)?;
                Some(part)
            })
            .collect()
    }

    /// The tests with an execution that failed finally in one of these parts.
    pub(super) fn failed_in(&self, parts: &BTreeSet<i16>) -> impl Iterator<Item = i32> {
        let has_failed = |execution: &Execution<'_>| {
            let last = execution.parts().last();
            last.is_some_and(|last| parts.contains(&last.part))
                && execution
                    .outcome()
                    .is_some_and(|outcome| outcome.status.is_failure())
        };
        let tests = self.tests.iter();
        tests
            .filter(move |(_, executions)| executions.iter().any(has_failed))
            .map(|(test, _)| *test)
    }

    /// The numbers of tests and of failed ones in some parts alone.
    pub(super) fn count_of(&self, parts: &[i16]) -> (u32, u32) {
        let (mut tests, mut failed) = (0, 0);
        for executions in self.tests.values() {
            let own = executions
                .iter()
                .filter(|execution| parts.iter().any(|part| execution.is_of(*part)));
            if let Some(outcome) = outcome(own) {
                tests += 1;
                failed += u32::from(outcome.status.is_failure());
            }
        }
        (tests, failed)
    }

    /// The outcome of a test in the run, and that of its executions in which a part has an attempt.
    pub(super) fn outcomes_with(&self, test: i32, part: i16) -> Option<(TestOutcome, TestOutcome)> {
        let executions = self.executions(test);
        let own = executions.iter().filter(|execution| execution.is_of(part));
        Some((outcome(executions)?, outcome(own)?))
    }

    /// The stored blocks of results.
    pub(super) fn stored_blocks(&self) -> &[ResultBlock] {
        &self.blocks
    }

    /// The executions of a test, ordered; none if no part has it any more.
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
        for outcome in self.tests.values().filter_map(outcome) {
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

/// The executions that these executions of parts make up.
fn put_together<'a>(
    parts: Vec<PartExecution<'a>>,
    run: &[StoredPart],
    merged: &[Vec<ExecutionRef>],
) -> Vec<Execution<'a>> {
    let mut by_part: HashMap<i16, Vec<Option<PartExecution<'a>>>> = HashMap::new();
    for part in parts {
        by_part.entry(part.part).or_default().push(Some(part));
    }
    let mut take = |of: &ExecutionRef| {
        let executions = by_part.get_mut(&run.get(of.part)?.number)?;
        executions.get_mut(of.execution)?.take()
    };
    merged
        .iter()
        .filter_map(|execution| Execution::of(execution.iter().filter_map(&mut take).collect::<Vec<_>>()))
        .collect()
}

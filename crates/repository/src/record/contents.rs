//! The tests of one logical run, put together from its shards.
//!
//! A test that several shards ran has one execution in each. In the run they are one test, whose attempts are those of
//! all executions: those that ended well first, so that the final attempt tells the outcome.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use assay_domain::{
    attempt::AttemptStatus,
    observation::Failure,
    recording::{RecordedAttempt, Recording},
    run::Counts,
    timestamp::Timestamp,
};
use diesel::{ExpressionMethods, PgConnection, QueryDsl, RunQueryDsl};
use uuid::Uuid;

use super::intern::Interned;
use crate::{
    column::{At, bigint, status},
    pack::Pack,
    pool::Read,
    schema::{attempt, result},
};

/// An attempt, without its errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Brief {
    pub(super) status: AttemptStatus,
    pub(super) duration_ms: Option<i64>,
    /// Its own start, where that is known.
    pub(super) at: Option<Timestamp>,
    pub(super) browser: i32,
}

/// Where an execution's attempts are.
#[derive(Debug, Clone)]
pub(super) enum Source<'a> {
    /// In the test's row of `result` alone.
    Result,
    /// In rows of `attempt`, which have these places among all attempts of the test.
    Rows(Vec<i32>),
    /// In the recording that is being stored.
    New(Vec<&'a RecordedAttempt>),
}

/// What one shard tells of a test.
#[derive(Debug, Clone)]
pub(super) struct Execution<'a> {
    pub(super) slot: i16,
    /// In the order in which they ran; never empty.
    pub(super) attempts: Vec<Brief>,
    pub(super) source: Source<'a>,
}

impl<'a> Execution<'a> {
    /// The executions of a recording, by test.
    pub(super) fn of_recording(
        recording: &'a Recording,
        interned: &Interned,
        slot: i16,
    ) -> BTreeMap<i32, Execution<'a>> {
        let mut executions: BTreeMap<i32, Execution<'a>> = BTreeMap::new();
        for (test, ordinal) in recording.tests.iter().zip(&interned.tests) {
            if test.attempts.is_empty() {
                continue;
            }
            let execution = executions.entry(*ordinal).or_insert_with(|| Execution {
                slot,
                attempts: Vec::new(),
                source: Source::New(Vec::new()),
            });
            for recorded in &test.attempts {
                let attempt = &recorded.attempt;
                execution.attempts.push(Brief {
                    status: attempt.status,
                    duration_ms: attempt.duration_ms.map(bigint),
                    at: attempt.started_at,
                    browser: interned.browser(attempt.browser.as_deref()),
                });
                if let Source::New(all) = &mut execution.source {
                    all.push(recorded);
                }
            }
        }
        executions
    }

    /// Whether it is a single attempt of which there is nothing more to say than a row of `result` holds.
    pub(super) fn is_plain(&self) -> bool {
        match &self.source {
            Source::Result => true,
            Source::Rows(_) => false,
            Source::New(attempts) => match attempts.as_slice() {
                [only] => !only.attempt.status.is_failure() && only.attempt.errors.is_empty(),
                _ => false,
            },
        }
    }

    /// How badly it ended.
    fn severity(&self) -> u8 {
        let last = self.attempts.last();
        last.map_or(0, |attempt| attempt.status.severity())
    }
}

/// The tests of a run.
#[derive(Debug, Default)]
pub(crate) struct RunContents<'a> {
    tests: BTreeMap<i32, Vec<Execution<'a>>>,
}

impl<'a> RunContents<'a> {
    /// What is stored of a run.
    pub(crate) fn load(connection: &mut PgConnection, project: Uuid, run: i32, started_at: At) -> Read<Self> {
        type ResultRow = (i32, i16, i16, At, Option<i32>, Option<i64>, i32);
        let plain: Vec<ResultRow> = result::table
            .filter(result::project_id.eq(project))
            .filter(result::run_number.eq(run))
            .filter(result::started_at.eq(started_at))
            .filter(result::attempts.eq(0))
            .select((
                result::test,
                result::slot,
                result::status,
                result::started_at,
                result::start_offset_ms,
                result::duration_ms,
                result::browser,
            ))
            .load(connection)?;
        let mut contents = Self::default();
        for (test, slot, code, started_at, offset, duration_ms, browser) in plain {
            let at = offset.map(|offset| started_at.0.plus_ms(i64::from(offset)));
            let attempts = vec![Brief {
                status: status(code)?,
                duration_ms,
                at,
                browser,
            }];
            contents.tests.entry(test).or_default().push(Execution {
                slot,
                attempts,
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
        type AttemptRow = (i32, i16, i32, i16, bool, At, Option<i64>, i32);
        let rows: Vec<AttemptRow> = attempt::table
            .filter(attempt::project_id.eq(project))
            .filter(attempt::run_number.eq(run))
            .filter(attempt::started_at.eq(started_at))
            .order((attempt::test, attempt::slot, attempt::place))
            .select((
                attempt::test,
                attempt::slot,
                attempt::retry,
                attempt::status,
                attempt::timed,
                attempt::occurred_at,
                attempt::duration_ms,
                attempt::browser,
            ))
            .load(connection)?;
        for (test, slot, retry, code, timed, occurred_at, duration_ms, browser) in rows {
            let brief = Brief {
                status: status(code)?,
                duration_ms,
                at: timed.then_some(occurred_at.0),
                browser,
            };
            let executions = self.tests.entry(test).or_default();
            match executions.last_mut() {
                Some(Execution {
                    slot: last,
                    attempts,
                    source: Source::Rows(retries),
                }) if *last == slot => {
                    attempts.push(brief);
                    retries.push(retry);
                }
                Some(_) | None => executions.push(Execution {
                    slot,
                    attempts: vec![brief],
                    source: Source::Rows(vec![retry]),
                }),
            }
        }
        // Executions stand in the order of their attempts, as they were put when they were stored.
        for executions in self.tests.values_mut() {
            executions.sort_by_key(|execution| match &execution.source {
                Source::Rows(retries) => retries.first().copied().unwrap_or(0),
                Source::Result | Source::New(_) => 0,
            });
        }
        Ok(())
    }

    /// Puts a shard's executions in the place of its former ones and returns the tests that this concerns.
    pub(super) fn replace(&mut self, slot: i16, new: BTreeMap<i32, Execution<'a>>) -> BTreeSet<i32> {
        let mut changed = BTreeSet::new();
        self.tests.retain(|test, executions| {
            let before = executions.len();
            executions.retain(|execution| execution.slot != slot);
            if executions.len() < before {
                changed.insert(*test);
            }
            !executions.is_empty()
        });
        for (test, execution) in new {
            changed.insert(test);
            self.tests.entry(test).or_default().push(execution);
        }
        changed
    }

    /// Orders each test's executions: those that ended well first, then by the shards' indexes, so that the order
    /// of arrival makes no difference.
    pub(super) fn order(&mut self, shards: impl Iterator<Item = (i16, Option<i32>)>) {
        let indexes: HashMap<i16, Option<i32>> = shards.collect();
        for executions in self.tests.values_mut().filter(|executions| executions.len() > 1) {
            executions.sort_by_key(|execution| {
                (
                    execution.severity(),
                    indexes.get(&execution.slot).copied().flatten(),
                    execution.slot,
                )
            });
        }
    }

    /// The executions of a test, ordered; none where no shard has it any more.
    pub(super) fn executions(&self, test: i32) -> &[Execution<'a>] {
        self.tests.get(&test).map(Vec::as_slice).unwrap_or_default()
    }

    /// The tests.
    pub(super) fn ordinals(&self) -> impl Iterator<Item = i32> {
        self.tests.keys().copied()
    }

    /// How the tests ended.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for executions in self.tests.values() {
            let tally = Tally::of(executions);
            counts.total += 1;
            if tally.last.is_failure() {
                counts.failed += 1;
            } else if tally.last.is_skip() {
                counts.skipped += 1;
            } else {
                counts.passed += 1;
                counts.recovered += u32::from(tally.failed_attempts > 0);
            }
        }
        counts
    }

    /// What the engine is to read.
    pub(crate) fn pack(&self) -> Pack {
        let mut pack = Pack::default();
        for (test, executions) in &self.tests {
            let Ok(test) = u32::try_from(*test) else { continue };
            let tally = Tally::of(executions);
            pack.present.insert(test);
            if !tally.timed {
                pack.untimed.insert(test);
            }
            if tally.last.is_skip() {
                pack.skipped.insert(test);
            } else if tally.failed_attempts > 0 {
                pack.failures.push(Failure {
                    test,
                    recovered: !tally.last.is_failure(),
                    failed_attempts: tally.failed_attempts,
                    lost_ms: tally.lost_ms,
                });
            }
        }
        pack
    }
}

/// What the attempts of a test come to.
struct Tally {
    last: AttemptStatus,
    failed_attempts: u32,
    /// The measured time of the failed attempts.
    lost_ms: Option<u64>,
    /// Whether any attempt reported a duration.
    timed: bool,
}

impl Tally {
    fn of(executions: &[Execution<'_>]) -> Self {
        let mut tally = Self {
            last: AttemptStatus::Skipped,
            failed_attempts: 0,
            lost_ms: None,
            timed: false,
        };
        for attempt in executions.iter().flat_map(|execution| &execution.attempts) {
            tally.last = attempt.status;
            let measured = attempt.duration_ms.and_then(|ms| u64::try_from(ms).ok());
            tally.timed |= measured.is_some();
            if attempt.status.is_failure() {
                tally.failed_attempts += 1;
                if let Some(ms) = measured {
                    tally.lost_ms = Some(tally.lost_ms.unwrap_or(0).saturating_add(ms));
                }
            }
        }
        tally
    }
}

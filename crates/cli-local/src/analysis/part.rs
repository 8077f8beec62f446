//! The results of one shard or of an unsharded run: bitmaps for plain passes, and all other attempts in full.

use std::collections::{BTreeMap, HashMap};

use assay_domain::{
    attempt::AttemptStatus, execution::TestOutcome, observation::Bitmap, test::TestOrdinal,
    timestamp::Timestamp,
};

/// The facts of an attempt that the analysis needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// Its execution in the part, from 0.
    pub(crate) execution: u32,
    /// Its index among the attempts of the execution. Attempts with equal indexes keep their order of arrival.
    pub(crate) retry: u32,
    pub(crate) status: AttemptStatus,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) started_at: Option<Timestamp>,
    /// The number of its error's signature.
    pub(crate) signature: Option<u32>,
}

impl Attempt {
    /// The pass of a group of subtests, which the report does not have as a test.
    pub(crate) const fn unreported_pass() -> Self {
        Self {
            execution: 0,
            retry: 0,
            status: AttemptStatus::Passed,
            duration_ms: None,
            started_at: None,
            signature: None,
        }
    }
}

/// The results of a part of a run.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) started_at: Timestamp,
    /// Tests whose only attempt so far passed.
    plain: Bitmap,
    /// Those of them without a duration.
    untimed: Bitmap,
    /// The starts of those tests as milliseconds after `base`, which takes eight bytes per result.
    starts: Vec<(TestOrdinal, i32)>,
    base: Timestamp,
    /// All attempts of every other test.
    other: BTreeMap<TestOrdinal, Vec<Attempt>>,
}

impl Part {
    pub(crate) fn starting(started_at: Timestamp) -> Self {
        Self {
            started_at,
            plain: Bitmap::default(),
            untimed: Bitmap::default(),
            starts: Vec::new(),
            base: started_at,
            other: BTreeMap::new(),
        }
    }

    /// The number of a test's attempts.
    pub(crate) fn attempts_of(&self, test: TestOrdinal) -> usize {
        if self.plain.contains(test) {
            1
        } else {
            self.other.get(&test).map_or(0, Vec::len)
        }
    }

    /// Adds an attempt, in any order.
    pub(crate) fn add(&mut self, test: TestOrdinal, attempt: Attempt) {
        let has_attempts = self.other.contains_key(&test) || self.plain.contains(test);
        if !has_attempts
            && (attempt.execution, attempt.retry) == (0, 0)
            && attempt.status == AttemptStatus::Passed
        {
            self.plain.insert(test);
            if attempt.duration_ms.is_none() {
                self.untimed.insert(test);
            }
            let offset = attempt
                .started_at
                .and_then(|at| i32::try_from(at.since_ms(self.base)).ok());
            self.starts.extend(offset.map(|offset| (test, offset)));
            return;
        }
        let plain = self
            .plain
            .contains(test)
            .then(|| self.plain_attempt(test, self.start_of(test)));
        if plain.is_some() {
            self.plain.remove(test);
            self.untimed.remove(test);
        }
        let attempts = self.other.entry(test).or_default();
        attempts.extend(plain);
        let at = |attempt: &Attempt| (attempt.execution, attempt.retry);
        let index = attempts.partition_point(|earlier| at(earlier) <= at(&attempt));
        attempts.insert(index, attempt);
    }

    /// The tests.
    pub(crate) fn tests(&self) -> impl Iterator<Item = TestOrdinal> + '_ {
        self.plain.iter().chain(self.other.keys().copied())
    }

    /// The tests whose only attempt passed, and those of them without a duration.
    pub(crate) fn plain(&self) -> (&Bitmap, &Bitmap) {
        (&self.plain, &self.untimed)
    }

    /// Every other test with its outcome.
    pub(crate) fn other(&self) -> impl Iterator<Item = (TestOrdinal, TestOutcome)> {
        self.other
            .iter()
            .filter_map(|(test, attempts)| Some((*test, outcome(executions(attempts))?)))
    }

    /// The attempts of each execution of a test. A plain pass has no start; [`Self::starts`] has it.
    pub(crate) fn executions(&self, test: TestOrdinal) -> Vec<Vec<Attempt>> {
        if self.plain.contains(test) {
            return vec![vec![self.plain_attempt(test, None)]];
        }
        let attempts = self.other.get(&test).map(Vec::as_slice).unwrap_or_default();
        executions(attempts).map(<[Attempt]>::to_vec).collect()
    }

    /// The starts of the plain passes.
    pub(crate) fn starts(&self) -> HashMap<TestOrdinal, Timestamp> {
        self.starts
            .iter()
            .map(|(test, offset)| (*test, self.base.plus_ms(i64::from(*offset))))
            .collect()
    }

    fn start_of(&self, test: TestOrdinal) -> Option<Timestamp> {
        let (_, offset) = self.starts.iter().rev().find(|(other, _)| *other == test)?;
        Some(self.base.plus_ms(i64::from(*offset)))
    }

    /// The attempt of a plain pass. The value of its duration is never used, only its presence.
    fn plain_attempt(&self, test: TestOrdinal, started_at: Option<Timestamp>) -> Attempt {
        Attempt {
            execution: 0,
            retry: 0,
            status: AttemptStatus::Passed,
            duration_ms: (!self.untimed.contains(test)).then_some(0),
            started_at,
            signature: None,
        }
    }
}

/// The executions in a part's attempts of a test.
fn executions(attempts: &[Attempt]) -> impl Iterator<Item = &[Attempt]> {
    attempts.chunk_by(|attempt, next| attempt.execution == next.execution)
}

/// The outcome of a test with these executions.
pub(crate) fn outcome<'a>(executions: impl IntoIterator<Item = &'a [Attempt]>) -> Option<TestOutcome> {
    TestOutcome::of(executions.into_iter().map(|execution| {
        execution
            .iter()
            .map(|attempt| (attempt.status, attempt.duration_ms))
    }))
}

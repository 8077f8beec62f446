//! One shard's results, or an unsharded run's: bitmaps for plain passes, and every other attempt as it was.

use std::collections::{BTreeMap, HashMap};

use assay_domain::{attempt::AttemptStatus, observation::Bitmap, test::TestOrdinal, timestamp::Timestamp};

/// An attempt, as far as anything here asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// Its place among the attempts of the test; equal places follow each other as they came.
    pub(crate) retry: u32,
    pub(crate) status: AttemptStatus,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) started_at: Option<Timestamp>,
    /// The number of its error's signature.
    pub(crate) signature: Option<u32>,
}

/// The results of a part of a run.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) started_at: Timestamp,
    /// Tests whose only attempt so far passed.
    plain: Bitmap,
    /// Those of them without a duration.
    untimed: Bitmap,
    /// When those of them started, as milliseconds after `base`: eight bytes a result.
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

    /// How many attempts of a test there are.
    pub(crate) fn attempts_of(&self, test: TestOrdinal) -> usize {
        if self.plain.contains(test) {
            1
        } else {
            self.other.get(&test).map_or(0, Vec::len)
        }
    }

    /// Adds an attempt, in any order.
    pub(crate) fn add(&mut self, test: TestOrdinal, attempt: Attempt) {
        let known = self.other.contains_key(&test) || self.plain.contains(test);
        if !known && attempt.retry == 0 && attempt.status == AttemptStatus::Passed {
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
        let place = attempts.partition_point(|earlier| earlier.retry <= attempt.retry);
        attempts.insert(place, attempt);
    }

    /// The tests.
    pub(crate) fn tests(&self) -> impl Iterator<Item = TestOrdinal> + '_ {
        self.plain.iter().chain(self.other.keys().copied())
    }

    /// Tests whose only attempt passed.
    pub(crate) fn plain(&self) -> (&Bitmap, &Bitmap) {
        (&self.plain, &self.untimed)
    }

    /// Every other test with its attempts.
    pub(crate) fn other(&self) -> impl Iterator<Item = (TestOrdinal, &[Attempt])> {
        self.other
            .iter()
            .map(|(test, attempts)| (*test, attempts.as_slice()))
    }

    /// The attempts of a test, the final one last. When a plain pass started is in `starts`.
    pub(crate) fn attempts(&self, test: TestOrdinal) -> Vec<Attempt> {
        if self.plain.contains(test) {
            vec![self.plain_attempt(test, None)]
        } else {
            self.other.get(&test).cloned().unwrap_or_default()
        }
    }

    /// When the plain passes started.
    pub(crate) fn starts(&self) -> HashMap<TestOrdinal, Timestamp> {
        self.starts
            .iter()
            .map(|(test, offset)| (*test, self.base.plus_ms(i64::from(*offset))))
            .collect()
    }

    fn start_of(&self, test: TestOrdinal) -> Option<Timestamp> {
        let (_, offset) = self.starts.iter().rev().find(|(known, _)| *known == test)?;
        Some(self.base.plus_ms(i64::from(*offset)))
    }

    /// What is known of a plain pass. Its duration counts nowhere, only whether there was one.
    fn plain_attempt(&self, test: TestOrdinal, started_at: Option<Timestamp>) -> Attempt {
        Attempt {
            retry: 0,
            status: AttemptStatus::Passed,
            duration_ms: (!self.untimed.contains(test)).then_some(0),
            started_at,
            signature: None,
        }
    }
}

//! What the flakiness engine reads: for each run which tests took part, and the few that did not simply pass.
//!
//! Almost every result is a clean pass, so a run is two or three bitmaps over the project's test ordinals and a
//! short list of failures. The store keeps exactly this, and offline analysis builds it from reports.

use std::sync::Arc;

use crate::{attempt::AttemptStatus, test::TestOrdinal, timestamp::Timestamp};

/// A set of test ordinals, one bit each, in whole 64-bit words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bitmap {
    words: Vec<u64>,
}

impl Bitmap {
    /// The set whose bits these words hold, least significant bit first.
    pub const fn from_words(words: Vec<u64>) -> Self {
        Self { words }
    }

    /// The words, least significant bit first.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The word at `index`; zero past the end.
    pub fn word(&self, index: usize) -> u64 {
        self.words.get(index).copied().unwrap_or(0)
    }

    /// Adds a test, growing as needed.
    pub fn insert(&mut self, test: TestOrdinal) {
        let (index, bit) = Self::place(test);
        if index >= self.words.len() {
            self.words.resize(index + 1, 0);
        }
        if let Some(word) = self.words.get_mut(index) {
            *word |= bit;
        }
    }

    /// Removes a test.
    pub fn remove(&mut self, test: TestOrdinal) {
        let (index, bit) = Self::place(test);
        if let Some(word) = self.words.get_mut(index) {
            *word &= !bit;
        }
    }

    /// Whether the test is in the set.
    pub fn contains(&self, test: TestOrdinal) -> bool {
        let (index, bit) = Self::place(test);
        self.word(index) & bit != 0
    }

    /// How many tests are in the set.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The tests in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = TestOrdinal> + '_ {
        (0u32..).zip(&self.words).flat_map(|(index, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros();
                    rest &= rest - 1;
                    index * u64::BITS + bit
                })
            })
        })
    }

    #[expect(clippy::as_conversions, reason = "a u32 divided by 64 fits every usize")]
    const fn place(test: TestOrdinal) -> (usize, u64) {
        ((test / u64::BITS) as usize, 1 << (test % u64::BITS))
    }
}

impl FromIterator<TestOrdinal> for Bitmap {
    fn from_iter<I: IntoIterator<Item = TestOrdinal>>(tests: I) -> Self {
        let mut set = Self::default();
        for test in tests {
            set.insert(test);
        }
        set
    }
}

/// What the engine knows of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFacts {
    /// The run's name in evidence: its id, or what a history file calls it.
    pub id: Arc<str>,
    /// The run's number; with `started_at` it orders the runs.
    pub number: i32,
    /// When it started.
    pub started_at: Timestamp,
    /// Its branch, where known. Where no run of a history names a branch, all are judged as on the stable branch.
    pub branch: Option<Arc<str>>,
    /// The code that it tested: the tested revision, else the commit. Where unknown, the run is a revision of its own.
    pub revision: Option<Arc<str>>,
    /// What tells executions of the same test apart: the suite, job or browser. Empty for the default one.
    pub variant: Arc<str>,
}

/// One run of one variant: which tests took part and how those that did not simply pass ended.
///
/// The same run may occur with several variants; it then has one entry for each, with equal `id` and `number`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunObservations {
    /// The run.
    pub run: RunFacts,
    /// Tests with a result in the run, skipped ones included.
    pub present: Bitmap,
    /// Those of `present` whose final status was skipped or interrupted.
    pub skipped: Bitmap,
    /// Those of `present` none of whose attempts reported a duration.
    pub untimed: Bitmap,
    /// Those of `present` without `skipped` that had a failed attempt, ascending by test, each test once.
    pub failures: Vec<Failure>,
}

impl RunObservations {
    /// A run without results yet.
    pub fn of(run: RunFacts) -> Self {
        Self {
            run,
            present: Bitmap::default(),
            skipped: Bitmap::default(),
            untimed: Bitmap::default(),
            failures: Vec::new(),
        }
    }

    /// Adds a test that is not in the run yet, in any order. No attempts add nothing.
    pub fn add(
        &mut self,
        test: TestOrdinal,
        attempts: impl IntoIterator<Item = (AttemptStatus, Option<u64>)>,
    ) {
        let Some(ended) = Ended::of(attempts) else { return };
        self.present.insert(test);
        if ended.untimed {
            self.untimed.insert(test);
        }
        if ended.last.is_skip() {
            self.skipped.insert(test);
        } else if ended.failed_attempts > 0 {
            let failure = Failure {
                test,
                recovered: !ended.last.is_failure(),
                failed_attempts: ended.failed_attempts,
                lost_ms: ended.lost_ms,
            };
            let place = self.failures.partition_point(|known| known.test < test);
            self.failures.insert(place, failure);
        }
    }
}

/// How a test's attempts in a run ended, as far as the engine cares. The one place where that is decided.
struct Ended {
    last: AttemptStatus,
    untimed: bool,
    failed_attempts: u32,
    lost_ms: Option<u64>,
}

impl Ended {
    /// Of attempts with their measured milliseconds, the final one last.
    fn of(attempts: impl IntoIterator<Item = (AttemptStatus, Option<u64>)>) -> Option<Self> {
        let mut ended: Option<Self> = None;
        for (status, duration_ms) in attempts {
            let so_far = ended.get_or_insert(Self {
                last: status,
                untimed: true,
                failed_attempts: 0,
                lost_ms: None,
            });
            so_far.last = status;
            so_far.untimed &= duration_ms.is_none();
            if status.is_failure() {
                so_far.failed_attempts = so_far.failed_attempts.saturating_add(1);
                if let Some(ms) = duration_ms {
                    so_far.lost_ms = Some(so_far.lost_ms.unwrap_or(0).saturating_add(ms));
                }
            }
        }
        ended
    }
}

/// A test that failed at least once in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The test.
    pub test: TestOrdinal,
    /// Whether its last attempt passed.
    pub recovered: bool,
    /// How many attempts failed or timed out, at least 1.
    pub failed_attempts: u32,
    /// The measured milliseconds of the failed attempts; none where none of them reported a duration.
    pub lost_ms: Option<u64>,
}

/// Everything that the engine judges by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// The branch that releases are made from.
    pub stable_branch: Arc<str>,
    /// How many test ordinals there are; every bit and failure lies below it.
    pub tests: u32,
    /// The runs, in any order.
    pub runs: Vec<RunObservations>,
}

impl History {
    /// How many results there are, skipped ones included.
    pub fn results(&self) -> u64 {
        self.runs.iter().map(|run| u64::from(run.present.len())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bitmap_is_a_set() {
        let mut set: Bitmap = [0, 63, 64, 200].into_iter().collect();
        set.remove(63);
        set.remove(10_000);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 64, 200]);
        assert_eq!(set.len(), 3);
        assert!(set.contains(200) && !set.contains(63) && !set.contains(10_000));
    }

    #[test]
    fn the_final_attempt_and_the_failed_ones_count() {
        use AttemptStatus::{Failed, Interrupted, Passed, Skipped, TimedOut};
        let facts = RunFacts {
            id: "r1".into(),
            number: 1,
            started_at: Timestamp::from_unix_ms(0),
            branch: None,
            revision: None,
            variant: "".into(),
        };
        let mut run = RunObservations::of(facts);
        run.add(9, [(TimedOut, Some(30)), (Failed, None), (Passed, Some(5))]);
        run.add(2, [(Failed, None)]);
        run.add(3, [(Failed, Some(4)), (Interrupted, None)]);
        run.add(4, [(Skipped, None)]);
        run.add(5, [(Passed, Some(0))]);
        run.add(6, []);
        assert_eq!(run.present.iter().collect::<Vec<_>>(), [2, 3, 4, 5, 9]);
        assert_eq!(run.skipped.iter().collect::<Vec<_>>(), [3, 4]);
        assert_eq!(run.untimed.iter().collect::<Vec<_>>(), [2, 4]);
        let failure = |test, recovered, failed_attempts, lost_ms| Failure {
            test,
            recovered,
            failed_attempts,
            lost_ms,
        };
        assert_eq!(
            run.failures,
            [failure(2, false, 1, None), failure(9, true, 2, Some(30))]
        );
    }
}

//! The input of the flakiness engine: for each run its tests, with details only for those that did not simply pass.
//!
//! Almost every result is a clean pass. A run is therefore three bitmaps over the project's test ordinals and a short
//! list of failures. The store has the same form in packs, and offline analysis builds it from reports.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use crate::{
    execution::TestOutcome,
    revision::{RevisionOrder, StableBranch, revision_order},
    test::TestOrdinal,
    timestamp::Timestamp,
};

/// A set of test ordinals, one bit each, in whole 64-bit words. Clones share the words until one of them changes,
/// because many requests hold the same runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bitmap {
    words: Arc<Vec<u64>>,
}

impl Bitmap {
    /// The set whose bits these words hold, least significant bit first.
    pub fn from_words(words: Vec<u64>) -> Self {
        Self {
            words: Arc::new(words),
        }
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
        let words = Arc::make_mut(&mut self.words);
        if index >= words.len() {
            words.resize(index + 1, 0);
        }
        if let Some(word) = words.get_mut(index) {
            *word |= bit;
        }
    }

    /// Removes a test.
    pub fn remove(&mut self, test: TestOrdinal) {
        let (index, bit) = Self::place(test);
        if let Some(word) = Arc::make_mut(&mut self.words).get_mut(index) {
            *word &= !bit;
        }
    }

    /// Adds the tests of another set.
    pub fn insert_all(&mut self, other: &Self) {
        let words = Arc::make_mut(&mut self.words);
        if other.words.len() > words.len() {
            words.resize(other.words.len(), 0);
        }
        for (word, more) in words.iter_mut().zip(other.words()) {
            *word |= more;
        }
    }

    /// Whether the test is in the set.
    pub fn contains(&self, test: TestOrdinal) -> bool {
        let (index, bit) = Self::place(test);
        self.word(index) & bit != 0
    }

    /// The number of tests in the set.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The tests in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = TestOrdinal> + '_ {
        (0u32..).zip(self.words()).flat_map(|(index, word)| {
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

/// The facts of a run that the engine uses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunFacts {
    /// The run's name in evidence: its id, or its name in a history file.
    pub id: Arc<str>,
    /// The run's number; with `started_at` it orders the runs.
    pub number: i32,
    /// Its start.
    pub started_at: Timestamp,
    /// Its branch, if known. If no run of a history has a branch, all count as runs of the stable branch.
    pub branch: Option<Arc<str>>,
    /// The [release branch](crate::release_branch::release_branch_of) to which it belongs; none for the main stable branch.
    pub release_branch: Option<Arc<str>>,
    /// The tested revision, else the commit. If both are unknown, the run is a revision of its own.
    pub revision: Option<Arc<str>>,
    /// The [merge](crate::revision::checked_out_merge) of the revision that it tested; none if it tested the revision itself.
    pub merge: Option<Arc<str>>,
    /// The suite, job or browser. Results on different variants are in different chains. Empty for the default variant.
    pub variant: Arc<str>,
    /// The commit at which its code left the stable branch, if it is known.
    pub merge_base: Option<Arc<str>>,
    /// The [pull requests that it tests](crate::merge_queue::tested_pull_requests).
    pub pull_requests: Vec<i64>,
}

impl RunFacts {
    /// Whether two runs tested the same code, which is known.
    pub fn is_of_same_code(&self, other: &Self) -> bool {
        self.revision.is_some() && (&self.revision, &self.merge) == (&other.revision, &other.merge)
    }

    /// Whether its branch is a release branch.
    pub fn is_on_release_branch(&self) -> bool {
        self.branch.is_some() && self.branch == self.release_branch
    }
}

/// One run of one variant: the tests that ran, and the outcomes of those that did not simply pass.
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
    /// Those of `present` without an attempt that reported a duration.
    pub untimed: Bitmap,
    /// Those of `present` without `skipped` that had a failed attempt, ascending by test, each test once.
    pub failures: Vec<Failure>,
    /// Those of `present` without `skipped` that had several executions, ascending by test, each test once.
    pub repeated: Vec<Repetition>,
    /// Those of `present` that the run reported under another name of theirs, each with the test of that name, ascending.
    pub other_names: Vec<(TestOrdinal, TestOrdinal)>,
    /// How the run ended, apart from its tests.
    pub ending: RunEnding,
}

/// How a run ended, apart from its tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunEnding {
    /// Whether every expected shard has reported, and no report was cut short. A test that is missing in a complete run
    /// was not part of it.
    pub complete: bool,
    /// When verdicts stop to wait for missing parts and count what is there; `None` if they do not wait.
    pub counts_from: Option<Timestamp>,
    /// Whether the run failed although none of its tests did: a report has an error that belongs to no test.
    pub failed_outside_tests: bool,
}

impl RunEnding {
    /// The time for which verdicts wait for the missing parts of a run after its newest part, in milliseconds.
    const WAIT_MS: i64 = 10 * 60 * 1_000;

    /// An incomplete run whose newest part ended, or else began, at a time.
    pub const fn incomplete(last_seen: Timestamp) -> Self {
        Self {
            complete: false,
            counts_from: Some(last_seen.plus_ms(Self::WAIT_MS)),
            failed_outside_tests: false,
        }
    }
}

impl Default for RunEnding {
    /// A complete run without errors outside of its tests.
    fn default() -> Self {
        Self {
            complete: true,
            counts_from: None,
            failed_outside_tests: false,
        }
    }
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
            repeated: Vec::new(),
            other_names: Vec::new(),
            ending: RunEnding::default(),
        }
    }

    /// The test of the name under which the run reported this one.
    pub fn reported_as(&self, test: TestOrdinal) -> TestOrdinal {
        let found = self
            .other_names
            .binary_search_by_key(&test, |(present, _)| *present);
        let other = found.ok().and_then(|index| self.other_names.get(index));
        other.map_or(test, |(_, reported)| *reported)
    }

    /// Whether the results count in verdicts at this time. The verdicts would otherwise change with each shard of a build.
    pub fn is_settled(&self, now: Timestamp) -> bool {
        self.ending.counts_from.is_none_or(|from| from <= now)
    }

    /// Whether the test ran: it has a result that is no skip.
    pub fn ran(&self, test: TestOrdinal) -> bool {
        self.present.contains(test) && !self.skipped.contains(test)
    }

    /// The number of tests that ran.
    pub fn executed(&self) -> u32 {
        self.present.len().saturating_sub(self.skipped.len())
    }

    /// Whether the run failed: a test in the end, or something outside of its tests.
    pub fn has_failed(&self) -> bool {
        self.ending.failed_outside_tests || self.failures.iter().any(|failure| !failure.recovered)
    }

    /// The tests that failed in the end.
    pub fn failed_tests(&self) -> Bitmap {
        let failed = self.failures.iter().filter(|failure| !failure.recovered);
        failed.map(|failure| failure.test).collect()
    }

    /// The failure of a test; none without a failed attempt.
    pub fn failure(&self, test: TestOrdinal) -> Option<&Failure> {
        let place = self.failures.binary_search_by_key(&test, |failure| failure.test);
        self.failures.get(place.ok()?)
    }

    /// Whether the test failed in the end. A test that passed on retry did not.
    pub fn failed(&self, test: TestOrdinal) -> bool {
        self.failure(test).is_some_and(|failure| !failure.recovered)
    }

    /// Adds a test that is not in the run yet, in any order.
    pub fn add(&mut self, test: TestOrdinal, outcome: &TestOutcome) {
        self.present.insert(test);
        if !outcome.timed {
            self.untimed.insert(test);
        }
        if outcome.status.is_skip() {
            self.skipped.insert(test);
        }
        if let Some(failure) = Failure::of(test, outcome) {
            let place = self.failures.partition_point(|other| other.test < test);
            self.failures.insert(place, failure);
        }
        if let Some(repetition) = Repetition::of(test, outcome) {
            let place = self.repeated.partition_point(|other| other.test < test);
            self.repeated.insert(place, repetition);
        }
    }

    /// The executions of a test that had several.
    pub fn repetition(&self, test: TestOrdinal) -> Option<Repetition> {
        let place = self
            .repeated
            .binary_search_by_key(&test, |repetition| repetition.test);
        self.repeated.get(place.ok()?).copied()
    }
}

/// A test that was executed several times in a run, by several shards or on purpose. A retry is no execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repetition {
    /// The test.
    pub test: TestOrdinal,
    /// The executions that were not skipped or interrupted, at least 2.
    pub executions: u32,
    /// Those of them that failed in the end.
    pub failed: u32,
}

impl Repetition {
    /// The executions of a test with this outcome; none if it had a single one.
    pub fn of(test: TestOrdinal, outcome: &TestOutcome) -> Option<Self> {
        let is_repeated = outcome.executions > 1 && !outcome.status.is_skip();
        is_repeated.then_some(Self {
            test,
            executions: outcome.executions,
            failed: outcome.failed_executions,
        })
    }
}

/// A test that failed at least once in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The test.
    pub test: TestOrdinal,
    /// Whether its final attempt passed.
    pub recovered: bool,
    /// The largest number of attempts of one execution that failed or timed out, at least 1.
    pub failed_attempts: u32,
    /// The measured milliseconds of all failed attempts; none if no such attempt reported a duration.
    pub lost_ms: Option<u64>,
}

impl Failure {
    /// The failure of a test with this outcome; none without a failed attempt.
    pub fn of(test: TestOrdinal, outcome: &TestOutcome) -> Option<Self> {
        (outcome.failed_attempts > 0).then_some(Self {
            test,
            recovered: outcome.recovered,
            failed_attempts: outcome.failed_attempts,
            lost_ms: outcome.lost_ms,
        })
    }
}

/// The whole input of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// The stable branch.
    pub stable_branch: Arc<str>,
    /// Number of test ordinals; every bit and failure is below it.
    pub tests: u32,
    /// The runs, in any order.
    pub runs: Vec<RunObservations>,
}

impl History {
    /// The stable branch of its runs.
    pub fn stable(&self) -> StableBranch<'_> {
        let branches = self.runs.iter().map(|observed| observed.run.branch.as_deref());
        StableBranch::among(&self.stable_branch, branches)
    }

    /// The same history with this release branch as the stable one, or with the main stable branch: the runs of all stable
    /// branches, and of the changes that go to this one. Changes to another branch began from other code, so they are left
    /// out: what they inherited would look like failures on good code.
    #[must_use]
    pub fn of_stable_branch(self: Arc<Self>, release_branch: Option<&str>) -> Arc<Self> {
        let is_of_it = |run: &RunFacts| {
            let is_stable = run.branch.as_deref() == Some(&*self.stable_branch) || run.is_on_release_branch();
            is_stable || run.release_branch.as_deref() == release_branch
        };
        if release_branch.is_none() && self.runs.iter().all(|observed| is_of_it(&observed.run)) {
            return self;
        }
        let runs = self.runs.iter().filter(|observed| is_of_it(&observed.run));
        Arc::new(Self {
            stable_branch: release_branch.unwrap_or(&self.stable_branch).into(),
            tests: self.tests,
            runs: runs.cloned().collect(),
        })
    }

    /// The place of each run in the order of revisions.
    pub fn revision_order(&self) -> Vec<RevisionOrder> {
        let runs = self.runs.iter().map(|observed| &observed.run);
        revision_order(runs.map(|run| (run.revision.as_deref(), (run.started_at, run.number))))
    }

    /// The runs of each suite on the stable branch, as indices in the [order of revisions](revision_order), the oldest
    /// first. The newest run of the stable branch is the last one. A whole run in which no test ran is left out: it does not
    /// show a branch's state.
    pub fn stable_runs(&self) -> BTreeMap<Arc<str>, Vec<usize>> {
        self.runs_of(&self.stable_branch)
    }

    /// The same of any branch.
    pub fn runs_of(&self, branch: &str) -> BTreeMap<Arc<str>, Vec<usize>> {
        let stable = self.stable();
        let is_on = |run: &RunFacts| match branch == &*self.stable_branch {
            true => stable.is(run.branch.as_deref()),
            false => run.branch.as_deref() == Some(branch),
        };
        let order = self.revision_order();
        let mut suites: BTreeMap<Arc<str>, Vec<usize>> = BTreeMap::new();
        let is_empty = |observed: &RunObservations| {
            let ending = &observed.ending;
            ending.complete && !ending.failed_outside_tests && observed.executed() == 0
        };
        for (index, observed) in self.runs.iter().enumerate() {
            if is_on(&observed.run) && !is_empty(observed) {
                let suite = Arc::clone(&observed.run.variant);
                suites.entry(suite).or_default().push(index);
            }
        }
        for runs in suites.values_mut() {
            runs.sort_by_key(|index| order.get(*index));
        }
        suites
    }

    /// The runs of each suite on a branch that count, the oldest first.
    pub fn counted_runs_of(
        &self,
        branch: &str,
        counts: impl Fn(&RunObservations) -> bool,
    ) -> BTreeMap<Arc<str>, Vec<&RunObservations>> {
        let counted = |(suite, runs): (Arc<str>, Vec<usize>)| {
            let runs = runs.into_iter().filter_map(|index| self.runs.get(index));
            (suite, runs.filter(|run| counts(run)).collect())
        };
        let mut counted: BTreeMap<_, Vec<_>> = self.runs_of(branch).into_iter().map(counted).collect();
        counted.retain(|_, runs| !runs.is_empty());
        counted
    }

    /// The release branches with a run.
    pub fn release_branches(&self) -> BTreeSet<Arc<str>> {
        let runs = self.runs.iter().map(|observed| &observed.run);
        let on_release_branch = runs.filter(|run| run.is_on_release_branch());
        on_release_branch.filter_map(|run| run.branch.clone()).collect()
    }

    /// The number of results, including skipped ones.
    pub fn results(&self) -> u64 {
        self.runs.iter().map(|run| u64::from(run.present.len())).sum()
    }

    /// The number of runs whose results do not count in verdicts yet.
    pub fn unsettled(&self, now: Timestamp) -> usize {
        self.runs
            .iter()
            .filter(|observed| !observed.is_settled(now))
            .count()
    }

    /// The start of the first run with a failed attempt, for each test that has one.
    pub fn first_failures(&self) -> HashMap<TestOrdinal, Timestamp> {
        let mut first: HashMap<TestOrdinal, Timestamp> = HashMap::new();
        for observed in &self.runs {
            for failure in &observed.failures {
                let at = first.entry(failure.test).or_insert(observed.run.started_at);
                *at = observed.run.started_at.min(*at);
            }
        }
        first
    }
}

/// The tests of a suite whose newest result failed, each with the place of the first run since which every result of it
/// failed. The runs are those of the suite on one branch, the oldest revision first.
///
/// Results count from the newest complete run on; a test that this run does not contain is not part of the suite any more.
/// An incomplete run neither hides the failures of parts that are still missing, nor delays a failure that it has.
pub fn failing_since(oldest_first: &[&RunObservations]) -> HashMap<TestOrdinal, usize> {
    let newest = oldest_first.iter().rposition(|observed| observed.ending.complete);
    let newest = newest.unwrap_or(oldest_first.len().saturating_sub(1));
    let (before, newest) = oldest_first.split_at(newest);
    let mut since: HashMap<TestOrdinal, usize> = HashMap::new();
    for (place, observed) in (before.len()..).zip(newest) {
        let failed = observed.failed_tests();
        since.retain(|test, _| failed.contains(*test) || !observed.ran(*test));
        for test in failed.iter() {
            since.entry(test).or_insert(place);
        }
    }
    // The tests whose failures may have begun earlier.
    let passed = |test: TestOrdinal| newest.iter().any(|run| run.ran(test) && !run.failed(test));
    let mut open: Vec<TestOrdinal> = since.keys().copied().filter(|test| !passed(*test)).collect();
    for (place, observed) in before.iter().enumerate().rev() {
        if open.is_empty() {
            break;
        }
        let failed = observed.failed_tests();
        open.retain(|test| {
            if failed.contains(*test) {
                since.insert(*test, place);
                return true;
            }
            !observed.ran(*test)
        });
    }
    since
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::attempt::AttemptStatus;

    #[test]
    fn a_bitmap_is_a_set() {
        let mut set: Bitmap = [0, 63, 64, 200].into_iter().collect();
        set.remove(63);
        set.remove(10_000);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 64, 200]);
        assert_eq!(set.len(), 3);
        assert!(set.contains(200) && !set.contains(63) && !set.contains(10_000));
        for mut other in [Bitmap::default(), [1, 64, 700].into_iter().collect()] {
            let both: BTreeSet<_> = set.iter().chain(other.iter()).collect();
            other.insert_all(&set);
            assert_eq!(other.iter().collect::<BTreeSet<_>>(), both);
        }
    }

    #[test]
    fn an_incomplete_run_settles_ten_minutes_after_its_newest_part() {
        let at = Timestamp::from_unix_ms;
        let minutes = |count: i64| at(count * 60_000);
        let mut run = RunObservations::of(RunFacts {
            id: "r1".into(),
            number: 1,
            started_at: at(0),
            branch: None,
            revision: None,
            ..RunFacts::default()
        });
        assert!(run.is_settled(at(0)), "a complete run counts at once");
        run.ending = RunEnding::incomplete(minutes(45));
        assert!(!run.is_settled(minutes(54)));
        assert!(run.is_settled(minutes(55)));
    }

    #[test]
    fn a_run_has_the_outcomes_of_its_tests() {
        use AttemptStatus::{Failed, Interrupted, Passed, Skipped, TimedOut};
        let facts = RunFacts {
            id: "r1".into(),
            number: 1,
            started_at: Timestamp::from_unix_ms(0),
            branch: None,
            revision: None,
            ..RunFacts::default()
        };
        let mut run = RunObservations::of(facts);
        let mut add = |test, attempts: &[(AttemptStatus, Option<u64>)]| {
            run.add(test, &TestOutcome::of([attempts.iter().copied()]).unwrap());
        };
        add(9, &[(TimedOut, Some(30)), (Failed, None), (Passed, Some(5))]);
        add(2, &[(Failed, None)]);
        add(3, &[(Failed, Some(4)), (Interrupted, None)]);
        add(4, &[(Skipped, None)]);
        add(5, &[(Passed, Some(0))]);
        add(6, &[(Interrupted, Some(1)), (Skipped, None)]);
        assert_eq!(run.present.iter().collect::<Vec<_>>(), [2, 3, 4, 5, 6, 9]);
        assert_eq!(run.skipped.iter().collect::<Vec<_>>(), [4, 6]);
        assert_eq!(run.untimed.iter().collect::<Vec<_>>(), [2, 4]);
        let failure = |test, recovered, failed_attempts, lost_ms| Failure {
            test,
            recovered,
            failed_attempts,
            lost_ms,
        };
        assert_eq!(
            run.failures,
            [
                failure(2, false, 1, None),
                failure(3, false, 1, Some(4)),
                failure(9, true, 2, Some(30))
            ]
        );
    }
}

//! Collects executions into one entry per test.

use std::{collections::HashMap, hash::BuildHasher};

use assay_domain::{
    attempt::{Attempt, AttemptStatus},
    execution::Executions,
    run::RunState,
    test::{ShownAs, TestName},
};

use crate::{
    input::Input,
    limits, memory,
    report::{Report, ReportedTest, outcome},
    retries::{failed, skipped_in_the_end},
    text,
};

/// A test with the file that was found for it in the checkout.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LocatedTest {
    pub(crate) test: TestName,
    /// None if the report has the test's file, or if none was found.
    pub(crate) found_file: Option<String>,
}

impl LocatedTest {
    /// A test whose report has no file. The class is looked up in the checkout.
    pub(crate) fn of_class<'p>(
        input: &Input<'_>,
        class: &str,
        parts: impl IntoIterator<Item = &'p str>,
    ) -> Self {
        let known_file = input.known_files.and_then(|files| files.of_dotted(class));
        Self {
            test: named(parts, None),
            found_file: known_file.map(str::to_owned),
        }
    }
}

/// A test by the parts of its name and its file.
pub(crate) fn named<'p>(parts: impl IntoIterator<Item = &'p str>, file_path: Option<String>) -> TestName {
    let name = text::joined(parts);
    TestName { name, file_path }
}

impl From<TestName> for LocatedTest {
    fn from(test: TestName) -> Self {
        let found_file = None;
        Self { test, found_file }
    }
}

/// Tests for which memory is reserved before they are read.
const MOST_RESERVED: usize = 16_384;

/// Collects the tests of a report: each name and file once, in the order of their first execution.
///
/// A test may have several executions, because it was repeated on purpose or several files report it. It keeps all of
/// them: first the skipped ones, then the passed ones, then the failed ones. The last one decides the outcome.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    /// Each test with its first execution.
    tests: Vec<(TestName, Vec<Attempt>)>,
    /// The later executions, by the test's index. Few tests have any.
    more: HashMap<usize, LaterExecutions, foldhash::fast::RandomState>,
    /// The index of each test, by a hash of the test. On a collision the next free key is used.
    index_by_hash: HashMap<u64, usize, foldhash::fast::RandomState>,
    /// How tests are shown, by the test's index, where that differs from the identity.
    shown_as: HashMap<usize, ShownAs, foldhash::fast::RandomState>,
}

impl Collector {
    /// Reserves memory for a report with this many results, within a bound: all of them may be of one test.
    pub(crate) fn for_results(results: usize) -> Self {
        let tests = results.min(MOST_RESERVED);
        Self {
            tests: Vec::with_capacity(tests),
            index_by_hash: HashMap::with_capacity_and_hasher(tests, foldhash::fast::RandomState::default()),
            ..Self::default()
        }
    }

    /// Adds an execution. One without attempts is ignored. So is the same failed result again, which a reporter wrote
    /// twice: two executions do not take the same time and fail with the same errors.
    pub(crate) fn add(&mut self, test: impl Into<LocatedTest>, attempts: Vec<Attempt>) {
        self.add_or_join(test, skipped_in_the_end(attempts), |_, latest, attempts| {
            let is_timed = attempts.iter().any(|attempt| attempt.duration_ms > Some(0));
            (!is_timed || !failed(&attempts) || *latest != attempts).then_some(attempts)
        });
    }

    fn add_execution(&mut self, test: impl Into<LocatedTest>, attempts: Vec<Attempt>) {
        self.add_or_join(test, attempts, |_, _, attempts| Some(attempts));
    }

    /// Adds every execution of a test that another collector read.
    pub(crate) fn add_all(&mut self, test: ReportedTest) {
        let mut executions = test.attempts.into_executions().peekable();
        let (test, shown_as) = (test.test, test.shown_as);
        if shown_as != ShownAs::default() && executions.peek().is_some() {
            let index = self.index_of(&test).unwrap_or(self.tests.len());
            self.shown_as.entry(index).or_insert(shown_as);
        }
        while let Some(execution) = executions.next() {
            if executions.peek().is_none() {
                self.add_execution(test, execution);
                return;
            }
            self.add_execution(test.clone(), execution);
        }
    }

    /// Adds an execution. For a known test `join` gets the test's index, the attempts of its latest execution and the
    /// new ones. It returns the attempts that form an execution of their own.
    pub(crate) fn add_or_join(
        &mut self,
        test: impl Into<LocatedTest>,
        attempts: Vec<Attempt>,
        join: impl FnOnce(usize, &mut Vec<Attempt>, Vec<Attempt>) -> Option<Vec<Attempt>>,
    ) {
        // A report may state only the number of attempts, in a few bytes.
        let is_charged = match attempts.len() {
            0 => return,
            1 => true,
            several => memory::charge((several - 1).saturating_mul(size_of::<Attempt>())),
        };
        if !is_charged || !memory::keep_attempts(&attempts) {
            return;
        }
        let LocatedTest { test, found_file } = test.into();
        let free_key = match self.find(&test) {
            Ok(index) => {
                let more = self.more.get_mut(&index).and_then(LaterExecutions::latest);
                let first = self.tests.get_mut(index).map(|(_, first)| first);
                let Some(latest) = more.or(first) else { return };
                let execution = join(index, latest, attempts);
                keep_newest(latest);
                if let Some(attempts) = execution {
                    self.more.entry(index).or_default().push(attempts);
                }
                return;
            }
            Err(free_key) => free_key,
        };
        if !memory::keep_test(&test, found_file.as_deref()) {
            return;
        }
        self.index_by_hash.insert(free_key, self.tests.len());
        if found_file.is_some() {
            let shown_as = ShownAs {
                name: None,
                file_path: found_file,
            };
            self.shown_as.insert(self.tests.len(), shown_as);
        }
        self.tests.push((test, attempts));
    }

    /// The index of a known test.
    pub(crate) fn index_of(&self, test: &TestName) -> Option<usize> {
        self.find(test).ok()
    }

    /// The index of a known test, or the key for a new one.
    fn find(&self, test: &TestName) -> Result<usize, u64> {
        let mut key = self.index_by_hash.hasher().hash_one(test);
        while let Some(index) = self.index_by_hash.get(&key) {
            if self.tests.get(*index).is_some_and(|(known, _)| known == test) {
                return Ok(*index);
            }
            key = key.wrapping_add(1);
        }
        Err(key)
    }

    /// The number of tests.
    pub(crate) fn len(&self) -> usize {
        self.tests.len()
    }

    /// The tests, their executions in the order of the report.
    pub(crate) fn finish(mut self) -> Vec<ReportedTest> {
        let tests = (0..).zip(self.tests).map(|(index, (test, first))| {
            let mut attempts = Executions::from(first);
            for execution in self.more.remove(&index).into_iter().flat_map(|more| more.all) {
                attempts.push(execution);
            }
            ReportedTest {
                test,
                shown_as: self.shown_as.remove(&index).unwrap_or_default(),
                attempts,
            }
        });
        tests.collect()
    }
}

impl Report {
    /// Takes the tests that were read. Their attempts extend the run's time. The run was interrupted if one of them was.
    pub(crate) fn take_tests(&mut self, tests: Collector) {
        let tests = tests.finish();
        for attempt in tests.iter().flat_map(|test| &test.attempts) {
            self.widen(attempt.started_at, attempt.duration_ms);
            if attempt.status == AttemptStatus::Interrupted {
                self.state = RunState::Interrupted;
            }
        }
        self.tests = tests;
    }
}

/// The later executions of a test in the order of the report.
#[derive(Debug, Default)]
struct LaterExecutions {
    all: Vec<Vec<Attempt>>,
    /// The attempts of all executions but the latest.
    attempts: usize,
}

impl LaterExecutions {
    fn latest(&mut self) -> Option<&mut Vec<Attempt>> {
        self.all.last_mut()
    }

    /// Adds an execution. If the list has twice the permitted attempts, it first drops executions that `settle` would
    /// drop. A report that repeats one test a million times therefore needs bounded memory.
    fn push(&mut self, execution: Vec<Attempt>) {
        self.attempts += self.all.last().map_or(0, Vec::len);
        if self.attempts > 2 * limits::ATTEMPTS {
            sort(&mut self.all);
            let mut dropped = 0;
            for execution in &self.all {
                if self.attempts < limits::ATTEMPTS + execution.len() {
                    break;
                }
                self.attempts -= execution.len();
                memory::drop_attempts(execution);
                dropped += 1;
            }
            self.all.drain(..dropped);
        }
        self.all.push(execution);
    }
}

/// Drops the oldest attempts of an execution that has more than twice the limit.
fn keep_newest(attempts: &mut Vec<Attempt>) {
    if attempts.len() > 2 * limits::ATTEMPTS {
        let excess = attempts.len() - limits::ATTEMPTS;
        memory::drop_attempts(attempts.get(..excess).unwrap_or_default());
        attempts.drain(..excess);
    }
}

/// Puts the executions of tests in order, and leaves out attempts and errors beyond the limits.
pub(crate) fn settle(tests: &mut [ReportedTest]) {
    for ReportedTest { attempts, .. } in tests {
        if attempts.executions().nth(1).is_some() {
            let all = std::mem::replace(attempts, Executions::with_capacity(0));
            *attempts = in_order(all.into_executions().collect());
        }
        attempts.keep_last(limits::ATTEMPTS);
        for attempt in attempts.iter_mut() {
            attempt.errors.truncate(limits::ERRORS);
        }
    }
}

/// All executions, the worst one last. Those of one outcome are ordered by their start, or as they were if they have no
/// starts.
pub(crate) fn in_order(mut all: Vec<Vec<Attempt>>) -> Executions<Attempt> {
    sort(&mut all);
    let mut executions = Executions::with_capacity(all.iter().map(Vec::len).sum());
    for execution in all {
        executions.push(execution);
    }
    executions
}

fn sort(executions: &mut [Vec<Attempt>]) {
    executions.sort_by_cached_key(|attempts| {
        let severity = outcome([attempts.as_slice()]).map(|outcome| outcome.status.severity());
        (severity, attempts.first().and_then(|first| first.started_at))
    });
}

#[cfg(test)]
mod tests {
    use assay_domain::attempt::AttemptStatus;

    use super::*;

    fn execution(statuses: &[AttemptStatus]) -> Vec<Attempt> {
        let attempt = |status: &AttemptStatus| Attempt {
            status: *status,
            duration_ms: None,
            started_at: None,
            browser: None,
            skip_reason: None,
            output: None,
            errors: vec![],
        };
        statuses.iter().map(attempt).collect()
    }

    #[test]
    fn the_outcome_of_repeated_executions_is_that_of_the_final_attempt() {
        use AttemptStatus::{Failed, Passed, Skipped};
        let mut tests = Collector::default();
        let name = |name: &str| TestName {
            name: name.into(),
            file_path: None,
        };
        tests.add(name("a"), execution(&[Failed, Failed]));
        tests.add(name("b"), execution(&[Passed]));
        tests.add(name("a"), execution(&[Failed, Passed]));
        tests.add(name("a"), execution(&[Skipped]));
        tests.add(name("c"), vec![]);
        let mut tests = tests.finish();
        settle(&mut tests);
        assert_eq!(tests.len(), 2);
        let statuses: Vec<_> = tests[0].attempts.iter().map(|attempt| attempt.status).collect();
        assert_eq!(statuses, [Skipped, Failed, Passed, Failed, Failed]);
        let lengths: Vec<_> = tests[0].attempts.executions().map(<[Attempt]>::len).collect();
        assert_eq!(lengths, [1, 2, 2]);
    }

    #[test]
    fn too_many_executions_are_cut_to_those_that_decide_the_outcome() {
        use AttemptStatus::{Failed, Passed, Skipped};
        let name = TestName {
            name: "a".into(),
            file_path: None,
        };
        let mut tests = Collector::default();
        for number in 0..100_000_u32 {
            let end = match number % 1_000 {
                0 => &[Failed, Failed][..],
                1..500 => &[Passed],
                _ => &[Skipped],
            };
            tests.add(name.clone(), execution(end));
        }
        let attempts = tests.more.values().map(|more| more.all.len()).sum::<usize>();
        assert!(attempts <= 2 * limits::ATTEMPTS + 1, "{attempts}");
        let mut tests_of_report = tests.finish();
        settle(&mut tests_of_report);
        let attempts = &tests_of_report[0].attempts;
        assert_eq!(attempts.len(), limits::ATTEMPTS);
        let failed = attempts.iter().filter(|attempt| attempt.status == Failed).count();
        assert_eq!((failed, attempts[0].status), (200, Passed));

        let mut tests = Collector::default();
        for _ in 0..100_000 {
            tests.add_or_join(name.clone(), execution(&[Failed]), |_, earlier, mut attempts| {
                earlier.append(&mut attempts);
                None
            });
        }
        assert!(tests.tests[0].1.len() <= 2 * limits::ATTEMPTS);
    }
}

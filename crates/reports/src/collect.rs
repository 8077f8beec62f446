//! Executions of tests collected into one entry a test.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
};

use assay_domain::{
    attempt::{Attempt, AttemptStatus},
    test::TestName,
};

use crate::{limits, report::ReportedTest};

/// The tests of a report while it is read, each name and file once, in the order of their first execution.
///
/// An execution is one go at a test with all its attempts. A test that was executed several times (repeated on
/// purpose, or reported by several files) keeps all attempts: executions that were skipped first, then those that
/// passed, then those that failed, so that the final attempt tells the outcome.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    tests: Vec<Collected>,
    /// Where each test stands, by a hash of it: a key that another test has is followed by the next free one.
    places: HashMap<u64, usize>,
    hasher: RandomState,
}

/// A test and its executions; mostly there is but one.
#[derive(Debug)]
struct Collected {
    test: TestName,
    first: Vec<Attempt>,
    more: Vec<Vec<Attempt>>,
}

impl Collector {
    /// Adds an execution; one without attempts is none.
    pub(crate) fn add(&mut self, test: TestName, attempts: Vec<Attempt>) {
        self.add_or_join(test, attempts, |_, _, attempts| Some(attempts));
    }

    /// Adds an execution, of which `join` decides where the test is known: it gets the test's place, the attempts of
    /// its latest execution and the new ones, and gives back those that are an execution of their own.
    pub(crate) fn add_or_join(
        &mut self,
        test: TestName,
        attempts: Vec<Attempt>,
        join: impl FnOnce(usize, &mut Vec<Attempt>, Vec<Attempt>) -> Option<Vec<Attempt>>,
    ) {
        if attempts.is_empty() {
            return;
        }
        let mut key = self.hasher.hash_one(&test);
        while let Some(place) = self.places.get(&key) {
            match self.tests.get_mut(*place) {
                Some(known) if known.test == test => {
                    let latest = known.more.last_mut().unwrap_or(&mut known.first);
                    if let Some(attempts) = join(*place, latest, attempts) {
                        known.more.push(attempts);
                    }
                    return;
                }
                _ => key = key.wrapping_add(1),
            }
        }
        self.places.insert(key, self.tests.len());
        self.tests.push(Collected {
            test,
            first: attempts,
            more: Vec::new(),
        });
    }

    /// How many tests there are.
    pub(crate) fn len(&self) -> usize {
        self.tests.len()
    }

    /// The tests, and what had to be left out.
    pub(crate) fn finish(self) -> Vec<ReportedTest> {
        self.tests.into_iter().map(Collected::finish).collect()
    }
}

impl Collected {
    fn finish(self) -> ReportedTest {
        let mut attempts = self.first;
        if !self.more.is_empty() {
            let mut executions = self.more;
            executions.insert(0, attempts);
            // Stable: executions that ended alike are in the order of their starts, where the report tells them.
            executions.sort_by_key(|attempts| {
                let end = attempts.last().map_or(0, |last| weight(last.status));
                (end, attempts.first().and_then(|first| first.started_at))
            });
            attempts = executions.into_iter().flatten().collect();
        }
        let excess = attempts.len().saturating_sub(limits::ATTEMPTS);
        attempts.drain(..excess);
        for attempt in &mut attempts {
            attempt.errors.truncate(limits::ERRORS);
        }
        ReportedTest {
            test: self.test,
            attempts,
        }
    }
}

/// How much an execution's end says of the test.
const fn weight(status: AttemptStatus) -> u8 {
    match status {
        AttemptStatus::Skipped => 0,
        AttemptStatus::Interrupted => 1,
        AttemptStatus::Passed => 2,
        AttemptStatus::TimedOut | AttemptStatus::Failed => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execution(statuses: &[AttemptStatus]) -> Vec<Attempt> {
        let attempt = |status: &AttemptStatus| Attempt {
            status: *status,
            duration_ms: None,
            started_at: None,
            browser: None,
            errors: vec![],
        };
        statuses.iter().map(attempt).collect()
    }

    #[test]
    fn the_final_attempt_of_repeated_executions_tells_the_outcome() {
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
        let tests = tests.finish();
        assert_eq!(tests.len(), 2);
        let statuses: Vec<_> = tests[0].attempts.iter().map(|attempt| attempt.status).collect();
        assert_eq!(statuses, [Skipped, Failed, Passed, Failed, Failed]);
    }
}

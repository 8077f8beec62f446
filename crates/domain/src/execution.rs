//! Executions of a test in a run, and the test's outcome there.
//!
//! An execution is the attempts of a test in one shard and repetition. A test has several executions if several
//! shards ran it or if it was repeated on purpose. A retry is an attempt within an execution, so a second execution is
//! not a retry.

use std::ops::{Deref, DerefMut};

use crate::attempt::AttemptStatus;

/// The attempts of a test, grouped by execution. Dereferences to the slice of all attempts.
#[derive(Clone, PartialEq, Eq)]
pub struct Executions<A> {
    attempts: Vec<A>,
    /// The start of each execution except the first, ascending. It is empty for almost every test and then needs no
    /// allocation.
    begins: Vec<usize>,
}

impl<A> Executions<A> {
    /// No executions, with capacity for this number of attempts.
    pub fn with_capacity(attempts: usize) -> Self {
        Self {
            attempts: Vec::with_capacity(attempts),
            begins: Vec::new(),
        }
    }

    /// Adds an execution. One without attempts is ignored.
    pub fn push(&mut self, execution: impl IntoIterator<Item = A>) {
        let begin = self.attempts.len();
        self.attempts.extend(execution);
        if (1..self.attempts.len()).contains(&begin) {
            self.begins.push(begin);
        }
    }

    /// The attempts of each execution, oldest first. No slice is empty.
    pub fn executions(&self) -> impl Iterator<Item = &[A]> {
        let begins = std::iter::once(0).chain(self.begins.iter().copied());
        let ends = self.begins.iter().copied().chain([self.attempts.len()]);
        begins
            .zip(ends)
            .filter_map(|(begin, end)| self.attempts.get(begin..end))
            .filter(|execution| !execution.is_empty())
    }

    /// The attempts, each with the indexes of its execution and of itself there.
    pub fn numbered(&self) -> impl Iterator<Item = (u32, u32, &A)> {
        let attempts = |(execution, attempts)| {
            let numbered = (0..).zip(attempts);
            numbered.map(move |(retry, attempt)| (execution, retry, attempt))
        };
        (0..).zip(self.executions()).flat_map(attempts)
    }

    /// The attempts of each execution.
    pub fn into_executions(mut self) -> impl Iterator<Item = Vec<A>> {
        let mut later: Vec<Vec<A>> = Vec::new();
        while let Some(begin) = self.begins.pop() {
            later.push(self.attempts.split_off(begin));
        }
        let executions = std::iter::once(self.attempts).chain(later.into_iter().rev());
        executions.filter(|execution| !execution.is_empty())
    }

    /// The same executions with other attempts.
    pub fn map<B>(self, attempt: impl FnMut(A) -> B) -> Executions<B> {
        Executions {
            attempts: self.attempts.into_iter().map(attempt).collect(),
            begins: self.begins,
        }
    }

    /// Drops the first attempts if there are more than `limit`.
    pub fn keep_last(&mut self, limit: usize) {
        let excess = self.attempts.len().saturating_sub(limit);
        self.attempts.drain(..excess);
        self.begins.retain_mut(|begin| {
            *begin = begin.saturating_sub(excess);
            *begin > 0
        });
    }
}

impl<A> From<Vec<A>> for Executions<A> {
    /// A single execution.
    fn from(attempts: Vec<A>) -> Self {
        Self {
            attempts,
            begins: Vec::new(),
        }
    }
}

impl<A> FromIterator<A> for Executions<A> {
    /// A single execution.
    fn from_iter<I: IntoIterator<Item = A>>(attempts: I) -> Self {
        Self::from(Vec::from_iter(attempts))
    }
}

impl<A> Deref for Executions<A> {
    type Target = [A];

    fn deref(&self) -> &[A] {
        &self.attempts
    }
}

impl<A> DerefMut for Executions<A> {
    fn deref_mut(&mut self) -> &mut [A] {
        &mut self.attempts
    }
}

impl<'a, A> IntoIterator for &'a Executions<A> {
    type Item = &'a A;
    type IntoIter = std::slice::Iter<'a, A>;

    fn into_iter(self) -> Self::IntoIter {
        self.attempts.iter()
    }
}

impl<'a, A> IntoIterator for &'a mut Executions<A> {
    type Item = &'a mut A;
    type IntoIter = std::slice::IterMut<'a, A>;

    fn into_iter(self) -> Self::IntoIter {
        self.attempts.iter_mut()
    }
}

impl<A: std::fmt::Debug> std::fmt::Debug for Executions<A> {
    /// A single execution is shown as the list of its attempts, several as a list of such lists.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.begins.is_empty() {
            self.attempts.fmt(f)
        } else {
            f.debug_list().entries(self.executions()).finish()
        }
    }
}

/// The outcome of a test in a run. This is the only rule that derives an outcome from attempts.
///
/// The final attempt of an execution is its last one that ran: a skipped or interrupted attempt does not hide an
/// earlier one. The test's final attempt is that of the execution with the worst outcome, the last of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestOutcome {
    /// The final attempt's status.
    pub status: AttemptStatus,
    /// The execution of the final attempt, from 0.
    pub final_execution: usize,
    /// The final attempt's place in its execution, from 0.
    pub final_retry: usize,
    /// The largest number of attempts of one execution: 1 without a retry.
    pub attempts: u32,
    /// The largest number of attempts of one execution that failed or timed out.
    pub failed_attempts: u32,
    /// Whether an execution passed after a failed attempt, and none has failed as its outcome.
    pub recovered: bool,
    /// The executions whose outcome is not skipped or interrupted.
    pub executions: u32,
    /// Those of them that failed in the end.
    pub failed_executions: u32,
    /// Whether any attempt reported a duration.
    pub timed: bool,
    /// The measured milliseconds before the final attempt of each execution.
    pub wasted_ms: u64,
    /// The measured milliseconds of the failed attempts; none if no such attempt reported a duration.
    pub lost_ms: Option<u64>,
}

impl TestOutcome {
    /// The outcome of executions, each with its attempts' statuses and measured milliseconds, oldest first. None
    /// without an attempt.
    pub fn of<E>(executions: impl IntoIterator<Item = E>) -> Option<Self>
    where
        E: IntoIterator<Item = (AttemptStatus, Option<u64>)>,
    {
        let outcomes = (0..)
            .zip(executions)
            .filter_map(|(place, execution)| Self::of_execution(place, execution));
        outcomes.reduce(Self::and)
    }

    fn of_execution(
        execution: usize,
        attempts: impl IntoIterator<Item = (AttemptStatus, Option<u64>)>,
    ) -> Option<Self> {
        let mut outcome: Option<Self> = None;
        let mut spent_ms = 0_u64;
        for (retry, (status, duration_ms)) in (0..).zip(attempts) {
            let so_far = outcome.get_or_insert(Self {
                status,
                final_execution: execution,
                final_retry: retry,
                attempts: 0,
                failed_attempts: 0,
                recovered: false,
                executions: 0,
                failed_executions: 0,
                timed: false,
                wasted_ms: 0,
                lost_ms: None,
            });
            if !status.is_skip() || so_far.status.is_skip() {
                so_far.status = status;
                so_far.final_retry = retry;
                so_far.wasted_ms = spent_ms;
            }
            so_far.attempts = so_far.attempts.saturating_add(1);
            so_far.timed |= duration_ms.is_some();
            if status.is_failure() {
                so_far.failed_attempts = so_far.failed_attempts.saturating_add(1);
                so_far.lost_ms = sum(so_far.lost_ms, duration_ms);
            }
            spent_ms = spent_ms.saturating_add(duration_ms.unwrap_or(0));
        }
        let outcome = outcome?;
        Some(Self {
            recovered: !outcome.status.is_failure() && outcome.failed_attempts > 0,
            executions: u32::from(!outcome.status.is_skip()),
            failed_executions: u32::from(outcome.status.is_failure()),
            ..outcome
        })
    }

    /// The combined outcome of this and a later execution.
    fn and(self, later: Self) -> Self {
        let last = if later.status.severity() >= self.status.severity() {
            later
        } else {
            self
        };
        Self {
            status: last.status,
            final_execution: last.final_execution,
            final_retry: last.final_retry,
            attempts: self.attempts.max(later.attempts),
            failed_attempts: self.failed_attempts.max(later.failed_attempts),
            recovered: !last.status.is_failure() && (self.recovered || later.recovered),
            executions: self.executions.saturating_add(later.executions),
            failed_executions: self.failed_executions.saturating_add(later.failed_executions),
            timed: self.timed || later.timed,
            wasted_ms: self.wasted_ms.saturating_add(later.wasted_ms),
            lost_ms: sum(self.lost_ms, later.lost_ms),
        }
    }
}

/// The sum of the known values; none if both are unknown.
fn sum(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.saturating_add(right)),
        (left, right) => left.or(right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AttemptStatus::{Failed, Interrupted, Passed, Skipped, TimedOut};

    fn outcome(executions: &[&[(AttemptStatus, u64)]]) -> TestOutcome {
        let timed = |execution: &&[(AttemptStatus, u64)]| {
            let attempts = execution.iter().map(|(status, ms)| (*status, Some(*ms)));
            attempts.collect::<Vec<_>>()
        };
        TestOutcome::of(executions.iter().map(timed)).unwrap()
    }

    #[test]
    fn a_second_execution_is_not_a_retry() {
        let clean = outcome(&[&[(Passed, 2_700)], &[(Passed, 2_600)], &[(Passed, 2_800)]]);
        assert_eq!((clean.status, clean.attempts, clean.wasted_ms), (Passed, 1, 0));
        assert!(!clean.recovered);
        let repeated = outcome(&[
            &[(Failed, 10), (Passed, 1)],
            &[(Passed, 2)],
            &[(TimedOut, 20), (Failed, 30), (Passed, 3)],
        ]);
        assert_eq!((repeated.status, repeated.attempts), (Passed, 3));
        assert_eq!((repeated.wasted_ms, repeated.lost_ms), (60, Some(60)));
        assert!(repeated.recovered);
        assert_eq!((repeated.final_execution, repeated.final_retry), (2, 2));
    }

    #[test]
    fn one_failed_execution_fails_the_test() {
        let failed = outcome(&[
            &[(Failed, 10), (Failed, 20)],
            &[(Failed, 5), (Passed, 7)],
            &[(Skipped, 0)],
        ]);
        assert_eq!((failed.status, failed.recovered), (Failed, false));
        assert_eq!((failed.executions, failed.failed_executions), (2, 1));
        assert_eq!((failed.final_execution, failed.final_retry), (0, 1));
        assert_eq!(
            (failed.attempts, failed.failed_attempts, failed.wasted_ms),
            (2, 2, 15)
        );
    }

    #[test]
    fn a_skipped_or_interrupted_attempt_does_not_hide_an_earlier_one() {
        let skipped = outcome(&[&[(Failed, 10), (Skipped, 0)]]);
        assert_eq!((skipped.status, skipped.final_retry), (Failed, 0));
        assert_eq!((skipped.attempts, skipped.wasted_ms), (2, 0));
        let interrupted = outcome(&[&[(Failed, 10), (Passed, 5), (Interrupted, 3)]]);
        assert_eq!((interrupted.status, interrupted.final_retry), (Passed, 1));
        assert!(interrupted.recovered);
        let never = outcome(&[&[(Interrupted, 3), (Skipped, 0)]]);
        assert_eq!((never.status, never.final_retry), (Skipped, 1));
        assert_eq!(TestOutcome::of([[]; 2]), None);
    }

    #[test]
    fn unknown_durations_are_not_zero() {
        let untimed = TestOutcome::of([[(Failed, None), (Passed, None)]]).unwrap();
        assert_eq!(
            (untimed.timed, untimed.lost_ms, untimed.wasted_ms),
            (false, None, 0)
        );
    }

    #[test]
    fn a_single_execution_looks_like_its_attempts() {
        let mut executions = Executions::from(vec![1, 2]);
        assert_eq!(format!("{executions:?}"), "[1, 2]");
        executions.push([]);
        executions.push([3]);
        assert_eq!(format!("{executions:?}"), "[[1, 2], [3]]");
        assert_eq!(executions.map(|attempt| attempt * 2).to_vec(), [2, 4, 6]);
    }

    #[test]
    fn the_oldest_attempts_are_dropped_first() {
        let all = |limit| {
            let mut executions = Executions::with_capacity(0);
            for execution in [vec![], vec![1, 2], vec![3], vec![], vec![4, 5, 6]] {
                executions.push(execution);
            }
            executions.keep_last(limit);
            let remaining: Vec<Vec<i32>> = executions.executions().map(<[i32]>::to_vec).collect();
            assert_eq!(executions.into_executions().collect::<Vec<_>>(), remaining);
            remaining
        };
        assert_eq!(all(6), [vec![1, 2], vec![3], vec![4, 5, 6]]);
        assert_eq!(all(5), [vec![2], vec![3], vec![4, 5, 6]]);
        assert_eq!(all(4), [vec![3], vec![4, 5, 6]]);
        assert_eq!(all(3), [vec![4, 5, 6]]);
        assert_eq!(all(2), [vec![5, 6]]);
        assert!(all(0).is_empty());
    }
}

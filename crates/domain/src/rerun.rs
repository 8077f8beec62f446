//! Whether a later report ran again what failed in an earlier one, and the executions that result.
//!
//! A report of a run may be followed by another one that repeats some of its tests: `pytest --last-failed`, a test
//! runner that writes each attempt into a file of its own, a job that CI repeats. A wrong guess would hide a failure,
//! so that the rule asks for proof: the later report contains every test that failed, and no test that is new.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
};

use crate::execution::Executions;

/// How many of an earlier report's tests a later one ran again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rerun {
    /// Some of the tests, among them all that failed. Only a rerun of failed tests makes such a selection.
    OfFailed,
    /// All tests. It may also be the same command on another system, or a repetition on purpose.
    OfAll,
}

impl Rerun {
    /// Compares the tests of a later report with those of an earlier one, of which each is paired with whether it
    /// failed: whether the last attempt of some execution failed. None if nothing failed, if a test that failed is not
    /// in the later report, or if the later report has a test that the earlier one does not have.
    pub fn of<T: Hash + Eq>(
        earlier: impl IntoIterator<Item = (T, bool)>,
        later: impl IntoIterator<Item = T>,
    ) -> Option<Self> {
        let earlier: HashMap<T, bool> = earlier.into_iter().collect();
        let failed = earlier.values().filter(|failed| **failed).count();
        let mut repeated: HashSet<T> = HashSet::new();
        let mut repeated_failed = 0;
        for test in later {
            let has_failed = *earlier.get(&test)?;
            if repeated.insert(test) && has_failed {
                repeated_failed += 1;
            }
        }
        if failed == 0 || repeated_failed < failed {
            None
        } else if repeated.len() < earlier.len() {
            Some(Self::OfFailed)
        } else {
            Some(Self::OfAll)
        }
    }
}

impl<A> Executions<A> {
    /// These executions and those of a later report that ran the test again. A later execution continues one whose
    /// last attempt failed, the first of several. Each further execution is one more execution.
    #[must_use]
    pub fn continued_by(self, later: Self, has_failed: impl Fn(&[A]) -> bool) -> Self {
        let mut all: Vec<Vec<A>> = self.into_executions().collect();
        let mut failed: Vec<usize> = Vec::new();
        for (index, execution) in all.iter().enumerate() {
            if has_failed(execution) {
                failed.push(index);
            }
        }
        let mut failed = failed.into_iter();
        for execution in later.into_executions() {
            match failed.next().and_then(|index| all.get_mut(index)) {
                Some(earlier) => earlier.extend(execution),
                None => all.push(execution),
            }
        }
        let mut continued = Self::with_capacity(all.iter().map(Vec::len).sum());
        for execution in all {
            continued.push(execution);
        }
        continued
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: [(&str, bool); 4] = [("a", false), ("b", true), ("c", true), ("d", false)];

    #[test]
    fn a_rerun_has_all_failed_tests_and_no_new_ones() {
        for (later, expected) in [
            (&["b", "c"][..], Some(Rerun::OfFailed)),
            (&["c", "b", "a", "b"], Some(Rerun::OfFailed)),
            (&["a", "b", "c", "d"], Some(Rerun::OfAll)),
            (&["b"], None),
            (&["b", "c", "e"], None),
            (&[], None),
        ] {
            assert_eq!(Rerun::of(FIRST, later.iter().copied()), expected, "{later:?}");
        }
    }

    #[test]
    fn nothing_is_rerun_where_nothing_failed() {
        let green = FIRST.map(|(test, _)| (test, false));
        assert_eq!(Rerun::of(green, ["a"]), None);
        assert_eq!(Rerun::of(green, ["a", "b", "c", "d"]), None);
    }

    #[test]
    fn a_later_result_continues_a_failed_execution_and_is_another_one_beside_a_passed_one() {
        let executions = |all: &[&[i32]]| {
            let mut executions = Executions::with_capacity(0);
            for attempts in all {
                executions.push(attempts.iter().copied());
            }
            executions
        };
        // Negative numbers are failures.
        let has_failed = |attempts: &[i32]| attempts.last().is_some_and(|last| *last < 0);
        for (earlier, later, expected) in [
            (&[&[-1][..]][..], &[&[2][..]][..], &[&[-1, 2][..]][..]),
            (&[&[1]], &[&[2]], &[&[1], &[2]]),
            (&[&[1], &[-2, -3]], &[&[4, 5]], &[&[1], &[-2, -3, 4, 5]]),
            (&[&[-1], &[-2]], &[&[3], &[4], &[5]], &[&[-1, 3], &[-2, 4], &[5]]),
            (&[&[-1]], &[], &[&[-1]]),
        ] {
            let continued = executions(earlier).continued_by(executions(later), has_failed);
            assert_eq!(continued, executions(expected));
        }
    }
}

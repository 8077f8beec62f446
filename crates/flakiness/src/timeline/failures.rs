//! The failures of the window, grouped by test.

use std::{borrow::Cow, cmp::Reverse};

use assay_domain::{
    observation::{Failure, RunObservations},
    test::TestOrdinal,
};

use crate::{
    model::Outcome,
    numbers::at,
    timeline::{Entry, Timeline},
};

/// A failure at its position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailureAt {
    /// The position.
    pub(crate) position: usize,
    /// The outcome of the test there.
    pub(crate) outcome: Outcome,
    /// The milliseconds of its failed attempts.
    pub(crate) lost_ms: u64,
}

/// Every failure of the window, by test, then by position.
#[derive(Debug)]
pub(crate) struct Failures {
    /// The index of each test's first failure; the next test's first failure ends the range.
    starts: Vec<usize>,
    by_test: Vec<FailureAt>,
}

/// The fewest runs that show that executions of one name are rows of a table. Two repetitions that fail with a probability
/// of one half each agree in six runs with a probability of .016.
const ROWS_FROM: usize = 6;

impl Failures {
    /// The failures of the window.
    pub(crate) fn new(timeline: &Timeline<'_>) -> Self {
        let failures = |(position, entry): (usize, &'_ Entry<'_>)| {
            let each = entry.failures.iter().map(move |failure| {
                let result = FailureAt {
                    position,
                    outcome: Outcome::of(Some(failure), entry.observed.repetition(failure.test)),
                    lost_ms: failure.lost_ms.unwrap_or(0),
                };
                (failure.test, result)
            });
            each.collect::<Vec<_>>()
        };
        let mut failures = Self::group(timeline, || {
            timeline.entries.iter().enumerate().flat_map(failures)
        });
        failures.separate_rows();
        failures
    }

    /// Removes the passes beside the failures of tests of which the same number of executions failed each time, in at least
    /// [`ROWS_FROM`] runs. They are rows of a table with one name, of which some are broken. Chance makes the numbers differ.
    fn separate_rows(&mut self) {
        for bounds in self.starts.windows(2) {
            let &[start, end] = bounds else { continue };
            let failures = self.by_test.get_mut(start..end).unwrap_or_default();
            let alike = |failure: &FailureAt| match failure.outcome {
                Outcome::Failed(executions) => Some((executions.failed, executions.all)),
                Outcome::Passed | Outcome::PassedRepeatedly(_) | Outcome::Recovered(_) => None,
            };
            let first = failures.first().and_then(alike);
            if failures.len() >= ROWS_FROM
                && first.is_some()
                && failures.iter().all(|failure| alike(failure) == first)
            {
                for failure in failures {
                    failure.outcome = failure.outcome.without_passes();
                }
            }
        }
    }

    /// The results of tests that passed in several executions of a run.
    pub(crate) fn repeated_passes(timeline: &Timeline<'_>) -> Self {
        let passes = |(position, entry): (usize, &'_ Entry<'_>)| {
            let repeated = entry.observed.repeated.iter();
            let passed = repeated.filter(|repetition| {
                !entry.has_failure(repetition.test) && timeline.is_seen(entry.observed, repetition.test)
            });
            let each = passed.map(move |repetition| {
                let result = FailureAt {
                    position,
                    outcome: Outcome::of(None, Some(*repetition)),
                    lost_ms: 0,
                };
                (repetition.test, result)
            });
            each.collect::<Vec<_>>()
        };
        Self::group(timeline, || timeline.entries.iter().enumerate().flat_map(passes))
    }

    /// Groups results in two passes.
    fn group<I: Iterator<Item = (TestOrdinal, FailureAt)>>(
        timeline: &Timeline<'_>,
        each: impl Fn() -> I,
    ) -> Self {
        let mut starts = vec![0_usize; timeline.words * at(u64::BITS) + 1];
        for (test, _) in each() {
            if let Some(start) = starts.get_mut(at(test) + 1) {
                *start += 1;
            }
        }
        let mut total = 0;
        for start in &mut starts {
            total += *start;
            *start = total;
        }
        let mut by_test = vec![
            FailureAt {
                position: 0,
                outcome: Outcome::Passed,
                lost_ms: 0
            };
            total
        ];
        let mut next = starts.clone();
        for (test, result) in each() {
            let Some(next) = next.get_mut(at(test)) else {
                continue;
            };
            if let Some(place) = by_test.get_mut(*next) {
                *place = result;
            }
            *next += 1;
        }
        Self { starts, by_test }
    }

    /// The failures of a test, ascending by position.
    pub(crate) fn of(&self, test: TestOrdinal) -> &[FailureAt] {
        let bounds = self.starts.get(at(test)).zip(self.starts.get(at(test) + 1));
        bounds
            .and_then(|(start, end)| self.by_test.get(*start..*end))
            .unwrap_or_default()
    }
}

/// The failures of a variant run that agree with its bitmaps, ascending by test, each test once.
///
/// A valid history already has this form. If an invalid one has several failures of a test, the worst counts.
pub(crate) fn sound_failures<'h>(
    timeline: &Timeline<'h>,
    observed: &'h RunObservations,
) -> Cow<'h, [Failure]> {
    let agrees = |failure: &Failure| timeline.is_seen(observed, failure.test);
    let ascending = observed.failures.is_sorted_by(|a, b| a.test < b.test);
    if ascending && observed.failures.iter().all(agrees) {
        return Cow::Borrowed(&observed.failures);
    }
    let mut failures: Vec<Failure> = observed.failures.iter().copied().filter(agrees).collect();
    failures.sort_by_key(|f| (f.test, f.recovered, Reverse((f.failed_attempts, f.lost_ms))));
    failures.dedup_by_key(|failure| failure.test);
    Cow::Owned(failures)
}

//! The failures of the window, grouped by test.

use std::{borrow::Cow, cmp::Reverse};

use assay_domain::{
    observation::{Failure, RunObservations},
    test::TestOrdinal,
};

use crate::{model::Outcome, numbers::at, timeline::Timeline};

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

impl Failures {
    /// Groups the failures in two passes, with two allocations for any number of failures.
    pub(crate) fn new(timeline: &Timeline<'_>) -> Self {
        let each = || {
            let entries = timeline.entries.iter().enumerate();
            entries
                .flat_map(|(position, entry)| entry.failures.iter().map(move |failure| (position, failure)))
        };
        let mut starts = vec![0_usize; timeline.words * at(u64::BITS) + 1];
        for (_, failure) in each() {
            if let Some(start) = starts.get_mut(at(failure.test) + 1) {
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
        for (position, failure) in each() {
            let Some(next) = next.get_mut(at(failure.test)) else {
                continue;
            };
            if let Some(place) = by_test.get_mut(*next) {
                *place = FailureAt {
                    position,
                    outcome: Outcome::of(Some(failure)),
                    lost_ms: failure.lost_ms.unwrap_or(0),
                };
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

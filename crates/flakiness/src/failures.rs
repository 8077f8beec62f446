//! The failures of the window, regrouped by test.

use std::{borrow::Cow, ops::Range};

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
    /// How the test ended there.
    pub(crate) outcome: Outcome,
    /// The milliseconds of its failed attempts.
    pub(crate) lost_ms: u64,
}

/// Every failure of the window, by test and within it by position.
#[derive(Debug)]
pub(crate) struct Failures {
    starts: Vec<usize>,
    by_test: Vec<FailureAt>,
}

impl Failures {
    /// Regroups the failures in two passes, so that a history costs two allocations however many it has.
    pub(crate) fn new(timeline: &Timeline<'_>) -> Self {
        let tests = timeline.words * at(u64::BITS);
        let mut starts = vec![0_usize; tests + 1];
        let each = |visit: &mut dyn FnMut(usize, &Failure)| {
            for (position, entry) in timeline.entries.iter().enumerate() {
                for failure in &*of_run(timeline, entry.observed) {
                    visit(position, failure);
                }
            }
        };
        each(&mut |_, failure| {
            if let Some(start) = starts.get_mut(at(failure.test) + 1) {
                *start += 1;
            }
        });
        let mut total = 0;
        for start in &mut starts {
            total += *start;
            *start = total;
        }
        let nothing = FailureAt {
            position: 0,
            outcome: Outcome::Passed,
            lost_ms: 0,
        };
        let mut by_test = vec![nothing; total];
        let mut next = starts.clone();
        each(&mut |position, failure| {
            let outcome = if failure.recovered {
                Outcome::Recovered
            } else {
                Outcome::Failed(failure.failed_attempts)
            };
            if let Some(next) = next.get_mut(at(failure.test)) {
                if let Some(place) = by_test.get_mut(*next) {
                    *place = FailureAt {
                        position,
                        outcome,
                        lost_ms: failure.lost_ms.unwrap_or(0),
                    };
                }
                *next += 1;
            }
        });
        Self { starts, by_test }
    }

    /// The failures of a test, ascending by position.
    pub(crate) fn of(&self, test: TestOrdinal) -> &[FailureAt] {
        let range: Option<Range<usize>> = self
            .starts
            .get(at(test))
            .zip(self.starts.get(at(test) + 1))
            .map(|(start, end)| *start..*end);
        range
            .and_then(|range| self.by_test.get(range))
            .unwrap_or_default()
    }
}

/// The failures of an execution that its bitmaps agree with, ascending by test, each test once.
///
/// A history keeps them so; one that does not is read as if it did, the worst of several reports of a test counting.
pub(crate) fn of_run<'h>(timeline: &Timeline<'_>, observed: &'h RunObservations) -> Cow<'h, [Failure]> {
    let agrees = |failure: &Failure| {
        timeline.seen_word(observed, at(failure.test / u64::BITS)) >> (failure.test % u64::BITS) & 1 == 1
    };
    let ascending = observed.failures.windows(2).all(|pair| match pair {
        [a, b] => a.test < b.test,
        _ => true,
    });
    if ascending && observed.failures.iter().all(agrees) {
        return Cow::Borrowed(&observed.failures);
    }
    let mut failures: Vec<Failure> = observed.failures.iter().copied().filter(agrees).collect();
    failures.sort_by_key(|f| {
        (
            f.test,
            f.recovered,
            std::cmp::Reverse((f.failed_attempts, f.lost_ms)),
        )
    });
    failures.dedup_by_key(|failure| failure.test);
    Cow::Owned(failures)
}

//! One test's results, in the order of positions.

use crate::{failures::FailureAt, model::Outcome, timeline::Timeline};

/// One result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    /// Where.
    pub(crate) position: usize,
    /// How it ended.
    pub(crate) outcome: Outcome,
    /// The milliseconds of its failed attempts.
    pub(crate) lost_ms: u64,
}

/// Writes all results of a test into `marks`: `seen` by position, and its failures.
pub(crate) fn fill(marks: &mut Vec<Mark>, seen: &[u64], bit: u32, failures: &[FailureAt]) {
    marks.clear();
    let mut failures = failures.iter().peekable();
    for (position, word) in seen.iter().enumerate() {
        if word >> bit & 1 == 0 {
            continue;
        }
        let failure = failures.next_if(|failure| failure.position == position);
        marks.push(Mark {
            position,
            outcome: failure.map_or(Outcome::Passed, |failure| failure.outcome),
            lost_ms: failure.map_or(0, |failure| failure.lost_ms),
        });
    }
}

/// What the figures of a failing test are computed from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sheet<'a, 'h> {
    /// The runs.
    pub(crate) timeline: &'a Timeline<'h>,
    /// The background of each position.
    pub(crate) backgrounds: &'a [f64],
    /// The test's results.
    pub(crate) marks: &'a [Mark],
}

impl Sheet<'_, '_> {
    /// The background of a position.
    pub(crate) fn background(&self, position: usize) -> f64 {
        self.backgrounds.get(position).copied().unwrap_or(0.0)
    }

    /// Whether a position lies in a mass-failure run, which yields no incidents and counts in no rate.
    pub(crate) fn is_mass_failure(&self, position: usize) -> bool {
        self.background(position) >= crate::config::MASS_FAILURE
    }
}

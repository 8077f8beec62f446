//! Precision and recall.

use std::fmt;

/// Correct and wrong calls.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Calls {
    hits: u32,
    false_alarms: u32,
    misses: u32,
}

impl Calls {
    /// Counts a test: `called` is the answer of the rule, `truth` the correct answer.
    pub(crate) fn add(&mut self, called: bool, truth: bool) {
        self.hits += u32::from(called && truth);
        self.false_alarms += u32::from(called && !truth);
        self.misses += u32::from(!called && truth);
    }

    /// The share of calls that are correct.
    pub(crate) fn precision(self) -> f64 {
        share(self.hits, self.hits + self.false_alarms)
    }

    /// The share of the true cases with a call.
    pub(crate) fn recall(self) -> f64 {
        share(self.hits, self.hits + self.misses)
    }

    /// The harmonic mean of the two.
    pub(crate) fn f1(self) -> f64 {
        share(2 * self.hits, 2 * self.hits + self.false_alarms + self.misses)
    }

    /// The number of true cases, with or without a call.
    pub(crate) const fn positives(self) -> u32 {
        self.hits + self.misses
    }
}

impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}/{:.3}/{:.3}", self.precision(), self.recall(), self.f1())
    }
}

fn share(part: u32, whole: u32) -> f64 {
    if whole == 0 {
        0.0
    } else {
        f64::from(part) / f64::from(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_shown_as_shares() {
        let mut calls = Calls::default();
        for (called, truth) in [
            (true, true),
            (true, false),
            (false, true),
            (false, false),
            (true, true),
        ] {
            calls.add(called, truth);
        }
        assert_eq!(calls.to_string(), "0.667/0.667/0.667");
    }
}

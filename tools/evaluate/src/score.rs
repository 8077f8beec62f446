//! Precision, recall and ranking.

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

/// Average precision and area under the curve of scores. Equal scores share their ranks.
pub(crate) fn ranking(scores: &[(f64, bool)]) -> (f64, f64) {
    let mut sorted = scores.to_vec();
    sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
    let positives: u32 = sorted.iter().map(|(_, is_true)| u32::from(*is_true)).sum();
    let (mut seen, mut hits, mut average, mut area) = (0_u32, 0_u32, 0.0, 0.0);
    for tie in sorted.chunk_by(|a, b| a.0 == b.0) {
        let good: u32 = tie.iter().map(|(_, is_true)| u32::from(*is_true)).sum();
        let all = tie.iter().fold(0_u32, |count, _| count + 1);
        // A negative of a tie ranks below the earlier positives and half of the tied ones.
        area += f64::from(all - good) * (f64::from(hits) + f64::from(good) / 2.0);
        hits += good;
        seen += all;
        average += f64::from(good) * share(hits, seen);
    }
    let negatives = seen - positives;
    let area = if positives == 0 || negatives == 0 {
        0.5
    } else {
        area / f64::from(positives) / f64::from(negatives)
    };
    (
        if positives == 0 {
            0.0
        } else {
            average / f64::from(positives)
        },
        area,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_ranking_scores_one_and_ties_score_a_half() {
        assert_eq!(ranking(&[(0.9, true), (0.8, true), (0.1, false)]), (1.0, 1.0));
        assert_eq!(ranking(&[(0.5, true), (0.5, false)]), (0.5, 0.5));
        assert_eq!(ranking(&[(0.1, true), (0.9, false)]), (0.5, 0.0));
    }

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

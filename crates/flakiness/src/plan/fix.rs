//! Fixes: how many clean runs show that a test no longer fails.
//!
//! Before the first run after a fix, each rate is equally likely. So a number of clean runs excludes a rate only as far as
//! these runs would have shown it, whatever share of fixes is true. Repetitions in one job are correlated, and a failure
//! after a pass is rarer there (`burn_in`). `docs/verify.md` has the arithmetic.

use super::burn_in::CORRELATION;

/// The probability with which a fix is proved.
pub const SURE: f64 = 0.95;
/// The rate that is good enough after a fix, if the test failed at least twice as often before or the rate before is unknown.
pub const GOOD_ENOUGH: f64 = 0.01;
/// The largest part of the earlier rate that is good enough.
const PART: f64 = 0.1;
/// The rate after a fix is at most this part of the earlier one, however rare the failures were.
const LEAST_GAIN: f64 = 0.5;

/// How runs after a fix relate to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CleanRuns {
    /// Each is a job of its own.
    Builds,
    /// They are repetitions in one job.
    Repetitions,
}

impl CleanRuns {
    /// The part of the rate with which a run fails after a clean one.
    const fn shown(self) -> f64 {
        match self {
            Self::Builds => 1.0,
            Self::Repetitions => 1.0 - CORRELATION,
        }
    }

    /// The clean runs after which a rate is below `bound` with [`SURE`].
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the conversion saturates, and a bound of 0 needs more runs than there can be"
    )]
    pub fn needed(self, bound: f64) -> u32 {
        let bound = bound.clamp(0.0, SURE);
        // The exact number is one more at most.
        let fewest = (1.0 - SURE).ln() / (-self.shown() * bound).ln_1p() - 2.0;
        let mut runs = fewest.max(1.0) as u32;
        while runs < u32::MAX && self.below(bound, runs) < SURE {
            runs += 1;
        }
        runs
    }

    /// P(the rate is at most `bound`) after this many clean runs.
    pub fn below(self, bound: f64, runs: u32) -> f64 {
        let left = |rate: f64| ((-self.shown() * rate).ln_1p() * (f64::from(runs) + 1.0)).exp();
        (1.0 - left(bound)) / (1.0 - left(1.0))
    }

    /// The rate below which it is with [`SURE`] after this many clean runs.
    pub fn largest_rate(self, runs: u32) -> f64 {
        let left = 1.0 - SURE * (1.0 - ((-self.shown()).ln_1p() * (f64::from(runs) + 1.0)).exp());
        (-(left.ln() / (f64::from(runs) + 1.0)).exp_m1() / self.shown()).clamp(0.0, 1.0)
    }
}

/// The rate that a test may still have after a fix: 1 %, or a tenth of the rate before if that is more, and never more
/// than half of it.
pub fn bound(rate_before: f64) -> f64 {
    GOOD_ENOUGH.max(PART * rate_before).min(LEAST_GAIN * rate_before)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bound_is_a_real_gain_for_each_rate() {
        for (before, after) in [
            (0.5, 0.05),
            (0.3, 0.03),
            (0.1, 0.01),
            (0.05, 0.01),
            (0.02, 0.01),
            (0.01, 0.005),
            (0.0001, 0.000_05),
            (0.0, 0.0),
        ] {
            assert!(
                (bound(before) - after).abs() < 1e-12,
                "{before}: {}",
                bound(before)
            );
        }
    }

    #[test]
    fn the_runs_are_those_of_the_table_in_the_documentation() {
        let of = |rate| [CleanRuns::Builds, CleanRuns::Repetitions].map(|runs| runs.needed(bound(rate)));
        assert_eq!(of(0.5), [58, 96]);
        assert_eq!(of(0.3), [98, 162]);
        assert_eq!(of(0.2), [148, 244]);
        assert_eq!(of(0.1), [298, 489]);
        assert_eq!(of(0.02), [298, 489]);
        assert_eq!(of(0.01), [597, 980]);
        assert_eq!(of(0.0001), [59_913, 98_219]);
        assert_eq!(of(0.0), [u32::MAX; 2]);
    }

    #[test]
    fn no_run_proves_nothing() {
        assert!((CleanRuns::Builds.below(0.01, 0) - 0.01).abs() < 1e-12);
        assert!((CleanRuns::Builds.largest_rate(0) - 0.95).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn enough_runs_are_the_fewest_and_their_interval_ends_at_the_bound(rate in 0.001..1.0_f64, builds: bool) {
            let runs = if builds { CleanRuns::Builds } else { CleanRuns::Repetitions };
            let (bound, needed) = (bound(rate), runs.needed(bound(rate)));
            prop_assert!(runs.below(bound, needed) >= SURE);
            prop_assert!(runs.below(bound, needed - 1) < SURE, "{bound} {needed}");
            prop_assert!(runs.largest_rate(needed) <= bound + 1e-9);
            prop_assert!(runs.largest_rate(needed - 1) > bound - 1e-9);
        }
    }
}

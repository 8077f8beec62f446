//! The figures of a test in the list: durations, the interval of its rate, its newest results, and counts.

use std::{collections::HashMap, sync::Arc};

use assay_domain::{
    observation::History,
    outcomes::Outcome,
    store::{SharedKey, Snapshot, StoreError, shared},
    test::TestOrdinal,
    timestamp::Timestamp,
    timing::{lower_median, percentile},
    verdict::ENGINE_WINDOW_DAYS,
};
use serde::{Serialize, Serializer};

use crate::durations::stable_runs;

/// The most results whose durations are read for the list.
const TIMED_RESULTS: u64 = 500_000;

/// The p50 and the p95 of the durations of tests in milliseconds.
pub(super) type UsualDurations = HashMap<TestOrdinal, (u64, u64)>;

/// The p50 and the p95 of each test, which requests share.
pub(super) fn usual_durations(
    snapshot: &mut dyn Snapshot,
    history: &History,
    now: Timestamp,
) -> Result<Arc<UsualDurations>, StoreError> {
    let key = SharedKey::of_window("usual durations");
    let window = (now.plus_days(-ENGINE_WINDOW_DAYS), now);
    shared(snapshot, key, window, |snapshot| {
        let indexes = stable_runs(history, TIMED_RESULTS);
        let runs = indexes.values().flatten();
        let runs: Vec<(i32, Timestamp)> = runs
            .filter_map(|index| history.runs.get(*index))
            .map(|observed| (observed.run.number, observed.run.started_at))
            .collect();
        let mut of_test: HashMap<TestOrdinal, Vec<u64>> = HashMap::new();
        for (test, ms) in snapshot.green_durations(&runs)?.into_iter().flatten() {
            of_test.entry(test).or_default().push(ms);
        }
        let usual: UsualDurations = of_test
            .into_iter()
            .filter_map(|(test, mut ms)| Some((test, (lower_median(&mut ms)?, percentile(&mut ms, 95)?))))
            .collect();
        let bytes = usual.capacity() * size_of::<(TestOrdinal, (u64, u64))>();
        Ok((usual, bytes))
    })
}

/// The 95 % interval of a rate of `runs` runs, by Wilson's score.
pub(super) fn wilson(rate: f64, runs: u32) -> Interval {
    const Z: f64 = 1.96;
    let runs = f64::from(runs.max(1));
    let scale = 1.0 + Z * Z / runs;
    let centre = (rate + Z * Z / (2.0 * runs)) / scale;
    let half = Z * (rate * (1.0 - rate) / runs + Z * Z / (4.0 * runs * runs)).sqrt() / scale;
    Interval {
        low: (centre - half).max(0.0),
        high: (centre + half).min(1.0),
    }
}

/// Results of a test, the newest last. In an answer, each is a letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Results(pub Vec<Outcome>);

impl Results {
    /// The newest of these results.
    pub(super) fn newest(oldest_first: &[(usize, Outcome)], most: usize) -> Self {
        let newest = oldest_first.iter().rev().take(most).rev();
        Self(newest.map(|(_, outcome)| *outcome).collect())
    }
}

impl Serialize for Results {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let letter = |outcome: &Outcome| match outcome {
            Outcome::Passed => 'P',
            Outcome::Recovered => 'R',
            Outcome::Failed | Outcome::MassFailure => 'F',
            Outcome::Skipped => 'S',
        };
        serializer.collect_str(&self.0.iter().map(letter).collect::<String>())
    }
}

/// The number of runs by the outcome of a test: `total = passed + failed + skipped`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OutcomeCounts {
    /// Runs.
    pub total: u64,
    /// Those in which it passed.
    pub passed: u64,
    /// Those in which it failed or timed out.
    pub failed: u64,
    /// Those in which it was skipped or interrupted.
    pub skipped: u64,
    /// Those of `passed` in which it passed on retry.
    pub recovered: u64,
}

impl OutcomeCounts {
    pub(super) fn of(results: &[(usize, Outcome)]) -> Self {
        let mut counts = Self::default();
        for (_, outcome) in results {
            counts.total += 1;
            match outcome {
                Outcome::Passed => counts.passed += 1,
                Outcome::Recovered => {
                    counts.passed += 1;
                    counts.recovered += 1;
                }
                Outcome::Failed | Outcome::MassFailure => counts.failed += 1,
                Outcome::Skipped => counts.skipped += 1,
            }
        }
        counts
    }
}

/// An interval of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Interval {
    /// Its lower end.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub low: f64,
    /// Its upper end.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub high: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_few_runs_is_wide_and_holds_the_rate() {
        let near = |interval: Interval, low: f64, high: f64| {
            assert!(
                (interval.low - low).abs() < 0.001 && (interval.high - high).abs() < 0.001,
                "{interval:?}"
            );
        };
        near(wilson(0.0, 10), 0.0, 0.278);
        near(wilson(0.1, 100), 0.055, 0.174);
        near(wilson(1.0, 1), 0.207, 1.0);
    }
}

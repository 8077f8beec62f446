//! How long the tests of a project take, for plans that divide them among machines.

use serde::Serialize;

use crate::{id::RunId, timestamp::Timestamp};

/// The maximum number of runs of each suite that timings are of.
pub const RUNS_PER_SUITE: usize = 10;
/// The maximum number of runs of all suites that timings are of.
pub const TIMED_RUNS: usize = 100;

/// The middle value; of an even number, the lower middle one. None without a value.
pub fn lower_median(values: &mut [u64]) -> Option<u64> {
    percentile(values, 50)
}

/// The smallest value that at least this percentage of them does not exceed. None without a value.
pub fn percentile(values: &mut [u64], percent: usize) -> Option<u64> {
    values.sort_unstable();
    let place = (values.len() * percent).div_ceil(100);
    values.get(place.checked_sub(1)?).copied()
}

/// The usual durations of a project's tests.
///
/// They are of the newest passed runs of each suite on the stable branch that had arrived whole before a time. Later
/// reports do not change them, so that every machine of a build gets the same ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Timings {
    /// The stable branch.
    pub stable_branch: String,
    /// The runs, newest first.
    pub runs: Vec<TimedRun>,
    /// The tests that have a duration in one of these runs, by file, then name.
    pub tests: Vec<TestTiming>,
}

/// A run that timings are of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TimedRun {
    /// Its id.
    pub id: RunId,
    /// Its number.
    pub run_number: i32,
    /// Its suite, if it has one.
    pub suite: Option<String>,
    /// Its start.
    pub started_at: Timestamp,
}

/// The usual duration of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TestTiming {
    /// The stored name of the test.
    pub test_name: String,
    /// The stored file of the test.
    pub file_path: Option<String>,
    /// The median duration of its final attempts in milliseconds, also of skipped ones, which may be expected failures. Of
    /// an even number, it is the lower middle one.
    pub duration_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_of_durations_is_the_lower_one() {
        assert_eq!(lower_median(&mut []), None);
        assert_eq!(lower_median(&mut [7]), Some(7));
        assert_eq!(lower_median(&mut [9, 3]), Some(3));
        assert_eq!(lower_median(&mut [9, 3, 5]), Some(5));
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let mut values: Vec<u64> = (1..=20).rev().collect();
        assert_eq!(percentile(&mut values, 95), Some(19));
        assert_eq!(percentile(&mut values, 100), Some(20));
        assert_eq!(percentile(&mut [], 95), None);
    }
}

//! The tests of a run that became slower.

use assay_domain::{
    cause::FailedRun,
    observation::History,
    store::{Snapshot, StoreError},
    test_names::TestNames,
};
use assay_flakiness::durations::{self, FEWEST_RUNS};

use super::{MOST_LISTED, SlowerTest, SlowerTests};
use crate::numbers::{count, rounded};

/// A test is listed from this probability on.
const LISTED_FROM: f64 = 0.95;
/// It takes at least so many milliseconds longer, or this share of the usual duration of the suite.
const LEAST_EXTRA_MS: f64 = 10_000.0;
const LEAST_SHARE: f64 = 0.05;

/// The slower tests of a run, by the runs of its suite with these indexes.
pub(super) fn of(
    snapshot: &mut dyn Snapshot,
    history: &History,
    run: &FailedRun,
    stable: &[usize],
    names: &TestNames,
) -> Result<SlowerTests, StoreError> {
    if stable.len() < FEWEST_RUNS {
        return Ok(SlowerTests::default());
    }
    let earlier = stable
        .iter()
        .filter_map(|index| Some(&history.runs.get(*index)?.run));
    let mut runs = vec![(run.run_number, run.started_at)];
    runs.extend(earlier.map(|run| (run.number, run.started_at)));
    let mut durations = snapshot.green_durations(&runs)?.into_iter();
    let of_run = durations.next().unwrap_or_default();
    let earlier: Vec<_> = durations.collect();
    let (mut slower, whole_ms) = durations::compare(&earlier, &of_run);
    slower.retain(|slower| {
        let is_much = slower.extra_ms() >= LEAST_EXTRA_MS || slower.extra_ms() >= LEAST_SHARE * whole_ms;
        slower.probability >= LISTED_FROM && is_much
    });
    slower.sort_by(|left, right| {
        right
            .extra_ms()
            .total_cmp(&left.extra_ms())
            .then_with(|| left.test.cmp(&right.test))
    });
    let listed = slower.iter().take(MOST_LISTED).filter_map(|slower| {
        Some(SlowerTest {
            test: names.get(slower.test)?.owned(),
            factor: slower.factor,
            probability: slower.probability,
            usual_ms: rounded(slower.usual_ms),
            duration_ms: slower.duration_ms,
        })
    });
    Ok(SlowerTests {
        tests: listed.collect(),
        total: count(slower.len()),
    })
}

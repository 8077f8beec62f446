//! The counts of a failing test by run, in the order of time: rates, streak, impact, and whether it is
//! resolved.

use crate::{
    config::{RESOLVED_CHANCE, RESOLVED_PASSES},
    numbers::{count, share},
    timeline::Timeline,
    verdict::test_counts::TestCounts,
};

/// The impact of a run in which the test passed on retry. The failed tests of a run share an impact of 1.
const RECOVERED_IMPACT: f64 = 0.1;

/// The failures of a test in a run, over all variants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailuresInRun {
    /// The run.
    pub(crate) run: usize,
    /// It failed finally on a variant, outside of mass failures.
    pub(crate) failed: bool,
    /// It passed on retry on a variant, outside of mass failures.
    pub(crate) recovered: bool,
    /// It failed finally on a variant, in a mass failure or not.
    pub(crate) failed_at_all: bool,
    /// It had a failed attempt in a mass failure.
    pub(crate) in_mass_failure: bool,
    /// It failed finally in a mass failure.
    pub(crate) failed_in_mass_failure: bool,
}

impl FailuresInRun {
    /// Whether any attempt failed outside of mass failures.
    pub(crate) const fn counts(self) -> bool {
        self.failed || self.recovered
    }
}

/// The counts over all runs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunFigures {
    /// Runs that count.
    pub(crate) considered: u32,
    /// Those with a failed attempt.
    pub(crate) failing: u32,
    /// Those in which it passed on retry.
    pub(crate) recovered: u32,
    /// Mass-failure runs in which it had a failed attempt.
    pub(crate) mass_failures: u32,
    /// Those of them in which it passed on retry.
    pub(crate) recovered_in_mass_failures: u32,
    /// Failed runs at the end of the stable branch's history (of all branches, if it never ran there).
    pub(crate) streak: u32,
    /// The impact: 1 divided by the number of failed tests for each run of the stable branch in which it failed, and
    /// 0.1 for each in which it passed on retry.
    pub(crate) impact: f64,
    /// The runs that count, up to and including that of its last failure.
    pub(crate) until_last_failure: u32,
    /// The number of passes that `resolved` requires.
    pub(crate) passes_needed: u32,
}

impl RunFigures {
    /// The share of considered runs with a failed attempt.
    pub(crate) fn failure_rate(&self) -> Option<f64> {
        share(self.failing, self.considered)
    }

    /// The passes since the last failure.
    pub(crate) const fn passes_since(&self) -> u32 {
        self.considered - self.until_last_failure
    }

    /// Whether more passes followed than its earlier failure rate explains.
    pub(crate) const fn is_resolved(&self) -> bool {
        self.failing > 0 && self.passes_since() >= self.passes_needed
    }
}

/// Joins a test's failures by run, oldest first.
pub(crate) fn join(test_counts: TestCounts<'_, '_>) -> Vec<FailuresInRun> {
    let runs = test_counts.failures.iter().filter_map(|failure| {
        let counts = !test_counts.leaves_out(failure.position);
        let failed = failure.outcome.failed();
        Some(FailuresInRun {
            run: *test_counts.timeline.run_of.get(failure.position)?,
            failed: failed && counts,
            recovered: !failed && counts,
            failed_at_all: failed,
            in_mass_failure: !counts,
            failed_in_mass_failure: failed && !counts,
        })
    });
    let mut runs: Vec<_> = runs.collect();
    runs.sort_unstable_by_key(|run| run.run);
    runs.dedup_by(|next, first| {
        let same = next.run == first.run;
        if same {
            first.failed |= next.failed;
            first.recovered |= next.recovered;
            first.failed_at_all |= next.failed_at_all;
            first.in_mass_failure |= next.in_mass_failure;
            first.failed_in_mass_failure |= next.failed_in_mass_failure;
        }
        same
    });
    runs
}

/// The counts of a test from its failed runs. `failed_tests_by_run` caches the number of tests that failed in a run.
pub(crate) fn figures(
    test_counts: TestCounts<'_, '_>,
    failed: &[FailuresInRun],
    failed_tests_by_run: &mut [Option<u32>],
) -> RunFigures {
    let timeline = test_counts.timeline;
    let mut figures = RunFigures {
        considered: test_counts.column.presence.considered,
        ..RunFigures::default()
    };
    let mut runs_until_last_failure = 0;
    for run in failed {
        figures.mass_failures += u32::from(run.in_mass_failure);
        figures.recovered_in_mass_failures += u32::from(run.in_mass_failure && !run.failed_in_mass_failure);
        if !run.counts() {
            continue;
        }
        figures.failing += 1;
        figures.recovered += u32::from(run.recovered);
        runs_until_last_failure = run.run + 1;
        if !timeline.runs.get(run.run).is_some_and(|run| run.on_stable_branch) {
            continue;
        }
        figures.impact += if run.failed {
            let failed_tests = failed_tests_by_run
                .get_mut(run.run)
                .map(|count| *count.get_or_insert_with(|| failed_tests(timeline, run.run)));
            1.0 / f64::from(failed_tests.unwrap_or(0).max(1))
        } else {
            RECOVERED_IMPACT
        };
    }
    let until = test_counts
        .column
        .participation
        .considered_in_run
        .get(..runs_until_last_failure)
        .unwrap_or_default();
    figures.until_last_failure = until
        .iter()
        .map(|tests| u32::from(test_counts.column.is_in(*tests)))
        .sum();
    figures.passes_needed = passes_needed(figures.failing, figures.until_last_failure);
    figures.streak = streak(test_counts, failed);
    figures
}

/// Failed runs at the end of the stable branch's history (of all branches, if the test never ran there).
fn streak(test_counts: TestCounts<'_, '_>, failed: &[FailuresInRun]) -> u32 {
    let stable_only = test_counts.column.presence.on_stable_branch;
    let mut failed = failed.iter().rev().filter(|run| run.failed_at_all).peekable();
    let mut streak = 0;
    let runs = test_counts
        .timeline
        .runs
        .iter()
        .zip(&test_counts.column.participation.seen_in_run)
        .enumerate()
        .rev();
    for (index, (run, tests)) in runs {
        if !test_counts.column.is_in(*tests) || (stable_only && !run.on_stable_branch) {
            continue;
        }
        while failed.next_if(|failed| failed.run > index).is_some() {}
        if failed.next_if(|failed| failed.run == index).is_none() {
            break;
        }
        streak += 1;
    }
    streak
}

/// The smallest number of passes that a failure rate of `failing` in `runs` does not explain.
///
/// The runs end with a failure because they are cut there, so one failure is left out of the rate. Otherwise a rare
/// flake whose only failure came early would be called resolved.
#[expect(
    clippy::as_conversions,
    reason = "the number is positive, and one too large for u32 saturates"
)]
fn passes_needed(failing: u32, runs: u32) -> u32 {
    let rate = (f64::from(failing) - 0.5).max(0.0) / (f64::from(runs) + 1.0);
    let explained = (RESOLVED_CHANCE.ln() / (1.0 - rate).ln()).floor() as u32;
    explained.saturating_add(1).max(RESOLVED_PASSES)
}

/// The number of tests that finally failed in a run.
fn failed_tests(timeline: &Timeline<'_>, run: usize) -> u32 {
    let positions = timeline
        .runs
        .get(run)
        .map(|run| run.positions.as_slice())
        .unwrap_or_default();
    let entries = positions
        .iter()
        .filter_map(|position| timeline.entries.get(*position));
    let failures = entries.flat_map(|entry| entry.failures.iter());
    let mut failed: Vec<_> = failures
        .filter(|failure| !failure.recovered)
        .map(|failure| failure.test)
        .collect();
    if positions.len() > 1 {
        failed.sort_unstable();
        failed.dedup();
    }
    count(failed.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_failures_need_more_passes() {
        assert_eq!(passes_needed(3, 8), RESOLVED_PASSES);
        let needed = passes_needed(1, 50);
        assert!((1.0_f64 - 0.5 / 51.0).powi(i32::try_from(needed).unwrap()) < RESOLVED_CHANCE);
        assert!((1.0_f64 - 0.5 / 51.0).powi(i32::try_from(needed - 1).unwrap()) >= RESOLVED_CHANCE);
        assert_eq!(passes_needed(0, 0), RESOLVED_PASSES);
    }
}

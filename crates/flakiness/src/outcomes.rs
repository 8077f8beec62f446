//! A failing test by logical run, in the order of time: rates, streak, impact, whether it is resolved.

use crate::{
    config::{RESOLVED_CHANCE, RESOLVED_PASSES},
    failures::of_run,
    model::Outcome,
    numbers::{count, share},
    sheet::Sheet,
    timeline::{Run, Timeline},
};

/// What a recovered run costs of a red build.
const RECOVERED_IMPACT: f64 = 0.1;

/// How a test ended in a logical run, over all variants.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunOutcome {
    /// It took part.
    pub(crate) seen: bool,
    /// It took part where there was no mass failure; the two below count only there.
    pub(crate) considered: bool,
    /// It failed finally on a variant.
    pub(crate) failed: bool,
    /// It passed on retry on a variant.
    pub(crate) recovered: bool,
    /// It failed finally on a variant, mass failure or not.
    pub(crate) failed_at_all: bool,
    /// It had a failed attempt in a mass failure.
    pub(crate) in_mass_failure: bool,
    /// The run was on the stable branch.
    pub(crate) on_stable_branch: bool,
}

impl RunOutcome {
    /// Whether any attempt failed where it counts.
    pub(crate) const fn had_failure(self) -> bool {
        self.failed || self.recovered
    }
}

/// The figures by logical run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunFigures {
    /// Runs that count.
    pub(crate) considered: u32,
    /// Those with a failed attempt.
    pub(crate) failing: u32,
    /// Those in which it passed on retry.
    pub(crate) recovered: u32,
    /// Mass-failure runs in which it failed.
    pub(crate) mass_failures: u32,
    /// Failed runs at the end of the stable branch's history (of all, where it never ran there).
    pub(crate) streak: u32,
    /// Red runs of the stable branch owed to it.
    pub(crate) impact: f64,
    /// Runs that count up to its last failure, that one included.
    pub(crate) until_last_failure: u32,
    /// Passes that it would take to call it resolved.
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

    /// Whether so many passes followed that its earlier failure rate does not explain them.
    pub(crate) const fn is_resolved(&self) -> bool {
        self.failing > 0 && self.passes_since() >= self.passes_needed
    }
}

/// Joins a test's results by logical run.
pub(crate) fn by_run(sheet: Sheet<'_, '_>, runs: &mut Vec<RunOutcome>) {
    runs.clear();
    runs.resize(sheet.timeline.runs.len(), RunOutcome::default());
    for mark in sheet.marks {
        let Some(entry) = sheet.timeline.entries.get(mark.position) else {
            continue;
        };
        let Some(run) = runs.get_mut(entry.run) else {
            continue;
        };
        let mass_failure = sheet.is_mass_failure(mark.position);
        run.seen = true;
        run.on_stable_branch |= entry.on_stable_branch;
        run.considered |= !mass_failure;
        run.failed |= mark.outcome.failed() && !mass_failure;
        run.recovered |= mark.outcome == Outcome::Recovered && !mass_failure;
        run.failed_at_all |= mark.outcome.failed();
        run.in_mass_failure |= mark.outcome.had_failure() && mass_failure;
    }
}

/// The figures of a test from its runs, oldest first. `red` keeps how many tests failed in a run, once counted.
pub(crate) fn figures(timeline: &Timeline<'_>, runs: &[RunOutcome], red: &mut [Option<u32>]) -> RunFigures {
    let mut figures = RunFigures::default();
    let mut streaks = (0, 0);
    let mut ran_on_stable = false;
    for ((outcome, run), red) in runs.iter().zip(&timeline.runs).zip(red) {
        if !outcome.seen {
            continue;
        }
        let streak = |before: u32| if outcome.failed_at_all { before + 1 } else { 0 };
        streaks.1 = streak(streaks.1);
        if outcome.on_stable_branch {
            ran_on_stable = true;
            streaks.0 = streak(streaks.0);
        }
        figures.considered += u32::from(outcome.considered);
        figures.mass_failures += u32::from(outcome.in_mass_failure);
        if !outcome.had_failure() {
            continue;
        }
        figures.failing += 1;
        figures.recovered += u32::from(outcome.recovered);
        figures.until_last_failure = figures.considered;
        if outcome.on_stable_branch {
            figures.impact += if outcome.failed {
                1.0 / f64::from((*red.get_or_insert_with(|| failed_tests(timeline, run))).max(1))
            } else {
                RECOVERED_IMPACT
            };
        }
    }
    figures.streak = if ran_on_stable { streaks.0 } else { streaks.1 };
    figures.passes_needed = passes_needed(figures.failing, figures.until_last_failure);
    figures
}

/// The least number of passes that a failure rate of `failing` in `runs` does not explain.
#[expect(
    clippy::as_conversions,
    reason = "the number is positive, and one too large for u32 saturates"
)]
fn passes_needed(failing: u32, runs: u32) -> u32 {
    let rate = (f64::from(failing) + 0.5) / (f64::from(runs) + 1.0);
    let explained = (RESOLVED_CHANCE.ln() / (1.0 - rate).ln()).floor() as u32;
    explained.saturating_add(1).max(RESOLVED_PASSES)
}

/// How many tests finally failed in a run.
fn failed_tests(timeline: &Timeline<'_>, run: &Run<'_>) -> u32 {
    let mut failed = Vec::new();
    for (observed, _) in &run.members {
        failed.extend(
            of_run(timeline, observed)
                .iter()
                .filter(|f| !f.recovered)
                .map(|f| f.test),
        );
    }
    failed.sort_unstable();
    failed.dedup();
    count(failed.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_failures_need_more_passes() {
        assert_eq!(passes_needed(3, 8), RESOLVED_PASSES);
        let needed = passes_needed(1, 50);
        assert!((1.0_f64 - 1.5 / 51.0).powi(i32::try_from(needed).unwrap()) < RESOLVED_CHANCE);
        assert!((1.0_f64 - 1.5 / 51.0).powi(i32::try_from(needed - 1).unwrap()) >= RESOLVED_CHANCE);
        assert_eq!(passes_needed(0, 0), RESOLVED_PASSES);
    }
}

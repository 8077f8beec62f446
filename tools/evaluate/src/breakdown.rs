//! Breaks down the errors by kind of test.

use std::{collections::BTreeMap, fmt};

use assay_flakiness::domain::verdict::VerdictStatus;

use crate::{
    runs::DAYS,
    truth::{Nature, Test, Truth},
};

/// The correct and wrong flaky verdicts by kind of test.
#[derive(Debug, Clone, Default)]
pub(crate) struct Breakdown {
    kinds: BTreeMap<(&'static str, bool), Kind>,
}

/// The verdicts on tests of a kind, except ambiguous cases.
#[derive(Debug, Clone, Copy, Default)]
struct Kind {
    /// Truly flaky.
    flaky: u32,
    /// Flaky tests without a flaky verdict.
    missed: u32,
    /// Missed tests with no failure and with one failure in the window, without mass failures.
    missed_unseen: [u32; 2],
    /// Not flaky.
    others: u32,
    /// Tests that are not flaky but have a flaky verdict.
    false_alarms: u32,
}

impl Breakdown {
    /// Adds a verdict on a test with `visible` failures in the window, without mass failures.
    pub(crate) fn add(&mut self, test: &Test, truth: Truth, called: Option<VerdictStatus>, visible: usize) {
        let flaky = called == Some(VerdictStatus::Flaky);
        let kind = self.kinds.entry((kind(test), test.sparse)).or_default();
        match truth {
            Truth::Ambiguous => {}
            Truth::Flaky => {
                kind.flaky += 1;
                if !flaky {
                    kind.missed += 1;
                    if let Some(unseen) = kind.missed_unseen.get_mut(visible) {
                        *unseen += 1;
                    }
                }
            }
            // Both verdicts are correct for a flaky test that broke.
            Truth::Broken if test.nature != Nature::Stable => {}
            Truth::Healthy | Truth::Broken => {
                kind.others += 1;
                kind.false_alarms += u32::from(flaky);
            }
        }
    }
}

impl fmt::Display for Breakdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((name, sparse), kind) in &self.kinds {
            let [never, once] = kind.missed_unseen;
            writeln!(
                f,
                "  {name:<13}{} flaky {:>4}, missed {:>4} ({never} never seen to fail, {once} once); other {:>6}, false alarms {:>3}",
                if *sparse { " sparse" } else { "       " },
                kind.flaky,
                kind.missed,
                kind.others,
                kind.false_alarms
            )?;
        }
        let sum = |count: fn(&Kind) -> u32| self.kinds.values().map(count).sum::<u32>();
        let (flaky, invisible) = (sum(|kind| kind.flaky), sum(|kind| kind.missed_unseen[0]));
        let recall = f64::from(flaky - invisible) / f64::from(flaky.max(1));
        writeln!(
            f,
            "  {invisible} of {flaky} never failed outside mass failures: recall <= {recall:.3}, F1 <= {:.3}",
            2.0 * recall / (1.0 + recall)
        )
    }
}

fn kind(test: &Test) -> &'static str {
    match test.nature {
        Nature::Stable if test.breakages.is_empty() => "stable",
        Nature::Stable => "breaking",
        Nature::Flaky { .. } if !test.breakages.is_empty() => "flaky, broken",
        Nature::Flaky { from, .. } if from > 0.0 => "onset",
        Nature::Flaky { until, .. } if until < DAYS => "fixed",
        Nature::Flaky { rate, .. } if rate < 0.015 => "rare",
        Nature::Flaky { .. } => "flaky",
        Nature::Bursty { .. } => "bursty",
        Nature::Cluster { .. } => "cluster",
    }
}

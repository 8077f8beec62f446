//! The first verdicts of a history, in words.

use std::{cmp::Reverse, fmt::Write as _};

use assay_domain::{
    timestamp::{DAY_MS, Timestamp},
    verdict::VerdictStatus,
};
use assay_markup::words;
use serde::Serialize;

use crate::analysis::{Analysis, AnalyzedTest};

/// How many tests are named.
const NAMED: usize = 5;

/// What a history says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FirstVerdicts {
    /// The days from its first run to its last one.
    pub days: i64,
    /// Its runs.
    pub runs: usize,
    /// The days before its last run that verdicts are about.
    pub window_days: i64,
    /// The tests that are broken.
    pub broken: usize,
    /// The tests that are flaky.
    pub flaky: usize,
    /// The time that failures and retries cost a week, in milliseconds.
    pub lost_a_week_ms: u64,
    /// The tests that cost most: name, verdict and milliseconds in the window.
    pub worst: Vec<(String, VerdictStatus, u64)>,
}

impl FirstVerdicts {
    /// The first verdicts of a history whose first run has this start.
    pub fn of(analysis: &Analysis, first_start: Option<Timestamp>) -> Self {
        let days = first_start.map_or(0, |first| analysis.now.since_ms(first) / DAY_MS) + 1;
        let lost = |test: &AnalyzedTest| test.entry.figures.time_lost_ms.unwrap_or(0);
        let window_days = analysis.window_days.min(days);
        let total: u64 = analysis.tests.iter().map(lost).sum();
        let mut worst: Vec<_> = analysis.reported().iter().collect();
        worst.sort_by_key(|test| Reverse(lost(test)));
        worst.truncate(NAMED);
        Self {
            days,
            runs: analysis.runs_read,
            window_days,
            broken: analysis.count(VerdictStatus::Broken),
            flaky: analysis.count(VerdictStatus::Flaky),
            lost_a_week_ms: total.saturating_mul(7) / u64::try_from(window_days).unwrap_or(1).max(1),
            worst: worst
                .into_iter()
                .map(|test| (test.entry.test_name.clone(), test.entry.status, lost(test)))
                .collect(),
        }
    }

    /// As sentences.
    pub fn in_words(&self) -> String {
        let days = |days: i64| words::count(usize::try_from(days).unwrap_or(0), "day");
        let mut text = format!(
            "{}, {}. In the last {}: {}, {}, {} lost a week.",
            days(self.days),
            words::count(self.runs, "run"),
            days(self.window_days),
            words::count(self.flaky, "flaky test"),
            words::count(self.broken, "broken one"),
            words::duration(self.lost_a_week_ms),
        );
        if !self.worst.is_empty() {
            text.push_str("\nThey cost most:\n");
        }
        for (name, status, lost) in &self.worst {
            let (lost, name) = (words::duration(*lost), assay_reports::shown_name(name));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {lost:>12}  {:<6}  {name}", status.as_str());
        }
        text
    }
}

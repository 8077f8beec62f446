//! The first verdicts of a history, in words.

use assay_domain::{timestamp::DAY_MS, verdict::VerdictStatus};
use assay_markup::words;
use serde::Serialize;

use crate::analysis::Analysis;

/// How many tests are named.
const NAMED: usize = 5;
/// Milliseconds of a week.
const WEEK_MS: u64 = 7 * 86_400_000;

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
    /// The first verdicts of a history of `days`.
    pub fn of(analysis: &Analysis, days: i64) -> Self {
        let lost = |test: &crate::analysis::AnalyzedTest| test.entry.figures.time_lost_ms.unwrap_or(0);
        let window_days = analysis.window_days.min(days.max(1));
        let window_ms = u64::try_from(window_days * DAY_MS).unwrap_or(WEEK_MS);
        let total: u64 = analysis.tests.iter().map(lost).sum();
        let mut worst: Vec<_> = analysis.reported().iter().collect();
        worst.sort_by_key(|test| std::cmp::Reverse(lost(test)));
        Self {
            days,
            runs: analysis.runs_read,
            window_days,
            broken: analysis.count(VerdictStatus::Broken),
            flaky: analysis.count(VerdictStatus::Flaky),
            lost_a_week_ms: u64::try_from(
                u128::from(total) * u128::from(WEEK_MS) / u128::from(window_ms.max(1)),
            )
            .unwrap_or(u64::MAX),
            worst: worst
                .into_iter()
                .take(NAMED)
                .map(|test| (test.entry.test_name.clone(), test.entry.status, lost(test)))
                .collect(),
        }
    }

    /// As sentences.
    pub fn in_words(&self) -> String {
        let count = |number: usize, noun: &str| match number {
            1 => format!("1 {noun}"),
            _ => format!("{number} {noun}s"),
        };
        let mut text = format!(
            "{}, {}. In the last {}: {}, {}, {} lost a week.",
            count(usize::try_from(self.days).unwrap_or(0), "day"),
            count(self.runs, "run"),
            count(usize::try_from(self.window_days).unwrap_or(0), "day"),
            count(self.flaky, "flaky test"),
            count(self.broken, "broken one"),
            words::duration(self.lost_a_week_ms),
        );
        if !self.worst.is_empty() {
            text.push_str("\nThey cost most:\n");
        }
        for (name, status, lost) in &self.worst {
            let name = assay_reports::shown_name(name);
            text.push_str(&format!(
                "  {:>12}  {:<6}  {name}\n",
                words::duration(*lost),
                status.as_str()
            ));
        }
        text
    }
}

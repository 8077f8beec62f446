//! The first verdicts of a history, in words.

use std::cmp::Reverse;

use assay_domain::{
    timestamp::{DAY_MS, Timestamp},
    verdict::VerdictStatus,
};
use assay_markup::words;
use serde_json::{Value, json};

use crate::analysis::{Analysis, AnalyzedTest};

/// How many tests are named.
const NAMED: usize = 5;

/// The first verdicts of a history whose first run has this start: as JSON, and as sentences.
///
/// The JSON has `days` from the first run to the last one, `runs`, `windowDays` that verdicts are about, the numbers of
/// `broken` and `flaky` tests, `lostAWeekMs` by failures and retries, and the `worst` tests: name, verdict and
/// milliseconds lost in the window.
pub fn first_verdicts(analysis: &Analysis, first_start: Option<Timestamp>) -> (Value, String) {
    let days = first_start.map_or(0, |first| analysis.now.since_ms(first) / DAY_MS) + 1;
    let window_days = analysis.window_days.min(days);
    let lost = |test: &AnalyzedTest| test.entry.figures.time_lost_ms.unwrap_or(0);
    let total: u64 = analysis.tests.iter().map(lost).sum();
    let lost_a_week = total.saturating_mul(7) / u64::try_from(window_days).unwrap_or(1).max(1);
    let [broken, flaky] = [VerdictStatus::Broken, VerdictStatus::Flaky].map(|status| analysis.count(status));
    let mut worst: Vec<_> = analysis.reported().iter().collect();
    worst.sort_by_key(|test| Reverse(lost(test)));
    worst.truncate(NAMED);
    let worst = worst
        .into_iter()
        .map(|test| (&test.entry.test_name, test.entry.status, lost(test)));
    let worst: Vec<_> = worst.collect();
    let in_days = |days: i64| words::count(usize::try_from(days).unwrap_or(0), "day");
    let mut text = format!(
        "{}, {}. In the last {}: {}, {}, {} lost a week.",
        in_days(days),
        words::count(analysis.runs_read, "run"),
        in_days(window_days),
        words::count(flaky, "flaky test"),
        words::count(broken, "broken one"),
        words::duration(lost_a_week),
    );
    if !worst.is_empty() {
        text.push_str("\nThey cost most:\n");
    }
    for (name, status, lost) in &worst {
        let (lost, name) = (words::duration(*lost), assay_reports::shown_name(name));
        text += &format!("  {lost:>12}  {:<6}  {name}\n", status.as_str());
    }
    let verdicts = json!({
        "days": days, "runs": analysis.runs_read, "windowDays": window_days, "broken": broken, "flaky": flaky,
        "lostAWeekMs": lost_a_week, "worst": worst,
    });
    (verdicts, text)
}

//! Whether all failures of a test lie on weekends or in one hour of the day, which its runs do not explain.
//!
//! The units are the hours of the window in which the test ran, so that several runs of one hour count once. If the
//! failed hours were drawn at random from them, all k of n would be among w given ones with the probability
//! w (w - 1) … (w - k + 1) / (n (n - 1) … (n - k + 1)), which is the hypergeometric distribution's last term.

use std::collections::BTreeSet;

use assay_domain::timestamp::DAY_MS;

use crate::{numbers::count, timeline::Entry, verdict::test_counts::TestCounts};

/// The probability of naming a time by chance, for a test: one half for the weekend, the other for the hours.
const LEVEL: f64 = 0.01;
const HOUR_MS: i64 = 3_600_000;
const HOURS: i64 = 24;

/// An hour of the window, as the number of hours since the Unix epoch.
type Hour = i64;

/// The end of a sentence that names the weekend or the hour, in UTC; `None` if the failures lie at other times, too.
pub(crate) fn sentence(test_counts: TestCounts<'_, '_>) -> Option<String> {
    let hour_of = |entry: &Entry<'_>| entry.started_at().unix_ms().div_euclid(HOUR_MS);
    let failures = test_counts.failures.iter();
    let counted = failures.filter_map(|failure| test_counts.considered(failure.position));
    let failed: BTreeSet<Hour> = counted.map(|result| hour_of(result.entry)).collect();
    let days: BTreeSet<i64> = failed.iter().map(|hour| hour.div_euclid(HOURS)).collect();
    let (first, last) = (*days.first()?, *days.last()?);
    let hour = failed.first()?.rem_euclid(HOURS);
    let is_same = |other: &Hour| other.rem_euclid(HOURS) == hour;
    // Failures of one night or one weekend may have one cause.
    let on_weekends = failed.iter().all(is_weekend) && last - first > 2;
    let in_one_hour = failed.iter().all(is_same) && days.len() > 2;
    if !on_weekends && !in_one_hour {
        return None;
    }
    let positions = 0..test_counts.timeline.entries.len();
    let results = positions.filter_map(|position| test_counts.considered(position));
    let ran: BTreeSet<Hour> = results.map(|result| hour_of(result.entry)).collect();
    let all = ran.len();
    if on_weekends {
        let weekend = ran.iter().filter(|hour| is_weekend(hour)).count();
        return (chance(failed.len(), weekend, all) < LEVEL / 2.0).then(|| {
            format!("; all failures were on a weekend (UTC), as {weekend} of the {all} hours with a run")
        });
    }
    let same = ran.iter().filter(|hour| is_same(hour)).count();
    (chance(failed.len(), same, all) < LEVEL / 2.0 / 24.0).then(|| {
        let next = (hour + 1) % HOURS;
        format!(
            "; all failures began between {hour:02}:00 and {next:02}:00 UTC, as {same} of the {all} hours with a run"
        )
    })
}

/// 1970-01-01 was a Thursday.
fn is_weekend(hour: &Hour) -> bool {
    let day = (hour * HOUR_MS).div_euclid(DAY_MS);
    matches!((day + 4).rem_euclid(7), 0 | 6)
}

/// The probability that all of `failed` hours, drawn from `all`, are among `given` ones.
fn chance(failed: usize, given: usize, all: usize) -> f64 {
    let terms = (0..failed).map(|drawn| {
        let left = |hours: usize| f64::from(count(hours.saturating_sub(drawn)));
        left(given) / left(all).max(1.0)
    });
    terms.product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_is_that_of_drawing_without_replacement() {
        assert!((chance(2, 3, 5) - 0.3).abs() < 1e-12);
        assert!((chance(4, 14, 140) - 1_001.0 / 15_329_615.0).abs() < 1e-12);
        assert!((chance(3, 5, 5) - 1.0).abs() < 1e-12);
        assert!(chance(4, 3, 9).abs() < 1e-12);
    }

    #[test]
    fn saturday_and_sunday_are_the_weekend() {
        // 2026-11-28 is a Saturday.
        let saturday = 1_795_824_000_000 / HOUR_MS;
        assert!(is_weekend(&saturday) && is_weekend(&(saturday + 47)));
        assert!(!is_weekend(&(saturday - 1)) && !is_weekend(&(saturday + 48)));
    }
}

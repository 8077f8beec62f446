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
/// The days with a failure from which the calendar explains them.
pub(crate) const OCCURRENCES: usize = 3;

/// An hour of the window, as the number of hours since the Unix epoch.
type Hour = i64;

/// The failures of a test by the calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Calendar {
    period: Period,
    /// The hours in which it failed, and those in which it ran, in the period and in all.
    failed: usize,
    ran: usize,
    all: usize,
    /// The days with a failure, and those with a run, in the period and in all.
    failed_days: usize,
    days: usize,
    all_days: usize,
    /// Whether neither breakages nor flakes at any time explain it: it fails in most hours of the period with a run, on
    /// three days or more.
    pub(crate) decides: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Period {
    Weekend,
    /// The hour of the day, in UTC.
    Hour(i64),
}

impl Calendar {
    /// The period in which all failures lie; `None` if they lie at other times, too, or do so by chance.
    pub(crate) fn find(test_counts: TestCounts<'_, '_>) -> Option<Self> {
        let hour_of = |entry: &Entry<'_>| entry.started_at().unix_ms().div_euclid(HOUR_MS);
        let day_of = |hour: &Hour| hour.div_euclid(HOURS);
        let failures = test_counts.failures.iter();
        let counted = failures.filter_map(|failure| test_counts.considered(failure.position));
        let failed: BTreeSet<Hour> = counted.map(|result| hour_of(result.entry)).collect();
        let failed_days: BTreeSet<i64> = failed.iter().map(day_of).collect();
        let (first, last) = (*failed_days.first()?, *failed_days.last()?);
        let hour = failed.first()?.rem_euclid(HOURS);
        // Failures of one night or one weekend may have one cause.
        let period = if failed.iter().all(is_weekend) && last - first > 2 {
            Period::Weekend
        } else if failed.iter().all(|other| other.rem_euclid(HOURS) == hour) && failed_days.len() > 2 {
            Period::Hour(hour)
        } else {
            return None;
        };
        let positions = 0..test_counts.timeline.entries.len();
        let results = positions.filter_map(|position| test_counts.considered(position));
        let all: BTreeSet<Hour> = results.map(|result| hour_of(result.entry)).collect();
        let ran: Vec<&Hour> = all.iter().filter(|hour| period.contains(hour)).collect();
        let days_of_all: BTreeSet<i64> = all.iter().map(day_of).collect();
        let days: BTreeSet<i64> = ran.iter().map(|hour| day_of(hour)).collect();
        let by_hours = chance(failed.len(), ran.len(), all.len());
        // The hours of one day may have one cause.
        let by_days = chance(failed_days.len(), days.len(), days_of_all.len());
        let (level, separate) = match period {
            Period::Weekend => (LEVEL / 2.0, by_days),
            Period::Hour(_) => (LEVEL / 2.0 / 24.0, by_hours),
        };
        (by_hours < level).then_some(Self {
            period,
            failed: failed.len(),
            ran: ran.len(),
            all: all.len(),
            failed_days: failed_days.len(),
            days: days.len(),
            all_days: days_of_all.len(),
            decides: separate < level && failed_days.len() >= OCCURRENCES && 2 * failed.len() >= ran.len(),
        })
    }

    /// The days with a failure.
    pub(crate) fn failed_days(&self) -> u32 {
        count(self.failed_days)
    }

    /// The sentence of a test that it explains.
    pub(crate) fn sentence(&self) -> String {
        let Self {
            failed_days, days, ..
        } = self;
        match self.period {
            Period::Weekend => {
                let others = self.all_days - days;
                format!(
                    "Failed on {failed_days} of {days} weekend days (UTC) and on none of {others} other days"
                )
            }
            Period::Hour(hour) => {
                let others = self.all - self.ran;
                format!(
                    "Failed on {failed_days} of {days} days {}, and in none of {others} other hours with a run",
                    between(hour)
                )
            }
        }
    }

    /// The end of a sentence that names the weekend or the hour.
    pub(crate) fn addition(&self) -> String {
        let (ran, all) = (self.ran, self.all);
        match self.period {
            Period::Weekend => {
                format!("; all failures were on a weekend (UTC), as {ran} of the {all} hours with a run")
            }
            Period::Hour(hour) => {
                format!(
                    "; all failures began {}, as {ran} of the {all} hours with a run",
                    between(hour)
                )
            }
        }
    }
}

impl Period {
    fn contains(self, hour: &Hour) -> bool {
        match self {
            Self::Weekend => is_weekend(hour),
            Self::Hour(of_day) => hour.rem_euclid(HOURS) == of_day,
        }
    }
}

fn between(hour: i64) -> String {
    format!("between {hour:02}:00 and {:02}:00 UTC", (hour + 1) % HOURS)
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

//! Whether all failures of a test lie on days of the calendar or at a time of the day, which its runs do not explain.
//!
//! The units are the hours of the history in which the test ran, so that several runs of one hour count once. If the
//! failed hours were drawn at random from them, all k of n would be among w given ones with the probability
//! w (w - 1) … (w - k + 1) / (n (n - 1) … (n - k + 1)), which is the hypergeometric distribution's last term.

use std::collections::BTreeSet;

use assay_domain::{
    test::TestOrdinal,
    timestamp::{DAY_MS, Timestamp},
};

use crate::{
    model::background::Background,
    numbers::count,
    timeline::{
        Timeline,
        failures::{FailureAt, Failures},
    },
};

/// The probability of naming a time by chance, for a test and each kind of period.
const LEVEL: f64 = 0.005;
const HOUR_MS: i64 = 3_600_000;
const HOURS: i64 = 24;
/// The separate days with a failure from which the calendar explains them.
pub(crate) const OCCURRENCES: usize = 3;
/// The days that are read, where a history has them: three ends of a month.
pub const DAYS_READ: i64 = 100;
/// The last days of a month that count as its end.
const LAST_DAYS: u8 = 3;

/// An hour of the history, as the number of hours since the Unix epoch.
type Hour = i64;

/// The runs that the calendar reads: those of the window and earlier ones.
#[derive(Debug)]
pub(crate) struct CalendarRuns<'h> {
    timeline: Timeline<'h>,
    background: Background,
    failures: Failures,
}

/// The failures of a test by the calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Calendar {
    period: Period,
    /// Where it failed, such as ` on main`, if only the stable branch is read.
    place: String,
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
    /// The day of the week, from 0 for Sunday.
    Weekday(i64),
    /// The first day of a month.
    MonthStart,
    /// The last day of a month.
    LastDay,
    /// The last three days of a month.
    MonthEnd,
    /// The hour of the day, in UTC.
    Hour(i64),
    /// This hour of the day and the next one, in UTC: the hours around midnight in some zone, or one hour there before and
    /// after a change of clocks.
    TwoHours(i64),
}

impl<'h> CalendarRuns<'h> {
    pub(crate) fn new(timeline: Timeline<'h>) -> Self {
        Self {
            background: Background::new(&timeline),
            failures: Failures::new(&timeline),
            timeline,
        }
    }
}

impl Calendar {
    /// The period that explains the failures at these positions. What another branch failed at other times is evidence
    /// against its own change, and not against the calendar of the stable branch: if the failures of all branches have no
    /// period that decides, those of the stable branch may have one.
    pub(crate) fn find(
        timeline: &Timeline<'_>,
        background: &Background,
        failures: impl Iterator<Item = usize> + Clone,
        test: TestOrdinal,
    ) -> Option<Self> {
        let of_all = Self::search(timeline, background, failures.clone(), test, |_| true);
        let on_stable = |position: &usize| timeline.is_on_stable_chain(*position);
        if of_all.as_ref().is_some_and(|found| found.decides) || failures.clone().all(|at| on_stable(&at)) {
            return of_all;
        }
        let of_stable = Self::search(timeline, background, failures, test, on_stable);
        let of_stable = of_stable.filter(|found| found.decides).map(|found| Self {
            place: timeline.on_stable_branch(),
            ..found
        });
        of_stable.or(of_all)
    }

    /// The least probable period in which all failures lie; `None` if they lie at other times, too, or do so by chance. Only
    /// positions for which `is_read` holds are read.
    fn search(
        timeline: &Timeline<'_>,
        background: &Background,
        failures: impl Iterator<Item = usize>,
        test: TestOrdinal,
        is_read: impl Fn(&usize) -> bool,
    ) -> Option<Self> {
        let counts = |position: &usize| is_read(position) && !background.leaves_out(*position, test);
        let hour_at = |position: usize| {
            let entry = timeline.entries.get(position)?;
            Some(entry.started_at().unix_ms().div_euclid(HOUR_MS))
        };
        let failed: BTreeSet<Hour> = failures.filter(counts).filter_map(hour_at).collect();
        let failed_days: BTreeSet<i64> = failed.iter().map(day_of).collect();
        let apart = failed_days.last()? - failed_days.first()?;
        // Failures of one night, one weekend or one end of a month may have one cause.
        let is_separate = |period: &Period| match period {
            Period::Weekend => apart > 2,
            Period::Weekday(_)
            | Period::MonthStart
            | Period::LastDay
            | Period::MonthEnd
            | Period::Hour(_)
            | Period::TwoHours(_) => {
                let occurrences: BTreeSet<i64> = failed.iter().map(|hour| period.occurrence(*hour)).collect();
                occurrences.len() >= OCCURRENCES
            }
        };
        let periods = Period::all(*failed.first()?).into_iter();
        let mut periods = periods
            .filter(|period| failed.iter().all(|hour| period.contains(hour)) && is_separate(period))
            .peekable();
        periods.peek()?;
        let ran = timeline.entries.iter().zip(0..);
        let ran = ran.filter(|(entry, _)| timeline.is_seen(entry.observed, test));
        let ran = ran.map(|(_, position)| position).filter(counts);
        let all: BTreeSet<Hour> = ran.filter_map(hour_at).collect();
        let found = periods.filter_map(|period| Self::of(period, &failed, &all));
        let (_, least) = found.min_by(|(one, left), (other, right)| {
            right.decides.cmp(&left.decides).then(one.total_cmp(other))
        })?;
        Some(least)
    }

    /// The same of these failures.
    pub(crate) fn find_at(
        timeline: &Timeline<'_>,
        background: &Background,
        failures: &[FailureAt],
        test: TestOrdinal,
    ) -> Option<Self> {
        Self::find(
            timeline,
            background,
            failures.iter().map(|failure| failure.position),
            test,
        )
    }

    /// The same in the runs before the window.
    pub(crate) fn find_in(runs: &CalendarRuns<'_>, test: TestOrdinal) -> Option<Self> {
        Self::find_at(&runs.timeline, &runs.background, runs.failures.of(test), test)
    }

    /// Whether a time is in the period.
    pub(crate) fn contains(&self, at: Timestamp) -> bool {
        self.period.contains(&at.unix_ms().div_euclid(HOUR_MS))
    }

    /// The rate of the failures in the period, below 1.
    pub(crate) fn rate(&self) -> f64 {
        (f64::from(count(self.failed)) + 0.5) / (f64::from(count(self.ran)) + 1.0)
    }

    /// The failures in a period, and their chance in relation to what is allowed; `None` if it is allowed.
    fn of(period: Period, failed: &BTreeSet<Hour>, all: &BTreeSet<Hour>) -> Option<(f64, Self)> {
        let ran: BTreeSet<Hour> = all.iter().copied().filter(|hour| period.contains(hour)).collect();
        let days = |hours: &BTreeSet<Hour>| -> usize {
            let days: BTreeSet<i64> = hours.iter().map(|hour| period.day_of(*hour)).collect();
            days.len()
        };
        let by_hours = chance(failed.len(), ran.len(), all.len());
        let (failed_days, of_period, of_all) = (days(failed), days(&ran), days(all));
        // The hours of one day may have one cause.
        let separate = match period.is_time_of_day() {
            true => by_hours,
            false => chance(failed_days, of_period, of_all),
        };
        let level = LEVEL / period.alternatives();
        let decides = separate < level && failed_days >= OCCURRENCES && 2 * failed.len() >= ran.len();
        let is_named = decides || !period.is_of_month_or_weekday();
        (by_hours < level && is_named).then_some((
            by_hours / level,
            Self {
                period,
                place: String::new(),
                failed: failed.len(),
                ran: ran.len(),
                all: all.len(),
                failed_days,
                days: of_period,
                all_days: of_all,
                decides,
            },
        ))
    }

    /// The days with a failure.
    pub(crate) fn failed_days(&self) -> u32 {
        count(self.failed_days)
    }

    /// The sentence of a test that it explains.
    pub(crate) fn sentence(&self) -> String {
        let Self {
            failed_days,
            days,
            place,
            ..
        } = self;
        let period = self.period.in_words();
        if self.period.is_time_of_day() {
            let others = self.all - self.ran;
            return format!(
                "Failed{place} on {failed_days} of {days} days {period}, and in none of {others} other hours with a run"
            );
        }
        let others = self.all_days - days;
        format!("Failed{place} on {failed_days} of {days} {period} (UTC) and on none of {others} other days")
    }

    /// The end of a sentence that names the period.
    pub(crate) fn addition(&self) -> String {
        let (ran, all) = (self.ran, self.all);
        let period = self.period.in_words();
        if self.period.is_time_of_day() {
            return format!("; all failures began {period}, as {ran} of the {all} hours with a run");
        }
        let period = match self.period {
            Period::Weekend => "a weekend",
            Period::Weekday(_)
            | Period::MonthStart
            | Period::LastDay
            | Period::MonthEnd
            | Period::Hour(_)
            | Period::TwoHours(_) => &period,
        };
        format!("; all failures were on {period} (UTC), as {ran} of the {all} hours with a run")
    }
}

impl Period {
    /// All periods that contain an hour, and some that do not.
    fn all(hour: Hour) -> [Self; 8] {
        let of_day = hour.rem_euclid(HOURS);
        [
            Self::Weekend,
            Self::Weekday(weekday(hour)),
            Self::MonthStart,
            Self::LastDay,
            Self::MonthEnd,
            Self::Hour(of_day),
            Self::TwoHours(of_day),
            Self::TwoHours((of_day - 1).rem_euclid(HOURS)),
        ]
    }

    fn contains(self, hour: &Hour) -> bool {
        let at = || Timestamp::from_unix_ms(hour * HOUR_MS).day_of_month();
        match self {
            Self::Weekend => matches!(weekday(*hour), 0 | 6),
            Self::Weekday(day) => weekday(*hour) == day,
            Self::MonthStart => at().0 == 1,
            Self::LastDay => at().1 == 0,
            Self::MonthEnd => at().1 < LAST_DAYS,
            Self::Hour(of_day) => hour.rem_euclid(HOURS) == of_day,
            Self::TwoHours(first) => (hour - first).rem_euclid(HOURS) < 2,
        }
    }

    /// The day of an hour. Two hours around midnight are of one day.
    const fn day_of(self, hour: Hour) -> i64 {
        match self {
            Self::TwoHours(first) => (hour - first).div_euclid(HOURS),
            Self::Weekend
            | Self::Weekday(_)
            | Self::MonthStart
            | Self::LastDay
            | Self::MonthEnd
            | Self::Hour(_) => day_of(&hour),
        }
    }

    /// The day of an occurrence; of the end of a month its last day.
    fn occurrence(self, hour: Hour) -> i64 {
        let day = self.day_of(hour);
        match self {
            Self::MonthEnd => {
                let (_, left) = Timestamp::from_unix_ms(hour * HOUR_MS).day_of_month();
                day + i64::from(left)
            }
            Self::Weekend
            | Self::Weekday(_)
            | Self::MonthStart
            | Self::LastDay
            | Self::Hour(_)
            | Self::TwoHours(_) => day,
        }
    }

    /// The number of periods of its kind, in which a coincidence may be found.
    const fn alternatives(self) -> f64 {
        match self {
            Self::Weekend => 1.0,
            Self::Weekday(_) => 7.0,
            Self::MonthStart | Self::LastDay | Self::MonthEnd => 3.0,
            Self::Hour(_) | Self::TwoHours(_) => 48.0,
        }
    }

    const fn is_time_of_day(self) -> bool {
        match self {
            Self::Hour(_) | Self::TwoHours(_) => true,
            Self::Weekend | Self::Weekday(_) | Self::MonthStart | Self::LastDay | Self::MonthEnd => false,
        }
    }

    const fn is_of_month_or_weekday(self) -> bool {
        match self {
            Self::Weekday(_) | Self::MonthStart | Self::LastDay | Self::MonthEnd => true,
            Self::Weekend | Self::Hour(_) | Self::TwoHours(_) => false,
        }
    }

    fn in_words(self) -> String {
        match self {
            Self::Weekend => "weekend days".to_owned(),
            Self::Weekday(day) => match day {
                0 => "Sundays",
                1 => "Mondays",
                2 => "Tuesdays",
                3 => "Wednesdays",
                4 => "Thursdays",
                5 => "Fridays",
                _ => "Saturdays",
            }
            .to_owned(),
            Self::MonthStart => "first days of a month".to_owned(),
            Self::LastDay => "last days of a month".to_owned(),
            Self::MonthEnd => "days among the last three of a month".to_owned(),
            Self::Hour(hour) => between(hour, 1),
            Self::TwoHours(hour) => between(hour, 2),
        }
    }
}

fn between(hour: i64, hours: i64) -> String {
    format!("between {hour:02}:00 and {:02}:00 UTC", (hour + hours) % HOURS)
}

const fn day_of(hour: &Hour) -> i64 {
    hour.div_euclid(HOURS)
}

/// The day of the week, from 0 for Sunday. 1970-01-01 was a Thursday.
fn weekday(hour: Hour) -> i64 {
    ((hour * HOUR_MS).div_euclid(DAY_MS) + 4).rem_euclid(7)
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
        let is_weekend = |hour: Hour| Period::Weekend.contains(&hour);
        assert!(is_weekend(saturday) && is_weekend(saturday + 47));
        assert!(!is_weekend(saturday - 1) && !is_weekend(saturday + 48));
    }
}

//! Quiet hours and the times of digests, in a time zone.

use assay_domain::timestamp::Timestamp;
use jiff::{Zoned, civil::Weekday, tz::TimeZone};

/// A time zone of the system's database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// The zone of this name, such as `Europe/Berlin`; none if the system does not know it.
    pub fn named(name: &str) -> Option<Self> {
        TimeZone::get(name).ok().map(Self)
    }

    /// UTC.
    pub const fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    fn local(&self, at: Timestamp) -> Option<Zoned> {
        let at = jiff::Timestamp::from_millisecond(at.unix_ms()).ok()?;
        Some(at.to_zoned(self.0.clone()))
    }
}

/// A time of day, to the minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay {
    hour: i8,
    minute: i8,
}

impl TimeOfDay {
    /// The time of a text such as `07:30`; none if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let (hour, minute) = text.split_once(':')?;
        let number = |text: &str| {
            let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse::<i8>().ok()).flatten()
        };
        let time = Self {
            hour: number(hour)?,
            minute: number(minute)?,
        };
        (time.hour < 24 && time.minute < 60).then_some(time)
    }
}

/// The hours of each day in which a target gets no message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuietHours {
    /// The first minute.
    pub from: TimeOfDay,
    /// The first minute after them, on the next day if it is earlier than `from`.
    pub to: TimeOfDay,
    /// The zone of both.
    pub zone: Zone,
}

impl QuietHours {
    /// Whether a time is in them.
    pub fn have(&self, at: Timestamp) -> bool {
        let Some(local) = self.zone.local(at) else {
            return false;
        };
        let time = TimeOfDay {
            hour: local.hour(),
            minute: local.minute(),
        };
        match self.from <= self.to {
            true => self.from <= time && time < self.to,
            false => self.from <= time || time < self.to,
        }
    }
}

/// How often a digest is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Every {
    /// Every day.
    Day,
    /// Every Monday.
    Week,
}

/// When a target gets its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestTimes {
    /// How often.
    pub every: Every,
    /// The time of day.
    pub at: TimeOfDay,
    /// The zone of that time.
    pub zone: Zone,
}

/// What a digest covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// Its begin.
    pub from: Timestamp,
    /// Its end, which does not belong to it.
    pub until: Timestamp,
    /// Its kind.
    pub every: Every,
}

impl DigestTimes {
    /// The last time at which a digest was due, until `now`.
    pub fn last_due(&self, now: Timestamp) -> Option<Timestamp> {
        let local = self.zone.local(now)?;
        let mut date = local.date();
        // A week has the day, unless the time of today is still to come.
        for _ in 0..=7 {
            let is_day = match self.every {
                Every::Day => true,
                Every::Week => date.weekday() == Weekday::Monday,
            };
            let at = date.at(self.at.hour, self.at.minute, 0, 0);
            let at = at.to_zoned(self.zone.0.clone()).ok()?;
            if is_day && at <= local {
                return Some(Timestamp::from_unix_ms(at.timestamp().as_millisecond()));
            }
            date = date.yesterday().ok()?;
        }
        None
    }

    /// The period of the last digest that was due until `now`: from the due time before it. A day of it may have 23 or 25
    /// hours.
    pub fn last_period(&self, now: Timestamp) -> Option<Period> {
        let until = self.last_due(now)?;
        Some(Period {
            from: self.last_due(until.plus_ms(-1))?,
            until,
            every: self.every,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        let at: jiff::Timestamp = text.parse().unwrap();
        Timestamp::from_unix_ms(at.as_millisecond())
    }

    fn time(text: &str) -> TimeOfDay {
        TimeOfDay::parse(text).unwrap()
    }

    #[test]
    fn quiet_hours_cross_midnight_and_follow_summer_time() {
        let quiet = QuietHours {
            from: time("20:00"),
            to: time("07:00"),
            zone: Zone::named("Europe/Berlin").unwrap(),
        };
        // Berlin is an hour ahead of UTC in winter, and two in summer.
        for (instant, is_quiet) in [
            ("2026-01-15T18:59:00Z", false),
            ("2026-01-15T19:00:00Z", true),
            ("2026-01-16T05:59:00Z", true),
            ("2026-01-16T06:00:00Z", false),
            ("2026-07-15T17:59:00Z", false),
            ("2026-07-15T18:00:00Z", true),
        ] {
            assert_eq!(quiet.have(at(instant)), is_quiet, "{instant}");
        }
        let noon = QuietHours {
            from: time("12:00"),
            to: time("13:00"),
            zone: Zone::utc(),
        };
        assert!(noon.have(at("2026-01-15T12:30:00Z")) && !noon.have(at("2026-01-15T13:00:00Z")));
    }

    #[test]
    fn a_digest_is_due_at_the_same_local_time() {
        let daily = DigestTimes {
            every: Every::Day,
            at: time("09:00"),
            zone: Zone::named("Europe/Berlin").unwrap(),
        };
        assert_eq!(
            daily.last_due(at("2026-07-15T06:59:00Z")),
            Some(at("2026-07-14T07:00:00Z"))
        );
        assert_eq!(
            daily.last_due(at("2026-07-15T07:00:00Z")),
            Some(at("2026-07-15T07:00:00Z"))
        );
        let weekly = DigestTimes {
            every: Every::Week,
            ..daily
        };
        // 2026-07-13 is a Monday.
        assert_eq!(
            weekly.last_due(at("2026-07-15T12:00:00Z")),
            Some(at("2026-07-13T07:00:00Z"))
        );
        assert_eq!(
            weekly.last_due(at("2026-07-13T06:00:00Z")),
            Some(at("2026-07-06T07:00:00Z"))
        );
    }

    #[test]
    fn periods_of_digests_have_no_gap_when_clocks_are_changed() {
        let berlin = |every, time_of_day| DigestTimes {
            every,
            at: time(time_of_day),
            zone: Zone::named("Europe/Berlin").unwrap(),
        };
        let daily = berlin(Every::Day, "09:00");
        // The clocks went forward on 2026-03-29 and back on 2026-10-25.
        for (now, from, until) in [
            (
                "2026-03-29T12:00:00Z",
                "2026-03-28T08:00:00Z",
                "2026-03-29T07:00:00Z",
            ),
            (
                "2026-10-25T12:00:00Z",
                "2026-10-24T07:00:00Z",
                "2026-10-25T08:00:00Z",
            ),
            (
                "2026-10-26T12:00:00Z",
                "2026-10-25T08:00:00Z",
                "2026-10-26T08:00:00Z",
            ),
        ] {
            let period = daily.last_period(at(now)).unwrap();
            assert_eq!((period.from, period.until), (at(from), at(until)), "{now}");
        }
        // 02:30 did not exist on the first day, and existed twice on the other.
        let nightly = berlin(Every::Day, "02:30");
        for (now, until) in [
            ("2026-03-29T00:59:00Z", "2026-03-28T01:30:00Z"),
            ("2026-03-29T01:30:00Z", "2026-03-29T01:30:00Z"),
            ("2026-10-25T00:30:00Z", "2026-10-25T00:30:00Z"),
            ("2026-10-25T01:30:00Z", "2026-10-25T00:30:00Z"),
        ] {
            assert_eq!(nightly.last_due(at(now)), Some(at(until)), "{now}");
        }
        // 2026-10-19 and 2026-10-26 are Mondays.
        let weekly = berlin(Every::Week, "09:00").last_period(at("2026-10-27T00:00:00Z"));
        let weekly = weekly.unwrap();
        assert_eq!(
            (weekly.from, weekly.until),
            (at("2026-10-19T07:00:00Z"), at("2026-10-26T08:00:00Z"))
        );
    }

    #[test]
    fn only_times_of_a_day_are_parsed() {
        for text in ["24:00", "7:30", "07:60", "-1:00", "0730", "", "07:30:00", "+7:30"] {
            assert_eq!(TimeOfDay::parse(text), None, "{text}");
        }
        assert_eq!(Zone::named("Mars/Olympus"), None);
    }
}

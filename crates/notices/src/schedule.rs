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

    /// The days that a digest covers.
    pub const fn days(&self) -> i64 {
        match self.every {
            Every::Day => 1,
            Every::Week => 7,
        }
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
    fn only_times_of_a_day_are_parsed() {
        for text in ["24:00", "7:30", "07:60", "-1:00", "0730", "", "07:30:00", "+7:30"] {
            assert_eq!(TimeOfDay::parse(text), None, "{text}");
        }
        assert_eq!(Zone::named("Mars/Olympus"), None);
    }
}

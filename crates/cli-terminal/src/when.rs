//! Points in time for people: the day and the distance from now.

use assay_domain::timestamp::Timestamp;
use time::{Date, OffsetDateTime, macros::format_description};

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// `2026-11-20, 3 d ago`, in UTC.
pub fn when(at: Timestamp, now: Timestamp) -> String {
    format!("{}, {}", day(at), distance(at, now))
}

/// `2026-11-20`.
pub fn day(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}

/// `3 d ago`, `in 89 d`, `just now`.
pub fn distance(at: Timestamp, now: Timestamp) -> String {
    let ms = at.since_ms(now);
    if ms.abs() < MINUTE {
        return if ms > 0 { "in a moment" } else { "just now" }.to_owned();
    }
    let length = length(ms.abs());
    if ms > 0 {
        format!("in {length}")
    } else {
        format!("{length} ago")
    }
}

/// The day of a key's latest use: `2026-11-20, today`.
pub fn on_day(text: &str, now: Timestamp) -> String {
    let parsed = Date::parse(text, format_description!("[year]-[month]-[day]"));
    let Ok(date) = parsed else {
        return text.to_owned();
    };
    let days = (OffsetDateTime::from(now).date() - date).whole_days();
    match days {
        ..=0 => format!("{text}, today"),
        1 => format!("{text}, yesterday"),
        days => format!("{text}, {days} d ago"),
    }
}

/// `3 d`, `5 h`, `20 min`, `7 s`, `12 ms`: rounded, in the largest unit whose value is at least one.
pub fn length(ms: i64) -> String {
    let units = [(DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s")];
    units.iter().find(|(unit, _)| ms >= *unit).map_or_else(
        || format!("{ms} ms"),
        |(unit, word)| format!("{} {word}", (ms + unit / 2) / unit),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_near_or_far() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let of = |text: &str| when(text.parse().unwrap(), now);
        assert_eq!(of("2026-11-21T11:59:30Z"), "2026-11-21, just now");
        assert_eq!(of("2026-11-21T12:00:10Z"), "2026-11-21, in a moment");
        assert_eq!(of("2026-11-21T11:20:00Z"), "2026-11-21, 40 min ago");
        assert_eq!(of("2026-11-20T13:00:00Z"), "2026-11-20, 23 h ago");
        assert_eq!(of("2026-11-18T12:00:00Z"), "2026-11-18, 3 d ago");
        assert_eq!(of("2027-02-18T11:59:00Z"), "2027-02-18, in 89 d");
    }

    #[test]
    fn days_are_counted_by_the_calendar() {
        let now: Timestamp = "2026-11-21T00:10:00Z".parse().unwrap();
        assert_eq!(on_day("2026-11-21", now), "2026-11-21, today");
        assert_eq!(on_day("2026-11-20", now), "2026-11-20, yesterday");
        assert_eq!(on_day("2026-11-01", now), "2026-11-01, 20 d ago");
        assert_eq!(on_day("some day", now), "some day");
    }
}

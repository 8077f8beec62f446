//! Times as reports write them.

use assay_domain::timestamp::{DAY_MS, Timestamp};
use time::{
    OffsetDateTime, PrimitiveDateTime, UtcOffset,
    format_description::well_known::{Iso8601, Rfc2822, Rfc3339},
};

/// The point in time of a text: ISO 8601 with or without zone (then UTC), RFC 1123, seconds or milliseconds since 1970.
/// None for other texts, and for times in 1970, because tools write 0 for an unknown time.
pub(crate) fn lenient(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if text.is_empty() || text.len() > 64 {
        return None;
    }
    let at = if let Ok(number) = text.parse::<f64>() {
        return from_epoch(number);
    } else if let Some(at) = with_zone_name(text) {
        at
    } else if let Ok(at) = OffsetDateTime::parse(text, &Rfc3339) {
        at
    } else if let Ok(at) =
        OffsetDateTime::parse(&text.replace("GMT", "+0000").replace("UTC", "+0000"), &Rfc2822)
    {
        at
    } else {
        iso(text)?
    };
    after_first_year(Timestamp::from(at))
}

/// A number of seconds or of milliseconds since 1970, distinguished by its size.
pub(crate) fn from_epoch(number: f64) -> Option<Timestamp> {
    if !number.is_finite() || number <= 0.0 {
        return None;
    }
    // 1e11 seconds are the year 5138, 1e11 milliseconds are March 1973.
    let ms = if number < 1e11 { number * 1000.0 } else { number };
    after_first_year(Timestamp::from_unix_ms(whole(ms)))
}

/// Whole milliseconds of a duration in milliseconds, rounded. A negative value becomes 0, a value that is not a number
/// none.
pub(crate) fn duration_ms(ms: f64) -> Option<u64> {
    // No test runs longer than a year: such a duration comes from a clock that jumped.
    const YEAR: f64 = 366.0 * 86_400_000.0;
    if !ms.is_finite() {
        return None;
    }
    u64::try_from(whole(ms.clamp(0.0, YEAR))).ok()
}

/// Whole milliseconds of a duration in seconds as XML writes it: `5.3e-05`, `1,234.5`, `-0.000000`.
pub(crate) fn seconds_to_ms(text: &str) -> Option<u64> {
    let text = text.trim_ascii();
    if text.contains(':') {
        return clock_to_ms(text);
    }
    let seconds: f64 = if text.as_bytes().contains(&b',') {
        text.replace(',', "").parse().ok()?
    } else {
        text.parse().ok()?
    };
    duration_ms(seconds * 1000.0)
}

/// Whether a suite's time is in nanoseconds, as some Go tools write it: a whole number that would be years in seconds.
pub(crate) fn is_nanoseconds(text: &str) -> bool {
    const YEARS: u64 = 100_000_000;
    text.trim_ascii()
        .parse::<u64>()
        .is_ok_and(|number| number >= YEARS)
}

/// Whole milliseconds of `00:00:00.121`.
fn clock_to_ms(text: &str) -> Option<u64> {
    let mut parts = text.splitn(3, ':');
    let (hours, minutes, seconds): (f64, f64, f64) = (
        parts.next()?.parse().ok()?,
        parts.next()?.parse().ok()?,
        parts.next()?.parse().ok()?,
    );
    duration_ms(((hours * 60.0 + minutes) * 60.0 + seconds) * 1000.0)
}

#[expect(
    clippy::as_conversions,
    reason = "a float to integer cast saturates, as required here"
)]
fn whole(number: f64) -> i64 {
    number.round() as i64
}

fn after_first_year(at: Timestamp) -> Option<Timestamp> {
    (at.unix_ms() >= 365 * DAY_MS).then_some(at)
}

/// A time with the name of a zone, as Java's tools write it: `2026-02-19T19:47:47 IST`, `22 févr. 2020 11:53:10 GMT`. A
/// name that several zones share is read as the most common one; an unknown name is read as UTC.
fn with_zone_name(text: &str) -> Option<OffsetDateTime> {
    let (text, zone) = text.rsplit_once(' ')?;
    let is_name = (1..=5).contains(&zone.len()) && zone.bytes().all(|byte| byte.is_ascii_uppercase());
    if !is_name || matches!(zone, "AM" | "PM") {
        return None;
    }
    let minutes = ZONES
        .iter()
        .find(|(names, _)| names.contains(&zone))
        .map_or(0, |(_, minutes)| *minutes);
    let offset = UtcOffset::from_whole_seconds(minutes * 60).ok()?;
    let local = iso_local(text).or_else(|| day_month_year(text))?;
    Some(local.assume_offset(offset))
}

fn iso_local(text: &str) -> Option<PrimitiveDateTime> {
    PrimitiveDateTime::parse(&text.replacen(' ', "T", 1), &Iso8601::DEFAULT).ok()
}

/// `22 二月 2020 11:53:10`, `2 Feb 2020 11:53:10`.
fn day_month_year(text: &str) -> Option<PrimitiveDateTime> {
    let mut parts = text.split_whitespace();
    let (day, month, year, clock) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    iso_local(&format!("{year}-{:02}-{day:0>2}T{clock}", month_number(month)?))
}

/// The number of a month in the languages that known reports use.
fn month_number(name: &str) -> Option<usize> {
    let name = name.trim_end_matches('.').to_lowercase();
    if let Some(number) = name
        .strip_suffix(['月', '월'])
        .and_then(|number| number.parse().ok())
    {
        return (1..=12).contains(&number).then_some(number);
    }
    MONTHS
        .iter()
        .position(|names| names.split(' ').any(|prefix| name.starts_with(prefix)))
        .map(|index| index + 1)
}

/// How month names begin, in English, German, French, Spanish, Italian, Portuguese, Polish, Russian and Chinese. `十一月`
/// and `十月` have different beginnings.
const MONTHS: [&str; 12] = [
    "jan ene gen sty янв 一月",
    "feb fév fev lut фев 二月",
    "mar mär mrz мар 三月",
    "apr avr abr kwi апр 四月",
    "may mai mag maj мая май 五月",
    "jun juin giu cze июн 六月",
    "jul juil lug lip июл 七月",
    "aug août aou ago sie авг 八月",
    "sep set wrz сен 九月",
    "oct okt ott out paź окт 十月",
    "nov lis ноя 十一月",
    "dec dez déc dic gru дек 十二月",
];

/// Names of zones with their offset from UTC in minutes.
const ZONES: &[(&[&str], i32)] = &[
    (&["BRT", "ART"], -180),
    (&["EDT"], -240),
    (&["EST", "CDT"], -300),
    (&["CST", "MDT"], -360),
    (&["MST", "PDT"], -420),
    (&["PST"], -480),
    (&["CET", "WEST", "BST", "MEZ"], 60),
    (&["CEST", "EET", "SAST", "MESZ"], 120),
    (&["EEST", "MSK", "TRT"], 180),
    (&["PKT"], 300),
    (&["IST"], 330),
    (&["ICT", "WIB"], 420),
    (&["SGT", "HKT", "PHT", "MYT", "AWST"], 480),
    (&["JST", "KST"], 540),
    (&["AEST"], 600),
    (&["AEDT"], 660),
    (&["NZST"], 720),
    (&["NZDT"], 780),
];

/// ISO 8601 with the deviations of tools: a space for the `T`, no zone, a zone without colon or after a space.
fn iso(text: &str) -> Option<OffsetDateTime> {
    let mut text = text.replacen(' ', "T", 1).replace(' ', "");
    if let Some(at) = text.rfind(['+', '-'])
        && at > 10
        && text.len() == at + 5
        && text.get(at + 1..)?.bytes().all(|byte| byte.is_ascii_digit())
    {
        text.insert(at + 3, ':');
    }
    OffsetDateTime::parse(&text, &Iso8601::DEFAULT)
        .or_else(|_| PrimitiveDateTime::parse(&text, &Iso8601::DEFAULT).map(PrimitiveDateTime::assume_utc))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_tools_write_them() {
        for text in [
            "2026-11-20T18:46:03.120Z",
            "2026-11-20T20:46:03.120+02:00",
            "2026-11-20T20:46:03.12+0200",
            "2026-11-20 18:46:03.120",
            "2026-11-20 18:46:03.120 +0000",
            "2026-11-20T18:46:03.120",
            "1795200363120",
        ] {
            assert_eq!(
                lenient(text).map(|at| at.to_string()).as_deref(),
                Some("2026-11-20T18:46:03.120Z"),
                "{text}"
            );
        }
        for text in [
            "Fri, 20 Nov 2026 18:46:03 GMT",
            "1795200363",
            "2026-11-20T18:46:03",
        ] {
            assert_eq!(
                lenient(text).map(|at| at.to_string()).as_deref(),
                Some("2026-11-20T18:46:03.000Z"),
                "{text}"
            );
        }
        for text in [
            "",
            "1970-01-01T00:00:00",
            "0",
            "-5",
            "yesterday",
            "NaN",
            "2026-13-40T99:00:00Z",
        ] {
            assert_eq!(lenient(text), None, "{text}");
        }
    }

    #[test]
    fn names_of_zones_and_months_are_understood() {
        for (text, expected) in [
            ("2026-02-19T19:47:47 IST", "2026-02-19T14:17:47.000Z"),
            ("2021-03-07T10:36:56 UTC", "2021-03-07T10:36:56.000Z"),
            ("2021-03-07 10:36:56 PDT", "2021-03-07T17:36:56.000Z"),
            ("2021-03-07T10:36:56 XYZ", "2021-03-07T10:36:56.000Z"),
            ("22 二月 2020 11:53:10 GMT", "2020-02-22T11:53:10.000Z"),
            ("2 十一月 2020 11:53:10 GMT", "2020-11-02T11:53:10.000Z"),
            ("2 12月 2020 11:53:10 JST", "2020-12-02T02:53:10.000Z"),
            ("22 févr. 2020 11:53:10 CET", "2020-02-22T10:53:10.000Z"),
            ("22 Feb 2020 11:53:10 GMT", "2020-02-22T11:53:10.000Z"),
        ] {
            assert_eq!(
                lenient(text).map(|at| at.to_string()).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        for text in ["22 smarch 2020 11:53:10 GMT", "1 2 3 4 5 GMT", "GMT", " GMT"] {
            assert_eq!(lenient(text), None, "{text}");
        }
    }

    #[test]
    fn durations_never_fail() {
        assert_eq!(seconds_to_ms("5.3e-05"), Some(0));
        assert_eq!(seconds_to_ms("-345345"), Some(0));
        assert_eq!(seconds_to_ms("-0.000000"), Some(0));
        assert_eq!(seconds_to_ms("1,234.5"), Some(1_234_500));
        assert_eq!(seconds_to_ms("0.0016"), Some(2));
        assert_eq!(seconds_to_ms("00:01:02.121"), Some(62_121));
        assert_eq!(seconds_to_ms("01:02"), None);
        assert_eq!(seconds_to_ms("soon"), None);
        assert!(is_nanoseconds("999638317") && !is_nanoseconds("86400") && !is_nanoseconds("999638317.5"));
        assert_eq!(duration_ms(f64::NAN), None);
        assert_eq!(duration_ms(1e300), Some(366 * 86_400_000));
    }
}

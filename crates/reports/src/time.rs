//! Times as reports write them.

use assay_domain::timestamp::{DAY_MS, Timestamp};
use time::{
    OffsetDateTime, PrimitiveDateTime, UtcOffset,
    format_description::well_known::{Iso8601, Rfc2822, Rfc3339},
};

use crate::limits;

/// The point in time of a text, and whether the text has a zone: ISO 8601 with or without zone (then UTC), RFC 1123,
/// seconds or milliseconds since 1970. None for other texts, and for times in 1970, because tools write 0 for an unknown
/// time.
pub(crate) fn lenient(text: &str) -> Option<(Timestamp, bool)> {
    let text = text.trim();
    if text.is_empty() || text.len() > 64 {
        return None;
    }
    let mut has_zone = true;
    let at = if let Ok(number) = text.parse::<f64>() {
        return Some((from_epoch(number)?, true));
    } else if let Ok(at) = OffsetDateTime::parse(text, &Rfc3339) {
        at
    } else if let Some(at) = with_zone_name(text) {
        at
    } else if let Some(at) = rfc_2822(text) {
        at
    } else {
        let (at, is_zoned) = iso(text)?;
        has_zone = is_zoned;
        at
    };
    Some((after_first_year(Timestamp::from(at))?, has_zone))
}

/// `Fri, 20 Nov 2026 18:46:03 GMT`
fn rfc_2822(text: &str) -> Option<OffsetDateTime> {
    if !text.contains(' ') {
        return None;
    }
    let text = text.replace("GMT", "+0000").replace("UTC", "+0000");
    OffsetDateTime::parse(&text, &Rfc2822).ok()
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

/// A count, at most that of the attempts that a report states by their number alone.
pub(crate) fn counted_attempts(count: f64) -> Option<usize> {
    let count = usize::try_from(duration_ms(count)?).ok()?;
    Some(count.min(limits::COUNTED_ATTEMPTS))
}

/// Whole milliseconds of a duration in seconds as XML writes it: `5.3e-05`, `1,234.5`, `0,5`, `-0.000000`. The second
/// value is whether its comma may separate thousands or decimals.
pub(crate) fn seconds_to_ms(text: &str) -> Option<(u64, bool)> {
    let text = text.trim_ascii();
    let (seconds, is_ambiguous) = match text.parse() {
        Ok(seconds) => (seconds, false),
        Err(_) if text.contains(':') => return Some((clock_to_ms(text)?, false)),
        Err(_) => number(text)?,
    };
    Some((duration_ms(seconds * 1000.0)?, is_ambiguous))
}

/// A number in the spelling of any country, and whether its comma may separate thousands or decimals.
///
/// Commas separate thousands if each is followed by exactly three digits and the first group is not `0`: `1,234.5`. Any
/// other comma is a decimal one: `0,160`, `12,5`, `1.234,5`.
fn number(text: &str) -> Option<(f64, bool)> {
    let Some((whole, last)) = text.rsplit_once(',') else {
        return Some((text.parse().ok()?, false));
    };
    if let Some((last, fraction)) = last.split_once('.') {
        let grouped =
            is_grouped(whole, ',', last).then(|| format!("{whole}{last}.{fraction}").replace(',', ""));
        return Some((grouped?.parse().ok()?, false));
    }
    if is_grouped(whole, ',', last) {
        // `1,234` alone may be a decimal number; `1,234,567` is not.
        return Some((text.replace(',', "").parse().ok()?, !whole.contains(',')));
    }
    let is_plain = !whole.contains(['.', ',']);
    let is_pointed = || {
        let (first, group) = whole.rsplit_once('.')?;
        is_grouped(first, '.', group).then_some(())
    };
    (is_plain || is_pointed().is_some()).then_some(())?;
    Some((format!("{}.{last}", whole.replace('.', "")).parse().ok()?, false))
}

/// Whether separators divide a whole number into groups of thousands. `last` is the group after the last separator.
fn is_grouped(whole: &str, separator: char, last: &str) -> bool {
    let is_group = |group: &str| group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit());
    let mut groups = whole.trim_start_matches(['-', '+']).split(separator);
    let first = groups.next().unwrap_or_default();
    let is_first = (1..=3).contains(&first.len()) && first.bytes().all(|byte| byte.is_ascii_digit());
    is_first && !first.starts_with('0') && groups.all(is_group) && is_group(last)
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
        number(parts.next()?)?.0,
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
fn iso(text: &str) -> Option<(OffsetDateTime, bool)> {
    let mut text = text.replacen(' ', "T", 1).replace(' ', "");
    if let Some(at) = text.rfind(['+', '-'])
        && at > 10
        && text.len() == at + 5
        && text.get(at + 1..)?.bytes().all(|byte| byte.is_ascii_digit())
    {
        text.insert(at + 3, ':');
    }
    let zoned = OffsetDateTime::parse(&text, &Iso8601::DEFAULT).map(|at| (at, true));
    zoned
        .or_else(|_| PrimitiveDateTime::parse(&text, &Iso8601::DEFAULT).map(|at| (at.assume_utc(), false)))
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
                lenient(text).map(|(at, _)| at.to_string()).as_deref(),
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
                lenient(text).map(|(at, _)| at.to_string()).as_deref(),
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
    fn a_time_says_whether_it_has_a_zone() {
        for (text, expected) in [
            ("2026-11-20T18:46:03.120Z", true),
            ("2026-11-20 18:46:03.120 +0000", true),
            ("2026-11-20T18:46:03 JST", true),
            ("Fri, 20 Nov 2026 18:46:03 GMT", true),
            ("1795200363", true),
            ("2026-11-20T18:46:03", false),
            ("2026-11-20 18:46:03.120", false),
        ] {
            assert_eq!(
                lenient(text).map(|(_, has_zone)| has_zone),
                Some(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn a_comma_separates_thousands_or_decimals() {
        for (text, expected) in [
            ("0,160", Some((160, false))),
            ("0,03", Some((30, false))),
            ("4,500000", Some((4_500, false))),
            ("12,5", Some((12_500, false))),
            ("-0,5", Some((0, false))),
            ("00,160", Some((160, false))),
            ("1234,567", Some((1_234_567, false))),
            ("1.234,5", Some((1_234_500, false))),
            ("1,234.5", Some((1_234_500, false))),
            ("12,345,678.9", Some((12_345_678_900, false))),
            ("1,234", Some((1_234_000, true))),
            ("1,234,567", Some((1_234_567_000, false))),
            ("1,23,4", None),
            ("1,23.4", None),
            ("1.2.3,4", None),
            (",", None),
        ] {
            assert_eq!(seconds_to_ms(text), expected, "{text}");
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
                lenient(text).map(|(at, _)| at.to_string()).as_deref(),
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
        assert_eq!(seconds_to_ms("5.3e-05"), Some((0, false)));
        assert_eq!(seconds_to_ms("-345345"), Some((0, false)));
        assert_eq!(seconds_to_ms("-0.000000"), Some((0, false)));
        assert_eq!(seconds_to_ms("1,234.5"), Some((1_234_500, false)));
        assert_eq!(seconds_to_ms("0.0016"), Some((2, false)));
        assert_eq!(seconds_to_ms("00:01:02.121"), Some((62_121, false)));
        assert_eq!(seconds_to_ms("00:01:02,5"), Some((62_500, false)));
        assert_eq!(seconds_to_ms("01:02"), None);
        assert_eq!(seconds_to_ms("soon"), None);
        assert!(is_nanoseconds("999638317") && !is_nanoseconds("86400") && !is_nanoseconds("999638317.5"));
        assert_eq!(duration_ms(f64::NAN), None);
        assert_eq!(duration_ms(1e300), Some(366 * 86_400_000));
    }
}

//! Times as reports write them.

use assay_domain::timestamp::{DAY_MS, Timestamp};
use time::{
    OffsetDateTime, PrimitiveDateTime,
    format_description::well_known::{Iso8601, Rfc2822, Rfc3339},
};

/// The point in time that a text tells: ISO 8601 with or without zone (then UTC), RFC 1123, seconds or milliseconds
/// since 1970. None for what is no time, and for the first year after 1970, which only means "unknown".
pub(crate) fn lenient(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if text.is_empty() || text.len() > 64 {
        return None;
    }
    let at = if let Ok(number) = text.parse::<f64>() {
        return from_epoch(number);
    } else if let Ok(at) = OffsetDateTime::parse(text, &Rfc3339) {
        at
    } else if let Ok(at) =
        OffsetDateTime::parse(&text.replace("GMT", "+0000").replace("UTC", "+0000"), &Rfc2822)
    {
        at
    } else {
        iso(text)?
    };
    known(Timestamp::from(at))
}

/// A number of seconds or of milliseconds since 1970, told apart by its size.
pub(crate) fn from_epoch(number: f64) -> Option<Timestamp> {
    if !number.is_finite() || number <= 0.0 {
        return None;
    }
    // 1e11 seconds are the year 5138, 1e11 milliseconds are March 1973.
    let ms = if number < 1e11 { number * 1000.0 } else { number };
    known(Timestamp::from_unix_ms(whole(ms)))
}

/// Whole milliseconds of a duration in milliseconds, rounded; negative ones are 0, what is no number is none.
pub(crate) fn duration_ms(ms: f64) -> Option<u64> {
    // Nothing runs longer than a year: such figures are a clock that jumped.
    const YEAR: f64 = 366.0 * 86_400_000.0;
    if !ms.is_finite() {
        return None;
    }
    u64::try_from(whole(ms.clamp(0.0, YEAR))).ok()
}

/// Whole milliseconds of a duration in seconds as XML writes it: `5.3e-05`, `1,234.5`, `-0.000000`.
pub(crate) fn seconds_to_ms(text: &str) -> Option<u64> {
    let text = text.trim_ascii();
    let seconds: f64 = if text.as_bytes().contains(&b',') {
        text.replace(',', "").parse().ok()?
    } else {
        text.parse().ok()?
    };
    duration_ms(seconds * 1000.0)
}

#[expect(
    clippy::as_conversions,
    reason = "a float to integer cast saturates, which is what is wanted"
)]
fn whole(number: f64) -> i64 {
    number.round() as i64
}

fn known(at: Timestamp) -> Option<Timestamp> {
    (at.unix_ms() >= 365 * DAY_MS).then_some(at)
}

/// ISO 8601 as tools bend it: a space for the `T`, no zone, a zone without colon or behind a space.
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
    fn durations_never_fail() {
        assert_eq!(seconds_to_ms("5.3e-05"), Some(0));
        assert_eq!(seconds_to_ms("-345345"), Some(0));
        assert_eq!(seconds_to_ms("-0.000000"), Some(0));
        assert_eq!(seconds_to_ms("1,234.5"), Some(1_234_500));
        assert_eq!(seconds_to_ms("0.0016"), Some(2));
        assert_eq!(seconds_to_ms("soon"), None);
        assert_eq!(duration_ms(f64::NAN), None);
        assert_eq!(duration_ms(1e300), Some(366 * 86_400_000));
    }
}

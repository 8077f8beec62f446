//! Times as whole milliseconds since 1970, and their text.

use time::{OffsetDateTime, PrimitiveDateTime, macros::format_description};

/// Milliseconds of a second.
pub const SECOND: i64 = 1_000;
/// Milliseconds of a minute.
pub const MINUTE: i64 = 60 * SECOND;
/// Milliseconds of an hour.
pub const HOUR: i64 = 60 * MINUTE;
/// Milliseconds of a day.
pub const DAY: i64 = 24 * HOUR;

/// The current time.
pub fn now() -> i64 {
    (OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000) as i64
}

/// UTC with milliseconds and Z, as the API writes it.
pub fn text(time: i64) -> String {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(time) * 1_000_000)
        .unwrap()
        .format(format_description!(
            "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z"
        ))
        .unwrap()
}

/// Parses that form only.
pub fn parse(text: &str) -> Option<i64> {
    let form = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    let time = PrimitiveDateTime::parse(text, form).ok()?.assume_utc();
    Some((time.unix_timestamp_nanos() / 1_000_000) as i64)
}

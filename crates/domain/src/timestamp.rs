//! Points in time, to the millisecond, in UTC.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};

/// One day in milliseconds.
pub const DAY_MS: i64 = 86_400_000;

/// A point in time: milliseconds since 1970-01-01T00:00:00Z, within the years 0 to 9999.
///
/// The text form is ISO 8601 with milliseconds and a trailing Z: `2026-11-20T18:46:03.120Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// Returns the current time. A program passes it, because libraries do not read the clock.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// 0000-01-01T00:00:00Z.
const EARLIEST_MS: i64 = -62_167_219_200_000;
/// 9999-12-31T23:59:59.999Z.
const LATEST_MS: i64 = 253_402_300_799_999;

impl Timestamp {
    /// The point `ms` milliseconds after the Unix epoch, clamped to the years 0 to 9999.
    pub const fn from_unix_ms(ms: i64) -> Self {
        if ms < EARLIEST_MS {
            Self(EARLIEST_MS)
        } else if ms > LATEST_MS {
            Self(LATEST_MS)
        } else {
            Self(ms)
        }
    }

    /// Milliseconds since the Unix epoch.
    pub const fn unix_ms(self) -> i64 {
        self.0
    }

    /// This point moved by `ms` milliseconds (negative: earlier).
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self::from_unix_ms(self.0.saturating_add(ms))
    }

    /// This point moved by whole days of 24 hours.
    #[must_use]
    pub const fn plus_days(self, days: i64) -> Self {
        self.plus_ms(days.saturating_mul(DAY_MS))
    }

    /// The day in UTC, as the number of days since the Unix epoch.
    pub const fn day(self) -> i64 {
        self.0.div_euclid(DAY_MS)
    }

    /// The day of the month in UTC, from 1, and the days of the month after it.
    pub fn day_of_month(self) -> (u8, u8) {
        let at = OffsetDateTime::from(self);
        (at.day(), at.month().length(at.year()) - at.day())
    }

    /// Milliseconds from `earlier` to this point.
    pub const fn since_ms(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }
}

impl From<OffsetDateTime> for Timestamp {
    /// Truncates to milliseconds.
    fn from(at: OffsetDateTime) -> Self {
        Self::from_unix_ms(
            i64::try_from(at.unix_timestamp_nanos().div_euclid(1_000_000)).unwrap_or(LATEST_MS),
        )
    }
}

impl From<Timestamp> for OffsetDateTime {
    fn from(at: Timestamp) -> Self {
        // Unreachable fallback: every value within EARLIEST_MS..=LATEST_MS is a valid date.
        Self::from_unix_timestamp(at.0.div_euclid(1_000)).unwrap_or(Self::UNIX_EPOCH)
            + Duration::milliseconds(at.0.rem_euclid(1_000))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = OffsetDateTime::from(*self);
        let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
        let (hour, minute, second, ms) = (at.hour(), at.minute(), at.second(), at.millisecond());
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z"
        )
    }
}

/// The error of text that is not an RFC 3339 date-time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a date-time such as 2026-11-20T18:46:03.120Z")]
pub struct BadTimestamp;

impl FromStr for Timestamp {
    type Err = BadTimestamp;

    /// Parses RFC 3339 with any offset.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        OffsetDateTime::parse(text, &Rfc3339)
            .map(Self::from)
            .map_err(|_| BadTimestamp)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Timestamp {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        crate::schema::text("date-time", "2026-11-20T18:46:03.120Z")
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Timestamp {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_in_utc_with_milliseconds() {
        let at: Timestamp = "2026-11-20T20:46:03.1207+02:00".parse().unwrap();
        assert_eq!(at.to_string(), "2026-11-20T18:46:03.120Z");
        assert_eq!(
            serde_json::to_string(&at).unwrap(),
            "\"2026-11-20T18:46:03.120Z\""
        );
    }

    #[test]
    fn every_digit_has_its_place() {
        for text in [
            "0000-01-01T00:00:00.000Z",
            "0009-10-02T03:04:05.006Z",
            "1234-12-31T23:59:58.987Z",
            "1969-12-31T23:59:59.999Z",
            "2024-02-29T10:20:30.040Z",
            "9999-12-31T23:59:59.999Z",
        ] {
            let at: Timestamp = text.parse().unwrap();
            assert_eq!(at.to_string(), text);
            assert_eq!(serde_json::to_value(at).unwrap(), text);
        }
    }

    #[test]
    fn times_before_the_epoch_round_down() {
        let at: Timestamp = "1969-12-31T23:59:59.9995Z".parse().unwrap();
        assert_eq!(at.unix_ms(), -1);
    }

    #[test]
    fn extreme_values_stay_dates() {
        for ms in [i64::MIN, i64::MAX] {
            let at = Timestamp::from_unix_ms(ms);
            assert_eq!(at.to_string().parse::<Timestamp>().unwrap(), at);
        }
        assert_eq!(
            Timestamp::from_unix_ms(0).plus_days(i64::MAX).to_string(),
            "9999-12-31T23:59:59.999Z"
        );
    }
}

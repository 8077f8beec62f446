//! Conversion between domain values and columns.

use assay_domain::{
    attempt::AttemptStatus, release_branch::BranchPattern, store::StoreError, timestamp::Timestamp,
    vocabulary::UnknownWord,
};
use diesel::{
    define_sql_function,
    deserialize::{self, FromSql, FromSqlRow},
    expression::AsExpression,
    pg::{Pg, PgValue, data_types::PgTimestamp},
    serialize::{self, Output, ToSql},
    sql_types::{SingleValue, Timestamptz},
};
use sha2::{Digest, Sha256};

define_sql_function! {
    /// All values of a group, null if it has none. Several of these for one group have the same order.
    #[aggregate]
    fn array_agg<T: SingleValue>(value: T) -> diesel::sql_types::Nullable<diesel::sql_types::Array<T>>;
}

define_sql_function! {
    /// The first characters of a text.
    #[sql_name = "left"]
    fn beginning(text: diesel::sql_types::Nullable<diesel::sql_types::Text>, characters: diesel::sql_types::Integer)
        -> diesel::sql_types::Nullable<diesel::sql_types::Text>;
}

define_sql_function! {
    /// How many bytes a text has, known without reading a long one.
    fn octet_length(text: diesel::sql_types::Nullable<diesel::sql_types::Text>)
        -> diesel::sql_types::Nullable<diesel::sql_types::Integer>;
}

define_sql_function! {
    /// How many bytes there are, known without unpacking them.
    fn length(bytes: diesel::sql_types::Binary) -> diesel::sql_types::Integer;
}

/// How many characters of a message are read for a list: one more than [`assay_domain::excerpt`] leaves of a long
/// text.
pub(crate) const LISTED_CHARS: i32 = 2_001;

/// The stored numbers of the statuses that are failures.
pub(crate) fn failure_codes() -> impl Iterator<Item = i16> {
    let statuses = AttemptStatus::ALL.iter().copied();
    statuses.filter(|status| status.is_failure()).map(status_code)
}

/// Whether a stored text can equal this one. No stored text has a NUL, and Postgres rejects a parameter with one.
pub(crate) fn can_be_stored(text: &str) -> bool {
    !text.contains('\0')
}

/// A point in time in a `timestamptz` column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, AsExpression, FromSqlRow)]
#[diesel(sql_type = Timestamptz)]
pub(crate) struct At(pub(crate) Timestamp);

/// 2000-01-01T00:00:00Z, from which Postgres counts.
const POSTGRES_EPOCH_MS: i64 = 946_684_800_000;

impl FromSql<Timestamptz, Pg> for At {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        let PgTimestamp(micros) = FromSql::<Timestamptz, Pg>::from_sql(value)?;
        Ok(Self(Timestamp::from_unix_ms(
            micros.div_euclid(1000).saturating_add(POSTGRES_EPOCH_MS),
        )))
    }
}

impl ToSql<Timestamptz, Pg> for At {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        let micros = (self.0.unix_ms() - POSTGRES_EPOCH_MS) * 1000;
        ToSql::<Timestamptz, Pg>::to_sql(&PgTimestamp(micros), &mut out.reborrow())
    }
}

/// Parses a stored word. Fails if no version of Assay writes it.
pub(crate) fn word<T: std::str::FromStr<Err = UnknownWord>>(
    what: &'static str,
    stored: &str,
) -> Result<T, StoreError> {
    stored.parse().map_err(|_| corrupt(what, stored))
}

/// Parses the stored release branches of a project.
pub(crate) fn branch_patterns(stored: &[String]) -> Result<Vec<BranchPattern>, StoreError> {
    let pattern = |text: &String| text.parse().map_err(|_| corrupt("release branch", text));
    stored.iter().map(pattern).collect()
}

/// Parses a stored word, if there is one.
pub(crate) fn optional_word<T: std::str::FromStr<Err = UnknownWord>>(
    what: &'static str,
    stored: Option<&str>,
) -> Result<Option<T>, StoreError> {
    stored.map(|stored| word(what, stored)).transpose()
}

/// The number of a status in a column.
pub(crate) const fn status_code(status: AttemptStatus) -> i16 {
    match status {
        AttemptStatus::Passed => 0,
        AttemptStatus::Failed => 1,
        AttemptStatus::TimedOut => 2,
        AttemptStatus::Skipped => 3,
        AttemptStatus::Interrupted => 4,
    }
}

/// The status of a stored number.
pub(crate) fn status(code: i16) -> Result<AttemptStatus, StoreError> {
    AttemptStatus::ALL
        .iter()
        .copied()
        .find(|status| status_code(*status) == code)
        .ok_or_else(|| corrupt("attempt status", &code.to_string()))
}

/// Converts a stored number. Fails if it is negative or too large.
pub(crate) fn count(stored: impl TryInto<u32> + Copy + std::fmt::Display) -> Result<u32, StoreError> {
    stored
        .try_into()
        .map_err(|_| corrupt("count", &stored.to_string()))
}

/// Converts a stored number. Fails if it is negative.
pub(crate) fn long_count(stored: i64) -> Result<u64, StoreError> {
    u64::try_from(stored).map_err(|_| corrupt("count", &stored.to_string()))
}

/// A stored duration, where there is one.
pub(crate) fn duration(stored: Option<i64>) -> Result<Option<u64>, StoreError> {
    stored.map(long_count).transpose()
}

/// Converts a count to an `integer` column; such counts are far below its maximum.
pub(crate) fn int(number: impl TryInto<i32>) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}

/// Converts a number to a `bigint` column.
pub(crate) fn bigint(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The first 16 bytes of the SHA-256 of a text.
pub(crate) fn short_hash(text: &str) -> Vec<u8> {
    Sha256::digest(text.as_bytes()).iter().take(16).copied().collect()
}

/// The hash of a test's file; no file is no bytes.
pub(crate) fn file_hash(file: Option<&str>) -> Vec<u8> {
    file.map(short_hash).unwrap_or_default()
}

/// A stored value that no version of Assay writes.
pub(crate) fn corrupt(what: &'static str, value: &str) -> StoreError {
    StoreError::Corrupt {
        what,
        value: value.chars().take(200).collect(),
    }
}

/// Replaces NUL characters by U+FFFD, because Postgres cannot store NUL in a text.
pub(crate) fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_number_of_its_own() {
        for each in AttemptStatus::ALL {
            assert_eq!(status(status_code(*each)).unwrap(), *each);
        }
        assert!(matches!(status(99), Err(StoreError::Corrupt { .. })));
        assert!(matches!(count(-1), Err(StoreError::Corrupt { .. })));
    }
}

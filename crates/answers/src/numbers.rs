//! Numbers and revisions as answers have them.

/// The length of a list.
pub(crate) fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// A duration in whole milliseconds.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "saturates; a duration is far below 2^63 milliseconds"
)]
pub(crate) fn rounded(ms: f64) -> i64 {
    ms.round() as i64
}

/// A revision as sentences have it: its first eight characters.
pub(crate) fn short(revision: &str) -> String {
    revision.chars().take(8).collect()
}

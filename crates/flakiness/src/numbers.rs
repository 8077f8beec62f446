//! Conversions between counts and indices.

/// An ordinal as an index.
#[expect(
    clippy::as_conversions,
    reason = "a u32 fits every usize that the engine runs on"
)]
pub(crate) const fn at(ordinal: u32) -> usize {
    ordinal as usize
}

/// A length as a count. A count beyond `u32` would need more memory than a history can have.
pub(crate) fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// `part` divided by `whole`; `None` if `whole` is 0.
pub(crate) fn share(part: u32, whole: u32) -> Option<f64> {
    (whole > 0).then(|| f64::from(part) / f64::from(whole))
}

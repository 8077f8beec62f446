//! Values of flags, parsed once at the edge.

/// The largest number of shards.
const MOST_SHARDS: usize = 10_000;
/// Parses the number of shards.
pub(crate) fn shards(text: &str) -> Result<usize, String> {
    let number = text
        .parse()
        .ok()
        .filter(|number| (1..=MOST_SHARDS).contains(number));
    number.ok_or_else(|| format!("must be a number from 1 to {MOST_SHARDS}"))
}

/// Parses a rate.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (0.0..=1.0).contains(rate));
    rate.ok_or_else(|| "expected a rate from 0 to 1".to_owned())
}

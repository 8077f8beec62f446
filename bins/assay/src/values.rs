//! Values of flags, parsed once at the edge.

use std::time::Duration;

use assay_cli_terminal::values::age;
use assay_domain::verdict::ENGINE_WINDOW_DAYS;

/// A time of less than the engine's window: 12h, 3d.
pub(crate) fn age_in_window(text: &str) -> Result<Duration, String> {
    let longest = u64::try_from(ENGINE_WINDOW_DAYS).unwrap_or(0) * 24 * 3_600;
    age(text)
        .ok()
        .filter(|age| age.as_secs() < longest)
        .ok_or_else(|| format!("expected a time such as 12h or 3d, less than {ENGINE_WINDOW_DAYS}d"))
}

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

//! Values of flags, parsed once at the edge.

use std::time::Duration;

use assay_console::values::age;
use assay_domain::verdict::ENGINE_WINDOW_DAYS;

/// A time of less than the engine's window: 12h, 3d.
pub(crate) fn age_in_window(text: &str) -> Result<Duration, String> {
    let longest = u64::try_from(ENGINE_WINDOW_DAYS).unwrap_or(0) * 24 * 3_600;
    age(text)
        .ok()
        .filter(|age| age.as_secs() < longest)
        .ok_or_else(|| format!("expected a time such as 12h or 3d, less than {ENGINE_WINDOW_DAYS}d"))
}

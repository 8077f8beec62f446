//! The log.

use log::{Level, Log, Metadata, Record};

/// Starts to log with this filter (`env_logger` syntax).
pub(crate) fn start(filter: &str) {
    let inner = env_logger::Builder::new().parse_filters(filter).build();
    let level = inner.filter();
    // This fails only if there is another logger, and this program has none.
    if log::set_boxed_logger(Box::new(WithoutRequests(inner))).is_ok() {
        log::set_max_level(level);
    }
}

/// Hides debug output of dependencies, which has requests with the secrets of targets.
struct WithoutRequests(env_logger::Logger);

impl Log for WithoutRequests {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_own = metadata.target().starts_with("assay_");
        (is_own || metadata.level() <= Level::Info) && self.0.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            self.0.log(record);
        }
    }

    fn flush(&self) {
        self.0.flush();
    }
}

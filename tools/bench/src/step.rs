//! Messages about the progress.

/// Announces the next step on standard error.
pub(crate) fn step(what: &str) {
    eprintln!("assay-bench: {what}");
}

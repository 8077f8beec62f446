//! Wrong usage that is detected after the command line was parsed.

/// Ends the program with the exit status of wrong usage.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Misuse(pub String);

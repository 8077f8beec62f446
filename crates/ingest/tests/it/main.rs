//! Reads the variables of CI services through the public interface.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should stop"
)]

mod ci;

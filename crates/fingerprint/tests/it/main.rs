//! The fingerprint crate against a corpus of real errors, and its properties.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions
)]

mod corpus;
mod properties;

//! Access control against a store and against a real Redis.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions,
    reason = "helpers of tests"
)]

mod check;
mod directory;
mod ingest;
mod redis;
mod store;

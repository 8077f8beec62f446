//! The API over HTTP with a store in memory. The server's tests check answers from Postgres.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::disallowed_methods,
    reason = "helpers of tests"
)]

mod admin;
mod admission;
mod caching;
mod client;
mod cors;
mod envelopes;
mod failures;
mod flaky;
mod ids;
mod keys;
mod limit;
mod logging;
mod monitoring;
mod nonsense;
mod openapi;
mod parameters;
mod prompt;
mod ratchet;
mod seed;
mod socket;
mod store;

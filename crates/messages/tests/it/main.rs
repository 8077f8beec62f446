//! Messages over a simulated time, from imports by the real engine into a real Postgres.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "the helpers of tests end by panics, as tests do"
)]

mod arrives;
mod flapping;
mod interrupted;
mod slow;
mod world;

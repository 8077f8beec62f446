//! Several machines: standbys of the database, several servers, a shared Redis.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "the helpers of tests end by panics, as tests do, and tests may read the clock and the environment"
)]

mod gated;
mod instructions;
mod limit;
mod node;
mod reads;
mod world;

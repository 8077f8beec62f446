//! `assay-notify`, run as a program against a real Postgres and receivers with real sockets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "the helpers of tests end by panics, as tests do"
)]

mod answers;
mod delivery;
mod encrypted;
mod hours;
mod month;
mod program;
mod tickets;

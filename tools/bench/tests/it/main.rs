//! The program over a tiny data set and the real server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the helpers of tests end by panics, as tests do"
)]

mod suite;

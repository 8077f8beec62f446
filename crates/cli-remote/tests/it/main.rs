//! Comments on pull requests, against a server with the documented routes and limits of the code hosts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the helpers of tests end by panics, as tests do"
)]

mod jobs;
mod receiver;
mod reports;
mod services;

//! The pages, in a real browser over a real server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::disallowed_methods,
    reason = "the helpers of tests end by panics, as tests do"
)]

mod analysis;
mod answer;
mod browsing;
mod by_hand;
mod consistent;
mod demo;
mod figures;
mod filters;
mod first_run;
mod http;
mod reader;
mod sign_in;
mod world;

//! Analysis of whole histories.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions,
    reason = "the helpers of tests end by panics, as tests do"
)]

mod agreement;
mod csv;
mod page;

//! The engine from outside: the golden vectors, its properties, and a plain second implementation to compare with.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions,
    reason = "tests"
)]

mod branch_rate;
mod cases;
mod evidence;
mod failing;
mod golden;
mod history;
mod judgements;
mod properties;
mod reference;
mod reference_causes;
mod unreliable_share;

//! Tests of the engine's public interface: golden vectors, properties, and a reference implementation.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions,
    reason = "tests"
)]

mod branch_rate;
mod calendar;
mod cases;
mod everyday;
mod everyday_causes;
mod evidence;
mod failing;
mod golden;
mod history;
mod judgements;
mod mended;
mod properties;
mod reference;
mod reference_causes;
mod situations;
mod unreliable_share;
mod variant_causes;
mod variant_rates;

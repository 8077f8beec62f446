//! Reads real and hostile reports through the public interface.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions,
    reason = "a test that cannot go on should stop"
)]

mod attempt_output;
mod clocks;
mod go;
mod hostile;
mod identity;
mod junit;
mod memory;
mod others;
mod outcomes;
mod own;
mod playwright;
mod properties;
mod readings;
mod real;
mod render;
mod retries;
mod support;
#[path = "../templates/mod.rs"]
mod templates;
mod testng;
mod trx;
mod xml_hostile;

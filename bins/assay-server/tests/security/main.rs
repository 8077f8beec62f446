//! Attacks on the running server.
//!
//! ```text
//! cargo test -p assay-server --test security                                        # the default run
//! ASSAY_FUZZ_REQUESTS=100000 cargo test -p assay-server --test security fuzz        # a campaign
//! ASSAY_FUZZ_SEED=99 cargo test -p assay-server --test security fuzz                # other requests
//! cargo test -p assay-server --test security -- --ignored --nocapture timing        # the timing of absent ids
//! ```
//!
//! docs/guarantees.md names the test here that proves the defence against each threat.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::disallowed_methods,
    reason = "tests end by panics, and may read the clock and the environment"
)]

use assay_oracle::dice;

mod admin;
mod contract;
mod cors;
mod fuzz;
mod generator;
mod heads;
mod log_lines;
mod misplaced;
mod noise;
mod secrets;
mod slow;
mod sources;
mod statements;
mod tenancy;
mod timing;
mod tls;
mod upload_cost;
mod world;

//! Deliberate faults: the real programs and the test's own Postgres are stopped, killed, frozen, filled and overloaded.
//!
//! docs/guarantees.md names the test here that proves each guarantee.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "the helpers of tests end by panics, as tests do, and tests may read the clock"
)]

mod clients;
mod clock;
mod crowded;
mod full;
mod interrupted;
mod killed;
mod load;
mod memory;
mod messages;
mod outage;
mod overload;
mod paging;
mod postgres;
mod quiet;
mod raw;
mod server;
mod shutdown;
mod snapshot;
mod soak;
mod turns;
mod uploads;
mod world;

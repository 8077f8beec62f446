//! The command line `assay-admin`, run as a program against a real Postgres.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "the helpers of tests end by panics, as tests do"
)]

use assay_testkit::{pty, timed_junit as junit};

mod administration;
mod doctor;
mod export;
mod import;
mod private;
mod prune;
mod references;
mod rights;
mod setup;
mod shells;
mod sources;
mod terminal;
mod transfer;
mod usage;

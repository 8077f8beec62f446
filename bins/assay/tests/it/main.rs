//! The command line `assay`, run as a program against real and prepared servers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "the helpers of tests end by panics, as tests do"
)]

use assay_testkit::{pty, timed_junit as junit};

mod analyze;
mod backfill;
mod causes;
mod config;
mod culprit;
mod docs;
mod excuse;
mod gate;
mod help;
mod ingest;
mod merge_base;
mod owners;
mod quarantine;
mod receiver;
mod renames;
mod run;
mod split;
mod upload;
mod upload_spool;
mod uploads;
mod verify;

//! The command line, run as a program against a real Postgres.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "the helpers of tests end by panics, as tests do"
)]

mod administration;
mod analyze;
mod causes;
mod docs;
mod doctor;
mod gate;
mod hostile;
mod import;
mod ingest;
mod junit;
mod private;
mod prune;
mod pty;
mod quarantine;
mod receiver;
mod references;
mod run;
mod shells;
mod sources;
mod terminal;
mod transfer;
mod upload;
mod upload_spool;
mod usage;

//! Runs the server as a program over a real Postgres, with data from the real command line.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::disallowed_methods,
    reason = "the helpers of tests end by panics, as tests do, and tests may read the clock"
)]

mod agent_filters;
mod agents;
mod attachments;
mod backup;
mod caching;
mod cells;
mod circles;
mod configuration;
mod decisions;
mod demo;
mod deployment;
mod deployment_files;
mod durations;
mod everything;
mod failures;
mod gate;
mod gate_decisions;
mod ingest;
mod ingest_described;
mod ingest_generated;
mod ingest_protection;
mod ingest_queue;
mod ingest_senders;
mod ingest_shares;
mod ingest_terms;
mod ingest_tokens;
mod issues;
mod lifecycle;
mod one_address;
mod owners;
mod private;
mod pull_requests;
mod real_provider;
mod rerun;
mod roles;
mod shared_answers;
mod statements;

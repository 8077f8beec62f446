//! The store over a real Postgres.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions
)]

mod administration;
mod blocks;
mod bounds;
mod concurrency;
mod decisions;
mod deletion;
mod distribution;
mod explain;
mod failures;
mod fixes;
mod fixture;
mod history_cache;
mod ingest;
mod layers;
mod lost_answers;
mod migrations;
mod model;
mod naming;
mod outbox;
mod packs;
mod partitions;
mod parts;
mod plans;
mod pruning;
mod rebuilding;
mod record;
mod refingerprint;
mod renames;
mod retention;
mod runs;
mod shards;
mod shared_values;
mod shown_as;
mod signatures;
mod snapshot;
mod statements;
mod test_names;
mod tests;
mod text_counts;
mod timings;
mod transfer;
mod turns;
mod verdicts;

//! The vocabulary of Assay and the ports that a store implements.
//!
//! The other crates of the product use these types. A type in a route's answer derives [`serde::Serialize`] in the
//! API's shape (camelCase, null for unknown values). An answer with other fields has a type of its own beside its
//! computation: in `answers`, or in the crate of its route. This crate does no I/O, reads no clock and contains no HTTP or SQL.

pub mod attempt;
pub mod branch;
pub mod cause;
pub mod ci_service;
pub mod decision;
pub mod edge;
pub mod excerpt;
pub mod execution;
pub mod fix;
pub mod folding;
pub mod frame;
pub mod history;
pub mod id;
pub mod identity;
pub mod ingest;
pub mod issue;
pub mod joins;
pub mod key;
pub mod merge_queue;
pub mod observation;
pub mod outcomes;
pub mod owners;
pub mod page;
pub mod part;
pub mod period;
pub mod plain;
pub mod plan;
pub mod project;
pub mod recording;
pub mod release_branch;
pub mod renames;
pub mod rerun;
pub mod revision;
pub mod rules;
pub mod run;
#[cfg(feature = "openapi")]
mod schema;
pub mod set_up;
pub mod settings;
pub mod shell;
pub mod signature;
pub mod stable_name;
pub mod store;
pub mod test;
pub mod test_attempts;
pub mod test_names;
pub mod timestamp;
pub mod timing;
pub mod verdict;

pub mod vocabulary;

//! The ingest listener: reports over HTTP under `/ingest/v1`.
//!
//! [`configure`] mounts the routes on an actix application. [`on_continue`] decides whether a client that waits for
//! `100 Continue` may send its body. Every request goes through `routes`, which checks the rate, the key, the
//! declared length and the body, in this order. An upload is received into an unlinked temporary file
//! (`body`), unpacked and split (`parts`), and read by the parsers of `assay-admin import` (`parse`), within its key's share of
//! memory and processors (`memory`). Then it is stored, one
//! upload per project at a time (`upload`). `decision` stores the decision of a gate on an upload.

mod admit;
mod answer;
mod app;
mod body;
mod comment;
mod decision;
mod error;
mod fields;
mod fix;
mod limits;
mod memory;
mod metrics;
mod parse;
mod parts;
mod queue;
mod routes;
#[cfg(test)]
mod tests;
mod upload;

pub use self::{
    app::{App, CONNECTIONS_BESIDE_WRITERS},
    limits::{Limits, PUBLIC_DAY_MIB, PUBLIC_DAY_TESTS},
    routes::{BASE, configure, configure_own_paths, on_continue},
};

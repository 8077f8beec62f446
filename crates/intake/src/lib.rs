//! The ingest listener: reports over HTTP under `/ingest/v1`.
//!
//! [`configure`] mounts the routes on an actix application, [`on_continue`] decides whether a client that waits for
//! `100 Continue` may send its body. Every request goes through `routes`, which keeps the order of the checks: shape of the
//! key, key, rate, declared length, body. A body is received into an unlinked temporary file (`body`), unpacked and split
//! (`parts`), read by the parsers of `assay import` (`parse`), and stored in turn, one upload a project at a time (`upload`).

mod admit;
mod answer;
mod app;
mod body;
mod error;
mod fields;
mod limits;
mod metrics;
#[cfg(test)]
mod openapi;
mod parse;
mod parts;
mod routes;
mod upload;

pub use self::{
    app::{App, Clock},
    limits::Limits,
    routes::{BASE, configure, on_continue},
};

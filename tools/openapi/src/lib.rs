//! Development only: generates the OpenAPI documents of both listeners and the reference page, from what the crates
//! declare beside their routes.
//!
//! The documents are checked in under `docs`. A test of each crate fails if they are out of date. This command writes
//! them:
//!
//! ```sh
//! ASSAY_WRITE_OPENAPI=1 cargo test -p assay-http-api -p assay-http-ingest description
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "only tests use this crate"
)]

mod api;
mod errors;
mod headers;
pub mod json;
mod operation;
mod page;
mod parameters;
mod schemas;
#[cfg(test)]
mod tests;

use std::{env, fs, path::PathBuf};

pub use self::{
    api::{Api, document},
    errors::Failures,
    operation::{Failure, Operation},
    page::render,
    schemas::{NamedSchemas, Register, register},
};

/// The path of a file in `docs`.
pub fn docs(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(file)
}

/// Asserts that a file in `docs` has this text, or writes it.
#[track_caller]
pub fn assert_current(file: &str, text: &str) {
    let path = docs(file);
    if env::var_os("ASSAY_WRITE_OPENAPI").is_some() {
        fs::write(&path, text).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap() == text,
        "docs/{file} is out of date: ASSAY_WRITE_OPENAPI=1 cargo test -p assay-http-api -p assay-http-ingest description"
    );
}

//! The API over HTTP with a database that has an empty project. `bins/assay-server/tests/security` and `tools/oracle`
//! check its answers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "helpers of tests"
)]

mod admin;
mod api;
mod cors;
mod described;
mod headers;
mod keys;
mod logging;

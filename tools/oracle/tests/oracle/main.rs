//! The programs agree with the oracle: one module of tests for the routes, one for other topics.
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "tests end by panics")]

mod routes;
mod topics;

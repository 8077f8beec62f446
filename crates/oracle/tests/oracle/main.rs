//! The product agrees with its oracle: a module of tests for the routes, one for the rest.
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "tests end by panics")]

mod routes;
mod topics;

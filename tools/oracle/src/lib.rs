//! For development only: tests the programs against an oracle that is independent of their crates.
//!
//! A seed determines a generated world: organizations with plans and keys, projects with unusual branch names, and
//! sharded runs with all outcomes. Error texts of one class differ only in numbers, ids and times. [`GeneratedWorld`]
//! writes the world as Playwright's JSON reports and imports them with the real `assay`. The tests compare every route,
//! field, page, filter, count and error of the real `assay-server` with answers that [`oracle`] computes naively from
//! the same world. The oracle is based on the specification and the definitions in docs/api.md.
//!
//! ```text
//! cargo test -p assay-oracle                                # the default seed
//! cargo test -p assay-oracle --test oracle error_signatures # one topic
//! ASSAY_ORACLE_SEED=99 cargo test -p assay-oracle           # another world
//! ASSAY_TEST_PROGRAMS=/usr/local/bin cargo test -p assay-oracle   # programs built elsewhere
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::disallowed_methods,
    missing_docs,
    reason = "only tests use this crate; it drives the programs from outside, with their clock and environment"
)]

pub mod analyze;
pub mod checks;
pub mod clock;
pub mod comparison;
pub mod dice;
pub mod generated_world;
pub mod generator;
pub mod habits;
pub mod hostile;
pub mod http;
pub mod importer;
pub mod oracle;
pub mod playwright;
pub mod stack;
pub mod texts;
pub mod world;

pub use generated_world::GeneratedWorld;

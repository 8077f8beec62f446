//! The programs over a database that Citus distributes over several machines.
//!
//! The tests need a cluster of Citus 13 on this machine, which nothing else uses. `ASSAY_CITUS_URL` names the database
//! of its coordinator with the workers in the metadata of the extension:
//!
//! ```text
//! ASSAY_CITUS_URL='postgresql:///postgres?host=127.0.0.1&port=9700&user=postgres' \
//!     cargo test -p assay-server --test citus -- --ignored --nocapture
//! ```
//!
//! How to make one, with Postgres and the extension's files installed (https://docs.citusdata.com has packages):
//!
//! 1. `initdb --auth=trust -U postgres -D FOLDER` for a coordinator and at least two workers.
//! 2. In each `postgresql.conf`: `shared_preload_libraries = 'citus'`, `listen_addresses = '127.0.0.1'`, a `port` of
//!    its own, `unix_socket_directories = '/tmp'`, `max_connections = 300`, `max_prepared_transactions = 200`,
//!    `wal_level = logical`, `citus.node_conninfo = 'sslmode=prefer'`.
//! 3. `postgres -D FOLDER` for each, as the owner of the folder.
//! 4. `CREATE EXTENSION citus` in the database `postgres` of each.
//! 5. On the coordinator: `SELECT citus_set_coordinator_host('127.0.0.1', PORT)`, and
//!    `SELECT citus_add_node('127.0.0.1', PORT)` for each worker.
//!
//! Each test creates a database of its own on every node, and roles, and drops them. One test kills a worker with
//! SIGKILL and starts it again, so the tests run as the workers' user or as root.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::disallowed_methods,
    missing_docs,
    reason = "tests end by panics"
)]

mod answers;
mod cluster;
#[path = "../it/everything.rs"]
mod everything;
#[path = "../scale/gated.rs"]
mod gated;
mod load;
mod outages;
mod price;

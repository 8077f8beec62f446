//! The database: schema, pool, reads and the import transaction.
//!
//! [`Database`] implements the ports of [`assay_domain`]: `Store` for the read API (`store`), `Recorder` for the
//! importer (`record`), `Administration` for the command line and `IngestKeys` for the ingest listener (both in
//! `admin`).
//!
//! Each of these layers uses only those named before it: `db`, `read`, `record`, `admin`.
//!
//! Every statement on a per-project table binds the project as a constant, also for each joined table. Reads
//! for the API exclude results past the retention by the run's start, which `run`, `result_block`, `attempt` and
//! `run_pack` have.

mod admin;
mod database;
mod db;
mod read;
mod record;
mod store;

pub use admin::{
    diagnosis::{
        BlockCounts, Inspection, MessagedProject, ProjectState, Rights, ServerFacts, TableSize,
        UndeliveredMessages,
    },
    distribute::{distribute, undistributed},
    export::{ExportRow, ExportValue, ExportedRun},
    migrate::{SchemaComparison, compare_schema, grant_roles, migrate, pending, revert_all},
    outbox::OutboxLock,
    rebuild::RebuildCounts,
};
pub use database::{Database, WaitingFor};
pub use db::{
    connection_string::{InvalidConnectionString, check_connection_string, is_down, is_transient},
    pool::PoolOptions,
};

//! The only user of the database: schema, pool, reads and the import transaction.
//!
//! [`Database`] implements the ports of [`assay_domain::store`]: `Store` for the read API, `Recorder` for the
//! importer, `Administration` for the command line. One file a noun; `record` is the import transaction.
//!
//! Every statement on a per-project table binds the project as a constant, also for each joined table. It excludes
//! results past the retention by the run's start, which each such table has.

mod administration;
mod attempt;
mod branch;
mod browser;
mod column;
mod connection_string;
mod daily_counts;
mod deletion;
mod diagnosis;
mod failed_run;
mod history;
mod history_cache;
mod intake;
mod key;
mod migrate;
mod observation;
mod organization;
mod pack;
mod period;
mod pool;
mod project;
mod prune;
mod rebuild;
mod record;
mod refingerprint;
mod replica;
mod revision;
mod run;
mod run_detail;
mod run_list;
#[rustfmt::skip]
mod schema;
mod shard;
mod signature;
mod signature_counts;
mod signature_detail;
mod signature_list;
mod sql_statement;
mod store;
mod test;
mod verdict;

use std::sync::Mutex;

use diesel::{
    PgConnection,
    r2d2::{ConnectionManager, Pool},
};
use uuid::ContextV7;

pub use connection_string::{InvalidConnectionString, check_connection_string, is_passing};
pub use diagnosis::{Inspection, ProjectState, Rights, ServerFacts, TableSize};
pub use migrate::{Standing, grant_roles, migrate, pending, revert_all, schema_standing};
pub use pool::PoolOptions;
pub use rebuild::Rebuilt;

/// A store of results in Postgres, shared by any number of threads.
pub struct Database {
    pool: Pool<ConnectionManager<PgConnection>>,
    connection_string: connection_string::ConnectionString,
    ids: Mutex<ContextV7>,
    used_today: key::UsedToday,
    histories: history_cache::HistoryCache,
    replicas: Option<replica::Replicas>,
    options: pool::PoolOptions,
    /// Is called while an import waits.
    waiting: Option<WaitingListener>,
}

/// What an import waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitingFor {
    /// Another import into the same project.
    OtherImport,
    /// The database, which was lost or has no free connection.
    Database,
}

/// Is called while an import waits, with how long it has waited.
type WaitingListener = Box<dyn Fn(WaitingFor, std::time::Duration) + Send + Sync>;

impl std::fmt::Debug for Database {
    /// Shows the pool's state, and not its address, which contains a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("pool", &self.pool.state())
            .finish_non_exhaustive()
    }
}

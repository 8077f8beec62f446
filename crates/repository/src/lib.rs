//! The only user of the database: schema, pool, reads and the import transaction.
//!
//! [`Database`] implements the ports of [`assay_domain::store`]: `Store` for the read API, `Recorder` for the
//! importer, `Administration` for the command line. One file a noun; [`record`] is the import transaction.

mod column;
mod key;
mod migrate;
mod pool;
#[rustfmt::skip]
mod schema;

use std::sync::Mutex;

use diesel::{
    PgConnection,
    r2d2::{ConnectionManager, Pool},
};
use uuid::ContextV7;

pub use migrate::{migrate, pending, revert_all};
pub use pool::PoolOptions;

/// A store of results in Postgres, shared by any number of threads.
#[derive(Debug)]
pub struct Database {
    pool: Pool<ConnectionManager<PgConnection>>,
    ids: Mutex<ContextV7>,
    used_today: key::UsedToday,
}

//! Postgres as this store reaches it: the connections to the primary, and its standbys.

use std::sync::atomic::AtomicU64;

use assay_domain::store::StoreError;
use diesel::r2d2::R2D2Connection;

use super::{
    connection_string::ConnectionString,
    pool::{ConnectionPool, PoolOptions, new_pool},
    standbys::Standbys,
};

/// The connections to the primary, and the standbys that may be read. Everything that runs a statement goes through it.
pub struct Postgres {
    pub(crate) pool: ConnectionPool,
    pub(crate) connection_string: ConnectionString,
    pub(crate) standbys: Option<Standbys>,
    /// Reads of data that the primary answered.
    pub(crate) primary_reads: AtomicU64,
    /// Reads of data that a standby answered.
    pub(crate) standby_reads: AtomicU64,
    pub(crate) options: PoolOptions,
}

impl Postgres {
    /// Connects to the primary and checks that it answers.
    pub(crate) fn connect(url: &str, options: PoolOptions) -> Result<Self, StoreError> {
        let connection_string = ConnectionString::new(url)?;
        let postgres = Self {
            pool: new_pool(&connection_string, options),
            connection_string,
            standbys: None,
            primary_reads: AtomicU64::new(0),
            standby_reads: AtomicU64::new(0),
            options,
        };
        postgres.query("connecting", |connection| connection.ping())?;
        Ok(postgres)
    }
}

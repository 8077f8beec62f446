//! The store itself: Postgres, and what is kept in memory.

use std::{
    ops::Deref,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use assay_domain::{store::StoreError, timestamp::Timestamp};
use uuid::{ContextV7, Uuid};

use crate::{
    db::{connection_string::ConnectionString, pool::PoolOptions, postgres::Postgres, standbys::Standbys},
    read::{history_cache::HistoryCache, shared_values::SharedValues, test_name_cache::TestNameCache},
};

/// A store of results in Postgres, shared by any number of threads.
pub struct Database {
    postgres: Postgres,
    ids: Mutex<ContextV7>,
    pub(crate) histories: HistoryCache,
    pub(crate) test_names: TestNameCache,
    pub(crate) shared_values: SharedValues,
    /// Is called while an import waits.
    pub(crate) waiting: Option<WaitingListener>,
}

/// The reason why an import waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitingFor {
    /// Another import into the same project.
    OtherImport,
    /// The database, which was lost or has no free connection.
    Database,
}

/// Is called while an import waits, with how long it has waited.
pub(crate) type WaitingListener = Box<dyn Fn(WaitingFor, Duration) + Send + Sync>;

impl Database {
    /// Connects to the database of this connection string and checks that it answers.
    pub fn connect(url: &str, options: impl Into<PoolOptions>) -> Result<Self, StoreError> {
        Ok(Self {
            postgres: Postgres::connect(url, options.into())?,
            ids: Mutex::new(ContextV7::new()),
            histories: HistoryCache::default(),
            test_names: TestNameCache::default(),
            shared_values: SharedValues::default(),
            waiting: None,
        })
    }

    /// Allows reads of data from the standbys behind this reader address.
    ///
    /// Returns immediately. While no standby is reached, the primary answers. Fails only if the connection string is
    /// invalid.
    pub fn with_standbys(mut self, url: &str, options: impl Into<PoolOptions>) -> Result<Self, StoreError> {
        self.postgres.standbys = Some(Standbys::new(ConnectionString::new(url)?, options.into()));
        Ok(self)
    }

    /// Calls `listener` while an import waits, with how long it has waited.
    pub fn on_waiting(&mut self, listener: impl Fn(WaitingFor, Duration) + Send + Sync + 'static) {
        self.waiting = Some(Box::new(listener));
    }

    /// A new id, later than all before it.
    pub(crate) fn new_id(&self, now: Timestamp) -> Uuid {
        let ms = u64::try_from(now.unix_ms()).unwrap_or(0);
        let nanos = u32::try_from(ms % 1000).unwrap_or(0) * 1_000_000;
        let context = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        Uuid::new_v7(uuid::Timestamp::from_unix(&*context, ms / 1000, nanos))
    }
}

/// Statements run on the connections of the store.
impl Deref for Database {
    type Target = Postgres;

    fn deref(&self) -> &Postgres {
        &self.postgres
    }
}

impl std::fmt::Debug for Database {
    /// Shows the pool's state, and not its address, which contains a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("pool", &self.pool.state())
            .finish_non_exhaustive()
    }
}

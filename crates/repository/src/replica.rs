//! Reads of data from standbys that keep up with the primary.
//!
//! Who may ask is always decided by the primary; what is answered may come from a standby, unless that is more than a
//! second behind. A request never waits for a standby: connections are made in the background, and a standby that is
//! lost, behind, or fails at a statement costs no more than the same question to the primary.
//!
//! How far a standby is behind is told by positions in the write-ahead log, not by clocks: a standby has to have replayed
//! everything that the primary had written out at some moment of the last second. So the machines' clocks do not matter,
//! and neither do a primary that writes nothing and a standby that has lost its primary unnoticed.

mod horizon;
mod standby;
mod trouble;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use assay_domain::store::StoreError;
use diesel::{
    PgConnection, RunQueryDsl,
    dsl::{select, sql},
    r2d2::{Pool, PooledConnection},
    result::Error as QueryError,
    sql_types::BigInt,
};

use self::{
    horizon::{Horizon, Needed, OLDEST},
    standby::Standbys,
    trouble::{Trouble, Unreachable},
};
use crate::{
    Database,
    connection_string::ConnectionString,
    pool::{PoolOptions, Read, WorkError},
};

/// Twice the longest pause between attempts to reach a standby that is lost.
const RECONNECT: Duration = Duration::from_secs(4);
/// How long a connection lives, so that a standby that came back gets its share again.
const LIFETIME: Duration = Duration::from_secs(300);

impl Database {
    /// Lets reads of data go to the standbys of this connection string, which may name several hosts.
    ///
    /// Returns at once: until a standby is reached, and whenever none is, the primary answers. Fails only where the
    /// connection string is not valid.
    pub fn with_replicas(mut self, url: &str, options: impl Into<PoolOptions>) -> Result<Self, StoreError> {
        self.replicas = Some(Replicas::new(ConnectionString::new(url)?, options.into()));
        Ok(self)
    }

    /// Asks one question about data, over a standby if one keeps up.
    pub(crate) fn data<T>(
        &self,
        doing: &'static str,
        mut work: impl FnMut(&mut PgConnection) -> Read<T>,
    ) -> Result<T, StoreError> {
        match self.standby_answer(doing, &mut work)? {
            Some(answer) => Ok(answer),
            None => self.run(doing, work),
        }
    }

    /// Runs several reads of data over one state of one database.
    pub(crate) fn read<T>(
        &self,
        doing: &'static str,
        mut work: impl FnMut(&mut PgConnection) -> Read<T>,
    ) -> Result<T, StoreError> {
        self.data(doing, |connection| in_one_state(connection, &mut work))
    }

    /// The same for what is asked for by an id.
    pub(crate) fn read_known<T>(
        &self,
        doing: &'static str,
        mut work: impl FnMut(&mut PgConnection) -> Read<Option<T>>,
    ) -> Result<Option<T>, StoreError> {
        self.known(doing, |connection| in_one_state(connection, &mut work))
    }

    /// Asks one question about what is asked for by an id. What a standby does not have is looked for on the primary, so
    /// that a run is found as soon as its id was told.
    pub(crate) fn known<T>(
        &self,
        doing: &'static str,
        mut work: impl FnMut(&mut PgConnection) -> Read<Option<T>>,
    ) -> Result<Option<T>, StoreError> {
        match self.standby_answer(doing, &mut work)?.flatten() {
            Some(found) => Ok(Some(found)),
            None => self.run(doing, work),
        }
    }

    fn standby_answer<T>(
        &self,
        doing: &'static str,
        work: impl FnMut(&mut PgConnection) -> Read<T>,
    ) -> Result<Option<T>, StoreError> {
        match &self.replicas {
            Some(replicas) => replicas.answer(doing, || self.position(), work),
            None => Ok(None),
        }
    }

    /// How far the primary has written its log out.
    fn position(&self) -> Result<i64, StoreError> {
        self.run("reading the primary's position", |connection| {
            let written = "pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint";
            Ok::<_, WorkError<StoreError>>(select(sql::<BigInt>(written)).get_result(connection)?)
        })
    }
}

/// Runs several reads in one repeatable-read transaction, so that they see one state of the database.
pub(crate) fn in_one_state<T>(
    connection: &mut PgConnection,
    work: impl FnMut(&mut PgConnection) -> Read<T>,
) -> Read<T> {
    connection
        .build_transaction()
        .read_only()
        .repeatable_read()
        .run(work)
}

/// The standbys.
pub(crate) struct Replicas {
    pool: Pool<Standbys>,
    horizon: Mutex<Horizon>,
    trouble: Arc<Trouble>,
    statement_timeout: Duration,
}

impl Replicas {
    fn new(connection_string: ConnectionString, options: PoolOptions) -> Self {
        let trouble = Arc::new(Trouble::default());
        let manager = Standbys::new(&connection_string, options.statement_timeout);
        let pool = Pool::builder()
            .max_size(options.size.max(1))
            .connection_timeout(RECONNECT)
            .max_lifetime(Some(LIFETIME))
            .test_on_check_out(false)
            .error_handler(Box::new(Unreachable {
                connection_string,
                trouble: Arc::clone(&trouble),
            }))
            .build_unchecked(manager);
        Self {
            pool,
            horizon: Mutex::default(),
            trouble,
            statement_timeout: options.statement_timeout,
        }
    }

    /// The answer of a standby; none where none keeps up or can answer. Fails only where asking the primary as well would
    /// take as long again.
    fn answer<T>(
        &self,
        doing: &'static str,
        position: impl FnOnce() -> Result<i64, StoreError>,
        mut work: impl FnMut(&mut PgConnection) -> Read<T>,
    ) -> Result<Option<T>, StoreError> {
        let Some(needed) = self.needed(position) else {
            return Ok(None);
        };
        let Some(mut standby) = self.one_that_keeps_up(&needed) else {
            return Ok(None);
        };
        let begun = Instant::now();
        match work(&mut standby.connection) {
            Ok(answer) => {
                self.trouble.over();
                Ok(Some(answer))
            }
            Err(WorkError::Query(error)) if begun.elapsed() >= self.statement_timeout => {
                Err(StoreError::Failed {
                    doing,
                    source: Box::new(error),
                })
            }
            // What is missing here, or does not fit together, may be about to arrive; the primary has the last word.
            Err(WorkError::Refused(_) | WorkError::Query(QueryError::NotFound)) => Ok(None),
            Err(WorkError::Query(error)) => {
                self.trouble.tell(&format_args!("{doing} failed: {error}"));
                Ok(None)
            }
        }
    }

    /// The position that a standby must have reached; none where the primary does not tell it.
    fn needed(&self, position: impl FnOnce() -> Result<i64, StoreError>) -> Option<Needed> {
        let horizon = || self.horizon.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if horizon().is_due(now) {
            match position() {
                Ok(position) => horizon().learn(now, position),
                Err(error) => self.trouble.tell(&error),
            }
        }
        horizon().needed(Instant::now())
    }

    /// A connection to a standby that has reached this position, without waiting for one.
    fn one_that_keeps_up(&self, needed: &Needed) -> Option<PooledConnection<Standbys>> {
        let mut behind = Vec::new();
        for _ in 0..self.pool.max_size() {
            let Some(mut standby) = self.pool.try_get() else {
                break;
            };
            match standby.has_reached(needed.position, Instant::now()) {
                Ok(true) => return Some(standby),
                // Held until another is found, or it would come again.
                Ok(false) => behind.push(standby),
                Err(error) => self.trouble.tell(&error),
            }
        }
        // The first read after a pause knows a moment ago only, which every standby is a little behind.
        if !behind.is_empty() && needed.at.elapsed() > OLDEST / 2 {
            self.trouble.tell(&"it is too far behind");
        }
        None
    }
}

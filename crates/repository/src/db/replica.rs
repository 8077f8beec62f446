//! Reads from standbys that keep up with the primary.
//!
//! Keys and plans are always read from the primary. Data may come from a standby that is at most a second behind. A
//! request never waits for a standby: connections are opened in the background. If a standby is lost, behind, or
//! fails at a statement, the primary is asked instead.
//!
//! The lag is measured by positions in the write-ahead log, not by clocks. A standby must have replayed everything
//! that the primary had written at some moment of the last second. The machines' clocks therefore do not matter. An
//! idle primary does not make its standbys look late, and a standby that lost its primary without noticing is
//! detected.

mod horizon;
mod nodes;
mod standby;
mod trouble;

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use assay_domain::store::{NodeReads, StoreError};
use diesel::{
    PgConnection, RunQueryDsl,
    dsl::{select, sql},
    r2d2::{Pool, PooledConnection},
    result::Error as QueryError,
    sql_types::BigInt,
};

use self::{
    horizon::{Horizon, OLDEST, RequiredPosition},
    nodes::KnownStandbys,
    standby::Standbys,
    trouble::{Trouble, Unreachable},
};
use crate::{
    Database,
    db::{
        connection_string::ConnectionString,
        pool::{PoolOptions, Read, WorkError},
    },
};

/// Twice the longest pause between attempts to reach a standby that is lost.
const RECONNECT: Duration = Duration::from_secs(4);
/// Lifetime of a connection, so that a standby that returned gets its share again.
const LIFETIME: Duration = Duration::from_secs(300);

impl Database {
    /// Allows reads of data from the standbys of this connection string, which may name several hosts.
    ///
    /// Returns immediately. While no standby is reached, the primary answers. Fails only if the connection string is
    /// invalid.
    pub fn with_replicas(mut self, url: &str, options: impl Into<PoolOptions>) -> Result<Self, StoreError> {
        self.replicas = Some(Replicas::new(ConnectionString::new(url)?, options.into()));
        Ok(self)
    }

    /// Runs one read of data, on a standby if one keeps up.
    pub(crate) fn on_standby<T>(
        &self,
        doing: &'static str,
        mut work: impl FnMut(&mut PgConnection) -> Read<T>,
    ) -> Result<T, StoreError> {
        match self.standby_answer(doing, &mut work)? {
            Some(answer) => Ok(answer),
            None => self.primary_answer(doing, work),
        }
    }

    /// Runs several reads of data over one state of one database.
    pub(crate) fn in_snapshot<T>(
        &self,
        doing: &'static str,
        mut work: impl FnMut(&mut PgConnection) -> Read<T>,
    ) -> Result<T, StoreError> {
        self.on_standby(doing, |connection| in_one_state(connection, &mut work))
    }

    /// The same for reads by an id.
    pub(crate) fn find_in_snapshot<T>(
        &self,
        doing: &'static str,
        mut work: impl FnMut(&mut PgConnection) -> Read<Option<T>>,
    ) -> Result<Option<T>, StoreError> {
        self.find_on_standby(doing, |connection| in_one_state(connection, &mut work))
    }

    /// Runs one read by an id. If a standby lacks the row, the primary is asked, so that a run is found as soon as
    /// its id is known.
    pub(crate) fn find_on_standby<T>(
        &self,
        doing: &'static str,
        mut work: impl FnMut(&mut PgConnection) -> Read<Option<T>>,
    ) -> Result<Option<T>, StoreError> {
        match self.standby_answer(doing, &mut work)?.flatten() {
            Some(found) => Ok(Some(found)),
            None => self.primary_answer(doing, work),
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

    fn primary_answer<T>(
        &self,
        doing: &'static str,
        work: impl FnMut(&mut PgConnection) -> Read<T>,
    ) -> Result<T, StoreError> {
        let answer = self.on_primary(doing, work)?;
        self.primary_reads.fetch_add(1, Ordering::Relaxed);
        Ok(answer)
    }

    /// The reads of data by node, the primary first.
    pub(crate) fn counted_reads(&self) -> Vec<NodeReads> {
        let primary = NodeReads {
            node: "primary".to_owned(),
            reads: self.primary_reads.load(Ordering::Relaxed),
            standby_connections: None,
        };
        let standbys = self.replicas.iter().flat_map(|replicas| replicas.known.counts());
        std::iter::once(primary).chain(standbys).collect()
    }

    /// How far the primary has written its log out.
    fn position(&self) -> Result<i64, StoreError> {
        self.on_primary("reading the primary's position", |connection| {
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
    known: Arc<KnownStandbys>,
    statement_timeout: Duration,
}

impl Replicas {
    fn new(connection_string: ConnectionString, options: PoolOptions) -> Self {
        let trouble = Arc::new(Trouble::default());
        let known = Arc::new(KnownStandbys::default());
        let manager = Standbys::new(&connection_string, options.statement_timeout, Arc::clone(&known));
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
            known,
            statement_timeout: options.statement_timeout,
        }
    }

    /// The answer of a standby; none if none keeps up or can answer. Fails only where asking the primary too would
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
                standby.node.count_read();
                Ok(Some(answer))
            }
            Err(WorkError::Query(error)) if begun.elapsed() >= self.statement_timeout => {
                Err(StoreError::Failed {
                    doing,
                    source: Box::new(error),
                })
            }
            // Missing or inconsistent rows may be about to arrive, so the primary decides.
            Err(WorkError::Refused(_) | WorkError::Query(QueryError::NotFound)) => Ok(None),
            Err(WorkError::Query(error)) => {
                self.trouble.report(&format_args!("{doing} failed: {error}"));
                Ok(None)
            }
        }
    }

    /// The position that a standby must have reached; none if the primary does not show it.
    fn needed(&self, position: impl FnOnce() -> Result<i64, StoreError>) -> Option<RequiredPosition> {
        let horizon = || self.horizon.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if horizon().is_due(now) {
            match position() {
                Ok(position) => horizon().learn(now, position),
                Err(error) => self.trouble.report(&error),
            }
        }
        horizon().needed(Instant::now())
    }

    /// A connection to a standby that has reached this position, without waiting for one.
    fn one_that_keeps_up(&self, needed: &RequiredPosition) -> Option<PooledConnection<Standbys>> {
        let mut behind = Vec::new();
        for _ in 0..self.pool.max_size() {
            let Some(mut standby) = self.pool.try_get() else {
                break;
            };
            match standby.has_reached(needed.position, Instant::now()) {
                Ok(true) => return Some(standby),
                // Not dropped until another is found, or the pool would return it again.
                Ok(false) => behind.push(standby),
                Err(error) => self.trouble.report(&error),
            }
        }
        // The first read after a pause has only a very recent position, which every standby may still lack.
        if !behind.is_empty() && needed.at.elapsed() > OLDEST / 2 {
            self.trouble.report(&"it is too far behind");
        }
        None
    }
}

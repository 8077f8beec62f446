//! Reads from standbys that keep up with the primary.
//!
//! Keys and plans are always read from the primary. Data may come from a standby that is at most a second behind. A
//! request never waits for a standby: connections are opened in the background. If a standby is lost, behind, or
//! fails at a statement, the primary is read instead.
//!
//! The lag is measured by positions in the write-ahead log, not by clocks. A standby must have replayed everything
//! that the primary had written at some moment of the last second. The machines' clocks therefore do not matter. An
//! idle primary does not make its standbys look late, and a standby that lost its primary without noticing is
//! detected.

mod failover_log;
mod nodes;
mod positions;
mod standby;

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use assay_domain::store::{NodeReads, StoreError};
use diesel::{
    PgConnection, RunQueryDsl,
    connection::{AnsiTransactionManager, TransactionManager as _},
    dsl::{select, sql},
    r2d2::{Pool, PooledConnection},
    result::Error as QueryError,
    sql_types::BigInt,
};

use self::{
    failover_log::{ConnectErrorLog, FailoverLog},
    nodes::KnownStandbys,
    positions::{MAX_AGE, PrimaryPositions, RequiredPosition},
    standby::StandbyManager,
};
use crate::db::{
    connection_string::ConnectionString,
    pool::{PoolOptions, Read, WorkError},
    postgres::Postgres,
};

/// Twice the longest pause between attempts to reach a standby that is lost.
const RECONNECT: Duration = Duration::from_secs(4);
/// Lifetime of a connection, so that a standby that returned gets its share again.
const LIFETIME: Duration = Duration::from_secs(300);

impl Postgres {
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

    /// Like [`Self::in_snapshot`] for reads by an id. If a standby lacks the row, the primary is read.
    pub(crate) fn find_in_snapshot<T>(
        &self,
        doing: &'static str,
        mut work: impl FnMut(&mut PgConnection) -> Read<Option<T>>,
    ) -> Result<Option<T>, StoreError> {
        self.find_on_standby(doing, |connection| in_one_state(connection, &mut work))
    }

    /// Runs one read by an id. If a standby lacks the row, the primary is read, so that a run is found as soon as
    /// its id is known.
    pub(crate) fn find_on_standby<T>(
        &self,
        doing: &'static str,
        mut work: impl FnMut(&mut PgConnection) -> Read<Option<T>>,
    ) -> Result<Option<T>, StoreError> {
        match self.standby_answer(doing, &mut work)?.flatten() {
            Some(row) => Ok(Some(row)),
            None => self.primary_answer(doing, work),
        }
    }

    fn standby_answer<T>(
        &self,
        doing: &'static str,
        work: impl FnMut(&mut PgConnection) -> Read<T>,
    ) -> Result<Option<T>, StoreError> {
        match &self.standbys {
            Some(standbys) => standbys.answer(doing, || self.position(), work),
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
        let standbys = self.standbys.iter().flat_map(|standbys| standbys.nodes.counts());
        std::iter::once(primary).chain(standbys).collect()
    }

    /// The position up to which the primary has flushed its log.
    fn position(&self) -> Result<i64, StoreError> {
        self.on_primary("reading the primary's position", |connection| {
            let flushed = "pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint";
            Ok::<_, WorkError<StoreError>>(select(sql::<BigInt>(flushed)).get_result(connection)?)
        })
    }
}

/// Runs several reads in one repeatable-read transaction, so that they see one state of the database.
pub(crate) fn in_one_state<T>(
    connection: &mut PgConnection,
    mut work: impl FnMut(&mut PgConnection) -> Read<T>,
) -> Read<T> {
    let status = AnsiTransactionManager::transaction_manager_status_mut(connection);
    if status.transaction_depth().is_ok_and(|depth| depth.is_some()) {
        return work(connection);
    }
    connection
        .build_transaction()
        .read_only()
        .repeatable_read()
        .run(work)
}

/// The standbys.
pub(crate) struct Standbys {
    pool: Pool<StandbyManager>,
    positions: Mutex<PrimaryPositions>,
    failover_log: Arc<FailoverLog>,
    nodes: Arc<KnownStandbys>,
    statement_timeout: Duration,
}

impl Standbys {
    pub(crate) fn new(connection_string: ConnectionString, options: PoolOptions) -> Self {
        let failover_log = Arc::new(FailoverLog::default());
        let nodes = Arc::new(KnownStandbys::default());
        let manager = StandbyManager::new(&connection_string, options.statement_timeout, Arc::clone(&nodes));
        let pool = Pool::builder()
            .max_size(options.size.max(1))
            .connection_timeout(RECONNECT)
            .max_lifetime(Some(LIFETIME))
            .test_on_check_out(false)
            .error_handler(Box::new(ConnectErrorLog {
                connection_string,
                failover_log: Arc::clone(&failover_log),
            }))
            .build_unchecked(manager);
        Self {
            pool,
            positions: Mutex::default(),
            failover_log,
            nodes,
            statement_timeout: options.statement_timeout,
        }
    }

    /// The answer of a standby; none if no standby keeps up or can answer. Fails only if the statement reached its time
    /// limit, because the primary would take as long again.
    fn answer<T>(
        &self,
        doing: &'static str,
        position: impl FnOnce() -> Result<i64, StoreError>,
        mut work: impl FnMut(&mut PgConnection) -> Read<T>,
    ) -> Result<Option<T>, StoreError> {
        let Some(required) = self.required_position(position) else {
            return Ok(None);
        };
        let Some(mut standby) = self.caught_up_standby(&required) else {
            return Ok(None);
        };
        let started = Instant::now();
        match work(&mut standby.connection) {
            Ok(answer) => {
                self.failover_log.log_recovery();
                standby.node.count_read();
                Ok(Some(answer))
            }
            Err(WorkError::Query(error)) if started.elapsed() >= self.statement_timeout => {
                Err(StoreError::Failed {
                    doing,
                    source: Box::new(error),
                })
            }
            // Missing or inconsistent rows may be about to arrive, so the primary decides.
            Err(WorkError::Refused(_) | WorkError::Query(QueryError::NotFound)) => Ok(None),
            Err(WorkError::Query(error)) => {
                self.failover_log.report(&format_args!("{doing} failed: {error}"));
                Ok(None)
            }
        }
    }

    /// The position that a standby must have reached; none if the primary does not show it.
    fn required_position(
        &self,
        position: impl FnOnce() -> Result<i64, StoreError>,
    ) -> Option<RequiredPosition> {
        let positions = || self.positions.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if positions().is_due(now) {
            match position() {
                Ok(position) => positions().record(now, position),
                Err(error) => self.failover_log.report(&error),
            }
        }
        positions().oldest_recent(Instant::now())
    }

    /// A connection to a standby that has reached this position, without waiting for one.
    fn caught_up_standby(&self, required: &RequiredPosition) -> Option<PooledConnection<StandbyManager>> {
        let mut behind = Vec::new();
        for _ in 0..self.pool.max_size() {
            let Some(mut standby) = self.pool.try_get() else {
                break;
            };
            match standby.has_reached(required.position, Instant::now()) {
                Ok(true) => return Some(standby),
                // Not dropped until another is found, or the pool would return it again.
                Ok(false) => behind.push(standby),
                Err(error) => self.failover_log.report(&error),
            }
        }
        // The first read after a pause has only a very recent position, which every standby may still lack.
        if !behind.is_empty() && required.at.elapsed() > MAX_AGE / 2 {
            self.failover_log.report(&"it is too far behind");
        }
        None
    }
}

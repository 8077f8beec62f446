//! Reads from standbys behind one reader address.
//!
//! The address may be several hosts of libpq, a cloud's reader endpoint, a proxy or a pooler in session mode: they
//! choose the standby of a connection and detect its loss. This module keeps one promise: an answer is at most a second
//! behind the primary, or comes from the primary. Keys and plans are always read from the primary. A request never
//! waits for a standby, because connections are opened in the background.
//!
//! The lag is measured by positions in the write-ahead log, not by clocks. A standby must have replayed everything
//! that the primary had written at some moment of the last second. An idle primary therefore does not make its standbys
//! look late, and a standby that lost its primary without noticing is detected. The connection to a late standby is
//! closed, so that the address chooses again.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use assay_domain::store::StoreError;
use diesel::{
    PgConnection, RunQueryDsl,
    dsl::{select, sql},
    r2d2::{ConnectionManager, Error, HandleError, PooledConnection},
    result::Error as QueryError,
    sql_types::BigInt,
};

use crate::db::{
    connection_string::ConnectionString,
    pool::{ConnectionPool, PoolOptions, Read, WorkError, builder, end_session, in_one_state},
    postgres::Postgres,
};

/// Twice the longest pause between attempts to reach a standby that is lost.
const RECONNECT: Duration = Duration::from_secs(4);
/// Lifetime of a connection, so that a standby that returned gets its share again.
const LIFETIME: Duration = Duration::from_secs(300);
/// The largest lag of a standby's answer behind the primary.
const MAX_AGE: Duration = Duration::from_secs(1);
/// Interval of reading the primary's position, while there are reads.
const READ_INTERVAL: Duration = Duration::from_millis(250);
/// How long the primary answers after a late standby was found.
const PAUSE: Duration = Duration::from_millis(100);
/// Shortest interval between log lines about lost standbys.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// Default parameters of the reader address. Its time limits are short, because the primary can answer.
const PARAMETERS: [(&str, &str); 6] = [
    ("target_session_attrs", "standby"),
    ("load_balance_hosts", "random"),
    ("connect_timeout", "2"),
    ("tcp_user_timeout", "2000"),
    ("keepalives_idle", "5"),
    ("keepalives_interval", "2"),
];
/// The position up to which the primary has flushed its log.
const FLUSHED: &str = "pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint";
/// The position that a standby has replayed. A primary has none: it may be left over from a failover.
const REPLAYED: &str = "CASE WHEN pg_is_in_recovery() \
    THEN coalesce(pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint, 0) ELSE -1 END";

impl Postgres {
    /// Runs one read of data, on a standby if one keeps up.
    pub(crate) fn on_standby<T>(
        &self,
        doing: &'static str,
        work: impl FnMut(&mut PgConnection) -> Read<T>,
    ) -> Result<T, StoreError> {
        self.read(doing, |_| true, work)
    }

    /// Runs several reads of data over one state of one database.
    pub(crate) fn in_snapshot<T>(
        &self,
        doing: &'static str,
        mut work: impl FnMut(&mut PgConnection) -> Read<T>,
    ) -> Result<T, StoreError> {
        self.read(doing, |_| true, |connection| in_one_state(connection, &mut work))
    }

    /// Like [`Self::in_snapshot`] for reads by an id. If a standby lacks the row, the primary is read, so that a run is
    /// found as soon as its id is known.
    pub(crate) fn find_in_snapshot<T>(
        &self,
        doing: &'static str,
        mut work: impl FnMut(&mut PgConnection) -> Read<Option<T>>,
    ) -> Result<Option<T>, StoreError> {
        self.read(doing, Option::is_some, |connection| {
            in_one_state(connection, &mut work)
        })
    }

    fn read<T>(
        &self,
        doing: &'static str,
        is_final: impl FnOnce(&T) -> bool,
        mut work: impl FnMut(&mut PgConnection) -> Read<T>,
    ) -> Result<T, StoreError> {
        if let Some(answer) = self.standby_answer(doing, &mut work)?.filter(is_final) {
            return Ok(answer);
        }
        let answer = self.on_primary(doing, work)?;
        self.primary_reads.fetch_add(1, Ordering::Relaxed);
        Ok(answer)
    }

    /// The answer of a standby; none if no standby keeps up or can answer. Fails only if the statement reached its time
    /// limit, because the primary would take as long again.
    fn standby_answer<T>(
        &self,
        doing: &'static str,
        mut work: impl FnMut(&mut PgConnection) -> Read<T>,
    ) -> Result<Option<T>, StoreError> {
        let Some((state, mut standby)) = self.caught_up_standby() else {
            return Ok(None);
        };
        let started = Instant::now();
        match work(&mut standby) {
            Ok(answer) => {
                self.standby_reads.fetch_add(1, Ordering::Relaxed);
                lock(state).log_recovery();
                return Ok(Some(answer));
            }
            Err(WorkError::Query(error)) if started.elapsed() >= self.options.statement_timeout => {
                return Err(WorkError::<StoreError>::Query(error).during(doing));
            }
            // Missing or inconsistent rows may be about to arrive, so the primary decides.
            Err(WorkError::Refused(_) | WorkError::Query(QueryError::NotFound)) => {}
            Err(WorkError::Query(error)) => lock(state).report(&format_args!("{doing} failed: {error}")),
        }
        Ok(None)
    }

    /// A connection to a standby that is at most a second behind, without waiting for one.
    fn caught_up_standby(&self) -> Option<(&SharedState, PooledConnection<Manager>)> {
        let Standbys { pool, state } = self.standbys.as_ref()?;
        let now = Instant::now();
        if lock(state).is_due(now) {
            let flushed = self.query("reading the primary's position", |connection| {
                select(sql::<BigInt>(FLUSHED)).get_result(connection)
            });
            match flushed {
                Ok(position) => lock(state).positions.push_back((now, position)),
                Err(error) => lock(state).report(&error),
            }
        }
        let (required_at, required) = lock(state).required_position(Instant::now())?;
        let mut standby = pool.try_get()?;
        let known = PooledConnection::extensions(&standby).get();
        if known.is_some_and(|Replayed(position)| *position >= required) {
            return Some((state, standby));
        }
        match select(sql::<BigInt>(REPLAYED)).get_result(&mut *standby) {
            Ok(replayed) if replayed >= required => {
                PooledConnection::extensions_mut(&mut standby).insert(Replayed(replayed));
                return Some((state, standby));
            }
            Ok(_) => {
                lock(state).paused_until = Some(Instant::now() + PAUSE);
                // Every standby may still lack the first position that is read after a pause.
                if required_at.elapsed() > MAX_AGE / 2 {
                    lock(state).report(&"it is too far behind");
                    end_session(&mut standby);
                }
            }
            Err(error) => lock(state).report(&error),
        }
        None
    }

    /// The reads of data that the primary and the standbys answered.
    pub(crate) fn counted_reads(&self) -> [(&'static str, u64); 2] {
        [("primary", &self.primary_reads), ("standby", &self.standby_reads)]
            .map(|(node, reads)| (node, reads.load(Ordering::Relaxed)))
    }
}

/// The standbys of the reader address.
pub(crate) struct Standbys {
    pool: ConnectionPool,
    state: SharedState,
}

/// The position that the standby of a connection had replayed at the last check.
struct Replayed(i64);

impl Standbys {
    pub(crate) fn new(connection_string: ConnectionString, options: PoolOptions) -> Self {
        let manager = Manager::new(connection_string.with_defaults(&PARAMETERS));
        let state = Arc::default();
        let pool = builder(options, options.statement_timeout)
            .connection_timeout(RECONNECT)
            .max_lifetime(Some(LIFETIME))
            .error_handler(Box::new(ConnectErrorLog(connection_string, Arc::clone(&state))))
            .build_unchecked(manager);
        Self { pool, state }
    }
}

/// The primary's positions of the last second, and the state of the log.
#[derive(Debug, Default)]
struct State {
    /// Oldest first.
    positions: VecDeque<(Instant, i64)>,
    /// When the last request for a position began.
    last_query: Option<Instant>,
    paused_until: Option<Instant>,
    logged_at: Option<Instant>,
    is_failed_over: bool,
}

type SharedState = Arc<Mutex<State>>;
type Manager = ConnectionManager<PgConnection>;

fn lock(state: &SharedState) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Whether the caller must ask the primary now. Returns true to one caller only.
    fn is_due(&mut self, now: Instant) -> bool {
        let since = self.last_query.map(|last| now.saturating_duration_since(last));
        let is_due = since.is_none_or(|since| since >= READ_INTERVAL);
        if is_due {
            self.last_query = Some(now);
        }
        is_due
    }

    /// The position that a standby must have replayed, and when the primary had; none while the primary answers.
    fn required_position(&mut self, now: Instant) -> Option<(Instant, i64)> {
        self.positions
            .retain(|(at, _)| now.saturating_duration_since(*at) <= MAX_AGE);
        let is_paused = self.paused_until.is_some_and(|until| now < until);
        self.positions.front().copied().filter(|_| !is_paused)
    }

    /// Logs that the primary answers instead of a standby, at most once per [`LOG_INTERVAL`].
    fn report(&mut self, reason: &dyn std::fmt::Display) {
        let now = Instant::now();
        let since = self.logged_at.map(|at| now.saturating_duration_since(at));
        if since.is_none_or(|since| since >= LOG_INTERVAL) {
            self.logged_at = Some(now);
            self.is_failed_over = true;
            log::warn!("a standby cannot be read from, the primary answers: {reason}");
        }
    }

    /// Logs that standbys answer again, if a failover was logged before.
    fn log_recovery(&mut self) {
        if std::mem::take(&mut self.is_failed_over) {
            log::info!("standbys are read from again");
        }
    }
}

/// Logs failed attempts to connect, without the password that an address may contain.
#[derive(Debug)]
struct ConnectErrorLog(ConnectionString, SharedState);

impl HandleError<Error> for ConnectErrorLog {
    fn handle_error(&self, error: Error) {
        lock(&self.1).report(&self.0.redact(&error.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_primary_is_read_four_times_a_second_for_the_position_of_a_second_ago() {
        let mut state = State::default();
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let required = |state: &mut State, ms| state.required_position(at(ms)).map(|(_, position)| position);
        assert_eq!(required(&mut state, 0), None, "nothing is known");
        for (ms, position) in [(0, 10), (250, 20), (500, 30), (750, 40), (1_000, 50)] {
            assert!(state.is_due(at(ms)));
            assert!(!state.is_due(at(ms + 249)), "another one asks");
            state.positions.push_back((at(ms), position));
        }
        assert_eq!(required(&mut state, 1_000), Some(10));
        assert_eq!(required(&mut state, 1_001), Some(20));
        state.paused_until = Some(at(2_000));
        assert_eq!(required(&mut state, 1_999), None, "a standby was late");
        assert_eq!(required(&mut state, 2_000), Some(50));
        assert_eq!(required(&mut state, 2_001), None);
    }

    #[test]
    fn the_loss_of_a_standby_is_logged_once() {
        let mut state = State::default();
        state.report(&"gone");
        assert!(state.is_failed_over);
        state.log_recovery();
        state.report(&"gone again within the minute");
        assert!(!state.is_failed_over);
    }
}

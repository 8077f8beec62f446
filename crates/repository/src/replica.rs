//! Reads of data from standbys that keep up with the primary.
//!
//! Who may ask is always decided by the primary; what is answered may come from a standby, unless that is more than a
//! second behind. A request never waits for a standby: connections are made in the background, and a standby that is
//! lost, behind, or fails at a statement costs no more than the same question to the primary.
//!
//! How far a standby is behind is told by positions in the write-ahead log, not by clocks: a standby has to have replayed
//! everything that the primary had written out at some moment of the last second. So the machines' clocks do not matter,
//! and neither do a primary that writes nothing and a standby that has lost its primary unnoticed.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use assay_domain::store::StoreError;
use diesel::{
    ConnectionError, PgConnection, QueryResult, RunQueryDsl,
    dsl::{select, sql},
    r2d2::{ConnectionManager, Error, HandleError, ManageConnection, Pool, PooledConnection},
    result::Error as QueryError,
    sql_types::{BigInt, Bool, Nullable},
};

use crate::{
    Database,
    pool::{PoolOptions, Read, WorkError, prepare, with_parameters},
};

/// How old an answer may be at most.
const OLDEST: Duration = Duration::from_secs(1);
/// How often the primary is asked for its position, while there are reads.
const STEP: Duration = Duration::from_millis(250);
/// How long a standby that is behind is left alone.
const RECHECK: Duration = Duration::from_millis(100);
/// What is said of standbys is said at most this often.
const QUIET: Duration = Duration::from_secs(60);
/// Twice the longest pause between attempts to reach a standby that is lost.
const RECONNECT: Duration = Duration::from_secs(4);
/// How long a connection lives, so that a standby that came back gets its share again.
const LIFETIME: Duration = Duration::from_secs(300);
/// What an address says unless it says otherwise: a standby that vanished is given up soon, since the primary can answer.
const PARAMETERS: [(&str, &str); 6] = [
    ("target_session_attrs", "standby"),
    ("load_balance_hosts", "random"),
    ("connect_timeout", "2"),
    ("tcp_user_timeout", "2000"),
    ("keepalives_idle", "5"),
    ("keepalives_interval", "2"),
];

impl Database {
    /// Lets reads of data go to the standbys of this connection string, which may name several hosts.
    ///
    /// Returns at once and never fails: until a standby is reached, and whenever none is, the primary answers.
    pub fn with_replicas(mut self, url: &str, options: impl Into<PoolOptions>) -> Self {
        self.replicas = Some(Replicas::new(url, options.into()));
        self
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

fn in_one_state<T>(connection: &mut PgConnection, work: impl FnMut(&mut PgConnection) -> Read<T>) -> Read<T> {
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
    fn new(url: &str, options: PoolOptions) -> Self {
        let trouble = Arc::new(Trouble::default());
        let manager = Standbys {
            inner: ConnectionManager::new(with_parameters(url, &PARAMETERS)),
            statement_timeout: options.statement_timeout,
        };
        let pool = Pool::builder()
            .max_size(options.size.max(1))
            .connection_timeout(RECONNECT)
            .max_lifetime(Some(LIFETIME))
            .test_on_check_out(false)
            .error_handler(Box::new(Unreachable {
                url: url.to_owned(),
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

/// A position that a standby must have reached, and when the primary had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Needed {
    position: i64,
    at: Instant,
}

/// What the primary had written out at moments of the last second.
#[derive(Debug, Default)]
struct Horizon {
    /// Oldest first.
    known: VecDeque<Needed>,
    /// When somebody last set out to ask.
    asked: Option<Instant>,
}

impl Horizon {
    /// Whether the caller is to ask the primary now; nobody else is then told to.
    fn is_due(&mut self, now: Instant) -> bool {
        let due = self
            .asked
            .is_none_or(|asked| now.saturating_duration_since(asked) >= STEP);
        if due {
            self.asked = Some(now);
        }
        due
    }

    /// Learns a position that was asked for at `now`.
    fn learn(&mut self, now: Instant, position: i64) {
        self.known.push_back(Needed { position, at: now });
    }

    /// What has to be replayed for an answer that is not too old.
    fn needed(&mut self, now: Instant) -> Option<Needed> {
        self.known
            .retain(|known| now.saturating_duration_since(known.at) <= OLDEST);
        self.known.front().copied()
    }
}

/// Makes connections to standbys.
#[derive(Debug)]
struct Standbys {
    inner: ConnectionManager<PgConnection>,
    statement_timeout: Duration,
}

/// A connection to a standby.
struct Standby {
    connection: PgConnection,
    /// How far it had replayed when it was last asked.
    replayed: i64,
    asked: Option<Instant>,
    /// Whether it became a primary.
    promoted: bool,
}

impl Standby {
    /// Whether it has replayed this much. Asks it only where that is not known.
    fn has_reached(&mut self, needed: i64, now: Instant) -> QueryResult<bool> {
        let asked_lately = self
            .asked
            .is_some_and(|asked| now.saturating_duration_since(asked) < RECHECK);
        if self.replayed < needed && !asked_lately {
            self.ask()?;
            self.asked = Some(now);
        }
        Ok(self.replayed >= needed && !self.promoted)
    }

    fn ask(&mut self) -> QueryResult<()> {
        let (is_standby, replayed): (bool, Option<i64>) = select((
            sql::<Bool>("pg_is_in_recovery()"),
            sql::<Nullable<BigInt>>("pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint"),
        ))
        .get_result(&mut self.connection)?;
        self.promoted = !is_standby;
        self.replayed = replayed.unwrap_or(0);
        Ok(())
    }
}

impl ManageConnection for Standbys {
    type Connection = Standby;
    type Error = Error;

    /// Refuses a primary: it may be one that a failover left behind, and the present one has a pool of its own.
    fn connect(&self) -> Result<Standby, Error> {
        let mut connection = self.inner.connect()?;
        prepare(&mut connection, self.statement_timeout)?;
        let mut standby = Standby {
            connection,
            replayed: 0,
            asked: None,
            promoted: false,
        };
        standby.ask().map_err(Error::QueryError)?;
        if standby.promoted {
            let reason = "the server is no standby".to_owned();
            return Err(Error::ConnectionError(ConnectionError::BadConnection(reason)));
        }
        Ok(standby)
    }

    fn is_valid(&self, standby: &mut Standby) -> Result<(), Error> {
        self.inner.is_valid(&mut standby.connection)
    }

    fn has_broken(&self, standby: &mut Standby) -> bool {
        standby.promoted || self.inner.has_broken(&mut standby.connection)
    }
}

/// Tells of failed attempts to connect.
#[derive(Debug)]
struct Unreachable {
    url: String,
    trouble: Arc<Trouble>,
}

impl HandleError<Error> for Unreachable {
    fn handle_error(&self, error: Error) {
        let reason = error.to_string();
        // What cannot be parsed is quoted, with the password in it.
        if reason.contains(&self.url) {
            self.trouble.tell(&"ASSAY_REPLICA_URL cannot be read");
        } else {
            self.trouble.tell(&reason.trim_end());
        }
    }
}

/// What the log says of the standbys: a line when reads go to the primary, and one when they no longer do.
#[derive(Debug, Default)]
struct Trouble {
    told: Mutex<Option<Instant>>,
    lasts: AtomicBool,
}

impl Trouble {
    fn tell(&self, reason: &dyn std::fmt::Display) {
        let now = Instant::now();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| now.saturating_duration_since(told) >= QUIET) {
            *told = Some(now);
            self.lasts.store(true, Ordering::Relaxed);
            log::warn!("a standby cannot be read from, the primary answers: {reason}");
        }
    }

    /// A standby answered.
    fn over(&self) {
        if self.lasts.load(Ordering::Relaxed) && self.lasts.swap(false, Ordering::Relaxed) {
            log::info!("standbys are read from again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_primary_is_asked_four_times_a_second_and_what_is_a_second_old_is_needed() {
        let mut horizon = Horizon::default();
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let needed = |horizon: &mut Horizon, ms| horizon.needed(at(ms)).map(|needed| needed.position);
        assert_eq!(needed(&mut horizon, 0), None, "nothing is known");
        for (ms, position) in [(0, 10), (250, 20), (500, 30), (750, 40), (1_000, 50)] {
            assert!(horizon.is_due(at(ms)));
            assert!(!horizon.is_due(at(ms + 249)), "another one asks");
            horizon.learn(at(ms), position);
        }
        assert_eq!(needed(&mut horizon, 1_000), Some(10));
        assert_eq!(needed(&mut horizon, 1_001), Some(20));
        assert_eq!(needed(&mut horizon, 2_000), Some(50));
        assert_eq!(needed(&mut horizon, 2_001), None);
    }

    #[test]
    fn the_log_says_once_that_a_standby_is_lost() {
        let trouble = Trouble::default();
        trouble.tell(&"gone");
        assert!(trouble.lasts.load(Ordering::Relaxed));
        trouble.over();
        trouble.tell(&"gone again within the minute");
        assert!(!trouble.lasts.load(Ordering::Relaxed));
    }
}

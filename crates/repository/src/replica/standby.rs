//! Connections to standbys, each of which knows how far its standby has replayed.

use std::time::{Duration, Instant};

use diesel::{
    ConnectionError, PgConnection, QueryResult, RunQueryDsl,
    dsl::{select, sql},
    r2d2::{ConnectionManager, Error, ManageConnection},
    sql_types::{BigInt, Bool, Nullable},
};

use crate::{connection_string::ConnectionString, pool::prepare};

/// How long a standby that is behind is left alone.
const RECHECK: Duration = Duration::from_millis(100);
/// What an address says unless it says otherwise: a standby that vanished is given up soon, since the primary can answer.
const PARAMETERS: [(&str, &str); 6] = [
    ("target_session_attrs", "standby"),
    ("load_balance_hosts", "random"),
    ("connect_timeout", "2"),
    ("tcp_user_timeout", "2000"),
    ("keepalives_idle", "5"),
    ("keepalives_interval", "2"),
];

/// Makes connections to standbys.
#[derive(Debug)]
pub(super) struct Standbys {
    inner: ConnectionManager<PgConnection>,
    statement_timeout: Duration,
}

impl Standbys {
    /// Those of this connection string.
    pub(super) fn new(url: &ConnectionString, statement_timeout: Duration) -> Self {
        Self {
            inner: ConnectionManager::new(url.with_defaults(&PARAMETERS)),
            statement_timeout,
        }
    }
}

/// A connection to a standby.
pub(super) struct Standby {
    pub(super) connection: PgConnection,
    /// How far it had replayed when it was last asked.
    replayed: i64,
    asked: Option<Instant>,
    /// Whether it became a primary.
    promoted: bool,
}

impl Standby {
    /// Whether it has replayed this much. Asks it only where that is not known.
    pub(super) fn has_reached(&mut self, needed: i64, now: Instant) -> QueryResult<bool> {
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

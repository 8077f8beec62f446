//! Connections to standbys, each with the replayed position of its standby.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use diesel::{
    ConnectionError, PgConnection, QueryResult, RunQueryDsl,
    dsl::{select, sql},
    r2d2::{ConnectionManager, Error, ManageConnection},
    sql_types::{BigInt, Bool, Nullable, Text},
};

use super::nodes::{KnownStandbys, OpenConnection};
use crate::db::{connection_string::ConnectionString, session::prepare};

/// How long a standby that is behind is not checked again.
const RECHECK_PAUSE: Duration = Duration::from_millis(100);
/// The address of the connected server as it sees it. A Unix-domain socket has none.
const ADDRESS: &str = "coalesce(host(inet_server_addr()) || ':' || inet_server_port(), \
    'local socket, port ' || current_setting('port'))";
/// Default parameters of an address. Their time limits are short, because the primary can answer for a standby that
/// vanished.
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
pub(super) struct StandbyManager {
    inner: ConnectionManager<PgConnection>,
    standbys: Arc<KnownStandbys>,
    statement_timeout: Duration,
}

impl StandbyManager {
    /// A manager for the standbys of this connection string.
    pub(super) fn new(
        url: &ConnectionString,
        statement_timeout: Duration,
        standbys: Arc<KnownStandbys>,
    ) -> Self {
        Self {
            inner: ConnectionManager::new(url.with_defaults(&PARAMETERS)),
            standbys,
            statement_timeout,
        }
    }
}

/// A connection to a standby.
pub(super) struct Standby {
    pub(super) connection: PgConnection,
    pub(super) node: OpenConnection,
    /// The replayed position at the last check.
    replayed: i64,
    last_query: Option<Instant>,
    /// Whether it became a primary.
    promoted: bool,
}

impl Standby {
    /// Whether it has replayed this position. Queries the standby only if the last check does not answer that.
    pub(super) fn has_reached(&mut self, needed: i64, now: Instant) -> QueryResult<bool> {
        let is_checked_recently = self
            .last_query
            .is_some_and(|last_query| now.saturating_duration_since(last_query) < RECHECK_PAUSE);
        if self.replayed < needed && !is_checked_recently {
            self.query_position()?;
            self.last_query = Some(now);
        }
        Ok(self.replayed >= needed && !self.promoted)
    }

    fn query_position(&mut self) -> QueryResult<()> {
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

impl ManageConnection for StandbyManager {
    type Connection = Standby;
    type Error = Error;

    /// Rejects a primary: it may be left over from a failover, and the present one has a separate pool.
    fn connect(&self) -> Result<Standby, Error> {
        let mut connection = self.inner.connect()?;
        prepare(&mut connection, self.statement_timeout, self.statement_timeout)?;
        let (is_standby, address): (bool, String) =
            select((sql::<Bool>("pg_is_in_recovery()"), sql::<Text>(ADDRESS)))
                .get_result(&mut connection)
                .map_err(Error::QueryError)?;
        if !is_standby {
            let reason = "the server is no standby".to_owned();
            return Err(Error::ConnectionError(ConnectionError::BadConnection(reason)));
        }
        Ok(Standby {
            connection,
            node: self.standbys.count_connection(address),
            replayed: 0,
            last_query: None,
            promoted: false,
        })
    }

    fn is_valid(&self, standby: &mut Standby) -> Result<(), Error> {
        self.inner.is_valid(&mut standby.connection)
    }

    fn has_broken(&self, standby: &mut Standby) -> bool {
        standby.promoted || self.inner.has_broken(&mut standby.connection)
    }
}

//! The connection pool, and the classification of its errors.

use std::time::Duration;

use assay_domain::store::{Connections, RecordError, StoreError};
use diesel::{
    Connection, PgConnection,
    connection::{AnsiTransactionManager, SimpleConnection, TransactionManager as _},
    r2d2::{
        Builder, ConnectionManager, CustomizeConnection, NopErrorHandler, Pool, PooledConnection,
        R2D2Connection,
    },
    result::{DatabaseErrorKind, Error as QueryError, QueryResult},
};

use crate::db::{connection_string::ConnectionString, postgres::Postgres, session::prepare};

/// How a [`Database`](crate::Database) connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolOptions {
    /// Connections at most, at least 1.
    pub size: u32,
    /// How long a caller waits for a free connection.
    pub wait: Duration,
    /// How long the server may work on a statement.
    pub statement_timeout: Duration,
    /// How long a transaction may stay idle, at least a millisecond. Then Postgres ends it, so that a frozen program
    /// does not hold its locks for longer.
    pub idle_timeout: Duration,
    /// How long an import waits for another one before it reports that and waits again.
    pub lock_round: Duration,
    /// How long an import tries to reach a database that was lost, with backoff.
    pub reconnect_for: Duration,
    /// How far the time of an import may be from the clock of Postgres; not checked if absent.
    pub clocks_within: Option<Duration>,
    /// Whether each connection is one transaction that is rolled back at its end. Every unit of work is a savepoint in
    /// it, and sees the work before it.
    pub rolls_back: bool,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            size: 8,
            wait: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            lock_round: Duration::from_secs(20),
            reconnect_for: Duration::ZERO,
            clocks_within: None,
            rolls_back: false,
        }
    }
}

impl From<u32> for PoolOptions {
    /// A pool of this many connections.
    fn from(size: u32) -> Self {
        Self {
            size,
            ..Self::default()
        }
    }
}

/// Why a unit of work failed: its statements failed, or it rejected the data.
pub(crate) enum WorkError<E> {
    Query(QueryError),
    Refused(E),
}

impl<E> From<QueryError> for WorkError<E> {
    fn from(error: QueryError) -> Self {
        Self::Query(error)
    }
}

impl<E: From<StoreError>> From<StoreError> for WorkError<E> {
    fn from(error: StoreError) -> Self {
        Self::Refused(error.into())
    }
}

impl From<WorkError<StoreError>> for WorkError<RecordError> {
    fn from(error: WorkError<StoreError>) -> Self {
        error.widened()
    }
}

impl WorkError<StoreError> {
    /// The same error of work that may also be refused for other reasons.
    pub(crate) fn widened<E: From<StoreError>>(self) -> WorkError<E> {
        match self {
            Self::Query(error) => WorkError::Query(error),
            Self::Refused(error) => WorkError::Refused(error.into()),
        }
    }

    /// The error for callers without diesel, with diesel's error as its source.
    pub(crate) fn during(self, doing: &'static str) -> StoreError {
        match self {
            Self::Query(error) => failed(doing, error),
            Self::Refused(refused) => refused,
        }
    }

    /// The opposite of [`Self::during`]: whether the connection is dead is known from diesel's own error only.
    pub(crate) fn of_read(error: StoreError) -> Self {
        match error {
            StoreError::Failed { doing, source } => match source.downcast::<QueryError>() {
                Ok(error) => Self::Query(*error),
                Err(source) => Self::Refused(StoreError::Failed { doing, source }),
            },
            other @ (StoreError::Unreachable(_)
            | StoreError::Exhausted { .. }
            | StoreError::NotPermitted { .. }
            | StoreError::Corrupt { .. }) => Self::Refused(other),
        }
    }
}

/// The outcome of a read: its statements may fail, and what they return may be corrupt.
pub(crate) type Read<T> = Result<T, WorkError<StoreError>>;

/// Names the operation that failed.
pub(crate) trait During<T> {
    /// The value, or the error of the operation.
    fn during(self, doing: &'static str) -> Result<T, StoreError>;
}

impl<T, E: Into<WorkError<StoreError>>> During<T> for Result<T, E> {
    fn during(self, doing: &'static str) -> Result<T, StoreError> {
        self.map_err(|error| error.into().during(doing))
    }
}

/// The rows as other values; fails with the first row that is none.
pub(crate) fn converted<T, U, All: FromIterator<U>>(
    rows: impl IntoIterator<Item = T>,
    convert: impl FnMut(T) -> Result<U, StoreError>,
) -> Read<All> {
    Ok(rows
        .into_iter()
        .map(convert)
        .collect::<Result<All, StoreError>>()?)
}

/// Connections to one address.
pub(crate) type ConnectionPool = Pool<ConnectionManager<PgConnection>>;

/// The pool of connections to the primary. Connects at the first use.
pub(crate) fn new_pool(connection_string: &ConnectionString, options: PoolOptions) -> ConnectionPool {
    builder(options, options.idle_timeout.min(options.statement_timeout))
        .connection_timeout(options.wait)
        // The caller's error carries the cause.
        .error_handler(Box::new(NopErrorHandler))
        .build_unchecked(ConnectionManager::new(connection_string.with_time_limits()))
}

/// A pool whose connections have these limits.
pub(crate) fn builder(
    options: PoolOptions,
    idle_timeout: Duration,
) -> Builder<ConnectionManager<PgConnection>> {
    Pool::builder()
        .max_size(options.size.max(1))
        // A check at each check-out would cost a quarter of the throughput. A dead connection is replaced
        // instead.
        .test_on_check_out(false)
        .connection_customizer(Box::new(Session {
            statement_timeout: options.statement_timeout,
            idle_timeout,
            rolls_back: options.rolls_back,
        }))
}

impl Postgres {
    /// Runs statements on the primary. Runs them again on another connection if the first one is dead, and as long as
    /// the connection does not see a partition.
    ///
    /// A further run is safe: statements outside of a transaction are reads or can be repeated, and a transaction of
    /// a dead connection was rolled back or can be repeated.
    pub(crate) fn on_primary<T, E: From<StoreError>>(
        &self,
        doing: &'static str,
        mut work: impl FnMut(&mut PgConnection) -> Result<T, WorkError<E>>,
    ) -> Result<T, E> {
        let mut work = |connection: &mut PgConnection| {
            if self.options.rolls_back {
                connection.transaction(&mut work)
            } else {
                work(connection)
            }
        };
        let mut connection = self.connection()?;
        let mut outcome = work(&mut connection);
        if matches!(&outcome, Err(WorkError::Query(error)) if is_dead(&mut connection, error)) {
            drop(connection);
            connection = self.live_connection()?;
            outcome = work(&mut connection);
        }
        for _ in 0..self.pool.max_size() {
            if !matches!(&outcome, Err(WorkError::Query(error)) if misses_partition(error)) {
                break;
            }
            end_session(&mut connection);
            drop(connection);
            connection = self.live_connection()?;
            outcome = work(&mut connection);
        }
        outcome.map_err(|failure| match failure {
            WorkError::Refused(refused) => refused,
            WorkError::Query(error) if is_dead(&mut connection, &error) => {
                StoreError::Unreachable(Box::new(error)).into()
            }
            WorkError::Query(error) => failed(doing, error).into(),
        })
    }

    /// Runs statements that change the database, all or none of them.
    pub(crate) fn in_transaction<T, E: From<StoreError>>(
        &self,
        doing: &'static str,
        mut work: impl FnMut(&mut PgConnection) -> Result<T, WorkError<E>>,
    ) -> Result<T, E> {
        self.on_primary(doing, |connection| connection.transaction(&mut work))
    }

    /// Like [`Self::on_primary`] for statements that can only fail as such.
    pub(crate) fn query<T>(
        &self,
        doing: &'static str,
        mut work: impl FnMut(&mut PgConnection) -> QueryResult<T>,
    ) -> Result<T, StoreError> {
        self.on_primary(doing, |connection| {
            Ok::<_, WorkError<StoreError>>(work(connection)?)
        })
    }

    /// Like [`Self::in_transaction`] for statements that can only fail as such.
    pub(crate) fn query_in_transaction<T>(
        &self,
        doing: &'static str,
        mut work: impl FnMut(&mut PgConnection) -> QueryResult<T>,
    ) -> Result<T, StoreError> {
        self.query(doing, |connection| connection.transaction(&mut work))
    }

    /// The connections as they are now.
    pub(crate) fn pool_state(&self) -> Connections {
        let state = self.pool.state();
        Connections {
            busy: state.connections.saturating_sub(state.idle_connections),
            idle: state.idle_connections,
            most: self.pool.max_size(),
        }
    }

    /// A working connection. The cause that ended one connection has often ended all. Each broken one is replaced on
    /// return, so that after one more than the pool's size a connection is new.
    fn live_connection(&self) -> Result<PooledConnection<ConnectionManager<PgConnection>>, StoreError> {
        for _ in 0..self.pool.max_size() {
            let mut connection = self.connection()?;
            if connection.ping().is_ok() {
                return Ok(connection);
            }
        }
        self.connection()
    }

    fn connection(&self) -> Result<PooledConnection<ConnectionManager<PgConnection>>, StoreError> {
        self.pool
            .get()
            .map_err(|error| self.connection_string.unreachable(&error))
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

/// The settings of every new connection.
#[derive(Debug)]
struct Session {
    statement_timeout: Duration,
    idle_timeout: Duration,
    rolls_back: bool,
}

impl CustomizeConnection<PgConnection, diesel::r2d2::Error> for Session {
    fn on_acquire(&self, connection: &mut PgConnection) -> Result<(), diesel::r2d2::Error> {
        prepare(connection, self.statement_timeout, self.idle_timeout)?;
        if self.rolls_back {
            connection
                .begin_test_transaction()
                .map_err(diesel::r2d2::Error::QueryError)?;
        }
        Ok(())
    }
}

/// What Postgres writes if it has no disk space or memory (class 53 of its codes). diesel does not show the code, so a
/// Postgres with messages in another language fails without this distinction.
const EXHAUSTED: [&str; 5] = [
    "No space left on device",
    "Disk quota exceeded",
    "temporary file size exceeds",
    "out of memory",
    "out of shared memory",
];

/// The error of a failed statement, with diesel's error as its source.
fn failed(doing: &'static str, error: QueryError) -> StoreError {
    let message = if let QueryError::DatabaseError(_, details) = &error {
        details.message()
    } else {
        ""
    };
    let is_exhausted = EXHAUSTED.iter().any(|text| message.contains(text));
    let is_refused = message.starts_with("permission denied");
    let source = Box::new(error);
    match (is_exhausted, is_refused) {
        (true, _) => StoreError::Exhausted { doing, source },
        (false, true) => StoreError::NotPermitted { doing, source },
        (false, false) => StoreError::Failed { doing, source },
    }
}

/// Whether an error means that there is no partition for a row. Imports create partitions first, so the session has an
/// outdated list of them. That happens rarely while other sessions add partitions (seen with Postgres 15.18), and the
/// session keeps the list.
fn misses_partition(error: &QueryError) -> bool {
    // The error has the code of a violated constraint, and its text is in the language of the server.
    matches!(
        error,
        QueryError::DatabaseError(DatabaseErrorKind::CheckViolation, details) if details.constraint_name().is_none()
    )
}

/// Ends the session of a connection, so that the pool replaces it.
pub(crate) fn end_session(connection: &mut PgConnection) {
    // It always fails, because it ends its own session.
    let _ended = connection.batch_execute("SELECT pg_terminate_backend(pg_backend_pid())");
}

/// Whether an error means that the connection is dead, and not only that a statement failed.
fn is_dead(connection: &mut PgConnection, error: &QueryError) -> bool {
    let is_reported = matches!(
        error,
        QueryError::DatabaseError(
            DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand,
            _
        )
    );
    // After a failed statement libpq reports the state of the transaction, unless the connection is dead.
    is_reported || connection.is_broken()
}

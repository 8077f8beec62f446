//! The settings of a connection to Postgres.

use std::time::Duration;

use diesel::{PgConnection, connection::SimpleConnection as _};

/// `tcp_user_timeout`: the milliseconds for which a client over TCP may leave sent rows unacknowledged. The limit of
/// idle transactions does not end a client that is frozen while it reads.
const TCP_USER_TIMEOUT_MS: u32 = 60_000;

/// Sets up a new connection. A shorter limit of idle transactions that the role or the database sets is kept.
pub(crate) fn prepare(
    connection: &mut PgConnection,
    statement_timeout: Duration,
    idle_timeout: Duration,
) -> Result<(), diesel::r2d2::Error> {
    let (ms, idle_ms) = (statement_timeout.as_millis(), idle_timeout.as_millis().max(1));
    connection
        .batch_execute(&format!(
            "SET statement_timeout = {ms}; SET tcp_user_timeout = {TCP_USER_TIMEOUT_MS}; \
             SET client_min_messages = warning; SET timezone = 'UTC'; \
             SELECT set_config('idle_in_transaction_session_timeout', '{idle_ms}', false) \
             WHERE current_setting('idle_in_transaction_session_timeout')::interval \
                 NOT BETWEEN interval '1 ms' AND interval '{idle_ms} ms'"
        ))
        .map_err(diesel::r2d2::Error::QueryError)
}

//! Checks that Redis answers, for `assay-admin doctor`.

use std::time::Duration;

use redis::{Client, RedisError};

/// Time limit of each step: connecting, sending, and reading the answer.
const STEP_TIMEOUT: Duration = Duration::from_secs(3);

/// Sends a `PING` to the Redis at `url`.
pub fn ping(url: &str) -> Result<(), RedisUnreachable> {
    let ask = || {
        let mut connection = Client::open(url)?.get_connection_with_timeout(STEP_TIMEOUT)?;
        connection.set_read_timeout(Some(STEP_TIMEOUT))?;
        redis::cmd("PING").query::<String>(&mut connection)
    };
    ask().map(drop).map_err(RedisUnreachable)
}

/// Redis did not answer.
#[derive(Debug, thiserror::Error)]
#[error("Redis did not answer")]
pub struct RedisUnreachable(#[source] RedisError);

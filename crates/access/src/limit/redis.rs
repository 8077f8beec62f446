//! Counts requests in Redis, for several processes that share one limit.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicBool, AtomicI64, Ordering},
    time::Duration,
};

use assay_domain::timestamp::Timestamp;
use redis::{
    Client, RedisError, Script,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use sha2::{Digest, Sha256};

use super::{Admission, Admitting, InProcessLimiter, RateLimiter, WINDOW_MS, window_of};

/// Increments and sets the expiry in one step, so that every counter expires.
const COUNT: &str = "local n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return n";
/// Time limit of a request to Redis.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(100);
/// The pause after a failure. Afterwards a single request tries Redis, so that other requests do not wait.
const PAUSE_MS: i64 = 1_000;
/// The value of `paused_until` while Redis answers.
const NOT_PAUSED: i64 = i64::MIN;

/// Counts in Redis, by a hash of the budget's id. If Redis fails, it counts in this process until Redis answers
/// again. The beginning and the end of each outage are logged.
pub struct RedisLimiter {
    limit: u32,
    connection: ConnectionManager,
    count: Script,
    fallback: InProcessLimiter,
    /// The end of the pause (Unix milliseconds). After it, one request tries Redis.
    paused_until: AtomicI64,
    /// Whether the beginning of the current outage was logged.
    is_out: AtomicBool,
}

/// The address of Redis is not valid.
#[derive(Debug, thiserror::Error)]
#[error("the address of Redis is not valid; expected redis://HOST:PORT/ or redis+unix:///PATH")]
pub struct BadRedisUrl(#[source] RedisError);

impl RedisLimiter {
    /// Admits `limit` requests per window and id (0 admits all), counted at `url`. It connects on first use, so that a
    /// server can start while Redis is down. Must be called within a Tokio runtime.
    pub fn new(url: &str, limit: u32) -> Result<Self, BadRedisUrl> {
        Self::with_time_limit(url, limit, RESPONSE_TIMEOUT)
    }

    /// The same with another time limit for an answer of Redis. Connecting may take twice as long.
    pub fn with_time_limit(url: &str, limit: u32, response: Duration) -> Result<Self, BadRedisUrl> {
        let config = ConnectionManagerConfig::new()
            .set_response_timeout(Some(response))
            .set_connection_timeout(Some(response.saturating_mul(2)))
            .set_number_of_retries(0);
        let client = Client::open(url).map_err(BadRedisUrl)?;
        Ok(Self {
            limit,
            connection: ConnectionManager::new_lazy_with_config(client, config).map_err(BadRedisUrl)?,
            count: Script::new(COUNT),
            fallback: InProcessLimiter::new(limit),
            paused_until: AtomicI64::new(NOT_PAUSED),
            is_out: AtomicBool::new(false),
        })
    }

    async fn count(&self, budget_id: &[u8], now: Timestamp) -> Admission {
        if self.limit == 0 {
            return Admission::Unlimited;
        }
        if !self.may_use_redis(now) {
            return self.fallback.count(budget_id, now);
        }
        let mut connection = self.connection.clone();
        let counted: Result<u32, RedisError> = self
            .count
            .key(counter(budget_id, window_of(now)))
            .arg(2 * WINDOW_MS)
            .invoke_async(&mut connection)
            .await;
        match counted {
            Ok(count) => {
                self.record_answer();
                Admission::of(count, self.limit, now)
            }
            Err(error) => {
                self.record_failure(&error, now);
                self.fallback.count(budget_id, now)
            }
        }
    }

    /// Whether this request may use Redis.
    fn may_use_redis(&self, now: Timestamp) -> bool {
        let until = self.paused_until.load(Ordering::Relaxed);
        if until == NOT_PAUSED {
            return true;
        }
        let remaining_ms = until.saturating_sub(now.unix_ms());
        // The remainder exceeds the pause if the clock was set back.
        let is_over = remaining_ms <= 0 || remaining_ms > PAUSE_MS;
        let next = now.unix_ms().saturating_add(PAUSE_MS);
        is_over
            && self
                .paused_until
                .compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    fn record_answer(&self) {
        if self.paused_until.load(Ordering::Relaxed) != NOT_PAUSED {
            self.paused_until.store(NOT_PAUSED, Ordering::Relaxed);
        }
        if self.is_out.load(Ordering::Relaxed) && self.is_out.swap(false, Ordering::Relaxed) {
            log::info!("Redis answers again");
        }
    }

    fn record_failure(&self, error: &RedisError, now: Timestamp) {
        self.paused_until
            .store(now.unix_ms().saturating_add(PAUSE_MS), Ordering::Relaxed);
        // One request a second tries Redis during an outage, which bounds the number of log lines.
        if !self.is_out.swap(true, Ordering::Relaxed) {
            log::warn!("Redis does not answer, requests are counted in this process: {error}");
        }
    }
}

impl RateLimiter for RedisLimiter {
    fn admit<'a>(&'a self, budget_id: &'a [u8], now: Timestamp) -> Admitting<'a> {
        Box::pin(self.count(budget_id, now))
    }
}

/// The name of a counter. It has half a SHA-256 of the id: every process computes the same name, and Redis has no keys.
fn counter(budget_id: &[u8], window: i64) -> String {
    let mut name = format!("assay:limit:{window}:");
    for byte in Sha256::digest(budget_id).iter().take(16) {
        // Writing to a String cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_does_not_show_the_key() {
        let name = counter(b"Bearer svc_ro_secret", 29_920_006);
        assert!(name.starts_with("assay:limit:29920006:") && !name.contains("secret"));
        assert_eq!(name.len(), "assay:limit:29920006:".len() + 32);
        assert_eq!(name, counter(b"Bearer svc_ro_secret", 29_920_006));
        assert_ne!(name, counter(b"Bearer svc_ro_other", 29_920_006));
    }

    #[tokio::test]
    async fn without_redis_this_process_counts() {
        let limiter = RedisLimiter::new("redis+unix:///nowhere/at/all", 2).unwrap();
        let now = Timestamp::from_unix_ms(1_795_200_360_000);
        let mut answers = Vec::new();
        for _ in 0..3 {
            answers.push(match limiter.admit(b"a", now).await {
                Admission::Admitted(budget) => Some(budget.remaining),
                Admission::Unlimited | Admission::Refused => None,
            });
        }
        assert_eq!(answers, [Some(1), Some(0), None]);
        assert!(!limiter.may_use_redis(now.plus_ms(PAUSE_MS - 1)));
        assert!(limiter.may_use_redis(now.plus_ms(PAUSE_MS)));
        assert!(!limiter.may_use_redis(now.plus_ms(PAUSE_MS)), "another one tries");
        assert!(
            limiter.may_use_redis(now.plus_ms(-60_000)),
            "the clock was set back"
        );
    }

    #[test]
    fn a_bad_address_is_refused_at_the_start() {
        assert!(RedisLimiter::new("http://localhost", 60).is_err());
    }
}

//! The rate limit: so many requests with one `Authorization` header in a window of 60 seconds.
//!
//! Windows are fixed and aligned to the Unix epoch, so that several processes agree on them. A request without
//! the header is not counted: it is refused anyway, at no cost.

mod in_process;
mod redis;

use std::{future::Future, pin::Pin};

use assay_domain::timestamp::Timestamp;

pub use self::{
    in_process::InProcess,
    redis::{BadRedisUrl, Redis},
};

/// The length of a window in milliseconds.
pub const WINDOW_MS: i64 = 60_000;
/// How many requests a window admits unless configured otherwise.
pub const DEFAULT_LIMIT: u32 = 60;

/// Counts requests by their `Authorization` header.
pub trait RateLimiter: Send + Sync {
    /// Counts one request at `now` and says whether it lies within the limit. Never fails: a limiter that
    /// cannot count as it should counts as well as it can.
    fn admit<'a>(&'a self, authorization: &'a [u8], now: Timestamp) -> Admitting<'a>;
}

/// The answer to come of a [`RateLimiter`].
pub type Admitting<'a> = Pin<Box<dyn Future<Output = Admission> + Send + 'a>>;

/// Whether a request lies within the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It does.
    Admitted,
    /// It does not.
    Refused,
}

impl Admission {
    const fn of(count: u32, limit: u32) -> Self {
        if count <= limit {
            Self::Admitted
        } else {
            Self::Refused
        }
    }
}

/// The window that `now` belongs to.
const fn window_of(now: Timestamp) -> i64 {
    now.unix_ms().div_euclid(WINDOW_MS)
}

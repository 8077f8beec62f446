//! The rate limit of requests per key in a window of 60 seconds.
//!
//! Windows are fixed and aligned to the Unix epoch, so that several processes agree on them. A limiter counts by an id
//! that the listener chooses. The read API uses [`budget_id`](crate::check::budget_id) of the `Authorization` header; a
//! request without the header is not counted, because it is rejected without cost. Uploads, pages, sign-ins and tool
//! calls have budgets of their own, by [`PresentedKey::budget_id`](crate::check::PresentedKey::budget_id).

mod in_process;
mod ping;
mod redis;

use std::{future::Future, pin::Pin};

use assay_domain::timestamp::Timestamp;

pub use self::{
    in_process::InProcessLimiter,
    ping::{RedisUnreachable, ping},
    redis::{BadRedisUrl, RedisLimiter},
};

/// The length of a window in milliseconds.
pub const WINDOW_MS: i64 = 60_000;
/// Default limit of requests per window.
pub const DEFAULT_LIMIT: u32 = 60;
/// Default limit of uploads per window and ingest key.
pub const DEFAULT_UPLOAD_LIMIT: u32 = 600;

/// Counts requests by their budget's id.
pub trait RateLimiter: Send + Sync {
    /// Counts one request at `now` and returns whether it is within the limit. Never fails: a limiter whose shared
    /// counter is unavailable uses its own.
    fn admit<'a>(&'a self, budget_id: &'a [u8], now: Timestamp) -> Admitting<'a>;
}

/// The future of a [`RateLimiter`].
pub type Admitting<'a> = Pin<Box<dyn Future<Output = Admission> + Send + 'a>>;

/// Whether a request is within the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// There is no limit.
    Unlimited,
    /// It is within the limit. This budget is left.
    Admitted(Budget),
    /// It exceeds the limit.
    Refused,
}

/// The remaining budget of the window after an admitted request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The limit of requests per window.
    pub limit: u32,
    /// The remaining requests of this window.
    pub remaining: u32,
    /// Seconds until the next window begins, rounded up: from 1 to 60.
    pub reset_s: i64,
}

impl Admission {
    /// The decision on the request that is the `count`th of its window at `now`.
    const fn of(count: u32, limit: u32, now: Timestamp) -> Self {
        match limit.checked_sub(count) {
            Some(remaining) => Self::Admitted(Budget {
                limit,
                remaining,
                reset_s: reset_s(now),
            }),
            None => Self::Refused,
        }
    }
}

/// Seconds from `now` until the next window begins, rounded up: from 1 to 60.
pub const fn reset_s(now: Timestamp) -> i64 {
    (WINDOW_MS - now.unix_ms().rem_euclid(WINDOW_MS) + 999) / 1_000
}

/// The window of `now`.
const fn window_of(now: Timestamp) -> i64 {
    now.unix_ms().div_euclid(WINDOW_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_counts_down_to_the_windows_end() {
        let at = |ms: i64| Timestamp::from_unix_ms(1_795_200_360_000 + ms);
        for (count, ms, remaining, reset_s) in [
            (1, 0, 59, 60),
            (2, 1, 58, 60),
            (30, 37_000, 30, 23),
            (60, 59_999, 0, 1),
        ] {
            let budget = Budget {
                limit: 60,
                remaining,
                reset_s,
            };
            assert_eq!(Admission::of(count, 60, at(ms)), Admission::Admitted(budget));
        }
        assert_eq!(Admission::of(61, 60, at(0)), Admission::Refused);
    }
}

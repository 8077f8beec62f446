//! Counts requests in this process.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::{BuildHasher, RandomState},
    sync::{Mutex, PoisonError},
};

use assay_domain::timestamp::Timestamp;

use super::{Admission, Admitting, RateLimiter, window_of};

const SHARDS: u64 = 16;
/// Most ids that a shard counts in a window, which need about half a megabyte.
const IDS_PER_SHARD: usize = 16_384;

/// Counters in sharded maps that are dropped at the end of each window.
///
/// A budget's id is stored as a keyed 64-bit hash, so that a client cannot choose colliding ids. Memory is bounded: a
/// full shard drops the ids with a single request in this window, such as random ones. If it is still full, new ids are
/// admitted without counting.
pub struct InProcessLimiter {
    limit: u32,
    hasher: RandomState,
    shards: Vec<Mutex<Shard>>,
}

impl InProcessLimiter {
    /// Admits `limit` requests per window and id; 0 admits all.
    pub fn new(limit: u32) -> Self {
        Self {
            limit,
            hasher: RandomState::new(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    /// Counts one request. Never waits.
    pub fn count(&self, budget_id: &[u8], now: Timestamp) -> Admission {
        if self.limit == 0 {
            return Admission::Unlimited;
        }
        let hash = self.hasher.hash_one(budget_id);
        // The top bits choose the shard; the map inside uses the lower ones.
        let shard = usize::try_from(hash >> 60)
            .ok()
            .and_then(|index| self.shards.get(index));
        // Each value of these four bits has a shard.
        let count = shard.map_or(1, |shard| {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.count(hash, window_of(now))
        });
        Admission::of(count, self.limit, now)
    }
}

impl RateLimiter for InProcessLimiter {
    fn admit<'a>(&'a self, budget_id: &'a [u8], now: Timestamp) -> Admitting<'a> {
        Box::pin(std::future::ready(self.count(budget_id, now)))
    }
}

#[derive(Default)]
struct Shard {
    window: i64,
    /// The number of uncounted requests since the shard was full.
    uncounted: usize,
    counts: HashMap<u64, u32>,
}

impl Shard {
    /// The number of requests of this id in the window, including this one.
    fn count(&mut self, hash: u64, window: i64) -> u32 {
        // A thread that read the clock just before the window's end counts in the new window. A clock that was set
        // back further starts a new window.
        if window > self.window || window < self.window - 1 {
            *self = Self {
                window,
                ..Self::default()
            };
        }
        if self.counts.len() >= IDS_PER_SHARD && !self.counts.contains_key(&hash) {
            // After a sweep that frees nothing, the next one runs only after a full shard of requests, which spreads
            // its cost.
            if self.uncounted.is_multiple_of(IDS_PER_SHARD) {
                self.counts.retain(|_, count| *count > 1);
            }
            if self.counts.len() >= IDS_PER_SHARD {
                self.uncounted += 1;
                return 1;
            }
            self.uncounted = 0;
        }
        match self.counts.entry(hash) {
            Entry::Occupied(mut entry) => {
                let count = entry.get().saturating_add(1);
                entry.insert(count);
                count
            }
            Entry::Vacant(entry) => *entry.insert(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_ms(1_795_200_360_000);

    fn is_admitted(limiter: &InProcessLimiter, header: &[u8], now: Timestamp) -> bool {
        limiter.count(header, now) != Admission::Refused
    }

    #[test]
    fn the_sixty_first_request_of_a_window_is_refused() {
        let limiter = InProcessLimiter::new(60);
        for request in 0..60 {
            let at = NOW.plus_ms(request * 999);
            assert!(is_admitted(&limiter, b"Bearer a", at), "{request}");
        }
        assert!(!is_admitted(&limiter, b"Bearer a", NOW.plus_ms(59_999)));
        assert!(is_admitted(&limiter, b"Bearer b", NOW.plus_ms(59_999)));
        assert!(is_admitted(&limiter, b"Bearer a", NOW.plus_ms(60_000)));
    }

    #[test]
    fn a_limit_of_zero_is_none() {
        let limiter = InProcessLimiter::new(0);
        assert!((0..1_000).all(|_| limiter.count(b"a", NOW) == Admission::Unlimited));
    }

    #[test]
    fn a_clock_that_lags_at_the_end_of_a_window_does_not_reset_it() {
        let limiter = InProcessLimiter::new(1);
        limiter.count(b"a", NOW);
        assert!(!is_admitted(&limiter, b"a", NOW.plus_ms(-1)));
        assert!(!is_admitted(&limiter, b"a", NOW));
        assert!(is_admitted(&limiter, b"a", NOW.plus_ms(-3_600_000)));
    }

    #[test]
    fn random_headers_neither_grow_the_maps_nor_free_a_busy_header() {
        let limiter = InProcessLimiter::new(60);
        for _ in 0..60 {
            limiter.count(b"busy", NOW);
        }
        for header in 0u32..400_000 {
            limiter.count(&header.to_le_bytes(), NOW);
        }
        assert!(!is_admitted(&limiter, b"busy", NOW));
        for shard in &limiter.shards {
            assert!(shard.lock().unwrap().counts.len() <= IDS_PER_SHARD);
        }
    }

    #[test]
    fn headers_that_repeat_do_not_grow_the_maps_either() {
        let limiter = InProcessLimiter::new(60);
        for header in 0u32..300_000 {
            limiter.count(&header.to_le_bytes(), NOW);
            limiter.count(&header.to_le_bytes(), NOW);
        }
        let counted: usize = limiter
            .shards
            .iter()
            .map(|shard| shard.lock().unwrap().counts.len())
            .sum();
        assert!(counted <= IDS_PER_SHARD * 16);
    }

    #[test]
    fn threads_admit_exactly_the_limit() {
        let limiter = InProcessLimiter::new(60);
        let admitted: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..50).filter(|_| is_admitted(&limiter, b"a", NOW)).count()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(admitted, 60);
    }

    proptest! {
        /// Compares with a plain count per header and window.
        #[test]
        fn counts_as_a_plain_map_does(
            limit in 1u32..5,
            requests in proptest::collection::vec((0u8..4, 0i64..40_000), 1..200),
        ) {
            let limiter = InProcessLimiter::new(limit);
            let mut plain = HashMap::new();
            let mut now = NOW;
            for (header, pause) in requests {
                now = now.plus_ms(pause);
                let count = plain.entry((header, window_of(now))).or_insert(0u32);
                *count += 1;
                prop_assert_eq!(limiter.count(&[header], now), Admission::of(*count, limit, now));
            }
        }
    }
}

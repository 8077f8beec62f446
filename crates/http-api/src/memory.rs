//! The memory of answers: a limit on the bytes that are being built or sent, with fair shares by key.
//!
//! An answer stays in memory until its client has received it, so slow readers could fill the memory with requests
//! within their limit. A route with large answers reserves memory before it begins and reduces the reservation to the
//! size of its answer. The reservation ends when the client has received the answer or is disconnected. Short answers
//! are not counted, because the system buffers them.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use assay_domain::id::KeyId;
use assay_http::{Capacity, Holder, Precedence, Share};

/// The reservation of a route with large answers before it begins, in bytes.
pub(crate) const BUILDING: usize = 4 << 20;
/// The reservation of an answer in parts: one part in the store's form and as JSON, the encoder, and the numbers of the
/// runs of a history. What else it keeps for the other parts is added.
pub(crate) const IN_PARTS: usize = 8 << 20;
/// Answers of up to this many bytes are not counted.
const UNCOUNTED: u64 = 64 << 10;
/// The interval between log lines about refusals.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// The memory for all answers of the process.
pub(crate) struct AnswerMemory {
    capacity: Arc<Capacity>,
    /// The refusals since the last line in the log, and its time.
    refusals: Mutex<(u64, Option<Instant>)>,
}

/// No memory is free for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryExhausted;

impl AnswerMemory {
    /// Memory of `total` bytes. Each key may use a quarter.
    pub(crate) fn new(total: usize) -> Self {
        let total = in_bytes(total);
        Self {
            capacity: Capacity::new(total, total / 4, None),
            refusals: Mutex::default(),
        }
    }

    /// Reserves memory for an answer to a key until the reservation is dropped.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        key: KeyId,
        bytes: usize,
    ) -> Result<Reservation, MemoryExhausted> {
        let precedence = Precedence::Trusted;
        let mut reservation = Reservation {
            memory: Arc::clone(self),
            share: self.capacity.empty(Holder { key, precedence }),
        };
        reservation.resize(bytes)?;
        Ok(reservation)
    }

    fn log_refusal(&self) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, logged_at) = &mut *refusals;
        *count += 1;
        if logged_at.is_none_or(|at| at.elapsed() > LOG_EVERY) {
            log::warn!(
                "answers that clients have not read fill the memory for answers, or the quarter of one key: {count} requests were refused"
            );
            *refusals = (0, Some(Instant::now()));
        }
    }
}

/// Memory for one answer, released on drop.
pub(crate) struct Reservation {
    memory: Arc<AnswerMemory>,
    share: Share,
}

impl Reservation {
    /// Changes the reservation to this many bytes. A smaller size always succeeds.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), MemoryExhausted> {
        let bytes = Some(in_bytes(bytes))
            .filter(|bytes| *bytes > UNCOUNTED)
            .unwrap_or(0);
        let missing = bytes.saturating_sub(self.share.amount());
        if missing > 0 && !self.share.grow(missing) {
            self.memory.log_refusal();
            return Err(MemoryExhausted);
        }
        self.share.shrink_to(bytes);
        Ok(())
    }
}

fn in_bytes(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u128) -> KeyId {
        format!("019aa3f4-5b1c-7def-8a3b-{number:012x}").parse().unwrap()
    }

    #[test]
    fn a_key_holds_at_most_a_quarter_and_all_keys_the_whole() {
        let memory = Arc::new(AnswerMemory::new(16 << 20));
        let mut reservations: Vec<_> = (0..4)
            .map(|number| memory.reserve(key(number), 4 << 20).unwrap())
            .collect();
        for number in 0..4 {
            assert_eq!(
                memory.reserve(key(number), 64 << 10 | 1).err(),
                Some(MemoryExhausted)
            );
        }
        assert_eq!(memory.reserve(key(5), 64 << 10 | 1).err(), Some(MemoryExhausted));
        // Short answers are not counted.
        assert!(memory.reserve(key(5), 64 << 10).is_ok());
        reservations.pop();
        assert!(memory.reserve(key(0), 64 << 10 | 1).is_err());
        assert!(memory.reserve(key(5), 4 << 20).is_ok());
        drop(reservations);
        assert!(memory.reserve(key(0), 4 << 20).is_ok());
    }

    #[test]
    fn a_reservation_shrinks_to_what_the_answer_needs() {
        let memory = Arc::new(AnswerMemory::new(16 << 20));
        let mut first = memory.reserve(key(1), 4 << 20).unwrap();
        assert_eq!(first.resize(5 << 20), Err(MemoryExhausted));
        first.resize(1 << 20).unwrap();
        let _second = memory.reserve(key(1), 3 << 20).unwrap();
        assert_eq!(first.resize(2 << 20), Err(MemoryExhausted));
        // A rejected resize does not change the reservation.
        assert!(first.resize(1 << 20).is_ok());
    }
}

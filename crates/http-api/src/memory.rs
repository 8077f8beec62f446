//! The memory of answers: a limit on the bytes that are being built or sent, with fair shares by key.
//!
//! An answer stays in memory until its client has received it, so slow readers could fill the memory with requests
//! within their limit. A route with large answers reserves memory before it begins and reduces the reservation to the
//! size of its answer. The reservation ends when the client has received the answer or is disconnected. Short answers
//! are not counted, because the system buffers them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use assay_domain::id::KeyId;

/// The reservation of a route with large answers before it begins, in bytes.
pub(crate) const BUILDING: usize = 4 << 20;
/// The reservation of an answer in parts: one part in the store's form and as JSON, the encoder, and the numbers of the
/// runs of a history. What else it keeps for the other parts is added.
pub(crate) const IN_PARTS: usize = 8 << 20;
/// Answers of up to this many bytes are not counted.
const UNCOUNTED: usize = 64 << 10;
/// The interval between log lines about refusals.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// The memory for all answers of the process.
pub(crate) struct AnswerMemory {
    total: usize,
    limit_of_key: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    reserved: usize,
    by_key: HashMap<KeyId, usize>,
    refusals: u64,
    logged_at: Option<Instant>,
}

/// No memory is free for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryExhausted;

impl AnswerMemory {
    /// Memory of `total` bytes. Each key may use a quarter.
    pub(crate) fn new(total: usize) -> Self {
        Self {
            total,
            limit_of_key: total / 4,
            state: Mutex::default(),
        }
    }

    /// Reserves memory for an answer to a key until the reservation is dropped.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        key: KeyId,
        bytes: usize,
    ) -> Result<Reservation, MemoryExhausted> {
        let mut reservation = Reservation {
            memory: Arc::clone(self),
            key,
            bytes: 0,
        };
        reservation.resize(bytes)?;
        Ok(reservation)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory for one answer, released on drop.
pub(crate) struct Reservation {
    memory: Arc<AnswerMemory>,
    key: KeyId,
    bytes: usize,
}

impl Reservation {
    /// Changes the reservation to this many bytes. A smaller size always succeeds.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), MemoryExhausted> {
        let bytes = if bytes > UNCOUNTED { bytes } else { 0 };
        let mut state = self.memory.state();
        let of_key = state.by_key.get(&self.key).copied().unwrap_or(0);
        let (all, of_key) = (state.reserved - self.bytes + bytes, of_key - self.bytes + bytes);
        if bytes > self.bytes && (all > self.memory.total || of_key > self.memory.limit_of_key) {
            state.log_refusal(of_key > self.memory.limit_of_key);
            return Err(MemoryExhausted);
        }
        state.reserved = all;
        if of_key == 0 {
            state.by_key.remove(&self.key);
        } else {
            state.by_key.insert(self.key, of_key);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // A smaller reservation is always granted.
        let _ = self.resize(0);
    }
}

impl State {
    fn log_refusal(&mut self, of_key: bool) {
        self.refusals += 1;
        if self.logged_at.is_none_or(|at| at.elapsed() > LOG_EVERY) {
            let exhausted = if of_key { "one key's share" } else { "all" };
            log::warn!(
                "answers that clients have not read fill {exhausted} of the memory for answers: {} requests were refused",
                self.refusals
            );
            self.refusals = 0;
            self.logged_at = Some(Instant::now());
        }
    }
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
        let state = memory.state();
        assert_eq!((state.reserved, state.by_key.len()), (0, 0));
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
        assert_eq!(memory.state().reserved, 4 << 20);
    }
}

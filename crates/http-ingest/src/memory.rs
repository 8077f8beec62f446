//! The memory of one upload: what its reading takes is taken from the upload's share before it is used.
//!
//! The share grows while the reading goes on. If it cannot grow without waiting, the reading ends, the share is given
//! back, and the upload waits for twice as much before it is read again. An upload that waits holds nothing, so uploads
//! cannot wait for each other.

use std::sync::{Mutex, MutexGuard, PoisonError};

use assay_http::Share;
use assay_reports::Memory;

use crate::{admit::in_words, error::IngestError};

/// The unit by which a share grows, in bytes.
const UNIT: u64 = 1 << 20;

/// The memory of an upload.
#[derive(Debug)]
pub(crate) struct UploadMemory(Mutex<State>);

#[derive(Debug)]
struct State {
    share: Share,
    used: u64,
    /// What would have been needed at least when the share could not grow.
    missed: Option<u64>,
}

impl UploadMemory {
    pub(crate) const fn new(share: Share) -> Self {
        Self(Mutex::new(State {
            share,
            used: 0,
            missed: None,
        }))
    }

    /// A first guess for an upload of this many bytes: itself, and as much again for what is read from it.
    pub(crate) const fn first_guess(bytes: u64) -> u64 {
        bytes.saturating_mul(2).saturating_add(UNIT)
    }

    /// Takes memory, or fails.
    pub(crate) fn demand(&self, bytes: usize) -> Result<(), IngestError> {
        match self.take(bytes) {
            true => Ok(()),
            false => Err(too_large(self.state().share.most())),
        }
    }

    /// The bytes in use.
    pub(crate) fn used(&self) -> usize {
        usize::try_from(self.state().used).unwrap_or(usize::MAX)
    }

    /// Gives back all but these bytes.
    pub(crate) fn give_back_to(&self, bytes: usize) {
        self.give_back(self.used().saturating_sub(bytes));
    }

    /// Shrinks the share to what is in use.
    pub(crate) fn settle(&self) {
        let mut state = self.state();
        let used = state.used.next_multiple_of(UNIT);
        state.share.shrink_to(used);
    }

    /// The share to wait for after a reading that lacked memory; none if memory was not what it lacked. Fails if a key
    /// cannot hold that much.
    pub(crate) fn next_guess(&self) -> Result<Option<u64>, IngestError> {
        let state = self.state();
        let Some(missed) = state.missed else {
            return Ok(None);
        };
        let most = state.share.most();
        if missed > most {
            return Err(too_large(most));
        }
        Ok(Some(missed.max(state.share.amount().saturating_mul(2)).min(most)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory for UploadMemory {
    fn take(&self, bytes: usize) -> bool {
        let mut state = self.state();
        let needed = state
            .used
            .saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        let missing = needed.saturating_sub(state.share.amount());
        if missing > 0 && !state.share.grow(missing.next_multiple_of(UNIT)) {
            state.missed = Some(needed);
            return false;
        }
        state.used = needed;
        true
    }

    fn give_back(&self, bytes: usize) {
        let mut state = self.state();
        state.used = state
            .used
            .saturating_sub(u64::try_from(bytes).unwrap_or(u64::MAX));
    }
}

fn too_large(most: u64) -> IngestError {
    IngestError::TooLarge {
        subject: "The memory for reading the upload",
        limit: in_words(most),
    }
}

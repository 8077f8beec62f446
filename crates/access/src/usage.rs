//! The day of a key's latest use.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use assay_domain::{
    id::KeyId,
    timestamp::{DAY_MS, Timestamp},
};

use crate::check::AccessKey;

/// The pause after a failure.
const RETRY_MS: i64 = 60_000;

/// Records a key's use once per day and process, so that few requests also write.
#[derive(Debug, Default)]
pub struct KeyUsage {
    /// The time of each key's next record. Only existing keys are inserted, which bounds the map.
    due: Mutex<HashMap<KeyId, Timestamp>>,
}

impl KeyUsage {
    /// Records a use of `key` at `now`. A failure is logged and tried again later; it does not fail the request.
    /// Blocks.
    pub fn record<K: AccessKey>(&self, store: &K::Store, key: &K, now: Timestamp) {
        let id = key.id();
        if !self.claim(id, now) {
            return;
        }
        if let Err(error) = key.record_use(store, now) {
            log::warn!("the use of key {id} was not recorded: {error}");
            self.put(id, now.plus_ms(RETRY_MS));
        }
    }

    /// Whether to record this use. Further uses of the day are skipped.
    fn claim(&self, key: KeyId, now: Timestamp) -> bool {
        let next_day = (now.unix_ms().div_euclid(DAY_MS) + 1) * DAY_MS;
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        if due.get(&key).is_some_and(|at| now < *at) {
            return false;
        }
        due.insert(key, Timestamp::from_unix_ms(next_day));
        true
    }

    fn put(&self, key: KeyId, at: Timestamp) {
        self.due
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key, at);
    }
}

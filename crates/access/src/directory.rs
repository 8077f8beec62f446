//! Keys and projects, as they were read a moment ago.
//!
//! Every request asks the same two questions, and of one caller they have the same answers. So what the store said is
//! kept for half a second, which leaves as much again of the second within which a revocation and a new plan count on
//! every process. Kept are facts and never decisions: each request is decided at its own time, so that an expiry needs
//! no reading anew. What was not found is not kept, so that a new key and a new project work at once.

use std::{hash::Hash, sync::Arc};

use assay_domain::{
    id::{OrganizationId, ProjectId},
    key::{KeyHash, StoredKey},
    project::{Caller, Project},
    store::{Store, StoreError},
    timestamp::Timestamp,
};
use quick_cache::sync::Cache;

use crate::check::{CheckError, Grant, PresentedKey, Refusal};

/// How long something read counts, in milliseconds.
const KEPT_MS: i64 = 500;
/// How many keys, and how many projects, are kept at most: a megabyte or two.
const KEPT: usize = 10_000;

/// Knows who may ask, and of which project.
pub struct Directory {
    store: Arc<dyn Store>,
    keys: Recent<KeyHash, StoredKey>,
    /// By organization too: what one may see says nothing of another.
    projects: Recent<(OrganizationId, ProjectId), Project>,
}

impl Directory {
    /// The keys and projects of `store`.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            keys: Recent::new(),
            projects: Recent::new(),
        }
    }

    /// Looks a key up and grants what it grants at `now`.
    ///
    /// Refuses, in this order, with [`Refusal::InvalidKey`] (unknown), [`Refusal::KeyRevoked`],
    /// [`Refusal::KeyExpired`] or [`Refusal::TierTooLow`]. Blocks on the store.
    pub fn check(&self, key: &PresentedKey, now: Timestamp) -> Result<Grant, CheckError> {
        let hash = key.hash();
        let stored = self.keys.get(hash, now, || self.store.key(&hash))?;
        Ok(Grant::of(&stored.ok_or(Refusal::InvalidKey)?, now)?)
    }

    /// The caller's project of this id, as it is seen at `now`. Blocks on the store.
    pub fn project(
        &self,
        caller: &Caller,
        id: ProjectId,
        now: Timestamp,
    ) -> Result<Option<Project>, StoreError> {
        let read = || self.store.project(caller, id, now);
        let found = self.projects.get((caller.organization, id), now, read)?;
        Ok(found.map(|project| project.seen(caller.plan, now)))
    }
}

/// What was read lately, each with the time of the request that it was read for, which lies before the reading.
pub(crate) struct Recent<K, V>(Cache<K, (Timestamp, V)>);

impl<K: Eq + Hash + Copy, V: Clone> Recent<K, V> {
    pub(crate) fn new() -> Self {
        Self(Cache::new(KEPT))
    }

    /// What was read of `key` in the last moment, else what `read` reads now.
    pub(crate) fn get(
        &self,
        key: K,
        now: Timestamp,
        read: impl FnOnce() -> Result<Option<V>, StoreError>,
    ) -> Result<Option<V>, StoreError> {
        // What seems to be read in the future was read before the clock was set back, nobody knows how long ago.
        let counts = |(read_at, _): &(Timestamp, V)| (0..KEPT_MS).contains(&now.since_ms(*read_at));
        if let Some((_, kept)) = self.0.get(&key).filter(counts) {
            return Ok(Some(kept));
        }
        let found = read()?;
        if let Some(value) = &found {
            self.0.insert(key, (now, value.clone()));
        }
        Ok(found)
    }
}

//! Caches keys and projects for a short time.
//!
//! Every request needs a key and mostly a project, so their rows are cached for half a second. A revocation and a new
//! plan take effect within a second on every process, which leaves half a second for the read itself. The cache has
//! rows and no decisions: each request is checked at its own time, so that an expiry needs no further read. Missing
//! rows are not cached, so that a new key and a new project work immediately.

use std::{hash::Hash, sync::Arc};

use assay_domain::{
    id::ProjectId,
    key::{KeyHash, StoredKey},
    project::{Caller, Project},
    store::StoreError,
    timestamp::Timestamp,
};
use quick_cache::sync::Cache;

use crate::check::{AccessKey, CheckError, Grant, PresentedKey, Refusal};

/// The validity of a cached row, in milliseconds.
const CACHED_MS: i64 = 500;
/// Most cached keys, and most cached projects: a megabyte or two.
const MOST_CACHED: usize = 10_000;

/// Looks up keys of one kind, and the projects of read keys, with a cache.
pub struct Directory<K: AccessKey> {
    store: Arc<K::Store>,
    keys: Recent<KeyHash, K>,
    projects: K::Projects,
}

/// Looks up read keys and projects.
pub type ReadDirectory = Directory<StoredKey>;

impl<K: AccessKey> Directory<K> {
    /// Creates a cache over `store`.
    pub fn new(store: Arc<K::Store>) -> Self {
        Self {
            store,
            keys: Recent::default(),
            projects: K::Projects::default(),
        }
    }

    /// Looks a key up and returns its grant at `now`.
    ///
    /// Returns, in this order, [`Refusal::InvalidKey`] (unknown), the refusals of [`AccessKey::validate`] or
    /// [`Refusal::SessionEnded`]. Blocks on the store.
    pub fn check(&self, key: &PresentedKey, now: Timestamp) -> Result<Grant<K>, CheckError> {
        let hash = key.hash();
        let stored = self.keys.get(hash, now, || K::find(&self.store, key))?;
        let grant = Grant::of(stored.ok_or(Refusal::InvalidKey)?, now)?;
        match key.session() {
            Some(session) if K::has_ended(&self.store, session)? => Err(Refusal::SessionEnded.into()),
            Some(_) | None => Ok(grant),
        }
    }

    /// The admission share for the look-up of this key: its own if its row was found and is still cached, at any age.
    /// Does not block.
    pub fn share(&self, key: &PresentedKey) -> AdmissionShare {
        let hash = key.hash();
        AdmissionShare(self.keys.0.contains_key(&hash).then_some(hash))
    }

    /// The store behind the cache.
    pub fn store(&self) -> &K::Store {
        &self.store
    }
}

impl Directory<StoredKey> {
    /// The caller's project with this id, as seen at `now`. Blocks on the store.
    pub fn project(
        &self,
        caller: &Caller,
        id: ProjectId,
        now: Timestamp,
    ) -> Result<Option<Project>, StoreError> {
        if !caller.may_read(&id) {
            return Ok(None);
        }
        let read = || self.store.project(caller, id, now);
        let project = self.projects.get((caller.organization, id), now, read)?;
        Ok(project.map(|project| project.seen(caller.plan, now)))
    }
}

/// The share of admission control: one per known key, and one for all unknown keys together.
///
/// A key is known after a look-up has found it. Unknown keys are looked up in one share, and no other work uses it. A
/// client that invents keys, even a new one per request, therefore uses no more threads and queue places than one key
/// may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AdmissionShare(Option<KeyHash>);

impl AdmissionShare {
    /// The share of unknown keys.
    pub const UNKNOWN_KEYS: Self = Self(None);

    /// The share of a key that was checked.
    pub const fn of(key: &PresentedKey) -> Self {
        Self(Some(key.hash()))
    }
}

/// Recently read rows. The time is that of the request, which is earlier than the read.
pub struct Recent<K, V>(Cache<K, (Timestamp, V)>);

impl<K: Eq + Hash, V: Clone> Default for Recent<K, V> {
    fn default() -> Self {
        Self(Cache::new(MOST_CACHED))
    }
}

impl<K: Eq + Hash + Copy, V: Clone> Recent<K, V> {
    /// The cached row of `key`, else the result of `read`.
    fn get(
        &self,
        key: K,
        now: Timestamp,
        read: impl FnOnce() -> Result<Option<V>, StoreError>,
    ) -> Result<Option<V>, StoreError> {
        // An entry from the future was read before the clock was set back. Its age is unknown.
        let counts = |(read_at, _): &(Timestamp, V)| (0..CACHED_MS).contains(&now.since_ms(*read_at));
        if let Some((_, cached)) = self.0.get(&key).filter(counts) {
            return Ok(Some(cached));
        }
        let value = read()?;
        if let Some(value) = &value {
            self.0.insert(key, (now, value.clone()));
        }
        Ok(value)
    }
}

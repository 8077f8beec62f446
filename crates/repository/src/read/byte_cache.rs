//! The cache of everything that several requests read: values by key, the most recently requested ones, within a bound of
//! memory.

use std::{hash::Hash, ops::Deref};

use quick_cache::{Weighter, sync::Cache};

/// Estimated number of entries. It is low, so that the cache is not split into parts with little memory each.
const ESTIMATED_ENTRIES: usize = 32;

/// A cached value.
pub(crate) trait Cached<K>: Clone {
    /// Most memory of all values, in bytes. A value that is larger is not cached.
    const MOST_BYTES: u64;

    /// The approximate memory of this value and its key in bytes. An empty value uses memory, too.
    fn bytes(&self, key: &K) -> usize;
}

/// Values by key.
pub(crate) struct ByteCache<K, V>(Cache<K, V, InBytes>);

impl<K: Eq + Hash, V: Cached<K>> Default for ByteCache<K, V> {
    fn default() -> Self {
        Self(Cache::with_weighter(ESTIMATED_ENTRIES, V::MOST_BYTES, InBytes))
    }
}

impl<K, V> Deref for ByteCache<K, V> {
    type Target = Cache<K, V, InBytes>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// Weighs values by their bytes.
#[derive(Clone)]
pub(crate) struct InBytes;

impl<K, V: Cached<K>> Weighter<K, V> for InBytes {
    fn weight(&self, key: &K, value: &V) -> u64 {
        u64::try_from(value.bytes(key)).unwrap_or(u64::MAX)
    }
}

//! Cache of values that were computed from the runs of a window, such as the causes of a run's failures.
//!
//! Every request reads the project's state from the database, and the key of a value has that state. A value is therefore
//! never used after a change. Requests for the same value wait for the first one, which computes it.

use std::{any::Any, sync::Arc, time::Duration};

use assay_domain::{
    observation::History,
    store::{SharedKey, SharedValue},
};
use quick_cache::{
    Weighter,
    sync::{Cache, GuardResult},
};
use uuid::Uuid;

use crate::{db::column::At, read::history_cache::HistoryVersion};

/// Most memory of cached values, in bytes. The causes of 20 failures need about twenty thousand.
const BYTES: u64 = 16 << 20;
/// Estimated number of entries. It is low, so that the cache is not split into parts with little memory each.
const ESTIMATED_ENTRIES: usize = 32;
/// How long a request waits for another one that computes the same value. Then it computes the value itself.
const WAIT: Duration = Duration::from_secs(5);

/// The values that were requested most recently.
pub(crate) struct SharedValues(Cache<ValueKey, CachedValue, InBytes>);

/// The runs of a window in one state of a project.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct WindowState {
    pub(crate) project: Uuid,
    pub(crate) observed: HistoryVersion,
    pub(crate) stable_branch: Arc<str>,
    /// The starts of the first and the last run; none without runs.
    pub(crate) span: Option<(At, At)>,
}

impl WindowState {
    /// The runs of a history, which has no others, in the state that it was read in.
    pub(crate) fn of(project: Uuid, observed: HistoryVersion, history: &History) -> Self {
        let starts = || history.runs.iter().map(|run| run.run.started_at);
        Self {
            project,
            observed,
            stable_branch: Arc::clone(&history.stable_branch),
            span: starts()
                .min()
                .zip(starts().max())
                .map(|(first, last)| (At(first), At(last))),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ValueKey {
    window: WindowState,
    key: SharedKey,
}

#[derive(Clone)]
struct CachedValue {
    value: Arc<dyn Any + Send + Sync>,
    bytes: usize,
}

impl SharedValues {
    /// The cached value, else that of `compute`.
    pub(crate) fn cached_or_computed<E>(
        &self,
        window: WindowState,
        key: SharedKey,
        compute: impl FnOnce() -> Result<SharedValue, E>,
    ) -> Result<SharedValue, E> {
        match self.0.get_value_or_guard(&ValueKey { window, key }, Some(WAIT)) {
            GuardResult::Value(CachedValue { value, bytes }) => Ok((value, bytes)),
            GuardResult::Guard(guard) => {
                let (value, bytes) = compute()?;
                // It is not cached if it is too large.
                let _ = guard.insert(CachedValue {
                    value: Arc::clone(&value),
                    bytes,
                });
                Ok((value, bytes))
            }
            GuardResult::Timeout => compute(),
        }
    }
}

impl Default for SharedValues {
    fn default() -> Self {
        Self(Cache::with_weighter(ESTIMATED_ENTRIES, BYTES, InBytes))
    }
}

#[derive(Clone)]
struct InBytes;

impl Weighter<ValueKey, CachedValue> for InBytes {
    fn weight(&self, key: &ValueKey, cached: &CachedValue) -> u64 {
        let own = size_of_val(key) + key.window.stable_branch.len() + size_of_val(cached);
        u64::try_from(own.saturating_add(cached.bytes)).unwrap_or(u64::MAX)
    }
}

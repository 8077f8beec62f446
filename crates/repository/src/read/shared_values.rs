//! Cache of values that were computed from the runs of a window: causes of a run's failures, pages of error signatures,
//! numbers of tests for each error text.
//!
//! Every request reads the project's state from the database, and the key of a value has that state. A value is
//! therefore never used after a change. Requests for the same value wait for the first one, which computes it.

use std::{
    any::{Any, type_name},
    sync::Arc,
    time::Duration,
};

use assay_domain::{
    observation::History,
    period::Period,
    project::Project,
    store::{SharedKey, SharedValue, StoreError},
};
use diesel::prelude::*;
use quick_cache::sync::GuardResult;
use uuid::Uuid;

use crate::{
    db::{
        column::{At, corrupt},
        period::{retention_bounds, visible},
        pool::{Read, WorkError},
        sql_statement::SqlStatement,
    },
    read::{
        byte_cache::{ByteCache, Cached},
        history_cache::HistoryVersion,
        signature_list::ListName,
    },
};

/// How long a request waits for another one that computes the same value. Then it computes the value itself.
const WAIT: Duration = Duration::from_secs(5);

/// The values that were requested most recently.
#[derive(Default)]
pub(crate) struct SharedValues(ByteCache<ValueKey, CachedValue>);

/// The runs of a window in one state of a project.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct WindowState {
    pub(crate) project: Uuid,
    pub(crate) observed: HistoryVersion,
    pub(crate) stable_branch: Arc<str>,
    /// The starts of the first and the last run; none without runs.
    pub(crate) span: Option<(At, At)>,
    /// The same of all visible runs, for a value that depends on them too.
    pub(crate) visible: Option<(At, At)>,
    /// Whether tests of the project are joined. False where the reads do not depend on it.
    pub(crate) has_joins: bool,
}

impl WindowState {
    /// The runs of a history, in the state in which it was read.
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
            visible: None,
            has_joins: false,
        }
    }

    /// The visible runs, and those of them that started within `from..=to`, in the state that the connection's
    /// transaction sees. Runs that do not count in verdicts are among them.
    pub(crate) fn read(
        connection: &mut PgConnection,
        project: &Project,
        (from, to): (At, At),
    ) -> QueryResult<Option<Self>> {
        type Ends = (Option<At>, Option<At>);
        type Row = (String, HistoryVersion, bool, Ends, Ends);
        let (first_visible, last_visible) = retention_bounds(project);
        // Without statistics, `min` and `max` would read all runs.
        let row: Option<Row> = SqlStatement::new(
            "SELECT project.stable_branch, project.observed, project.evaluated_at, project.joined_tests IS NOT NULL, \
             (SELECT run.started_at FROM run WHERE run.project_id = {project} \
             AND run.started_at BETWEEN {from} AND {to} ORDER BY run.started_at LIMIT 1), \
             (SELECT run.started_at FROM run WHERE run.project_id = {project} \
             AND run.started_at BETWEEN {from} AND {to} ORDER BY run.started_at DESC LIMIT 1), \
             (SELECT run.started_at FROM run WHERE run.project_id = {project} \
             AND run.started_at BETWEEN {first_visible} AND {last_visible} ORDER BY run.started_at LIMIT 1), \
             (SELECT run.started_at FROM run WHERE run.project_id = {project} \
             AND run.started_at BETWEEN {first_visible} AND {last_visible} ORDER BY run.started_at DESC LIMIT 1) \
             FROM project WHERE project.id = {project}",
        )
        .bind("project", project.id.0)
        .bind("from", from)
        .bind("to", to)
        .bind("first_visible", first_visible)
        .bind("last_visible", last_visible)
        .get_result(connection)
        .optional()?;
        let window = |(stable_branch, observed, has_joins, span, visible): Row| Self {
            project: project.id.0,
            observed,
            stable_branch: stable_branch.into(),
            span: span.0.zip(span.1),
            visible: visible.0.zip(visible.1),
            has_joins,
        };
        Ok(row.map(window))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ValueKey {
    window: WindowState,
    name: ValueName,
}

/// Names a value of a window.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ValueName {
    /// Computed by the caller of the store.
    Computed(SharedKey),
    /// A page of error signatures.
    Signatures(ListName),
    /// The error signature with this fingerprint.
    Signature(String),
    /// How many tests showed each error signature.
    TextCounts,
}

impl ValueName {
    /// The bytes of its texts.
    fn texts(&self) -> usize {
        match self {
            Self::Computed(_) | Self::TextCounts => 0,
            Self::Signatures(list) => list.texts(),
            Self::Signature(fingerprint) => fingerprint.len(),
        }
    }
}

#[derive(Clone)]
struct CachedValue {
    value: Arc<dyn Any + Send + Sync>,
    bytes: usize,
}

impl SharedValues {
    /// Returns the value that `compute` reads for the visible runs of a window. Requests in the same state of the
    /// project share it. `compute` gets whether tests are joined, and `bytes` estimates the memory of the value.
    pub(crate) fn read_once<T: Clone + Send + Sync + 'static>(
        &self,
        connection: &mut PgConnection,
        project: &Project,
        window: &Period,
        name: ValueName,
        compute: impl FnOnce(&mut PgConnection, bool) -> Read<T>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Read<T> {
        // A project that was deleted after the caller's look-up has no state.
        let Some(state) = WindowState::read(connection, project, visible(project, window))? else {
            return compute(connection, false);
        };
        let has_joins = state.has_joins;
        self.cached_or_read(state, name, || compute(connection, has_joins), bytes)
    }

    /// The same for runs in a state that is already known.
    pub(crate) fn cached_or_read<T: Clone + Send + Sync + 'static>(
        &self,
        window: WindowState,
        name: ValueName,
        read: impl FnOnce() -> Read<T>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Read<T> {
        let (value, _) = self.cached_or_computed(window, name, || {
            let value = read()?;
            let bytes = bytes(&value);
            let value: Arc<dyn Any + Send + Sync> = Arc::new(value);
            Ok::<SharedValue, WorkError<StoreError>>((value, bytes))
        })?;
        let value = value.downcast::<T>();
        Ok(value
            .map(Arc::unwrap_or_clone)
            .map_err(|_| corrupt("shared value", type_name::<T>()))?)
    }

    /// The cached value, else the result of `compute`. The caller waits if another one computes the same value.
    pub(crate) fn cached_or_computed<E>(
        &self,
        window: WindowState,
        name: ValueName,
        compute: impl FnOnce() -> Result<SharedValue, E>,
    ) -> Result<SharedValue, E> {
        match self.0.get_value_or_guard(&ValueKey { window, name }, Some(WAIT)) {
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

impl Cached<ValueKey> for CachedValue {
    /// The causes of 20 failures need about twenty thousand, and the numbers of tests for 400 error texts three thousand.
    const MOST_BYTES: u64 = 24 << 20;

    fn bytes(&self, key: &ValueKey) -> usize {
        let own = size_of_val(key) + key.window.stable_branch.len() + key.name.texts() + size_of_val(self);
        own.saturating_add(self.bytes)
    }
}

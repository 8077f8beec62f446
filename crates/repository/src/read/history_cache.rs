//! Cache of the engine's input, by project.
//!
//! Every request reads the project's state from the database. The packs are read and decoded again only if the state
//! changed. An answer therefore always reflects the database at that moment.

use std::sync::Arc;

use assay_domain::{
    joins::Joins,
    observation::{History, RunObservations},
    timestamp::Timestamp,
};
use uuid::Uuid;

use crate::{
    db::column::At,
    read::{
        byte_cache::{ByteCache, Cached},
        observation::JoinedHistory,
    },
};

/// Changes with every change of a project's history. The time of the verdicts is part of it, because imports of older
/// programs do not set the id.
pub(crate) type HistoryVersion = (Uuid, Option<At>);

/// The histories of the most recently requested projects.
#[derive(Default)]
pub(crate) struct HistoryCache(ByteCache<Uuid, CachedHistory>);

/// A history from a time on, in one state of the database.
#[derive(Clone)]
struct CachedHistory {
    state: HistoryVersion,
    from: Timestamp,
    history: Arc<History>,
    joins: Arc<Joins>,
}

impl HistoryCache {
    /// The runs of a project that started within `from..=to`, if its cached history has this state and stable branch.
    pub(crate) fn get(
        &self,
        project: Uuid,
        state: HistoryVersion,
        stable_branch: &str,
        (from, to): (Timestamp, Timestamp),
    ) -> Option<JoinedHistory> {
        let CachedHistory {
            state: of,
            from: since,
            history,
            joins,
        } = self.0.get(&project)?;
        if of != state || *history.stable_branch != *stable_branch || since > from {
            return None;
        }
        Some((within(&history, (from, to)), joins))
    }

    /// Caches all runs that started from a time on, oldest first, and returns those within `from..=to`.
    pub(crate) fn insert(
        &self,
        project: Uuid,
        state: HistoryVersion,
        (from, to): (Timestamp, Timestamp),
        history: History,
        joins: Joins,
    ) -> JoinedHistory {
        let (history, joins) = (Arc::new(history), Arc::new(joins));
        let in_range = within(&history, (from, to));
        let cached = CachedHistory {
            state,
            from,
            history,
            joins: Arc::clone(&joins),
        };
        self.0.insert(project, cached);
        (in_range, joins)
    }
}

/// The runs of a history that started within `from..=to`.
fn within(history: &Arc<History>, (from, to): (Timestamp, Timestamp)) -> Arc<History> {
    let start = |run: &RunObservations| run.run.started_at;
    let first = history.runs.partition_point(|run| start(run) < from);
    let end = history.runs.partition_point(|run| start(run) <= to);
    let runs = history.runs.get(first..end).unwrap_or_default();
    if runs.len() == history.runs.len() {
        return Arc::clone(history);
    }
    Arc::new(History {
        stable_branch: Arc::clone(&history.stable_branch),
        tests: history.tests,
        runs: runs.to_vec(),
    })
}

impl Cached<Uuid> for CachedHistory {
    /// One of 1,000 runs of 5,000 tests has about three million.
    const MOST_BYTES: u64 = 64 << 20;

    fn bytes(&self, _: &Uuid) -> usize {
        let runs = self.history.runs.iter().map(|run| {
            let words = [&run.present, &run.skipped, &run.untimed].map(|set| size_of_val(set.words()));
            size_of_val(run)
                + words.iter().sum::<usize>()
                + size_of_val(&*run.failures)
                + size_of_val(&*run.repeated)
                + size_of_val(&*run.other_names)
                + run.run.id.len()
        });
        size_of_val(self) + self.joins.bytes() + runs.sum::<usize>()
    }
}

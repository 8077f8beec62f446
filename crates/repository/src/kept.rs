//! What the engine reads, kept in memory from one question to the next while nothing of it changed.
//!
//! Every question asks the database which state it has; the packs are sent and decoded again only where it has another
//! one. So an answer is never older than what the database says at that moment.

use std::sync::Arc;

use assay_domain::{
    observation::{History, RunObservations},
    timestamp::Timestamp,
};
use quick_cache::{Weighter, sync::Cache};
use uuid::Uuid;

use crate::observation::Observed;

/// How much memory kept histories may take, in bytes; one of 1,000 runs of 5,000 tests takes about three million.
const BYTES: u64 = 64 << 20;
/// About how many they are. So few share all of the memory, rather than each its part.
const USUAL: usize = 32;

/// The histories of the projects that were asked about last.
pub(crate) struct Kept(Cache<Uuid, KeptHistory, InBytes>);

/// A history from a time on, in one state of the database.
#[derive(Clone)]
struct KeptHistory {
    state: Observed,
    from: Timestamp,
    history: Arc<History>,
}

impl Kept {
    /// What is kept of a project, if it is of this state and stable branch, and holds what started within `from..=to` and
    /// nothing else.
    pub(crate) fn get(
        &self,
        project: Uuid,
        state: Observed,
        stable_branch: &str,
        (from, to): (Timestamp, Timestamp),
    ) -> Option<Arc<History>> {
        let KeptHistory {
            state: of,
            from: since,
            history,
        } = self.0.get(&project)?;
        let start = |run: &RunObservations| run.run.started_at;
        let holds = of == state
            && *history.stable_branch == *stable_branch
            && since <= from
            && history.runs.first().is_none_or(|first| start(first) >= from)
            && history.runs.last().is_none_or(|last| start(last) <= to);
        holds.then_some(history)
    }

    /// Keeps all that started from a time on, oldest first.
    pub(crate) fn keep(&self, project: Uuid, state: Observed, from: Timestamp, history: &Arc<History>) {
        let history = Arc::clone(history);
        self.0.insert(project, KeptHistory { state, from, history });
    }
}

impl Default for Kept {
    fn default() -> Self {
        Self(Cache::with_weighter(USUAL, BYTES, InBytes))
    }
}

#[derive(Clone)]
struct InBytes;

impl Weighter<Uuid, KeptHistory> for InBytes {
    fn weight(&self, _: &Uuid, kept: &KeptHistory) -> u64 {
        let runs = kept.history.runs.iter().map(|run| {
            let words = [&run.present, &run.skipped, &run.untimed].map(|set| size_of_val(set.words()));
            let id = run.run.id.len();
            size_of_val(run) + words.iter().sum::<usize>() + size_of_val(&*run.failures) + id
        });
        // Without any runs it takes some, too.
        u64::try_from(size_of_val(kept) + runs.sum::<usize>()).unwrap_or(u64::MAX)
    }
}

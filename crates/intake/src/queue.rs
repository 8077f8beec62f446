//! Estimates how long an upload waits for its turn, and refuses it if that is too long.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use assay_domain::id::ProjectId;

use crate::error::IntakeError;

/// The shortest wait before a retry, in seconds.
pub(crate) const SHORTEST_RETRY_S: u64 = 5;
/// The cost of storing an upload without any test, in tests.
const COST_OF_UPLOAD: u64 = 200;

/// The uploads that wait or are being stored.
///
/// The estimate counts tests, because a whole run of 40,000 tests takes many times as long as a shard of 1,000.
#[derive(Default)]
pub(crate) struct StoringQueue(Mutex<QueueState>);

#[derive(Default)]
struct QueueState {
    /// The moving average of the time to store a test, in nanoseconds; 0 before the first upload.
    test_ns: u64,
    /// The tests of each project's uploads that wait or are being stored.
    tests: HashMap<ProjectId, u64>,
}

impl StoringQueue {
    /// Adds an upload. Refuses it if the estimated wait is too long.
    pub(crate) fn enter(
        self: &Arc<Self>,
        project: ProjectId,
        tests: usize,
        within: Duration,
    ) -> Result<QueuePlace, IntakeError> {
        let mut state = self.state();
        let before = state.tests.get(&project).copied().unwrap_or_default();
        let wait = Duration::from_nanos(before.saturating_mul(state.test_ns));
        if wait > within {
            return Err(IntakeError::Busy {
                reason: "Too many uploads into this project wait for their turn",
                after_s: wait.as_secs().max(SHORTEST_RETRY_S),
            });
        }
        let tests = COST_OF_UPLOAD.saturating_add(u64::try_from(tests).unwrap_or(u64::MAX));
        state.tests.insert(project, before.saturating_add(tests));
        Ok(QueuePlace {
            queue: Arc::clone(self),
            project,
            tests,
        })
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of an upload, released on drop.
pub(crate) struct QueuePlace {
    queue: Arc<StoringQueue>,
    project: ProjectId,
    tests: u64,
}

impl QueuePlace {
    /// Adds the duration of storing to the moving average, and releases the place.
    pub(crate) fn leave(self, took: Duration) {
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let test_ns = took_ns / self.tests.max(1);
        let mut state = self.queue.state();
        state.test_ns = match state.test_ns {
            0 => test_ns,
            before => (before / 8) * 7 + test_ns / 8,
        };
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        let queued_tests = state.tests.get(&self.project).copied().unwrap_or_default();
        match queued_tests.saturating_sub(self.tests) {
            0 => state.tests.remove(&self.project),
            remaining => state.tests.insert(self.project, remaining),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_secs(60);

    #[test]
    fn the_wait_is_estimated_from_the_tests_of_the_projects_uploads() {
        let queue = Arc::new(StoringQueue::default());
        let [project, other] = ["1", "2"].map(|end| {
            format!("019aa3f4-5b1c-7def-8a3b-00000000000{end}")
                .parse::<ProjectId>()
                .unwrap()
        });
        let enter = |project, tests| queue.enter(project, tests, WITHIN);
        // A whole run of 40,000 tests takes 19 s.
        enter(project, 40_000).unwrap().leave(Duration::from_secs(19));

        // Each of 40 shards takes a fortieth of it.
        let shards: Vec<_> = (0..40).map(|_| enter(project, 1_000).unwrap()).collect();
        drop(shards);
        let runs: Vec<_> = (0..4).map(|_| enter(project, 40_000).unwrap()).collect();
        let refused = enter(project, 1_000).err().unwrap();
        assert!(
            matches!(refused, IntakeError::Busy { after_s: 75..=76, .. }),
            "{refused}"
        );
        // Uploads into another project do not wait for these.
        assert!(enter(other, 1_000).is_ok());
        drop(runs);
        assert!(enter(project, 1_000).is_ok());
        assert_eq!(queue.state().tests.len(), 0);
    }
}

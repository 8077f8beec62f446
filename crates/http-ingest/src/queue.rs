//! Estimates how long an upload waits for its turn, and refuses it if that is too long.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use assay_domain::id::{KeyId, ProjectId};
use assay_http::{Holder, Precedence};

use crate::{error::IngestError, limits::Limits};

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
    projects: HashMap<ProjectId, ProjectQueue>,
}

/// The uploads of a project that wait or are being stored.
#[derive(Debug, Default)]
struct ProjectQueue {
    /// The tests of trusted keys' uploads.
    trusted_tests: u64,
    /// The tests of public keys' uploads, which all others pass.
    public_tests: u64,
    uploads_of_key: HashMap<KeyId, usize>,
}

impl ProjectQueue {
    /// The tests that are stored before those of a further upload.
    const fn tests_before(&self, precedence: Precedence) -> u64 {
        match precedence {
            Precedence::Trusted => self.trusted_tests,
            Precedence::Public => self.trusted_tests.saturating_add(self.public_tests),
        }
    }

    const fn tests_of(&mut self, precedence: Precedence) -> &mut u64 {
        match precedence {
            Precedence::Trusted => &mut self.trusted_tests,
            Precedence::Public => &mut self.public_tests,
        }
    }
}

impl StoringQueue {
    /// Adds an upload. Refuses it if the estimated wait is too long, or if its key holds half of the places.
    pub(crate) fn enter(
        self: &Arc<Self>,
        project: ProjectId,
        holder: Holder,
        tests: usize,
        limits: &Limits,
    ) -> Result<QueuePlace, IngestError> {
        let mut guard = self.state();
        let state = &mut *guard;
        let queue = state.projects.get(&project);
        let before = queue.map_or(0, |queue| queue.tests_before(holder.precedence));
        let of_key = queue.and_then(|queue| queue.uploads_of_key.get(&holder.key));
        let wait = Duration::from_nanos(before.saturating_mul(state.test_ns));
        let places_of_key = (limits.waiting + 1).div_ceil(2);
        if wait > limits.turn_within || of_key.is_some_and(|uploads| *uploads >= places_of_key) {
            return Err(IngestError::Busy {
                reason: "Too many uploads into this project wait for their turn",
                after_s: wait.as_secs().max(SHORTEST_RETRY_S),
            });
        }
        let tests = COST_OF_UPLOAD.saturating_add(u64::try_from(tests).unwrap_or(u64::MAX));
        let queue = state.projects.entry(project).or_default();
        let waiting_tests = queue.tests_of(holder.precedence);
        *waiting_tests = waiting_tests.saturating_add(tests);
        *queue.uploads_of_key.entry(holder.key).or_default() += 1;
        Ok(QueuePlace {
            queue: Arc::clone(self),
            project,
            holder,
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
    holder: Holder,
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
        let Some(queue) = state.projects.get_mut(&self.project) else {
            return;
        };
        let waiting_tests = queue.tests_of(self.holder.precedence);
        *waiting_tests = waiting_tests.saturating_sub(self.tests);
        if let Some(uploads) = queue.uploads_of_key.get_mut(&self.holder.key) {
            *uploads = uploads.saturating_sub(1);
        }
        queue.uploads_of_key.retain(|_, uploads| *uploads > 0);
        if queue.uploads_of_key.is_empty() {
            state.projects.remove(&self.project);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(end: u8, precedence: Precedence) -> Holder {
        Holder {
            key: format!("019aa3f4-5b1c-7def-8a3b-0000000001{end:02}")
                .parse()
                .unwrap(),
            precedence,
        }
    }

    #[test]
    fn the_wait_is_estimated_from_the_tests_of_the_projects_uploads() {
        let queue = Arc::new(StoringQueue::default());
        let [project, other] = ["1", "2"].map(|end| {
            format!("019aa3f4-5b1c-7def-8a3b-00000000000{end}")
                .parse::<ProjectId>()
                .unwrap()
        });
        let limits = Limits::default();
        let enter = |project, tests| queue.enter(project, holder(1, Precedence::Trusted), tests, &limits);
        // A whole run of 40,000 tests takes 19 s.
        enter(project, 40_000).unwrap().leave(Duration::from_secs(19));

        // Each of 40 shards takes a fortieth of it.
        let shards: Vec<_> = (0..40).map(|_| enter(project, 1_000).unwrap()).collect();
        drop(shards);
        let runs: Vec<_> = (0..4).map(|_| enter(project, 40_000).unwrap()).collect();
        let refused = enter(project, 1_000).err().unwrap();
        assert!(
            matches!(refused, IngestError::Busy { after_s: 75..=76, .. }),
            "{refused}"
        );
        // Uploads into another project do not wait for these.
        assert!(enter(other, 1_000).is_ok());
        drop(runs);
        assert!(enter(project, 1_000).is_ok());
        assert_eq!(queue.state().projects.len(), 0);
    }

    #[test]
    fn uploads_of_public_keys_neither_fill_the_queue_nor_count_for_others() {
        let queue = Arc::new(StoringQueue::default());
        let project = "019aa3f4-5b1c-7def-8a3b-000000000001".parse().unwrap();
        let limits = Limits {
            waiting: 9,
            ..Limits::default()
        };
        let (trusted, public) = (holder(1, Precedence::Trusted), holder(2, Precedence::Public));
        let enter = |holder, tests| queue.enter(project, holder, tests, &limits);
        enter(trusted, 40_000).unwrap().leave(Duration::from_secs(19));
        let _large: Vec<_> = (0..4).map(|_| enter(public, 40_000).unwrap()).collect();
        assert!(enter(public, 1).is_err(), "76 s are too long");
        let trusted: Vec<_> = (0..5).map(|_| enter(trusted, 1).unwrap()).collect();
        assert!(
            enter(holder(1, Precedence::Trusted), 1).is_err(),
            "half of ten places"
        );
        assert!(enter(holder(3, Precedence::Trusted), 1).is_ok());
        drop(trusted);
    }
}

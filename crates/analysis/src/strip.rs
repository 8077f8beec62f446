//! How a test ended in run after run, by branch.

use std::{collections::HashMap, sync::Arc};

use assay_domain::{
    observation::{History, RunObservations},
    test::TestOrdinal,
    timestamp::Timestamp,
};

/// How a test ended in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Passed at once.
    Passed,
    /// Passed after a failed attempt.
    Recovered,
    /// Failed or timed out.
    Failed,
    /// Skipped or interrupted.
    Skipped,
}

/// A test in one run.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The run's name.
    pub run: Arc<str>,
    /// When it started.
    pub started_at: Timestamp,
    /// The code that it tested, where known.
    pub revision: Option<Arc<str>>,
    /// How the test ended.
    pub outcome: Outcome,
    /// How many attempts failed.
    pub failed_attempts: u32,
}

/// A test on one branch and variant, oldest run first.
#[derive(Debug, Clone)]
pub struct Strip {
    /// The branch, where known.
    pub branch: Option<Arc<str>>,
    /// Whether releases are made from it.
    pub stable: bool,
    /// The variant; empty for the default one.
    pub variant: Arc<str>,
    /// The runs.
    pub cells: Vec<Cell>,
}

impl Strip {
    /// Whether the test failed or recovered in any of its runs.
    pub fn has_failure(&self) -> bool {
        self.cells.iter().any(|cell| cell.failed_attempts > 0)
    }
}

/// How the test ended in a run; none where it took no part.
pub(crate) fn outcome(run: &RunObservations, test: TestOrdinal) -> Option<(Outcome, u32)> {
    if !run.present.contains(test) {
        return None;
    }
    if run.skipped.contains(test) {
        return Some((Outcome::Skipped, 0));
    }
    let failure = run.failures.binary_search_by_key(&test, |failure| failure.test);
    Some(match failure.ok().and_then(|place| run.failures.get(place)) {
        Some(failure) if failure.recovered => (Outcome::Recovered, failure.failed_attempts),
        Some(failure) => (Outcome::Failed, failure.failed_attempts),
        None => (Outcome::Passed, 0),
    })
}

/// The strips of a test: the stable branch first, then where it failed, then the most recent.
pub(crate) fn strips(history: &History, test: TestOrdinal) -> Vec<Strip> {
    let no_branches = history.runs.iter().all(|run| run.run.branch.is_none());
    let mut places: HashMap<(Option<Arc<str>>, Arc<str>), usize> = HashMap::new();
    let mut strips: Vec<Strip> = Vec::new();
    for run in &history.runs {
        let Some((outcome, failed_attempts)) = outcome(run, test) else {
            continue;
        };
        let facts = &run.run;
        let key = (facts.branch.clone(), Arc::clone(&facts.variant));
        let place = *places.entry(key).or_insert_with(|| {
            strips.push(Strip {
                branch: facts.branch.clone(),
                stable: no_branches || facts.branch.as_deref() == Some(&*history.stable_branch),
                variant: Arc::clone(&facts.variant),
                cells: Vec::new(),
            });
            strips.len() - 1
        });
        if let Some(strip) = strips.get_mut(place) {
            strip.cells.push(Cell {
                run: Arc::clone(&facts.id),
                started_at: facts.started_at,
                revision: facts.revision.clone(),
                outcome,
                failed_attempts,
            });
        }
    }
    strips.sort_by_key(|strip| {
        let last = strip.cells.last().map(|cell| cell.started_at);
        (
            !strip.stable,
            !strip.has_failure(),
            std::cmp::Reverse(last),
            strip.variant.clone(),
            strip.branch.clone(),
        )
    });
    strips
}

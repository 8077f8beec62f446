//! How a test ended in run after run: the worst of each run, whatever was tried again and in how many variants.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use assay_domain::{
    observation::{History, RunObservations},
    test::TestOrdinal,
    timestamp::Timestamp,
};

use crate::strip::Outcome;

/// A test in the runs of one branch or variant, oldest first.
#[derive(Debug, Clone)]
pub struct Strip {
    /// What the strip shows.
    pub of: Of,
    /// The place of each run among the history's runs, as [`run_places`] counts them, and how the test ended in it.
    pub cells: Vec<(usize, Outcome)>,
}

/// What a strip shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Of {
    /// The runs of a branch; none for runs that name no branch.
    Branch {
        /// Its name.
        name: Option<Arc<str>>,
        /// Whether releases are made from it.
        stable: bool,
    },
    /// The runs of one variant of several, on all branches.
    Variant(Arc<str>),
}

impl Strip {
    /// Whether the test failed or recovered in any of its runs.
    pub fn has_failure(&self) -> bool {
        self.cells.iter().any(|(_, outcome)| *outcome > Outcome::Passed)
    }
}

/// Places of the history's entries among its runs, oldest first: the variants of a run are one.
pub fn run_places(history: &History) -> Vec<usize> {
    let position = |run: &RunObservations| (run.run.started_at, run.run.number);
    let runs: BTreeSet<(Timestamp, i32)> = history.runs.iter().map(position).collect();
    let places: HashMap<i32, usize> = runs
        .into_iter()
        .enumerate()
        .map(|(place, (_, number))| (number, place))
        .collect();
    let place = |run: &RunObservations| places.get(&run.run.number).copied().unwrap_or_default();
    history.runs.iter().map(place).collect()
}

/// How the test ended in a run; none where it took no part.
fn outcome(run: &RunObservations, test: TestOrdinal) -> Option<Outcome> {
    if !run.present.contains(test) {
        return None;
    }
    if run.skipped.contains(test) {
        return Some(Outcome::Skipped);
    }
    let failure = run.failures.binary_search_by_key(&test, |failure| failure.test);
    Some(match failure.ok().and_then(|place| run.failures.get(place)) {
        Some(failure) if failure.recovered => Outcome::Recovered,
        Some(_) => Outcome::Failed,
        None => Outcome::Passed,
    })
}

/// The worst outcome of each run, whatever the branch and variant.
pub fn worst(history: &History, places: &[usize], test: TestOrdinal) -> Vec<(usize, Outcome)> {
    let mut cells: BTreeMap<usize, Outcome> = BTreeMap::new();
    for (run, place) in history.runs.iter().zip(places) {
        if let Some(outcome) = outcome(run, test) {
            let worst = cells.entry(*place).or_insert(outcome);
            *worst = outcome.max(*worst);
        }
    }
    cells.into_iter().collect()
}

/// The variants in which a test failed or recovered.
pub fn failing_variants(history: &History, test: TestOrdinal) -> BTreeSet<Arc<str>> {
    let failing = history
        .runs
        .iter()
        .filter(|run| outcome(run, test) > Some(Outcome::Passed));
    failing.map(|run| Arc::clone(&run.run.variant)).collect()
}

/// The strips of a test. First branches: the stable one, then where it failed, then the most recent. Then, where there are
/// several variants, those in which it failed.
pub fn strips(history: &History, places: &[usize], test: TestOrdinal) -> Vec<Strip> {
    let no_branches = history.runs.iter().all(|run| run.run.branch.is_none());
    let mut branches: BTreeMap<Option<Arc<str>>, BTreeMap<usize, Outcome>> = BTreeMap::new();
    let mut variants: BTreeMap<Arc<str>, BTreeMap<usize, Outcome>> = BTreeMap::new();
    for (run, place) in history.runs.iter().zip(places) {
        let Some(outcome) = outcome(run, test) else {
            continue;
        };
        let of_branch = branches.entry(run.run.branch.clone()).or_default();
        let of_variant = variants.entry(Arc::clone(&run.run.variant)).or_default();
        for cells in [of_branch, of_variant] {
            let worst = cells.entry(*place).or_insert(outcome);
            *worst = outcome.max(*worst);
        }
    }
    let mut strips: Vec<Strip> = branches
        .into_iter()
        .map(|(name, cells)| Strip {
            of: Of::Branch {
                stable: no_branches || name.as_deref() == Some(&*history.stable_branch),
                name,
            },
            cells: cells.into_iter().collect(),
        })
        .collect();
    strips.sort_by_key(|strip| {
        let is_stable = matches!(strip.of, Of::Branch { stable: true, .. });
        let last = strip.cells.last().map(|(place, _)| *place);
        (!is_stable, !strip.has_failure(), std::cmp::Reverse(last))
    });
    if variants.len() > 1 {
        let failing = variants.into_iter().map(|(name, cells)| Strip {
            of: Of::Variant(name),
            cells: cells.into_iter().collect(),
        });
        strips.extend(failing.filter(Strip::has_failure));
    }
    strips
}

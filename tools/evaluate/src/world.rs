//! A simulated project: runs with the results of tests of known nature.

use std::collections::BTreeMap;

use assay_flakiness::domain::observation::{Bitmap, Failure, History, RunEnding, RunFacts, RunObservations};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::{
    population::Population,
    runs::{SimulatedRun, plan, time},
    truth::{Nature, Test, draw},
};

/// The share of the runs that contain a sparse test.
const SPARSE: f64 = 0.25;

/// A simulated project.
#[derive(Debug)]
pub(crate) struct World {
    /// The engine's input.
    pub(crate) history: History,
    /// The true nature of the tests, by ordinal.
    pub(crate) tests: Vec<Test>,
    /// The runs without their results, in the order of the history. The history has one entry for each variant of a
    /// run.
    pub(crate) runs: Vec<SimulatedRun>,
}

impl World {
    /// A project of a population. The same seed gives the same project.
    pub(crate) fn new(population: &Population, seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let runs = plan(population, &mut random);
        let branches = runs.iter().map(|run| run.branch).max().unwrap_or(0);
        let stable: Vec<SimulatedRun> = runs.iter().copied().filter(|run| run.branch == 0).collect();
        let mut tests = draw(population, &stable, branches, &mut random);
        if population.merges {
            tests.iter_mut().for_each(|test| test.break_before_merging(&runs));
        }
        let mut observed = Vec::with_capacity(runs.len());
        for (number, run) in (1..).zip(&runs) {
            for variant in 0..population.variants {
                observed.push(execute(population, number, run, variant, &tests, &mut random));
            }
        }
        let history = History {
            stable_branch: "main".into(),
            tests: population.tests,
            runs: observed,
        };
        Self { history, tests, runs }
    }
}

/// Runs the tests of a run.
fn execute(
    population: &Population,
    number: i32,
    run: &SimulatedRun,
    variant: u32,
    tests: &[Test],
    random: &mut StdRng,
) -> RunObservations {
    let branch = if run.branch == 0 {
        "main".to_owned()
    } else {
        format!("branch-{}", run.branch)
    };
    let revision = format!("{branch}-{}", run.revision);
    let mut observed = RunObservations {
        other_names: Vec::new(),
        run: RunFacts {
            id: format!("run-{number}").into(),
            number,
            started_at: time(run.at),
            branch: Some(branch.into()),
            revision: population.revisions.then(|| revision.into()),
            variant: if population.variants > 1 {
                format!("variant-{variant}")
            } else {
                String::new()
            }
            .into(),
            ..RunFacts::default()
        },
        present: Bitmap::default(),
        skipped: Bitmap::default(),
        untimed: Bitmap::default(),
        failures: Vec::new(),
        ending: RunEnding::default(),
        repeated: Vec::new(),
    };
    // The failure of a cluster is drawn once per run.
    let mut clusters: BTreeMap<u32, bool> = BTreeMap::new();
    for (ordinal, test) in (0..).zip(tests) {
        if test.sparse && !random.random_bool(SPARSE) {
            continue;
        }
        observed.present.insert(ordinal);
        let fails_first = match test.nature {
            Nature::Cluster { id, rate } => {
                *clusters.entry(id).or_insert_with(|| random.random_bool(rate)) && random.random_bool(0.9)
            }
            Nature::Stable | Nature::Flaky { .. } | Nature::Bursty { .. } => {
                let rate = test.rate_at(run.at);
                let is_here = ordinal % population.variants == variant;
                random.random_bool(if is_here { rate } else { 0.0 })
            }
        };
        let mut failed_attempts = 0;
        for attempt in 0..=population.retries {
            let fails = if test.is_broken_in(run) {
                random.random_bool(0.998)
            } else if attempt == 0 {
                fails_first || random.random_bool(run.outage.max(2e-5))
            } else if run.outage > 0.0 {
                random.random_bool(0.9)
            } else {
                random.random_bool(test.repeats)
            };
            if !fails {
                break;
            }
            failed_attempts += 1;
        }
        if failed_attempts > 0 {
            observed.failures.push(Failure {
                test: ordinal,
                recovered: failed_attempts <= population.retries,
                failed_attempts,
                lost_ms: Some(1_000),
            });
        }
    }
    observed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population::Name;

    /// Each run with the history's entries for its variants.
    fn observed_runs(world: &World) -> impl Iterator<Item = (&SimulatedRun, &[RunObservations])> {
        let variants = world.history.runs.len() / world.runs.len();
        world.runs.iter().zip(world.history.runs.chunks(variants))
    }

    #[test]
    fn a_seed_determines_the_project() {
        let project = |seed| World::new(&Name::S5.population(), seed).history;
        assert_eq!(project(7), project(7));
        assert_ne!(project(7), project(8));
    }

    #[test]
    fn a_run_is_observed_once_for_each_variant() {
        let world = World::new(&Name::Variants.population(), 5);
        assert_eq!(observed_runs(&world).count(), world.runs.len());
        for (run, observed) in observed_runs(&world) {
            assert_eq!(observed.len(), 3);
            assert!(
                observed
                    .iter()
                    .all(|observed| observed.run.started_at == time(run.at))
            );
        }
    }

    #[test]
    fn a_broken_test_fails_where_its_code_is_broken() {
        let world = World::new(&Name::S1.population(), 3);
        let (ordinal, test) = (0..)
            .zip(&world.tests)
            .find(|(_, test)| !test.breakages.is_empty())
            .unwrap();
        let broken = observed_runs(&world).filter(|(run, _)| test.is_broken_in(run));
        let (mut failed, mut all) = (0, 0);
        for observed in broken
            .flat_map(|(_, observed)| observed)
            .filter(|observed| observed.present.contains(ordinal))
        {
            all += 1;
            failed += u32::from(observed.failures.iter().any(|failure| failure.test == ordinal));
        }
        assert!(all > 0 && failed * 10 >= all * 9, "{failed} of {all}");
    }
}

//! A simulated project: four weeks of runs with tests of known nature.

use std::collections::BTreeMap;

use assay_flakiness::domain::{
    observation::{Bitmap, Failure, History, RunFacts, RunObservations},
    timestamp::{DAY_MS, Timestamp},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::{
    population::Population,
    truth::{Nature, Test, draw},
};

/// The length of the simulation.
pub(crate) const DAYS: f64 = 28.0;
/// The share of the runs that contain a sparse test.
const SPARSE: f64 = 0.25;
/// 2026-01-05T00:00:00Z.
const START_MS: i64 = 1_767_571_200_000;

/// A simulated project.
#[derive(Debug)]
pub(crate) struct World {
    /// The engine's input.
    pub(crate) history: History,
    /// The true nature of the tests, by ordinal.
    pub(crate) tests: Vec<Test>,
    /// The runs' times in days, and the number of the stable revision that each is based on, in the order of the
    /// history. The history has an entry for each variant of a run.
    pub(crate) runs: Vec<SimulatedRun>,
}

/// A simulated run without its results.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SimulatedRun {
    /// Its time in days from the start.
    pub(crate) at: f64,
    /// Its branch; 0 is the stable one.
    pub(crate) branch: u32,
    /// Its revision within the branch.
    pub(crate) revision: u32,
    /// The stable revision that its code contains.
    pub(crate) base: u32,
    /// The share of tests that fail in it because of an outage.
    pub(crate) outage: f64,
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

/// A time of the simulation.
#[expect(clippy::as_conversions, reason = "a few weeks in milliseconds fit")]
pub(crate) fn time(day: f64) -> Timestamp {
    Timestamp::from_unix_ms(START_MS + (day * DAY_MS as f64) as i64)
}

/// Plans the runs by time: the stable branch's, and those of branches that start from it.
fn plan(population: &Population, random: &mut StdRng) -> Vec<SimulatedRun> {
    let mut runs = Vec::new();
    let mut stable = Vec::new();
    let (mut at, mut revision) = (0.0, 0);
    while at < DAYS {
        at += random.random_range(0.1..1.9) / population.stable_runs;
        revision += u32::from(random.random_bool(0.65));
        let run = SimulatedRun {
            at,
            branch: 0,
            revision,
            base: revision,
            outage: 0.0,
        };
        stable.push((at, revision));
        runs.push(run);
    }
    let base_at = |day: f64| {
        stable
            .iter()
            .take_while(|(at, _)| *at <= day)
            .last()
            .map_or(0, |(_, base)| *base)
    };
    let mut branch = 0;
    let mut begins = 0.0;
    while begins < DAYS {
        begins += random.random_range(0.1..1.9) / population.branches;
        branch += 1;
        let (mut at, mut revision, mut base) = (begins, 0, base_at(begins));
        let runs_of_branch = match population.branch_runs {
            1 => 1,
            most => random.random_range(1..=most),
        };
        for _ in 0..runs_of_branch {
            runs.push(SimulatedRun {
                at,
                branch,
                revision,
                base,
                outage: 0.0,
            });
            at += random.random_range(0.02..0.8);
            if random.random_bool(0.65) {
                revision += 1;
                if random.random_bool(0.25) {
                    base = base_at(at);
                }
            }
        }
    }
    runs.retain(|run| run.at < DAYS);
    runs.sort_by(|a, b| a.at.total_cmp(&b.at));
    strike(&mut runs, random);
    runs
}

/// Two full and two partial outages. Usually the same revision runs again after an outage.
fn strike(runs: &mut [SimulatedRun], random: &mut StdRng) {
    let shares = [0.6..0.95, 0.6..0.95, 0.04..0.25, 0.04..0.25];
    for share in shares {
        let struck = random.random_range(0..runs.len());
        let share = random.random_range(share);
        let Some(run) = runs.get_mut(struck) else { continue };
        run.outage = share;
        let (branch, revision) = (run.branch, run.revision);
        let next = runs.iter_mut().skip(struck + 1).find(|run| run.branch == branch);
        if let Some(next) = next.filter(|_| branch != 0 && random.random_bool(0.8)) {
            next.revision = revision;
        }
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
        },
        present: Bitmap::default(),
        skipped: Bitmap::default(),
        untimed: Bitmap::default(),
        failures: Vec::new(),
    };
    // The failure of a cluster is drawn once per run.
    let mut clusters: BTreeMap<u32, bool> = BTreeMap::new();
    for (ordinal, test) in (0..).zip(tests) {
        if test.sparse && !random.random_bool(SPARSE) {
            continue;
        }
        observed.present.insert(ordinal);
        let struck = match test.nature {
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
                struck || random.random_bool(run.outage.max(2e-5))
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

    #[test]
    fn a_seed_is_a_project() {
        let project = |seed| World::new(&Name::S5.population(), seed).history;
        assert_eq!(project(7), project(7));
        assert_ne!(project(7), project(8));
    }

    #[test]
    fn a_broken_test_fails_where_its_code_is_broken() {
        let world = World::new(&Name::S1.population(), 3);
        let (ordinal, test) = (0..)
            .zip(&world.tests)
            .find(|(_, test)| !test.breakages.is_empty())
            .unwrap();
        let broken = world
            .runs
            .iter()
            .zip(&world.history.runs)
            .filter(|(run, _)| test.is_broken_in(run));
        let (mut red, mut all) = (0, 0);
        for (_, observed) in broken.filter(|(_, observed)| observed.present.contains(ordinal)) {
            all += 1;
            red += u32::from(observed.failures.iter().any(|failure| failure.test == ordinal));
        }
        assert!(all > 0 && red * 10 >= all * 9, "{red} of {all}");
    }
}

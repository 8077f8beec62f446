//! The runs of a simulated project: four weeks on the stable branch and on others, with outages.

use assay_flakiness::domain::timestamp::{DAY_MS, Timestamp};
use rand::{RngExt, rngs::StdRng};

use crate::population::Population;

/// The length of the simulation.
pub(crate) const DAYS: f64 = 28.0;
/// 2026-01-05T00:00:00Z.
const START_MS: i64 = 1_767_571_200_000;

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

/// A time of the simulation.
#[expect(clippy::as_conversions, reason = "a few weeks in milliseconds fit")]
pub(crate) fn time(day: f64) -> Timestamp {
    Timestamp::from_unix_ms(START_MS + (day * DAY_MS as f64) as i64)
}

/// Plans the runs by time: the stable branch's, and those of branches that start from it.
pub(crate) fn plan(population: &Population, random: &mut StdRng) -> Vec<SimulatedRun> {
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
    add_outages(&mut runs, random);
    runs
}

/// Adds two large and two small outages. Usually the same revision of a branch runs again after an outage.
fn add_outages(runs: &mut [SimulatedRun], random: &mut StdRng) {
    let shares = [0.6..0.95, 0.6..0.95, 0.04..0.25, 0.04..0.25];
    for share in shares {
        let index = random.random_range(0..runs.len());
        let share = random.random_range(share);
        let Some(run) = runs.get_mut(index) else { continue };
        run.outage = share;
        let (branch, revision) = (run.branch, run.revision);
        let next = runs.iter_mut().skip(index + 1).find(|run| run.branch == branch);
        if let Some(next) = next.filter(|_| branch != 0 && random.random_bool(0.8)) {
            next.revision = revision;
        }
    }
}

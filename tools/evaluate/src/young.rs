//! Evaluates the gate on simulated projects from their first run to the 200th, by the share of breakages among their
//! failed runs: what is blocked, what passes, and what the reruns cost, beside a rule that runs each failed test again
//! three times.

use std::{collections::BTreeMap, fmt::Write as _};

use assay_flakiness::domain::cause::Cause;
use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::{
    breakage::{Breakage, Texts},
    causes::{BranchRun, CausesWorld},
    reruns::{self, Score},
};

/// Tests of a project, the flaky ones first.
const TESTS: u32 = 60;
const FLAKY: u32 = 12;
/// Runs of a project, and the days between two of them.
const RUNS: u32 = 200;
const APART: f64 = 0.07;
/// The share of runs that fail.
const FAILS: f64 = 0.3;
/// The last runs of the ages.
const AGES: [u32; 4] = [20, 50, 100, RUNS];
/// The shares of breakages.
const SHARES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// The table over these seeds.
pub(crate) fn table(seeds: &[u64], budget_s: f64) -> String {
    let mut text =
        "| Breakages | Runs | Innocent | Own | Without reruns | With | Three times | s | s of three |\n"
            .to_owned();
    text += "|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    let mut unseen = 0;
    for share in SHARES {
        let mut scores: BTreeMap<u32, Score> = BTreeMap::new();
        for seed in seeds {
            let mut world = world(share, *seed);
            for place in 0..world.runs.len() {
                let number = u32::try_from(place).unwrap_or(u32::MAX);
                let age = AGES.into_iter().find(|age| number < *age).unwrap_or(RUNS);
                let mut random =
                    StdRng::seed_from_u64(seed.wrapping_mul(7_919).wrapping_add(u64::from(number) << 32));
                reruns::judge(
                    &mut world,
                    place,
                    budget_s,
                    &mut random,
                    scores.entry(age).or_default(),
                );
            }
        }
        for (age, score) in scores {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| {share:.2} | to {age} | {}", score.row());
            unseen += score.blocked_unseen;
        }
    }
    text + &format!("\nBlocked without a rerun: {unseen}\n")
}

/// A project of which this share of failed runs has a breakage of its branch. Every third run is of the stable branch;
/// each branch has two runs, and the second has mended the breakage in three of four cases.
fn world(share: f64, seed: u64) -> CausesWorld {
    let mut random = StdRng::seed_from_u64(seed);
    let mut texts = Texts::after(FLAKY);
    let rate = FAILS * (1.0 - share) / f64::from(FLAKY);
    let mut world = CausesWorld::empty(TESTS);
    let mut own: Vec<Breakage> = Vec::new();
    for number in 0..RUNS {
        let (branch, revision) = match number % 3 {
            0 => (0, number),
            push => (1 + number / 3, push - 1),
        };
        match (branch, revision) {
            (0, _) => own.clear(),
            (_, 0) if random.random_bool(FAILS * share) => {
                own.push(Breakage::new(0, TESTS, &mut texts, &mut random));
            }
            (_, 1) if random.random_bool(0.75) => own.clear(),
            (_, _) => {}
        }
        let run = BranchRun {
            own: own.clone(),
            ..BranchRun::new(f64::from(number) * APART, branch, revision)
        };
        let broken: BTreeMap<u32, (f64, u32)> = own.iter().flat_map(|broken| broken.tests.clone()).collect();
        world.execute(run, |run, test| {
            let by_change = broken.get(&test).filter(|(rate, _)| random.random_bool(*rate));
            match by_change {
                Some((_, text)) => Some((own.first().map_or(Cause::Unclear, |own| run.cause_by(own)), *text)),
                None => (test < FLAKY && random.random_bool(rate)).then_some((Cause::Flake, test)),
            }
        });
    }
    world
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_has_the_failures_of_its_share() {
        for (share, mine) in [(0.0, false), (1.0, true)] {
            let world = world(share, 3);
            assert!(world.truth.len() > 10);
            let is_mine = |cause: &Cause| *cause != Cause::Flake;
            assert!(world.truth.values().all(|cause| is_mine(cause) == mine));
        }
    }
}

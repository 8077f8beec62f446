//! Evaluates the advice on what to revert, on simulated stable branches with planted breakages.

use assay_answers::failures::Beginnings;
use assay_flakiness::{
    Diagnose as _, Engine,
    domain::cause::{Cause, Knowledge, RevertAction},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::{
    breakage::{Breakage, Flakes, Texts},
    causes::{BranchRun, COUNTED_FROM, CausesWorld},
    gate_counts::Bands,
    runs::DAYS,
};

/// Tests of a simulated project.
const TESTS: u32 = 300;
/// The share of flaky tests.
const FLAKY: f64 = 0.08;
/// The share of revisions that break something.
const BREAKS: f64 = 0.06;

/// A stable branch: every breakage begins with a new revision and lasts some runs.
fn world(seed: u64, planted: &mut u32) -> CausesWorld {
    let mut random = StdRng::seed_from_u64(seed);
    let mut texts = Texts::after(0);
    let flakes = Flakes::draw(TESTS, FLAKY, (-2.3, -0.5), &mut random);
    let mut world = CausesWorld::empty(TESTS);
    // The breakages, each with its last run.
    let mut broken: Vec<(u32, Breakage)> = Vec::new();
    let (mut at, mut revision, mut number) = (0.0, 0, 0);
    while at < DAYS {
        at += random.random_range(0.1..0.35);
        number += 1;
        broken.retain(|(last, _)| *last >= number);
        if random.random_bool(0.85) {
            revision += 1;
            if random.random_bool(BREAKS) {
                *planted += 1;
                let last = number + random.random_range(0..6);
                broken.push((last, Breakage::new(revision, TESTS, &mut texts, &mut random)));
            }
        }
        let outage = random
            .random_bool(0.01)
            .then(|| (random.random_range(0.05..0.5), texts.next()));
        let run = BranchRun {
            own: broken.iter().map(|(_, breakage)| breakage.clone()).collect(),
            outage,
            ..BranchRun::new(at, 0, revision)
        };
        world.execute(run, |run, test| {
            let random = &mut random;
            if let Some(failure) = run.broken(test, random) {
                return Some(failure);
            }
            if let Some(text) = run.outage_text(random) {
                return Some((Cause::Environment, text));
            }
            Some((Cause::Flake, flakes.text(test, random)?))
        });
    }
    world
}

/// The revision that broke a test in a run; none if its failure has another cause.
fn culprit(world: &CausesWorld, place: usize, test: u32) -> Option<String> {
    if world.truth.get(&(place, test)) != Some(&Cause::BrokenBefore) {
        return None;
    }
    let own = &world.runs.get(place)?.own;
    let breakage = own.iter().find(|breakage| breakage.tests.contains_key(&test))?;
    Some(format!("main-{}", breakage.revision))
}

/// The table over these seeds.
pub(crate) fn table(seeds: &[u64]) -> String {
    let mut planted = 0;
    // The advised failures, by the probability of the named revision and whether it is the culprit.
    let mut bands = Bands::new(&[0.5, 0.8, 0.95, 1.0]);
    let (mut kept, mut wrongly_kept) = (0_u32, 0_u32);
    for seed in seeds {
        let world = world(*seed, &mut planted);
        let engine = Engine::default();
        for (place, run) in world.runs.iter().enumerate() {
            let observed = world.history.runs.get(place);
            let Some(observed) = observed.filter(|_| run.at >= COUNTED_FROM) else {
                continue;
            };
            let (number, now) = (observed.run.number, observed.run.started_at);
            let causes =
                engine.causes_of_run(&world.history, &world.texts, number, Knowledge::AtTheTime, now);
            let beginnings = Beginnings::of(&world.history, causes.iter());
            for failure in &causes {
                let answer = beginnings.breakage(failure).and_then(|answer| answer.revert);
                let Some(advice) = answer else { continue };
                let truth = culprit(&world, place, failure.test);
                let named = truth.as_deref() == Some(advice.suspect.as_str());
                if advice.action != RevertAction::Nothing {
                    bands.add(advice.probability, named);
                }
                if advice.action == RevertAction::Keep {
                    let here = format!("main-{}", run.revision);
                    kept += 1;
                    wrongly_kept += u32::from(truth == Some(here));
                }
            }
        }
    }
    format!(
        "{planted} breakages; {kept} times \"do not revert\", of which {wrongly_kept} were about the culprit\n\n{}",
        bands.table()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_culprit_is_kept() {
        let text = table(&[7, 8]);
        let kept: u32 = text
            .split_once("breakages; ")
            .and_then(|(_, rest)| rest.split(' ').next())
            .unwrap()
            .parse()
            .unwrap();
        assert!(kept > 20, "{text}");
        assert!(text.contains("of which 0 were about the culprit"), "{text}");
    }
}

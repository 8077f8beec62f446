//! Measures the delay from the onset of a flake or a breakage to its verdict.

use assay_flakiness::{
    Engine,
    domain::{
        test::TestOrdinal,
        verdict::{Judge as _, Verdict, VerdictStatus},
    },
};

use crate::{
    population::Name,
    runs::time,
    truth::{Breakage, Nature, Test},
    world::World,
};

/// The time at which a test becomes flaky or broken, and the verdict that it should get.
struct Onset {
    test: TestOrdinal,
    day: f64,
    expected: VerdictStatus,
}

/// Judges after every run, and counts the test's runs and failures until the verdict.
pub(crate) fn table(seeds: &[u64]) -> String {
    [Name::S1, Name::S2]
        .map(|name| of_population(name, seeds))
        .concat()
}

fn of_population(name: Name, seeds: &[u64]) -> String {
    let (mut flaky, mut broken) = (Waits::default(), Waits::default());
    for seed in seeds {
        let world = World::new(&name.population(), *seed);
        let onsets: Vec<Onset> = (0..)
            .zip(&world.tests)
            .filter_map(|(ordinal, test)| onset(ordinal, test))
            .collect();
        let verdicts: Vec<Vec<Verdict>> = world
            .runs
            .iter()
            .map(|run| Engine::default().verdicts(&world.history, time(run.at)))
            .collect();
        for onset in &onsets {
            let waits = if onset.expected == VerdictStatus::Flaky {
                &mut flaky
            } else {
                &mut broken
            };
            waits.add(&world, &verdicts, onset);
        }
    }
    format!(
        "{name:?}\n  flaky:  {}\n  broken: {}\n",
        flaky.text(),
        broken.text()
    )
}

/// The onset of a test that becomes flaky, or breaks once and permanently; none for other tests.
fn onset(ordinal: TestOrdinal, test: &Test) -> Option<Onset> {
    match (test.nature, test.breakages.as_slice()) {
        (Nature::Flaky { from, .. }, []) if from > 0.0 => Some(Onset {
            test: ordinal,
            day: from,
            expected: VerdictStatus::Flaky,
        }),
        (
            _,
            [
                Breakage::Stable {
                    days: (from, until), ..
                },
            ],
        ) if until.is_infinite() => Some(Onset {
            test: ordinal,
            day: *from,
            expected: VerdictStatus::Broken,
        }),
        _ => None,
    }
}

/// The delays of the verdicts of one kind.
#[derive(Default)]
struct Waits {
    /// The test's runs from the onset to the verdict, one entry per verdict.
    runs: Vec<u32>,
    /// The number of these runs in which the test failed, on any variant.
    failures: Vec<u32>,
    /// The number of onsets, with or without a verdict.
    onsets: u32,
}

impl Waits {
    fn add(&mut self, world: &World, verdicts: &[Vec<Verdict>], onset: &Onset) {
        self.onsets += 1;
        let (mut runs, mut failures) = (0, 0);
        for ((run, observed), verdicts) in world.observed_runs().zip(verdicts) {
            let is_present = observed
                .iter()
                .any(|observed| observed.present.contains(onset.test));
            if run.at < onset.day || !is_present {
                continue;
            }
            runs += 1;
            let mut failed = observed.iter().flat_map(|observed| &observed.failures);
            failures += u32::from(failed.any(|failure| failure.test == onset.test));
            let verdict = verdicts.iter().find(|verdict| verdict.test == onset.test);
            if verdict.is_some_and(|verdict| verdict.status == onset.expected) {
                self.runs.push(runs);
                self.failures.push(failures);
                return;
            }
        }
    }

    fn text(mut self) -> String {
        let median = |values: &mut Vec<u32>| {
            values.sort_unstable();
            values.get(values.len() / 2).copied().unwrap_or(0)
        };
        format!(
            "{} of {} found; medians: {} runs after the onset, {} failures",
            self.runs.len(),
            self.onsets,
            median(&mut self.runs),
            median(&mut self.failures)
        )
    }
}

//! Two weeks of a realistic team: dozens of branches of a few days, several revisions per branch, and tests with
//! different failure rates. Some changes break tests, and in a few outages a third of the suite fails.

use assay_flakiness::domain::{
    observation::{Bitmap, Failure, History, RunEnding, RunFacts, RunObservations},
    timestamp::{DAY_MS, Timestamp},
};

const DAYS: f64 = 14.0;
/// Branches that begin in the two weeks, of 400 in 90 days.
const BRANCHES: f64 = 62.0;
/// Branches with runs at the same time.
const ALIVE: f64 = 13.0;

/// The share of failing tests.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Failing {
    /// One in twenty, at 0.5 % to 30 % of its runs; some are broken for days.
    Some,
    /// All, at 1 % to 6 % of their runs.
    All,
}

/// The nature of a test: it fails by chance, fails in every run between two days, or is always skipped.
enum Nature {
    Flaky { rate: f64, recovers: f64 },
    Broken { from: f64, to: f64 },
    Skipped,
}

/// A history with these numbers of runs and tests that ends at `now_ms`.
pub(crate) fn history(failing: Failing, runs: i64, tests: u32, now_ms: i64) -> History {
    let mut random = Random(7);
    let natures: Vec<Nature> = (0..tests).map(|_| nature(failing, &mut random)).collect();
    let mut revisions = std::collections::HashMap::new();
    let runs = (0..runs)
        .map(|number| {
            let share = (number as f64 + random.within(0.0, 0.95)) / runs as f64;
            let branch = random.chance(0.6).then(|| {
                let newest = share * BRANCHES;
                random.within(newest - ALIVE, newest + 1.0).floor() as i64
            });
            let revision = match revisions.get(&branch) {
                Some(same) if random.chance(0.25) => *same,
                _ => number,
            };
            revisions.insert(branch, revision);
            // One run in 245 is an outage: two outages in 490 runs, four in 980.
            let outage = if number % 245 == 100 { 0.3 } else { 0.0 };
            let breaks = branch.is_some() && random.chance(0.08);
            let broken: Vec<u32> = (0..if breaks { 7 } else { 0 })
                .map(|_| random.within(0.0, f64::from(tests)) as u32)
                .collect();
            let mut run = RunObservations {
                other_names: Vec::new(),
                run: RunFacts {
                    id: format!("run-{number:032x}").into(),
                    number: number as i32,
                    started_at: Timestamp::from_unix_ms(
                        now_ms - ((1.0 - share) * DAYS * DAY_MS as f64) as i64,
                    ),
                    branch: Some(
                        branch.map_or_else(|| "main".into(), |n| format!("feature/change-{n}").into()),
                    ),
                    revision: Some(format!("{revision:040x}").into()),
                    ..RunFacts::default()
                },
                present: Bitmap::default(),
                skipped: Bitmap::default(),
                untimed: Bitmap::default(),
                failures: Vec::new(),
                ending: RunEnding::default(),
                repeated: Vec::new(),
            };
            for (test, nature) in (0..).zip(&natures) {
                run.present.insert(test);
                let (fails, recovers) = match nature {
                    _ if broken.contains(&test) => (1.0, 0.0),
                    Nature::Flaky { rate, recovers } => (rate.max(outage), *recovers),
                    Nature::Broken { from, to } if (*from..*to).contains(&(share * DAYS)) => (1.0, 0.0),
                    Nature::Broken { .. } => (outage, 0.1),
                    Nature::Skipped => {
                        run.skipped.insert(test);
                        continue;
                    }
                };
                if random.chance(fails) {
                    run.failures.push(failure(test, recovers, &mut random));
                }
            }
            run
        })
        .collect();
    History {
        stable_branch: "main".into(),
        tests,
        runs,
    }
}

fn nature(failing: Failing, random: &mut Random) -> Nature {
    let chance = random.within(0.0, 1.0);
    match failing {
        Failing::All => Nature::Flaky {
            rate: random.within(0.01, 0.06),
            recovers: 0.6,
        },
        Failing::Some if chance < 0.05 => Nature::Flaky {
            rate: 0.005 * random.within(0.0, 4.1).exp(),
            recovers: random.within(0.2, 0.9),
        },
        Failing::Some if chance < 0.052 => {
            let from = random.within(-10.0, DAYS);
            Nature::Broken {
                from,
                to: from + random.within(0.5, 10.0),
            }
        }
        Failing::Some if chance > 0.995 => Nature::Skipped,
        Failing::Some => Nature::Broken { from: 0.0, to: 0.0 },
    }
}

/// A failed first attempt and up to two retries.
fn failure(test: u32, recovers: f64, random: &mut Random) -> Failure {
    let (mut failed_attempts, mut recovered) = (1, false);
    while failed_attempts < 3 && !recovered {
        recovered = random.chance(recovers);
        failed_attempts += u32::from(!recovered);
    }
    Failure {
        test,
        recovered,
        failed_attempts,
        lost_ms: Some(900),
    }
}

/// Numbers that are the same in every run of the benchmark.
struct Random(u64);

impl Random {
    fn within(&mut self, from: f64, to: f64) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        from + (to - from) * (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn chance(&mut self, of: f64) -> bool {
        self.within(0.0, 1.0) < of
    }
}

//! The true nature of the tests of a simulated project.

use rand::{RngExt, rngs::StdRng};

use crate::{
    population::{CLUSTER, Population},
    runs::{DAYS, SimulatedRun},
};

/// The true rates of flaky tests, with equal probabilities.
pub(crate) const RATES: [f64; 7] = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4];

/// A test with its true nature.
#[derive(Debug, Clone)]
pub(crate) struct Test {
    /// Its nature.
    pub(crate) nature: Nature,
    /// Whether it is only in one run of four.
    pub(crate) sparse: bool,
    /// The probability that a retry also fails.
    pub(crate) repeats: f64,
    /// The breakages of the code under test.
    pub(crate) breakages: Vec<Breakage>,
}

/// The nature of a test, without breakages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Nature {
    /// Reliable.
    Stable,
    /// Flaky at a rate between two days.
    Flaky { rate: f64, from: f64, until: f64 },
    /// Flaky at a rate in two short bursts, given by their first days.
    Bursty { rate: f64, bursts: [f64; 2] },
    /// Fails together with its cluster.
    Cluster { id: u32, rate: f64 },
}

/// The length of a burst in days.
const BURST: f64 = 3.0;

/// A breakage of the code under test.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Breakage {
    /// Between two stable revisions, without the latter; on the stable branch between two days.
    Stable { revisions: (u32, u32), days: (f64, f64) },
    /// On one branch.
    Branch(u32),
}

/// The correct verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Truth {
    /// Neither flaky nor broken.
    Healthy,
    /// Fails although the code is good.
    Flaky,
    /// The code under test is broken on the stable branch.
    Broken,
    /// It has just begun or just ended to fail.
    Ambiguous,
}

impl Test {
    /// The rate at which it fails although the code is good.
    pub(crate) fn rate_at(&self, day: f64) -> f64 {
        match self.nature {
            Nature::Stable => 0.0,
            Nature::Flaky { rate, from, until } => {
                if (from..until).contains(&day) {
                    rate
                } else {
                    0.0
                }
            }
            Nature::Bursty { rate, bursts } => {
                if bursts
                    .iter()
                    .any(|begins| (*begins..begins + BURST).contains(&day))
                {
                    rate
                } else {
                    0.0
                }
            }
            Nature::Cluster { rate, .. } => rate,
        }
    }

    /// For each breakage of the stable branch, also breaks the test on the latest branch before it: the branch whose
    /// merge brought the breakage.
    pub(crate) fn break_before_merging(&mut self, runs: &[SimulatedRun]) {
        let merged = |breakage: &Breakage| match breakage {
            Breakage::Stable { days: (from, _), .. } => {
                let mut before = runs.iter().filter(|run| run.branch != 0 && run.at < *from);
                before.next_back().map(|run| Breakage::Branch(run.branch))
            }
            Breakage::Branch(_) => None,
        };
        let merged: Vec<_> = self.breakages.iter().filter_map(merged).collect();
        self.breakages.extend(merged);
    }

    /// Whether the code of a run is broken.
    pub(crate) fn is_broken_in(&self, run: &SimulatedRun) -> bool {
        self.breakages.iter().any(|breakage| match breakage {
            Breakage::Stable { revisions, .. } => (revisions.0..revisions.1).contains(&run.base),
            Breakage::Branch(branch) => *branch == run.branch,
        })
    }

    /// The correct verdict at a day. `stable_runs` are the days of the stable runs.
    pub(crate) fn truth_at(&self, day: f64, stable_runs: &[f64]) -> Truth {
        for breakage in &self.breakages {
            let Breakage::Stable {
                days: (from, until), ..
            } = breakage
            else {
                continue;
            };
            if (*from..*until).contains(&day) {
                let failed_runs = stable_runs
                    .iter()
                    .filter(|at| (*from..=day).contains(*at))
                    .count();
                return if failed_runs >= 2 && !self.sparse {
                    Truth::Broken
                } else {
                    Truth::Ambiguous
                };
            }
        }
        match self.nature {
            Nature::Stable => Truth::Healthy,
            Nature::Cluster { .. } => Truth::Flaky,
            Nature::Flaky { from, until, .. } => match day {
                day if day < from => Truth::Healthy,
                day if day < from + 3.0 && from > 0.0 => Truth::Ambiguous,
                day if day < until + 1.0 => Truth::Flaky,
                day if day < until + 10.0 => Truth::Ambiguous,
                _ => Truth::Healthy,
            },
            Nature::Bursty { bursts, .. } => {
                let since = bursts
                    .iter()
                    .filter(|begins| **begins < day)
                    .map(|begins| day - begins);
                match since.fold(f64::INFINITY, f64::min) {
                    since if since < 1.0 => Truth::Ambiguous,
                    since if since < BURST + 3.0 => Truth::Flaky,
                    since if since < f64::INFINITY => Truth::Ambiguous,
                    _ => Truth::Healthy,
                }
            }
        }
    }
}

/// Draws the tests of a project.
pub(crate) fn draw(
    population: &Population,
    stable: &[SimulatedRun],
    branches: u32,
    random: &mut StdRng,
) -> Vec<Test> {
    let mut tests = Vec::new();
    for ordinal in 0..population.tests {
        let kind: f64 = random.random();
        let rate = RATES
            .get(random.random_range(0..RATES.len()))
            .copied()
            .unwrap_or(0.1);
        let mut test = Test {
            nature: Nature::Stable,
            sparse: random.random_bool(0.12),
            repeats: random.random_range(0.2..0.7),
            breakages: Vec::new(),
        };
        let clustered = population.clusters * CLUSTER;
        let flaky = population.flaky;
        let regressing = flaky + population.regressing;
        let broken = regressing + population.broken;
        if ordinal < clustered {
            test.nature = Nature::Cluster {
                id: ordinal / CLUSTER,
                rate: cluster_rate(ordinal / CLUSTER),
            };
        } else if kind < flaky {
            test.nature = flake(kind / flaky, rate, random);
        } else if kind < regressing {
            for _ in 0..random.random_range(1..=3_u32) {
                let length = random.random_range(1..=8_usize);
                test.breakages
                    .extend(breakage(stable, 0.05..0.9, Some(length), random));
            }
        } else if kind < broken {
            if random.random_bool(0.3) {
                test.nature = Nature::Flaky {
                    rate,
                    from: 0.0,
                    until: DAYS * 2.0,
                };
            }
            test.breakages.extend(breakage(stable, 0.3..0.97, None, random));
        } else if kind < broken + population.branch_broken {
            test.breakages
                .push(Breakage::Branch(random.random_range(1..=branches.max(1))));
        }
        tests.push(test);
    }
    tests
}

fn cluster_rate(cluster: u32) -> f64 {
    0.03 * f64::from(cluster % 3 + 1)
}

/// Most flaky tests are flaky all the time. Some begin, end or have bursts.
fn flake(kind: f64, rate: f64, random: &mut StdRng) -> Nature {
    let day = random.random_range(7.0..21.0);
    match kind {
        kind if kind < 0.6 => Nature::Flaky {
            rate,
            from: 0.0,
            until: DAYS * 2.0,
        },
        kind if kind < 0.75 => Nature::Flaky {
            rate,
            from: day,
            until: DAYS * 2.0,
        },
        kind if kind < 0.87 => Nature::Flaky {
            rate,
            from: 0.0,
            until: day,
        },
        _ => Nature::Bursty {
            rate: rate.max(0.1),
            bursts: [random.random_range(0.0..13.0), random.random_range(14.0..25.0)],
        },
    }
}

/// A breakage that begins within a share of the stable runs. It is fixed after `length` of them, or never.
fn breakage(
    stable: &[SimulatedRun],
    begins: std::ops::Range<f64>,
    length: Option<usize>,
    random: &mut StdRng,
) -> Option<Breakage> {
    let begins = random.random_range(begins) * DAYS;
    let first = stable.iter().position(|run| run.at >= begins)?;
    // It begins with a new revision, not with a rerun.
    let from = stable
        .iter()
        .skip(first)
        .zip(stable.iter().skip(first + 1))
        .find(|(a, b)| a.revision != b.revision)?
        .1;
    let fix = length.and_then(|length| {
        stable
            .iter()
            .filter(|run| run.revision > from.revision)
            .nth(length)
    });
    let (until, day) = fix.map_or((u32::MAX, f64::INFINITY), |run| (run.revision, run.at));
    let fixed_at = stable
        .iter()
        .find(|run| run.revision >= until)
        .map_or(day, |run| run.at);
    Some(Breakage::Stable {
        revisions: (from.revision, until),
        days: (from.at, fixed_at),
    })
}

//! The plan of a project's history: its tests with their natures, its runs with their branches and revisions.

use std::collections::HashMap;

use assay_domain::timestamp::Timestamp;
use rand::{Rng as _, RngExt as _, SeedableRng as _, rngs::StdRng};

use super::days_ms;
use crate::{dataset::Role, number::small, shape::Shape};

/// The number of days in which a branch gets runs.
const BRANCH_DAYS: f64 = 3.0;
/// New tests are added until this many days before the end.
const GROWS_UNTIL: f64 = 20.0;

/// A project before its results.
#[derive(Debug)]
pub(crate) struct ProjectPlan {
    pub(crate) role: Role,
    pub(crate) seed: u64,
    pub(crate) until: Timestamp,
    pub(crate) days: f64,
    pub(crate) tests: Vec<TestPlan>,
    pub(crate) runs: Vec<RunPlan>,
}

/// A test.
#[derive(Debug)]
pub(crate) struct TestPlan {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) duration_ms: u64,
    pub(crate) nature: Nature,
    /// In days from the beginning.
    pub(crate) since: f64,
    /// Its usual error.
    pub(crate) error: u32,
}

/// The reason of a test's failures.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Nature {
    /// It never fails.
    Steady,
    /// It is skipped in every run.
    Skipped,
    /// At random.
    Flaky { rate: f64, recovers: f64 },
    /// From one day to another.
    Broken { from: f64, to: f64 },
}

/// A run.
#[derive(Debug)]
pub(crate) struct RunPlan {
    /// In days from the beginning.
    pub(crate) day: f64,
    pub(crate) at: Timestamp,
    /// None for the stable branch.
    pub(crate) branch: Option<u32>,
    pub(crate) revision: String,
    pub(crate) sharded: bool,
    /// The number of tests that a change of the branch breaks.
    pub(crate) broken: u32,
    /// The share of tests that fail because of an outage.
    pub(crate) outage: f64,
}

impl ProjectPlan {
    /// The `index`-th project of a data set that ends at `until`.
    pub(crate) fn new(shape: &Shape, index: u32, until: Timestamp) -> Self {
        let role = match index {
            0 => Role::Large,
            1 if shape.storm_days > 0.0 => Role::Storm,
            _ => Role::Small,
        };
        let (tests, runs, days) = match role {
            Role::Large => (shape.tests, shape.runs(), shape.days),
            Role::Storm => {
                let days = shape.storm_days.min(shape.days);
                (shape.tests, small(shape.runs_per_day * days).max(1), days)
            }
            Role::Small => ((shape.tests / 25).max(2), (shape.runs() / 7).max(2), shape.days),
        };
        let seed = shape.seed.wrapping_mul(1_000_003).wrapping_add(index.into());
        let mut random = StdRng::seed_from_u64(seed);
        let mut plan = Self {
            role,
            seed,
            until,
            days,
            tests: (0..tests)
                .map(|number| test(number, tests, role, shape, &mut random))
                .collect(),
            runs: Vec::new(),
        };
        let mut revisions = Revisions::default();
        for number in 0..runs {
            let place = (f64::from(number), f64::from(runs));
            let run = plan.run(place, shape, &mut revisions, &mut random);
            plan.runs.push(run);
        }
        plan
    }

    /// One more run at the current time: unsharded, on the stable branch.
    pub(crate) fn one_more(&self, now: Timestamp, number: u64) -> RunPlan {
        RunPlan {
            day: self.days,
            at: now,
            branch: None,
            revision: format!("{number:040x}"),
            sharded: false,
            broken: 0,
            outage: 0.0,
        }
    }

    fn run(
        &self,
        (number, of): (f64, f64),
        shape: &Shape,
        revisions: &mut Revisions,
        random: &mut StdRng,
    ) -> RunPlan {
        let day = (number + random.random_range(0.0..0.95)) / of * self.days;
        let branch = if random.random_bool(0.4) {
            None
        } else {
            branch(day / self.days, self.days, shape, random)
        };
        let on_branch = branch.is_some();
        RunPlan {
            day,
            at: self.until.plus_ms(days_ms(day) - days_ms(self.days)),
            branch,
            revision: revisions.next(branch, random),
            sharded: random.random_bool(shape.sharded) && self.tests.len() >= 8,
            broken: if on_branch && random.random_bool(0.08) {
                random.random_range(1..15)
            } else {
                0
            },
            outage: if random.random_bool(0.004) { 0.3 } else { 0.0 },
        }
    }
}

/// A branch that has runs at this point of the history.
fn branch(share: f64, days: f64, shape: &Shape, random: &mut StdRng) -> Option<u32> {
    let newest = small(share * f64::from(shape.branches));
    let alive = small(f64::from(shape.branches) * BRANCH_DAYS / days).max(1);
    let oldest = newest.saturating_sub(alive);
    (shape.branches > 0).then(|| random.random_range(oldest..=newest.min(shape.branches - 1).max(oldest)))
}

/// The newest commit of each branch.
#[derive(Default)]
struct Revisions(HashMap<Option<u32>, String>);

impl Revisions {
    /// The commit of a branch's next run: usually a new one, sometimes the same again.
    fn next(&mut self, branch: Option<u32>, random: &mut StdRng) -> String {
        match self.0.get(&branch) {
            Some(same) if random.random_bool(0.25) => same.clone(),
            Some(_) | None => {
                let new = format!(
                    "{:016x}{:016x}{:08x}",
                    random.next_u64(),
                    random.next_u64(),
                    random.next_u32()
                );
                self.0.insert(branch, new.clone());
                new
            }
        }
    }
}

const AREAS: &str =
    "checkout login search cart profile orders payments reports settings inventory notifications api";
const SUBJECTS: &str = "shows the total|keeps the selection|rejects an empty form|survives a reload|sorts by date|\
    sends one request|restores the session|shows an error for a bad card|loads the next page|updates the badge";

fn test(number: u32, of: u32, role: Role, shape: &Shape, random: &mut StdRng) -> TestPlan {
    let index = |number: u32, of: u32| usize::try_from(number % of).unwrap_or(0);
    let area = AREAS.split(' ').nth(index(number / 40, 12)).unwrap_or_default();
    let subject = SUBJECTS.split('|').nth(index(number, 10)).unwrap_or_default();
    let file = number / 12;
    let share = f64::from(number) / f64::from(of);
    let growing = (shape.days - GROWS_UNTIL).max(0.0);
    let late = share > shape.first_tests && role == Role::Large;
    TestPlan {
        name: format!("{area} page {file} > {subject} (case {number})"),
        file: format!("tests/{area}/{area}-{file}.spec.ts"),
        duration_ms: small(20.0 * random.random_range(0.0_f64..6.0).exp()).into(),
        nature: nature(role, shape, random),
        since: if late {
            (share - shape.first_tests) / (1.0 - shape.first_tests) * growing
        } else {
            0.0
        },
        error: random.next_u32(),
    }
}

fn nature(role: Role, shape: &Shape, random: &mut StdRng) -> Nature {
    let chance = random.random_range(0.0..1.0);
    match role {
        Role::Storm => Nature::Flaky {
            rate: random.random_range(0.01..0.06),
            recovers: 0.6,
        },
        Role::Large | Role::Small if chance < shape.failing => Nature::Flaky {
            // From 0.5 % to 30 %; most rates are low.
            rate: 0.005 * random.random_range(0.0_f64..4.1).exp(),
            recovers: random.random_range(0.2..0.9),
        },
        Role::Large | Role::Small if chance < shape.failing * 1.04 => {
            let from = random.random_range(0.0..shape.days);
            Nature::Broken {
                from,
                to: from + random.random_range(0.5..10.0),
            }
        }
        Role::Large | Role::Small if chance > 0.995 => Nature::Skipped,
        Role::Large | Role::Small => Nature::Steady,
    }
}

impl RunPlan {
    /// The name of its branch.
    pub(crate) fn branch_name(&self) -> String {
        self.branch
            .map_or_else(|| "main".to_owned(), |number| format!("feature/change-{number}"))
    }
}

impl TestPlan {
    /// The probability that the test's first attempt fails in a run of this day, and that a retry passes.
    pub(crate) fn failing(&self, run: &RunPlan) -> (f64, f64) {
        match self.nature {
            Nature::Steady | Nature::Skipped => (run.outage, 0.1),
            Nature::Flaky { rate, recovers } => (rate.max(run.outage), recovers),
            Nature::Broken { from, to } if (from..to).contains(&run.day) => (1.0, 0.0),
            Nature::Broken { .. } => (run.outage, 0.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        use clap::Parser;
        #[derive(Parser)]
        struct Arguments {
            #[command(flatten)]
            shape: Shape,
        }
        Arguments::parse_from(["x"]).shape
    }

    #[test]
    fn a_full_size_project_is_as_large_as_described() {
        let until = Timestamp::from_unix_ms(1_767_571_200_000);
        let plan = ProjectPlan::new(&shape(), 0, until);
        assert_eq!((plan.tests.len(), plan.runs.len()), (5_000, 6_300));
        let present = |run: &RunPlan| plan.tests.iter().filter(|test| test.since <= run.day).count();
        let results: usize = plan.runs.iter().map(present).sum();
        assert!((24_000_000..27_000_000).contains(&results), "{results}");
        assert!(plan.runs.is_sorted_by_key(|run| run.at));
        let is_flaky = |test: &&TestPlan| matches!(test.nature, Nature::Flaky { .. });
        let flaky = plan.tests.iter().filter(is_flaky).count();
        assert!((200..300).contains(&flaky), "{flaky}");
        let period = until.plus_days(-90)..=until;
        assert!(plan.runs.iter().all(|run| period.contains(&run.at)));
        let branches: std::collections::HashSet<_> = plan.runs.iter().filter_map(|run| run.branch).collect();
        assert!(
            branches.len() > 300 && branches.iter().all(|branch| *branch < 400),
            "{}",
            branches.len()
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_plan() {
        let until = Timestamp::from_unix_ms(1_767_571_200_000);
        let revisions = |seed| -> Vec<String> {
            let tests = 50;
            let shape = Shape {
                seed,
                tests,
                ..shape()
            };
            let plan = ProjectPlan::new(&shape, 2, until);
            plan.runs.into_iter().map(|run| run.revision).collect()
        };
        assert_eq!(revisions(1), revisions(1));
        assert_ne!(revisions(1), revisions(2));
    }
}

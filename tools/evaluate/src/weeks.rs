//! Simulated projects in which branches break tests and outages last for hours.
//!
//! 28 days, judged at their end. Main runs on weekdays, some of its runs twice, and its newest revision again each night.
//! Each weekday branches open, each with up to five pushes. Regressions of main are mended after some hours, and most of
//! the branches that open meanwhile have them. Changes break one test of twenty on every tenth branch.

use std::fmt::Write as _;

use assay_flakiness::{
    Engine,
    domain::{
        observation::{Failure, History, RunFacts, RunObservations},
        verdict::{Judge as _, VerdictStatus},
    },
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::{
    results::by_test,
    rival::is_broken,
    runs::{DAYS, time},
    score::Calls,
    truth::RATES,
};

/// The probability that any result fails.
const NOISE: f64 = 1e-4;
/// The probability that broken code fails a test.
const BROKEN_FAILS: f64 = 0.998;
/// The share of the runs that contain a test that seldom runs.
const SELDOM: f64 = 0.25;

/// The parameters of a project.
#[derive(Debug, Clone, Copy)]
struct Shape {
    name: &'static str,
    tests: u32,
    /// The share of tests that never fail by themselves.
    sound: f64,
    stable_runs: u32,
    retries: u32,
    revisions: bool,
    /// Groups of 15 tests that fail together.
    groups: u32,
}

const SHAPES: [Shape; 5] = {
    let w1 = Shape {
        name: "W1",
        tests: 600,
        sound: 0.56,
        stable_runs: 6,
        retries: 0,
        revisions: true,
        groups: 0,
    };
    [
        w1,
        Shape {
            name: "W2",
            retries: 2,
            ..w1
        },
        Shape {
            name: "W3",
            tests: 1_500,
            sound: 0.9,
            stable_runs: 2,
            retries: 1,
            ..w1
        },
        Shape {
            name: "W4",
            revisions: false,
            ..w1
        },
        Shape {
            name: "W5",
            groups: 3,
            ..w1
        },
    ]
};

/// A run without its results.
#[derive(Debug, Clone, Copy)]
struct Plan {
    at: f64,
    /// 0 is main.
    branch: u32,
    push: u32,
    revision: u32,
}

/// A period in which main is broken for a test.
#[derive(Debug, Clone, Copy)]
struct Regression {
    from: f64,
    until: f64,
}

/// An outage: its period, the share of tests that it hits, and the share of their results that fail.
#[derive(Debug, Clone, Copy)]
struct Outage {
    from: f64,
    until: f64,
    hits: f64,
    fails: f64,
}

/// A test with its nature.
#[derive(Debug, Clone)]
struct Test {
    /// The rate of its flakes, and the days between which it has them.
    flakes: Vec<(f64, f64, f64)>,
    regressions: Vec<Regression>,
    /// Whether a branch in ten breaks it.
    touchy: bool,
    group: Option<u32>,
    seldom: bool,
    truth: Truth,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    Healthy,
    Flaky,
    Broken,
    /// Broken, and flaky before: both verdicts are right.
    FlakyBroken,
    /// It has just begun or just ended to fail.
    Ambiguous,
}

fn plan(shape: Shape, random: &mut StdRng) -> Vec<Plan> {
    let (mut runs, mut revision, mut branch) = (Vec::new(), 0, 0);
    let mut day = 0.0;
    let mut weekday = 0;
    while day < DAYS {
        let works = weekday < 5;
        // The newest revision again in the night.
        runs.push(Plan {
            at: day + random.random_range(0.05..0.15),
            branch: 0,
            push: 0,
            revision,
        });
        let mut starts: Vec<f64> = (0..shape.stable_runs)
            .filter(|_| works || random.random_bool(0.25))
            .map(|_| 0.0)
            .collect();
        for start in &mut starts {
            *start = day + random.random_range(0.3..0.9);
        }
        starts.sort_by(f64::total_cmp);
        for at in starts {
            revision += 1;
            let run = Plan {
                at,
                branch: 0,
                push: 0,
                revision,
            };
            runs.push(run);
            if random.random_bool(0.12) {
                runs.push(Plan { at: at + 0.03, ..run });
            }
        }
        for _ in 0..if works { 4 } else { 0 } {
            branch += 1;
            let mut at = day + random.random_range(0.3..0.8);
            for push in 0..random.random_range(1..=5_u32) {
                let run = Plan {
                    at,
                    branch,
                    push,
                    revision: push,
                };
                runs.push(run);
                if random.random_bool(0.15) {
                    runs.push(Plan { at: at + 0.03, ..run });
                }
                at += random.random_range(0.1..0.5);
            }
        }
        day += 1.0;
        weekday = (weekday + 1) % 7;
    }
    runs.retain(|run| run.at < DAYS);
    runs.sort_by(|a, b| a.at.total_cmp(&b.at));
    runs
}

/// The first run of a new revision of main from a day on.
fn new_revision(runs: &[Plan], day: f64) -> f64 {
    let main: Vec<&Plan> = runs.iter().filter(|run| run.branch == 0).collect();
    let new = main.windows(2).filter_map(|pair| match pair {
        [before, run] if run.revision != before.revision => Some(run.at),
        _ => None,
    });
    new.into_iter().find(|at| *at >= day).unwrap_or(DAYS)
}

fn draw(shape: Shape, runs: &[Plan], ordinal: u32, random: &mut StdRng) -> Test {
    let rate = RATES
        .get(random.random_range(0..RATES.len()))
        .copied()
        .unwrap_or(0.1);
    let mut test = Test {
        flakes: Vec::new(),
        regressions: Vec::new(),
        touchy: false,
        group: (ordinal < shape.groups * 15).then_some(ordinal / 15),
        seldom: random.random_bool(0.12),
        truth: Truth::Healthy,
    };
    if test.group.is_some() {
        test.truth = Truth::Flaky;
        return test;
    }
    let kind: f64 = random.random();
    if kind < shape.sound {
        return test;
    }
    // The other kinds, in hundredths of W1.
    let kind = (kind - shape.sound) / (1.0 - shape.sound) * 44.0;
    let always = (rate, 0.0, DAYS);
    let failed_since = |from: f64| {
        let main = runs.iter().filter(|run| run.branch == 0 && run.at >= from);
        main.count()
    };
    match kind {
        kind if kind < 14.0 => {
            test.flakes.push(always);
            test.truth = Truth::Flaky;
        }
        kind if kind < 16.0 => {
            for _ in 0..2 {
                let from = random.random_range(0.0..DAYS);
                test.flakes.push((rate.max(0.2), from, from + 1.0));
            }
            let recent = test.flakes.iter().any(|(_, from, _)| *from > DAYS - 13.0);
            test.truth = if recent { Truth::Flaky } else { Truth::Ambiguous };
        }
        kind if kind < 19.0 => {
            let from = random.random_range(DAYS - 13.0..DAYS - 1.0);
            test.flakes.push((rate, from, DAYS));
            test.truth = if from < DAYS - 4.0 {
                Truth::Flaky
            } else {
                Truth::Ambiguous
            };
        }
        kind if kind < 21.0 => {
            test.flakes
                .push((rate, 0.0, random.random_range(DAYS - 13.0..DAYS - 1.0)));
            test.truth = Truth::Ambiguous;
        }
        kind if kind < 31.0 => {
            for _ in 0..random.random_range(1..=3_u32) {
                let from = new_revision(runs, random.random_range(0.0..DAYS - 2.0));
                let lasts = -0.8 * random.random_range(0.01..1.0_f64).ln();
                let until = new_revision(runs, from + lasts.max(0.02));
                test.regressions.push(Regression { from, until });
            }
            if test.regressions.iter().any(|regression| regression.until >= DAYS) {
                test.truth = Truth::Ambiguous;
            }
        }
        kind if kind < 39.0 => {
            let (mut from, mut truth) = (new_revision(runs, random.random_range(18.0..27.5)), Truth::Broken);
            if kind >= 37.0 {
                test.flakes.push(always);
                truth = Truth::FlakyBroken;
            } else if kind >= 36.0 {
                from = 0.0;
            }
            test.regressions.push(Regression {
                from,
                until: f64::INFINITY,
            });
            test.truth = if failed_since(from) >= 2 && !test.seldom {
                truth
            } else {
                Truth::Ambiguous
            };
        }
        _ => test.touchy = true,
    }
    test
}

fn simulate(shape: Shape, seed: u64) -> (History, Vec<Test>) {
    let mut random = StdRng::seed_from_u64(seed);
    let runs = plan(shape, &mut random);
    let tests: Vec<Test> = (0..shape.tests)
        .map(|ordinal| draw(shape, &runs, ordinal, &mut random))
        .collect();
    let outages: Vec<Outage> = (0..4)
        .map(|place| {
            let from = random.random_range(0.0..DAYS);
            let large = place < 2;
            Outage {
                from,
                until: from + random.random_range(2.0..12.0) / 24.0,
                hits: if large { 1.0 } else { 0.15 },
                fails: if large { random.random_range(0.6..1.0) } else { 0.8 },
            }
        })
        .collect();
    let branches = runs.iter().map(|run| run.branch).max().unwrap_or(0);
    // When each branch opened; for each test the branches that inherit a regression, and the pushes that break it.
    let opened: Vec<f64> = (0..=branches)
        .map(|branch| {
            runs.iter()
                .find(|run| run.branch == branch)
                .map_or(0.0, |run| run.at)
        })
        .collect();
    let per_test: Vec<(Vec<bool>, Vec<u32>)> = tests
        .iter()
        .map(|test| {
            let of_branch = |at: &f64| {
                let regressed = test.regressions.iter().any(|r| (r.from..r.until).contains(at));
                let inherits = regressed && random.random_bool(0.7);
                let breaks = test.touchy && random.random_bool(0.1);
                (inherits, if breaks { random.random_range(1..=3_u32) } else { 0 })
            };
            opened.iter().map(of_branch).unzip()
        })
        .collect();
    let mut history = History {
        stable_branch: "main".into(),
        tests: shape.tests,
        runs: Vec::new(),
    };
    for (number, run) in (1..).zip(&runs) {
        let branch = match run.branch {
            0 => "main".to_owned(),
            branch => format!("branch-{branch}"),
        };
        let mut observed = RunObservations::of(RunFacts {
            id: format!("run-{number}").into(),
            number,
            started_at: time(run.at),
            revision: shape
                .revisions
                .then(|| format!("{branch}-{}", run.revision).into()),
            branch: Some(branch.into()),
            variant: "".into(),
        });
        let groups: Vec<bool> = (0..shape.groups).map(|_| random.random_bool(0.05)).collect();
        let here = usize::try_from(run.branch).unwrap_or(0);
        for ((ordinal, test), (inherits, breaks)) in (0..).zip(&tests).zip(&per_test) {
            if test.seldom && !random.random_bool(SELDOM) {
                continue;
            }
            observed.present.insert(ordinal);
            let broken = if run.branch == 0 {
                test.regressions
                    .iter()
                    .any(|r| (r.from..r.until).contains(&run.at))
            } else {
                inherits.get(here).copied().unwrap_or(false)
                    || breaks.get(here).is_some_and(|pushes| run.push < *pushes)
            };
            let flake = test
                .flakes
                .iter()
                .filter(|(_, from, until)| (*from..*until).contains(&run.at));
            let flake = flake.map(|(rate, ..)| *rate).fold(0.0, f64::max);
            let grouped = test
                .group
                .and_then(|group| groups.get(usize::try_from(group).ok()?));
            let outage = outages.iter().find(|outage| {
                let is_hit = f64::from(ordinal % 100) < outage.hits * 100.0;
                (outage.from..outage.until).contains(&run.at) && is_hit
            });
            let mut failed_attempts = 0;
            for attempt in 0..=shape.retries {
                let rate = if broken {
                    BROKEN_FAILS
                } else if let Some(outage) = outage {
                    if attempt == 0 { outage.fails } else { 0.9 }
                } else if attempt > 0 {
                    flake.max(0.35)
                } else if grouped.is_some_and(|fails| *fails) {
                    0.9
                } else {
                    flake.max(NOISE)
                };
                if !random.random_bool(rate) {
                    break;
                }
                failed_attempts += 1;
            }
            if failed_attempts > 0 {
                observed.failures.push(Failure {
                    test: ordinal,
                    recovered: failed_attempts <= shape.retries,
                    failed_attempts,
                    lost_ms: Some(1_000),
                });
            }
        }
        history.runs.push(observed);
    }
    (history, tests)
}

/// Judges the projects of all shapes at the end of their four weeks.
pub(crate) fn table(seeds: &[u64]) -> String {
    let mut text = String::from("      flaky P/R/F1        broken P/R/F1       broken, three red runs\n");
    for shape in SHAPES {
        let (mut flaky, mut broken, mut rival) = (Calls::default(), Calls::default(), Calls::default());
        for seed in seeds {
            let (history, tests) = simulate(shape, *seed);
            let now = time(DAYS);
            let results = by_test(&history, now.plus_days(-14), now);
            let mut called = vec![None; tests.len()];
            for verdict in Engine::default().verdicts(&history, now) {
                let place = usize::try_from(verdict.test).ok();
                if let Some(called) = place.and_then(|place| called.get_mut(place)) {
                    *called = Some(verdict.status);
                }
            }
            for ((test, called), results) in tests.iter().zip(called).zip(&results) {
                let is_flaky = called == Some(VerdictStatus::Flaky);
                let is_broken_now = matches!(test.truth, Truth::Broken | Truth::FlakyBroken);
                if test.truth == Truth::Ambiguous {
                    continue;
                }
                if !(is_flaky && test.truth == Truth::FlakyBroken) {
                    flaky.add(is_flaky, test.truth == Truth::Flaky);
                }
                broken.add(called == Some(VerdictStatus::Broken), is_broken_now);
                rival.add(is_broken(results), is_broken_now);
            }
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}    {flaky}   {broken}   {rival}", shape.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_the_project() {
        let [first, ..] = SHAPES;
        let project = |seed| simulate(first, seed).0;
        assert_eq!(project(7), project(7));
        assert_ne!(project(7), project(8));
    }

    #[test]
    fn a_project_has_tests_of_each_kind() {
        let [first, ..] = SHAPES;
        let (_, tests) = simulate(first, 5);
        for truth in [
            Truth::Healthy,
            Truth::Flaky,
            Truth::Broken,
            Truth::FlakyBroken,
            Truth::Ambiguous,
        ] {
            assert!(tests.iter().any(|test| test.truth == truth), "{truth:?}");
        }
        assert!(tests.iter().any(|test| test.touchy));
        // An outage of a night may meet no run, so several projects are looked at.
        let has_outage = |seed| {
            let (history, _) = simulate(first, seed);
            history.runs.iter().any(|run| run.failures.len() > 300)
        };
        assert!((1..9).any(has_outage), "an outage");
    }
}

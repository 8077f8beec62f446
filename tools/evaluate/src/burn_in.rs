//! Evaluates burn-in on simulated tests of a known rate.
//!
//! Repetitions are correlated as in `datasets/rerun-correlation`, and not as the planner assumes: some flakes never occur
//! alone, others come in rows.

use std::fmt::Write as _;

use assay_flakiness::plan::{
    burn_in::{self, Candidate, RateLevel},
    reruns::{ProcessOf, RerunKind},
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use crate::reruns::{IN_ROWS, NEVER_ALONE, ROW_GOES_ON};

/// The rates of the tests. Those up to the second are stable: what fails then is not of the test.
const RATES: [f64; 6] = [0.0, 0.002, 0.05, 0.10, 0.20, 0.30];
/// The changes of each rate.
const CHANGES: u32 = 300;
/// The new tests of a change.
const TESTS: usize = 3;

/// A test with this rate.
pub(crate) struct Simulated {
    rate: f64,
    occurs_alone: bool,
    comes_in_rows: bool,
    last_failed: bool,
}

impl Simulated {
    pub(crate) fn new(rate: f64, process: ProcessOf, random: &mut StdRng) -> Self {
        Self {
            rate,
            occurs_alone: process == ProcessOf::Test || !random.random_bool(NEVER_ALONE),
            comes_in_rows: random.random_bool(IN_ROWS),
            last_failed: random.random_bool(rate),
        }
    }

    /// The next result. The rate of a test that comes in rows is the share of its failures in the long run.
    pub(crate) fn fails(&mut self, kind: RerunKind, random: &mut StdRng) -> bool {
        let probability = match (kind, self.comes_in_rows, self.last_failed) {
            (RerunKind::Alone, ..) if !self.occurs_alone => return false,
            (_, false, _) => self.rate,
            (_, true, true) => ROW_GOES_ON,
            (_, true, false) => self.rate * (1.0 - ROW_GOES_ON) / (1.0 - self.rate),
        };
        self.last_failed = random.random_bool(probability);
        self.last_failed
    }
}

/// What became of tests of one rate.
#[derive(Default)]
struct Score {
    tests: u32,
    flaky: u32,
    good: u32,
}

/// The table.
pub(crate) fn table(budget_s: f64) -> String {
    let mut text = "| Rate | Newly flaky | Below 5 % |\n|--:|--:|--:|\n".to_owned();
    for rate in RATES {
        let mut random = StdRng::seed_from_u64(101);
        let mut score = Score::default();
        for _ in 0..CHANGES {
            burn_in(rate, budget_s, &mut random, &mut score);
        }
        let percent = |part: u32| 100.0 * f64::from(part) / f64::from(score.tests.max(1));
        let _ = writeln!(
            text,
            "| {:.1} % | {:.1} % | {:.1} % |",
            100.0 * rate,
            percent(score.flaky),
            percent(score.good)
        );
    }
    text
}

/// The burn-in of one change with three tests of this rate, in one file or two.
fn burn_in(rate: f64, budget_s: f64, random: &mut StdRng, score: &mut Score) {
    let processes = [ProcessOf::Test, ProcessOf::File, ProcessOf::Suite];
    let process = processes.get(random.random_range(0..3_usize)).copied();
    let process = process.unwrap_or(ProcessOf::Suite);
    let startup_s = 10.0_f64.powf(random.random_range(0.0..1.0));
    let mut tests = Vec::with_capacity(TESTS);
    for number in 0..TESTS {
        let alone_s = 10.0_f64.powf(random.random_range(-1.3..0.7));
        let with_file_s = alone_s * random.random_range(1.0..15.0);
        // A runner that starts a process for each test has no files.
        let with_file_s = (process != ProcessOf::Test).then_some(with_file_s);
        let simulated = Simulated::new(rate, process, random);
        // A test that failed in the first run is judged by the gate, which is not what is measured here.
        let candidate = Candidate::new(process, number % 2, (Some(alone_s), with_file_s), false);
        tests.push((simulated, candidate));
    }
    let mut left_s = budget_s;
    loop {
        let candidates: Vec<Candidate> = tests.iter().map(|(_, candidate)| *candidate).collect();
        let Some(round) = burn_in::next(&candidates, left_s, startup_s) else {
            break;
        };
        left_s -= round.seconds;
        for index in round.candidates {
            if let Some((simulated, candidate)) = tests.get_mut(index) {
                candidate.add(round.kind, simulated.fails(round.kind, random));
            }
        }
    }
    for (_, candidate) in tests {
        let level = candidate.level();
        score.tests += 1;
        score.flaky += u32::from(candidate.did_both() && level != RateLevel::Good);
        score.good += u32::from(level == RateLevel::Good);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(rate: f64, budget_s: f64) -> Score {
        let (mut random, mut score) = (StdRng::seed_from_u64(5), Score::default());
        for _ in 0..200 {
            burn_in(rate, budget_s, &mut random, &mut score);
        }
        score
    }

    #[test]
    fn more_time_finds_more_and_stable_tests_are_not_accused() {
        let (short, long) = (score(0.2, 20.0), score(0.2, 120.0));
        assert!(short.flaky < long.flaky, "{} {}", short.flaky, long.flaky);
        assert!(long.flaky * 2 > long.tests, "{}", long.flaky);
        assert_eq!(score(0.0, 120.0).flaky, 0);
    }
}

//! Evaluates noisy bisection on simulated histories with a planted commit.

use std::fmt::Write as _;

use assay_flakiness::plan::bisection::{Bisection, NextStep};
use rand::{RngExt, SeedableRng, rngs::StdRng};

/// The numbers of commits of the simulated histories.
const COMMITS: [usize; 3] = [16, 64, 256];
/// The histories of each length.
const HISTORIES: u32 = 200;
/// The bounds of the flake rate.
const RATES: (f64, f64) = (0.05, 0.3);
/// The probability that broken code passes.
const BROKEN_PASSES: f64 = 0.002;
/// The largest factor by which the rate that the search gets differs from the true one.
const WRONG_BY: f64 = 1.5;

/// The table.
pub(crate) fn table() -> String {
    let mut random = StdRng::seed_from_u64(101);
    let mut text = "| Commits | Found | Runs, mean | Clean bisection |\n|--:|--:|--:|--:|\n".to_owned();
    for commits in COMMITS {
        let (mut found, mut runs) = (0_u32, 0_u32);
        for _ in 0..HISTORIES {
            let (is_right, needed) = search(commits, &mut random);
            found += u32::from(is_right);
            runs += needed;
        }
        let clean = commits.next_power_of_two().trailing_zeros();
        let share = |count: u32| f64::from(count) / f64::from(HISTORIES);
        let _ = writeln!(
            text,
            "| {commits} | {:.1} % | {:.1} | {clean} |",
            100.0 * share(found),
            share(runs)
        );
    }
    text
}

/// Whether the search finds the planted commit, and after how many runs. The last commit has failed once before.
fn search(commits: usize, random: &mut StdRng) -> (bool, u32) {
    let culprit = random.random_range(0..commits);
    let rate = random.random_range(RATES.0..RATES.1);
    let given = (rate * WRONG_BY.powf(random.random_range(-1.0..1.0))).min(0.9);
    let mut bisection = Bisection::new(commits, given);
    bisection.add(commits - 1, true);
    for runs in 0..1_000 {
        match bisection.next_step() {
            NextStep::Run { commit, .. } => {
                let fails = match commit >= culprit {
                    true => 1.0 - BROKEN_PASSES,
                    false => rate,
                };
                bisection.add(commit, random.random_bool(fails));
            }
            NextStep::Found(commit) => return (commit == culprit, runs),
            NextStep::NotBroken | NextStep::Stuck => return (false, runs),
        }
    }
    (false, 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_planted_commit_is_found_although_the_test_flakes() {
        let mut random = StdRng::seed_from_u64(7);
        let found: Vec<(bool, u32)> = (0..200).map(|_| search(64, &mut random)).collect();
        let right = found.iter().filter(|(is_right, _)| *is_right).count();
        assert!(right >= 186, "{right} of 200");
        // A control: 64 commits need at least log2(64) results.
        assert!(
            found
                .iter()
                .filter(|(is_right, runs)| *is_right && *runs < 6)
                .count()
                < 20
        );
    }
}

//! Noisy bisection: which of the commits since a green run broke a test that also fails on good code.
//!
//! A pass says that the culprit comes later, because broken code practically never passes. A failure may be a flake, so
//! it says little if the flake rate is high. The next run is the one from which the answer is expected to learn most
//! (Lindley, *On a Measure of the Information Provided by an Experiment*, 1956).

use crate::{model::BROKEN_PASSES, numbers};

/// The probability that a failure on good code is followed by one in the next run on the same machine: the mean over
/// tests in `datasets/rerun-correlation`.
const FAILS_AGAIN: f64 = 0.1;
/// The prior probability that no commit broke the test, although it failed.
const NONE_BROKE_IT: f64 = 0.1;
/// The culprit is found from this probability on.
const FOUND: f64 = 0.95;
/// The information of a run, in bits, below which it is not worth its time.
const LEAST_INFORMATION: f64 = 1e-4;
/// The smallest and the largest flake rate. A rate of 0 would never forgive a wrong result.
const RATES: (f64, f64) = (0.001, 0.9);

/// The results of one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct CommitResults {
    passed: u32,
    failed: u32,
    /// Whether it cannot be run.
    skipped: bool,
}

/// The search for the commit that broke a test.
#[derive(Debug, Clone, PartialEq)]
pub struct Bisection {
    /// The results of each commit, oldest first.
    results: Vec<CommitResults>,
    flake_rate: f64,
}

/// What the results so far say.
#[derive(Debug, Clone, PartialEq)]
pub struct Posterior {
    /// P(this commit broke the test), for each commit, oldest first.
    pub of_commit: Vec<f64>,
    /// P(none of them broke it): it failed by itself.
    pub none: f64,
}

/// The next step of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NextStep {
    /// Run the test on this commit, at most so often: until its first pass.
    Run {
        /// The index of the commit.
        commit: usize,
        /// The number of runs after which all of them failing would decide about this commit.
        times: u32,
    },
    /// This commit broke it, with a probability of at least .95.
    Found(usize),
    /// No commit broke it, with a probability of at least .95: the test is flaky.
    NotBroken,
    /// No commit that can be run tells more.
    Stuck,
}

impl Posterior {
    /// The fewest commits among which the culprit is with a probability of at least .95, the most probable first; none if
    /// no commit may have broken the test.
    pub fn suspects(&self) -> Vec<usize> {
        let mut commits: Vec<(usize, f64)> = self.of_commit.iter().copied().enumerate().collect();
        commits.sort_by(|(_, left), (_, right)| right.total_cmp(left));
        let (mut suspects, mut sum) = (Vec::new(), 0.0);
        for (commit, probability) in commits {
            sum += probability;
            suspects.push(commit);
            if sum >= FOUND {
                return suspects;
            }
        }
        Vec::new()
    }

    /// The most probable commit, with its probability; none if no commit broke the test more probably.
    pub fn likeliest(&self) -> Option<(usize, f64)> {
        let commits = self.of_commit.iter().copied().enumerate();
        let (commit, probability) = commits.max_by(|(_, left), (_, right)| left.total_cmp(right))?;
        (probability >= self.none).then_some((commit, probability))
    }
}

impl Bisection {
    /// A search among this many commits, oldest first. The run before them was green. `flake_rate` is the probability
    /// that the test fails on good code, from 0 to 1.
    pub fn new(commits: usize, flake_rate: f64) -> Self {
        Self {
            results: vec![CommitResults::default(); commits],
            flake_rate: flake_rate.clamp(RATES.0, RATES.1),
        }
    }

    /// Adds the result of a run of a commit. A commit that is not part of the search is ignored.
    pub fn add(&mut self, commit: usize, failed: bool) {
        if let Some(results) = self.results.get_mut(commit) {
            match failed {
                true => results.failed = results.failed.saturating_add(1),
                false => results.passed = results.passed.saturating_add(1),
            }
        }
    }

    /// Excludes a commit from further runs, because it cannot be run.
    pub fn skip(&mut self, commit: usize) {
        if let Some(results) = self.results.get_mut(commit) {
            results.skipped = true;
        }
    }

    /// Inserts commits without results before a commit: those that it merged.
    pub fn insert(&mut self, before: usize, commits: usize) {
        let before = before.min(self.results.len());
        let none = std::iter::repeat_n(CommitResults::default(), commits);
        self.results.splice(before..before, none);
    }

    /// The commits that cannot be run.
    pub fn skipped(&self) -> impl Iterator<Item = usize> {
        let results = self.results.iter().enumerate();
        results
            .filter(|(_, results)| results.skipped)
            .map(|(commit, _)| commit)
    }

    /// P(each commit broke the test), given all results (Bayes). Before any result, all commits are equally probable.
    pub fn posterior(&self) -> Posterior {
        let commits = f64::from(numbers::count(self.results.len()).max(1));
        // The logarithm of the joint probability if commit `culprit` broke it: good before it, and broken from it on.
        let good: Vec<f64> = self
            .results
            .iter()
            .map(|results| self.if_good(*results))
            .collect();
        let broken: Vec<f64> = self.results.iter().map(|results| if_broken(*results)).collect();
        let mut log = broken.iter().sum::<f64>();
        let mut logs = Vec::with_capacity(self.results.len() + 1);
        for (good, broken) in good.iter().zip(&broken) {
            logs.push(log + ((1.0 - NONE_BROKE_IT) / commits).ln());
            log += good - broken;
        }
        logs.push(log + NONE_BROKE_IT.ln());
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut weights: Vec<f64> = logs.into_iter().map(|log| (log - largest).exp()).collect();
        let all: f64 = weights.iter().sum();
        for weight in &mut weights {
            *weight /= all;
        }
        let none = weights.pop().unwrap_or(1.0);
        Posterior {
            of_commit: weights,
            none,
        }
    }

    /// The next step.
    pub fn next_step(&self) -> NextStep {
        let posterior = self.posterior();
        if posterior.none >= FOUND {
            return NextStep::NotBroken;
        }
        if let Some((commit, probability)) = posterior.likeliest()
            && probability >= FOUND
        {
            return NextStep::Found(commit);
        }
        let mut best = (0, f64::NEG_INFINITY);
        let mut broken_here = 0.0;
        for (commit, (of_commit, results)) in posterior.of_commit.iter().zip(&self.results).enumerate() {
            broken_here += of_commit;
            if results.skipped {
                continue;
            }
            let gain = information(broken_here.min(1.0), self.fails_if_good(*results));
            if gain > best.1 {
                best = (commit, gain);
            }
        }
        match best.1 > LEAST_INFORMATION {
            true => NextStep::Run {
                commit: best.0,
                times: self.failures_that_decide(best.0),
            },
            false => NextStep::Stuck,
        }
    }

    /// The number of failures in a row of a commit after which it is broken with a probability of .95; at most 20.
    fn failures_that_decide(&self, commit: usize) -> u32 {
        let mut ahead = self.clone();
        for times in 1..20 {
            ahead.add(commit, true);
            let until: f64 = ahead.posterior().of_commit.iter().take(commit + 1).sum();
            if until >= FOUND {
                return times;
            }
        }
        20
    }

    /// The probability that good code fails in the next run of a commit. What failed there before has more probably a
    /// cause that lasts.
    fn fails_if_good(&self, results: CommitResults) -> f64 {
        match results {
            CommitResults {
                passed: 0,
                failed: 1..,
                ..
            } => self.flake_rate.max(FAILS_AGAIN),
            CommitResults { .. } => self.flake_rate,
        }
    }

    /// The logarithm of the probability of results on good code.
    fn if_good(&self, results: CommitResults) -> f64 {
        let CommitResults { passed, failed, .. } = results;
        let passes = f64::from(passed) * (1.0 - self.flake_rate).ln();
        let fails = match failed {
            0 => 0.0,
            failed => self.flake_rate.ln() + f64::from(failed - 1) * self.flake_rate.max(FAILS_AGAIN).ln(),
        };
        passes + fails
    }
}

/// The logarithm of the probability of results on broken code.
fn if_broken(results: CommitResults) -> f64 {
    f64::from(results.passed) * BROKEN_PASSES.ln() + f64::from(results.failed) * (1.0 - BROKEN_PASSES).ln()
}

/// The expected information of a run, in bits: of a commit that is broken with this probability, where good code fails
/// with that one.
fn information(broken: f64, good_fails: f64) -> f64 {
    let fails = broken * (1.0 - BROKEN_PASSES) + (1.0 - broken) * good_fails;
    entropy(fails) - broken * entropy(BROKEN_PASSES) - (1.0 - broken) * entropy(good_fails)
}

/// The entropy of an event with this probability, in bits.
fn entropy(probability: f64) -> f64 {
    let of = |probability: f64| match probability > 0.0 {
        true => -probability * probability.log2(),
        false => 0.0,
    };
    of(probability) + of(1.0 - probability)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches with a test that fails on these results of good code, in order. Returns the answer and the runs.
    fn search(
        commits: usize,
        culprit: usize,
        rate: f64,
        mut flakes: impl FnMut() -> bool,
    ) -> (NextStep, u32) {
        let mut bisection = Bisection::new(commits, rate);
        for runs in 0..200 {
            match bisection.next_step() {
                NextStep::Run { commit, times } => {
                    assert!(times >= 1);
                    bisection.add(commit, commit >= culprit || flakes());
                }
                found @ (NextStep::Found(_) | NextStep::NotBroken | NextStep::Stuck) => return (found, runs),
            }
        }
        panic!("no answer after 200 runs");
    }

    #[test]
    fn without_flakes_it_is_a_bisection() {
        for culprit in [0, 1, 31, 62, 63] {
            let (found, runs) = search(64, culprit, 0.001, || false);
            assert_eq!(found, NextStep::Found(culprit));
            assert!(runs <= 8, "{culprit}: {runs}");
        }
    }

    #[test]
    fn a_single_flake_does_not_mislead_it() {
        let mut first = true;
        let (found, runs) = search(64, 50, 0.2, || std::mem::take(&mut first));
        assert_eq!(found, NextStep::Found(50));
        assert!(runs > 6, "{runs}");
    }

    #[test]
    fn a_test_that_only_flakes_was_not_broken() {
        assert_eq!(search(8, 8, 0.2, || false).0, NextStep::NotBroken);
    }

    #[test]
    fn more_failures_are_asked_for_where_the_test_flakes_more() {
        let times = [0.01, 0.1, 0.4].map(|rate| match Bisection::new(2, rate).next_step() {
            NextStep::Run { times, .. } => times,
            NextStep::Found(_) | NextStep::NotBroken | NextStep::Stuck => 0,
        });
        assert!(times[0] < times[1] && times[1] < times[2], "{times:?}");
    }

    #[test]
    fn commits_that_cannot_run_are_left_out() {
        let mut bisection = Bisection::new(4, 0.1);
        bisection.add(3, true);
        for _ in 0..100 {
            match bisection.next_step() {
                NextStep::Run { commit: 1, .. } => bisection.skip(1),
                NextStep::Run { commit, .. } => bisection.add(commit, commit >= 1),
                NextStep::Stuck => break,
                step @ (NextStep::Found(_) | NextStep::NotBroken) => panic!("{step:?}"),
            }
        }
        assert_eq!(bisection.next_step(), NextStep::Stuck);
        let posterior = bisection.posterior();
        assert!(
            posterior.of_commit[1] + posterior.of_commit[2] > 0.95,
            "{posterior:?}"
        );
    }

    #[test]
    fn probabilities_add_up_and_a_pass_clears_what_is_older() {
        let mut bisection = Bisection::new(10, 0.1);
        bisection.add(4, false);
        let posterior = bisection.posterior();
        let sum: f64 = posterior.of_commit.iter().sum::<f64>() + posterior.none;
        assert!((sum - 1.0).abs() < 1e-12);
        assert!(posterior.of_commit[..5].iter().all(|commit| *commit < 0.001));
        assert!(posterior.of_commit[5..].iter().all(|commit| *commit > 0.1));
        bisection.add(99, true);
        assert_eq!(
            bisection.posterior(),
            posterior,
            "an unknown commit changes nothing"
        );
    }

    #[test]
    fn without_commits_none_broke_it() {
        assert_eq!(Bisection::new(0, 0.1).next_step(), NextStep::NotBroken);
    }
}

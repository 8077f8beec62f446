//! Tests that became slower: the durations of a run against those of earlier runs.
//!
//! The logarithm of a duration is that of the test plus a factor of the run plus noise. A slow machine slows all tests of its
//! run, so the factor is the median over the tests, and a test counts as slower only beyond it. The noise of a test is
//! estimated from its own runs and drawn towards that of all tests. Its tails are those of Student's t, because durations have
//! outliers. The probability is that of a lasting factor against that of noise.

mod change_point;

use std::collections::BTreeMap;

use assay_domain::test::TestOrdinal;

pub use change_point::{ChangePoint, change_points};

/// The fewest earlier runs in which a test has a duration.
pub const FEWEST_RUNS: usize = 5;
/// The fewest tests from which the factor of a run is estimated. With fewer, a slow test and a slow machine look alike.
const FEWEST_TESTS: usize = 5;
/// The prior probability that a test became slower with a run.
const PRIOR: f64 = 0.02;
/// The number of observations that the noise of all tests counts as.
const POOLED: f64 = 20.0;
/// The degrees of freedom of the noise: fewer make outliers more probable. Chosen on seeds 101 to 104 of `assay-evaluate
/// slower`.
const FREEDOM: f64 = 7.7;
/// The least noise of a logarithm.
const LEAST_NOISE: f64 = 0.03;
/// Noise of every duration in milliseconds: clocks and schedulers.
const JITTER_MS: f64 = 5.0;
/// The normal distribution's ratio of standard deviation and median absolute deviation.
const DEVIATION: f64 = 1.4826;
/// Factors of tests that became slower have an exponential distribution of their logarithm, from `LEAST` on with this mean.
const LEAST: f64 = 0.182;
const MEAN: f64 = 0.7;
/// The number of factors at which the probability is summed, and their distance.
const STEPS: u32 = 60;
const STEP: f64 = 0.05;

/// The duration of each test that passed at its first attempt, in milliseconds.
pub type Durations = Vec<(TestOrdinal, u64)>;

/// A test that may have become slower.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowerTest {
    /// The test.
    pub test: TestOrdinal,
    /// How many times as long it takes, without the factor of the run; above 1.
    pub factor: f64,
    /// P(it became slower), from 0 to 1.
    pub probability: f64,
    /// Its usual duration on a machine as fast as the run's, in milliseconds.
    pub usual_ms: f64,
    /// Its duration in the run, in milliseconds.
    pub duration_ms: u64,
}

impl SlowerTest {
    /// The milliseconds that it takes longer.
    pub fn extra_ms(&self) -> f64 {
        ms(self.duration_ms) - self.usual_ms
    }
}

/// The tests of a run that took longer than usual, with the usual duration of all tests that could be compared, in
/// milliseconds. `earlier` are runs of the same suite.
pub fn compare(earlier: &[Durations], run: &Durations) -> (Vec<SlowerTest>, f64) {
    let usual = Usual::of(&logs_without_factors(earlier));
    let measured: Vec<(TestOrdinal, u64, &UsualTest)> = run
        .iter()
        .filter_map(|(test, duration)| Some((*test, *duration, usual.tests.get(test)?)))
        .collect();
    let differences = measured
        .iter()
        .map(|(_, duration, usual)| log(*duration) - usual.center);
    let mut differences: Vec<f64> = differences.collect();
    if differences.len() < FEWEST_TESTS {
        return (Vec::new(), 0.0);
    }
    let factor = median(&mut differences).unwrap_or(0.0);
    let whole = measured
        .iter()
        .map(|(_, _, usual)| (usual.center + factor).exp())
        .sum();
    let slower = measured
        .into_iter()
        .filter_map(|(test, duration_ms, usual_test)| {
            let usual_ms = (usual_test.center + factor).exp();
            let difference = log(duration_ms) - usual_test.center - factor;
            (difference > 0.0).then(|| SlowerTest {
                test,
                factor: difference.exp(),
                probability: usual.probability(usual_test, difference),
                usual_ms,
                duration_ms,
            })
        });
    (slower.collect(), whole)
}

/// The logarithms of a test's durations, each with the index of its run.
type Logs = Vec<(usize, f64)>;

/// The logarithms of the durations of each test with enough runs, without the factors of the runs.
fn logs_without_factors(runs: &[Durations]) -> BTreeMap<TestOrdinal, Logs> {
    let mut logs: BTreeMap<TestOrdinal, Logs> = BTreeMap::new();
    for (run, durations) in runs.iter().enumerate() {
        for (test, duration) in durations {
            logs.entry(*test).or_default().push((run, log(*duration)));
        }
    }
    logs.retain(|_, of_test| of_test.len() >= FEWEST_RUNS);
    let mut differences: Vec<Vec<f64>> = vec![Vec::new(); runs.len()];
    for of_test in logs.values() {
        let mut all: Vec<f64> = of_test.iter().map(|(_, log)| *log).collect();
        let center = median(&mut all).unwrap_or(0.0);
        for (run, log) in of_test {
            if let Some(of_run) = differences.get_mut(*run) {
                of_run.push(log - center);
            }
        }
    }
    let factors: Vec<f64> = differences
        .iter_mut()
        .map(|of_run| median(of_run).unwrap_or(0.0))
        .collect();
    for (run, log) in logs.values_mut().flatten() {
        *log -= factors.get(*run).copied().unwrap_or(0.0);
    }
    logs
}

/// The usual durations of tests.
struct Usual {
    tests: BTreeMap<TestOrdinal, UsualTest>,
    /// The median noise of a test.
    noise: f64,
}

struct UsualTest {
    /// The median of its logarithms without the factors of the runs.
    center: f64,
    /// Its own noise.
    noise: f64,
    runs: f64,
}

impl UsualTest {
    fn of(logs: impl Iterator<Item = f64>) -> Self {
        let mut logs: Vec<f64> = logs.collect();
        let center = median(&mut logs).unwrap_or(0.0);
        let mut deviations: Vec<f64> = logs.iter().map(|log| (log - center).abs()).collect();
        Self {
            center,
            noise: median(&mut deviations).unwrap_or(0.0) * DEVIATION,
            runs: f64::from(u32::try_from(logs.len()).unwrap_or(u32::MAX)),
        }
    }

    /// The noise of one duration, drawn towards that of all tests.
    fn scale(&self, pooled: f64) -> f64 {
        let own = (self.runs - 1.0).max(1.0);
        let variance = (POOLED * pooled.powi(2) + own * self.noise.powi(2)) / (POOLED + own);
        let jitter = JITTER_MS / self.center.exp().max(1.0);
        (variance + jitter.powi(2)).sqrt()
    }
}

impl Usual {
    fn of(logs: &BTreeMap<TestOrdinal, Logs>) -> Self {
        let usual = |of_test: &Logs| UsualTest::of(of_test.iter().map(|(_, log)| *log));
        let tests: BTreeMap<TestOrdinal, UsualTest> = logs
            .iter()
            .map(|(test, of_test)| (*test, usual(of_test)))
            .collect();
        let mut noise: Vec<f64> = tests.values().map(|test| test.noise).collect();
        Self {
            noise: median(&mut noise).unwrap_or(0.0).max(LEAST_NOISE),
            tests,
        }
    }

    /// P(the test became slower), by the difference of its logarithm from the usual one. Above the largest factor of the sum
    /// the probability does not fall again.
    fn probability(&self, test: &UsualTest, difference: f64) -> f64 {
        let difference = difference.min(LEAST + STEP * f64::from(STEPS - 1));
        let scale = test.scale(self.noise) * (1.0 + 1.0 / test.runs).sqrt();
        let density = |difference: f64| log_density(difference / scale).exp();
        let slower = PRIOR * over_factors(|factor| density(difference - factor));
        let noise = (1.0 - PRIOR) * density(difference);
        slower / (slower + noise)
    }
}

/// The mean of a function over the logarithms of the factors by which a test becomes slower.
fn over_factors(of_factor: impl Fn(f64) -> f64) -> f64 {
    let at_step = |step: u32| {
        let shift = STEP * f64::from(step);
        STEP / MEAN * (-shift / MEAN).exp() * of_factor(LEAST + shift)
    };
    (0..STEPS).map(at_step).sum()
}

/// The logarithm of Student's density without its constant, which cancels out.
fn log_density(deviation: f64) -> f64 {
    log_densities(std::iter::once(deviation))
}

/// The sum of these logarithms. Takes one logarithm of many factors, which is many times faster.
fn log_densities(deviations: impl Iterator<Item = f64>) -> f64 {
    const MOST: f64 = 1e100;
    let (mut product, mut logs) = (1.0, 0.0);
    for deviation in deviations {
        product *= 1.0 + deviation.powi(2) / FREEDOM;
        if product > MOST {
            logs += f64::ln(product);
            product = 1.0;
        }
    }
    -f64::midpoint(FREEDOM, 1.0) * (logs + f64::ln(product))
}

fn log(duration_ms: u64) -> f64 {
    ms(duration_ms).max(1.0).ln()
}

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "durations are far below 2^53 milliseconds"
)]
const fn ms(duration_ms: u64) -> f64 {
    duration_ms as f64
}

/// The lower middle value.
fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten runs of 20 tests with some noise, each run on a machine of another speed.
    fn earlier() -> Vec<Durations> {
        (0..10)
            .map(|run| {
                (0..20)
                    .map(|test| (test, noisy(test, run, 1.0 + f64::from(run) * 0.1)))
                    .collect()
            })
            .collect()
    }

    /// Between 1,000 and 20,000 ms, within 5 % of the usual duration.
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "durations are positive and small"
    )]
    fn noisy(test: u32, run: u32, factor: f64) -> u64 {
        let noise = 0.95 + f64::from((test * 7 + run * 13) % 11) * 0.01;
        (f64::from((test + 1) * 1_000) * noise * factor).round() as u64
    }

    fn found(run: &Durations) -> Vec<u32> {
        let (slower, _) = compare(&earlier(), run);
        slower
            .iter()
            .filter(|slower| slower.probability >= 0.95)
            .map(|slower| slower.test)
            .collect()
    }

    #[test]
    fn a_slower_test_is_found_on_a_machine_of_any_speed_and_a_slow_machine_is_not() {
        for factor in [0.5, 1.0, 3.0] {
            let mut run: Durations = (0..20).map(|test| (test, noisy(test, 3, factor))).collect();
            assert_eq!(found(&run), Vec::<u32>::new(), "{factor}");
            run[7].1 = run[7].1 * 3 / 2;
            assert_eq!(found(&run), [7], "{factor}");
        }
    }

    #[test]
    fn the_usual_duration_is_that_of_a_machine_as_fast_as_the_runs() {
        let mut run: Durations = (0..20).map(|test| (test, noisy(test, 3, 2.0))).collect();
        run[7].1 *= 2;
        let (slower, whole) = compare(&earlier(), &run);
        let slower = slower
            .into_iter()
            .max_by(|a, b| a.probability.total_cmp(&b.probability))
            .unwrap();
        assert!((1.8..2.2).contains(&slower.factor), "{slower:?}");
        assert!((14_000.0..18_000.0).contains(&slower.usual_ms), "{slower:?}");
        assert!((slower.extra_ms() - ms(run[7].1) + slower.usual_ms).abs() < 1e-6);
        assert!((380_000.0..460_000.0).contains(&whole), "{whole}");
    }

    #[test]
    fn a_test_without_enough_runs_and_a_suite_of_few_tests_are_not_judged() {
        let run: Durations = (0..20).map(|test| (test, noisy(test, 3, 1.0) * 9)).collect();
        assert_eq!(compare(&earlier()[..4], &run).0, []);
        let few: Vec<Durations> = earlier().into_iter().map(|run| run[..4].to_vec()).collect();
        assert_eq!(compare(&few, &run).0, []);
        assert_eq!(compare(&[], &Vec::new()).0, []);
    }

    #[test]
    fn a_few_milliseconds_are_noise() {
        let earlier: Vec<Durations> = (0..10).map(|_| (0..20).map(|test| (test, 2)).collect()).collect();
        let mut run: Durations = (0..20).map(|test| (test, 2)).collect();
        run[3].1 = 8;
        let (slower, _) = compare(&earlier, &run);
        assert!(slower.iter().all(|slower| slower.probability < 0.5), "{slower:?}");
    }
}

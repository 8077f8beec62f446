//! Plants slower tests into simulated durations, and counts which are found.

use std::collections::BTreeSet;

use assay_flakiness::durations::{Durations, change_points, compare};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use crate::score::Calls;

/// From this probability on, a test is called slower.
const CALLED: f64 = 0.95;
/// How many times as long a planted test takes.
const FACTOR: f64 = 1.5;
/// Tests of a suite, and earlier runs.
const TESTS: u32 = 300;
const EARLIER: u32 = 10;
/// Runs of each seed.
const RUNS: u32 = 50;
/// The share of tests that become slower with a run.
const PLANTED: f64 = 0.02;

/// Precision and recall at each noise: the 95th percentile of the noise of a duration without the factor of its run.
pub(crate) fn table(seeds: &[u64], after: u32) -> String {
    let mut text = String::from("| noise (p95) | precision | recall |\n|---|---|---|\n");
    for noise in [0.10, 0.135, 0.17] {
        let mut calls = Calls::default();
        for seed in seeds {
            let mut random = StdRng::seed_from_u64(*seed);
            for _ in 0..RUNS {
                add(&mut random, noise, after, &mut calls);
            }
        }
        text += &format!(
            "| {:.1} % | {:.3} | {:.3} |\n",
            noise * 100.0,
            calls.precision(),
            calls.recall()
        );
    }
    text
}

/// Judges runs after ten earlier ones, in which planted tests are slower. One run is compared with the earlier ones,
/// several are searched for a change point.
fn add(random: &mut StdRng, noise: f64, after: u32, calls: &mut Calls) {
    // Durations of tests range from 0.1 s to a minute.
    let usual: Vec<f64> = (0..TESTS)
        .map(|_| random.random_range(100.0_f64.ln()..60_000.0_f64.ln()))
        .collect();
    // Tests differ in their noise by a factor of up to two.
    let scales: Vec<f64> = (0..TESTS).map(|_| random.random_range(0.67..1.33)).collect();
    let slower: Vec<bool> = (0..TESTS).map(|_| random.random_bool(PLANTED)).collect();
    let run = |random: &mut StdRng, is_later: bool| -> Durations {
        // Machines differ by a quarter.
        let machine = normal(random) * 0.22;
        (0..TESTS)
            .zip(usual.iter().zip(&scales).zip(&slower))
            .map(|(test, ((usual, scale), slower))| {
                let planted = if is_later && *slower { FACTOR.ln() } else { 0.0 };
                // The 95th percentile of an absolute value of Student's t with 5 degrees of freedom is 2.571.
                let own = student(random) / 2.571 * noise.ln_1p() * scale;
                (test, rounded((usual + machine + own + planted).exp()))
            })
            .collect()
    };
    let earlier: Vec<Durations> = (0..EARLIER).map(|_| run(random, false)).collect();
    let later: Vec<Durations> = (0..after).map(|_| run(random, true)).collect();
    let found: BTreeSet<u32> = match later.as_slice() {
        [run] => {
            let called = compare(&earlier, run).0.into_iter();
            let called = called.filter(|found| found.probability >= CALLED);
            called.map(|found| found.test).collect()
        }
        _ => {
            let called = change_points(&[earlier, later].concat()).into_iter();
            let called = called.filter(|found| found.probability >= CALLED);
            called.map(|found| found.test).collect()
        }
    };
    for (test, slower) in (0..TESTS).zip(&slower) {
        calls.add(found.contains(&test), *slower);
    }
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "durations are positive and small"
)]
fn rounded(duration_ms: f64) -> u64 {
    duration_ms.round() as u64
}

/// A standard normal value, by Box and Muller.
fn normal(random: &mut StdRng) -> f64 {
    let (radius, angle): (f64, f64) = (
        random.random_range(f64::MIN_POSITIVE..1.0),
        random.random_range(0.0..1.0),
    );
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// A value of Student's t with 5 degrees of freedom.
fn student(random: &mut StdRng) -> f64 {
    let squares: f64 = (0..5).map(|_| normal(random).powi(2)).sum();
    normal(random) / (squares / 5.0).sqrt()
}

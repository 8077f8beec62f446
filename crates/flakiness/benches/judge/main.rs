//! The time of a judgement and of the causes of a run: two weeks, 980 runs, 5,000 tests, 4.9 million observations.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::as_conversions,
    clippy::indexing_slicing,
    reason = "a benchmark"
)]

use std::hint::black_box;

use assay_flakiness::{
    Diagnose as _, Engine, ErrorTexts,
    domain::{
        cause::Knowledge,
        observation::{Bitmap, Failure, History, RunEnding, RunFacts, RunObservations},
        timestamp::{DAY_MS, Timestamp},
        verdict::Judge,
    },
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

use branches::Failing;

mod branches;

const RUNS: i64 = 980;
const TESTS: u32 = 5_000;
const NOW_MS: i64 = 1_767_225_600_000;

/// A history in which `failing_share` of the tests fail in 1 % of their runs.
fn history(failing_share: f64, main_share: f64, absent_share: f64) -> History {
    let mut state = 1_u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let failing: Vec<bool> = (0..TESTS).map(|_| random() < failing_share).collect();
    let runs = (0..RUNS)
        .map(|number| {
            let branch = if random() < main_share {
                "main".to_owned()
            } else {
                format!("branch-{}", number / 8)
            };
            let mut run = RunObservations {
                other_names: Vec::new(),
                run: RunFacts {
                    id: format!("run-{number}").into(),
                    number: number as i32,
                    started_at: Timestamp::from_unix_ms(NOW_MS - (RUNS - number) * 14 * DAY_MS / (RUNS + 1)),
                    branch: Some(branch.into()),
                    revision: Some(format!("revision-{}", number * 4 / 5).into()),
                    ..RunFacts::default()
                },
                present: Bitmap::default(),
                skipped: Bitmap::default(),
                untimed: Bitmap::default(),
                failures: Vec::new(),
                ending: RunEnding::default(),
                repeated: Vec::new(),
            };
            for test in 0..TESTS {
                if random() < absent_share {
                    continue;
                }
                run.present.insert(test);
                if failing[test as usize] && random() < 0.01 {
                    let recovered = random() < 0.5;
                    run.failures.push(Failure {
                        test,
                        recovered,
                        failed_attempts: 1,
                        lost_ms: Some(900),
                    });
                }
            }
            run
        })
        .collect();
    History {
        stable_branch: "main".into(),
        tests: TESTS,
        runs,
    }
}

fn judge(c: &mut Criterion) {
    let now = Timestamp::from_unix_ms(NOW_MS);
    let engine = Engine::default();
    let mut group = c.benchmark_group("980 runs of 5000 tests");
    group.throughput(Throughput::Elements(RUNS as u64 * u64::from(TESTS)));
    group.sample_size(20);
    for (name, history) in [
        ("no failures", history(0.0, 1.0, 0.0)),
        ("one test in twenty fails", history(0.05, 1.0, 0.0)),
        (
            "one in twenty, half the runs on branches",
            history(0.05, 0.5, 0.0),
        ),
        ("one in twenty, a tenth absent", history(0.05, 0.5, 0.1)),
        ("every test fails", history(1.0, 1.0, 0.0)),
    ] {
        group.bench_function(name, |b| {
            b.iter(|| black_box(engine.suspects(black_box(&history), now)))
        });
    }
    let usual = history(0.05, 0.5, 0.0);
    group.bench_function("one in twenty, with evidence", |b| {
        b.iter(|| black_box(engine.judge(black_box(&usual), now)));
    });
    let page: Vec<u32> = (0..25).map(|n| n * 199).collect();
    group.bench_function("a page of 25 explained", |b| {
        b.iter(|| black_box(engine.judge_tests(black_box(&usual), now, &page)));
    });
    group.finish();
}

/// Judges a realistic history, and one with twice the runs, to show that the time grows linearly.
fn branches(c: &mut Criterion) {
    let now = Timestamp::from_unix_ms(NOW_MS);
    let engine = Engine::default();
    let mut group = c.benchmark_group("judge/branches");
    group.sample_size(20);
    for (name, failing) in [
        ("some tests fail", Failing::Some),
        ("every test fails", Failing::All),
    ] {
        for runs in [RUNS / 2, RUNS, RUNS * 2] {
            let history = branches::history(failing, runs, TESTS, NOW_MS);
            group.throughput(Throughput::Elements(runs as u64 * u64::from(TESTS)));
            group.bench_function(BenchmarkId::new(name, runs), |b| {
                b.iter(|| black_box(engine.suspects(black_box(&history), now)))
            });
        }
    }
    group.finish();
}

fn causes(c: &mut Criterion) {
    let now = Timestamp::from_unix_ms(NOW_MS);
    let engine = Engine::default();
    let history = branches::history(Failing::Some, RUNS, TESTS, NOW_MS);
    let mut texts = ErrorTexts::new();
    for (execution, observed) in history.runs.iter().enumerate() {
        for failure in &observed.failures {
            texts.insert(execution, failure.test, failure.test / 2);
        }
    }
    texts.set_window((0..TESTS).map(|text| (text, 2)));
    let newest = history.runs.iter().rfind(|observed| observed.failures.len() > 10);
    let newest = newest.expect("a run with failures");
    let mut group = c.benchmark_group("causes");
    group.sample_size(20);
    group.bench_function(
        BenchmarkId::new("failures of a run", newest.failures.len()),
        |b| {
            let number = newest.run.number;
            b.iter(|| black_box(engine.causes_of_run(&history, &texts, number, Knowledge::AtTheTime, now)))
        },
    );
    group.finish();
}

criterion_group!(benches, judge, branches, causes);
criterion_main!(benches);

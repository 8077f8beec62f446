//! Histories written as text, and arbitrary ones.

use std::sync::Arc;

use assay_flakiness::domain::{
    merge_queue::tested_pull_requests,
    observation::{Bitmap, Failure, History, Repetition, RunEnding, RunFacts, RunObservations},
    timestamp::{DAY_MS, Timestamp},
};
use proptest::prelude::*;

/// 2026-01-01T00:00:00Z.
pub(crate) const START_MS: i64 = 1_767_225_600_000;
const HOUR_MS: i64 = 3_600_000;
/// The time between two runs of [`single`]: 0.4 days.
pub(crate) const STEP_MS: i64 = DAY_MS * 2 / 5;

/// Parses a history such as `29P F` or `15P [FP] 13P`: its letters, each with its revision. A number repeats the next
/// letter, and letters in brackets share one revision. Other characters are ignored.
pub(crate) fn letters(text: &str) -> Vec<(u32, char)> {
    let (mut letters, mut revision, mut in_brackets, mut times) = (Vec::new(), 0, false, 0);
    for sign in text.chars() {
        match sign {
            '0'..='9' => times = times * 10 + sign.to_digit(10).unwrap(),
            '[' => {
                in_brackets = true;
                revision += 1;
            }
            ']' => in_brackets = false,
            'P' | 'R' | 'F' | 'S' => {
                for _ in 0..times.max(1) {
                    revision += u32::from(!in_brackets);
                    letters.push((revision, sign));
                }
                times = 0;
            }
            _ => {}
        }
    }
    letters
}

/// A run at `at_ms` without results.
pub(crate) fn run(
    number: i32,
    at_ms: i64,
    branch: Option<&str>,
    revision: Option<String>,
) -> RunObservations {
    RunObservations {
        other_names: Vec::new(),
        run: RunFacts {
            id: format!("run-{number}").into(),
            number,
            started_at: Timestamp::from_unix_ms(at_ms),
            branch: branch.map(Arc::from),
            revision: revision.map(Arc::from),
            ..RunFacts::default()
        },
        present: Bitmap::default(),
        skipped: Bitmap::default(),
        untimed: Bitmap::default(),
        failures: Vec::new(),
        ending: RunEnding::default(),
        repeated: Vec::new(),
    }
}

/// Adds the result of a test: P (passed), R (recovered), F (failed) or S (skipped).
pub(crate) fn add(run: &mut RunObservations, test: u32, letter: char) {
    run.present.insert(test);
    match letter {
        'P' => {}
        'S' => run.skipped.insert(test),
        'R' | 'F' => run.failures.push(Failure {
            test,
            recovered: letter == 'R',
            failed_attempts: 1,
            lost_ms: Some(1_000),
        }),
        other => panic!("no such letter: {other}"),
    }
}

/// The history of one test on `main`, given as for [`letters`], and the time of its last run.
pub(crate) fn single(text: &str) -> (History, Timestamp) {
    let mut at = START_MS;
    let runs: Vec<_> = (1..)
        .zip(letters(text))
        .map(|(number, (revision, letter))| {
            at += STEP_MS;
            let mut run = run(number, at, Some("main"), Some(format!("rev-{revision}")));
            add(&mut run, 0, letter);
            run
        })
        .collect();
    (
        History {
            stable_branch: "main".into(),
            tests: 1,
            runs,
        },
        Timestamp::from_unix_ms(at),
    )
}

/// A history of several runs, tests, branches, variants and revisions with all kinds of irregularities. In some
/// histories no run names its branch.
pub(crate) fn arbitrary() -> impl Strategy<Value = History> {
    (1_u32..=70, proptest::bool::weighted(0.9)).prop_flat_map(|(tests, branches_named)| {
        proptest::collection::vec(arbitrary_run(tests), 0..60).prop_map(move |runs| History {
            stable_branch: "main".into(),
            tests,
            runs: (1..)
                .zip(runs)
                .map(|(number, mut run)| {
                    run.run.number = number;
                    run.run.id = format!("run-{number}").into();
                    run.run.branch = run.run.branch.filter(|_| branches_named);
                    run
                })
                .collect(),
        })
    })
}

fn arbitrary_run(tests: u32) -> impl Strategy<Value = RunObservations> {
    let branch = prop_oneof![6 => Just(Some("main")), 2 => Just(Some("feature")), 1 => Just(Some("other")), 1 => Just(None)];
    let revision = proptest::option::weighted(0.9, 0_u32..12);
    let variant = prop_oneof![3 => Just(""), 1 => Just("firefox")];
    let letter = prop_oneof![10 => Just('P'), 1 => Just('R'), 2 => Just('F'), 1 => Just('S'), 2 => Just('-')];
    let letters = proptest::collection::vec(letter, tests as usize);
    let all = prop_oneof![12 => Just(None), 1 => Just(Some('F')), 2 => Just(Some('P'))];
    (
        0_i64..30,
        branch,
        revision,
        variant,
        letters,
        all,
        1_u32..8,
        0_u32..100,
        proptest::option::weighted(0.4, 0_u32..12),
    )
        .prop_map(
            move |(half_days, branch, revision, variant, letters, all, attempts, seed, base)| {
                let at = START_MS + half_days * DAY_MS / 2;
                let mut observed = run(0, at, branch, revision.map(|revision| format!("rev-{revision}")));
                observed.run.variant = variant.into();
                observed.run.merge_base = base.map(|base| format!("rev-{base}").into());
                for (test, letter) in (0..).zip(letters) {
                    match all.unwrap_or(letter) {
                        '-' => {}
                        letter => add(&mut observed, test, letter),
                    }
                }
                for failure in &mut observed.failures {
                    failure.failed_attempts = attempts;
                }
                repeat_some(&mut observed, seed);
                if seed % 8 == 7 {
                    observed.ending =
                        RunEnding::incomplete(observed.run.started_at.plus_ms(i64::from(seed) * 600_000));
                }
                observed
            },
        )
}

/// Gives some of the tests of some runs several executions.
fn repeat_some(run: &mut RunObservations, seed: u32) {
    if seed >= 30 {
        return;
    }
    for test in run.present.iter().filter(|test| (test + seed).is_multiple_of(3)) {
        if run.skipped.contains(test) {
            continue;
        }
        let failed = run
            .failures
            .iter()
            .any(|failure| failure.test == test && !failure.recovered);
        let executions = 2 + (test + seed) % 4;
        run.repeated.push(Repetition {
            test,
            executions,
            failed: if failed { 1 + seed % executions } else { 0 },
        });
    }
}

/// A long history of a few tests that mostly pass, some of them seldom run.
pub(crate) fn long() -> impl Strategy<Value = History> {
    let letter = prop_oneof![40 => Just('P'), 1 => Just('R'), 1 => Just('F'), 1 => Just('-')];
    let step = (
        0_u8..10,
        0_u8..4,
        proptest::collection::vec(letter, 4),
        proptest::bool::weighted(0.03),
    );
    proptest::collection::vec(step, 100..300).prop_map(|steps| {
        let mut revision = 0;
        let runs = (1..)
            .zip(steps)
            .map(|(number, (branch, news, letters, breaks))| {
                let branch = match branch {
                    0..6 => "main",
                    6..9 => "feature",
                    _ => "other",
                };
                revision += u32::from(news > 0);
                let at = START_MS + i64::from(number) * HOUR_MS;
                let mut observed = run(number, at, Some(branch), Some(format!("{branch} {revision}")));
                // Some branches have a known base.
                observed.run.merge_base =
                    (news == 3).then(|| format!("main {}", revision - revision % 8).into());
                for (test, letter) in (0..).zip(letters) {
                    let seldom = test == 3 && number % 7 != 0;
                    match if breaks && test < 2 { 'F' } else { letter } {
                        '-' => {}
                        _ if seldom => {}
                        letter => add(&mut observed, test, letter),
                    }
                }
                observed
            })
            .collect();
        History {
            stable_branch: "main".into(),
            tests: 4,
            runs,
        }
    })
}

/// A [`long`] history in which each branch is of one of four pull requests or of a merge queue.
pub(crate) fn queued() -> impl Strategy<Value = History> {
    long().prop_map(|mut history| {
        let mut ahead = "main 1".to_owned();
        for observed in &mut history.runs {
            let run = &mut observed.run;
            let change = i64::from(run.number) / 9 % 4 + 1;
            let branch = match run.branch.as_deref() {
                Some("feature") if run.number % 5 == 0 => format!("topic-{change}-again"),
                Some("feature") => format!("topic-{change}"),
                Some("other") if run.number % 3 == 0 => format!("bors/pr-{change}-pr-{}", change % 4 + 1),
                Some("other") => format!("gh-readonly-queue/main/pr-{change}-{ahead}"),
                _ => continue,
            };
            if branch.starts_with("gh-") {
                ahead = run.revision.as_deref().unwrap_or_default().to_owned();
            }
            // A name used again, and a push that names no pull request.
            let own = (run.number % 4 > 0).then_some(change + i64::from(run.number) / 36 * 4);
            run.pull_requests = tested_pull_requests(Some(&branch), None, own);
            run.branch = Some(branch.into());
        }
        history
    })
}

/// A history whose runs have several variants. Some runs fail many tests on some of them.
pub(crate) fn matrix() -> impl Strategy<Value = History> {
    let letter = prop_oneof![12 => Just('P'), 1 => Just('R'), 1 => Just('F'), 1 => Just('-')];
    let variant = (
        proptest::collection::vec(letter, 20),
        proptest::bool::weighted(0.7),
        proptest::bool::weighted(0.8),
    );
    let step = (
        0_u8..4,
        0_u8..3,
        proptest::collection::vec(variant, 3),
        proptest::option::weighted(0.2, 3_u32..12),
    );
    proptest::collection::vec(step, 10..40).prop_map(|steps| {
        let mut revision = 0;
        let mut runs = Vec::new();
        for (number, (branch, news, variants, crowd)) in (1..).zip(steps) {
            let branch = if branch == 0 { "feature" } else { "main" };
            revision += u32::from(news > 0);
            for (name, (letters, in_crowd, ran)) in ["a", "b", "c"].into_iter().zip(variants) {
                let at = START_MS + i64::from(number) * 8 * HOUR_MS;
                let mut observed = run(number, at, Some(branch), Some(format!("{branch} {revision}")));
                observed.run.variant = name.into();
                observed.run.merge_base =
                    (news == 2).then(|| format!("main {}", revision - revision % 4).into());
                for (test, letter) in (0..).zip(letters) {
                    match letter {
                        _ if !ran => {}
                        _ if in_crowd && crowd.is_some_and(|tests| test < tests) => {
                            add(&mut observed, test, 'F');
                        }
                        '-' => {}
                        letter => add(&mut observed, test, letter),
                    }
                }
                runs.push(observed);
            }
        }
        History {
            stable_branch: "main".into(),
            tests: 20,
            runs,
        }
    })
}

/// The end of the window of [`arbitrary`] histories.
pub(crate) fn end() -> Timestamp {
    Timestamp::from_unix_ms(START_MS).plus_days(15)
}

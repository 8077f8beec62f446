//! The share of unreliable tests that the scores start from.

use assay_flakiness::{
    Engine,
    domain::{
        observation::History,
        timestamp::Timestamp,
        verdict::{Judge as _, Judgement},
    },
};

use crate::{
    history::{START_MS, add, run},
    judgements::HOUR_MS,
    reference,
};

const RUNS: u32 = 60;

/// Sixty revisions of `tests` tests. Test 0 fails once. `recurring` others fail in three runs each, at most two of them
/// in one run, and never in a row.
fn project(tests: u32, recurring: u32) -> History {
    let runs = (0..RUNS).map(|number| {
        let at = START_MS + i64::from(number + 1) * HOUR_MS;
        let mut run = run(
            i32::try_from(number + 1).unwrap(),
            at,
            Some("main"),
            Some(number.to_string()),
        );
        for test in 0..tests {
            let fails = if test == 0 {
                number == 25
            } else {
                test <= recurring && number % 20 == (test - 1) % 20
            };
            add(&mut run, test, if fails { 'F' } else { 'P' });
        }
        run
    });
    History {
        stable_branch: "main".into(),
        tests,
        runs: runs.collect(),
    }
}

fn now() -> Timestamp {
    Timestamp::from_unix_ms(START_MS + i64::from(RUNS + 1) * HOUR_MS)
}

fn first(history: &History) -> Judgement {
    Engine::default().judge_tests(history, now(), &[0]).remove(0)
}

fn odds(history: &History) -> f64 {
    let score = first(history).verdict.figures.flake_score;
    score / (1.0 - score)
}

/// The share that the scores start from, with this number of tests and of recurring ones.
fn share(tests: u32, recurring: u32) -> f64 {
    (30.0 + 1.25 * f64::from(recurring)) / (500.0 + f64::from(tests))
}

#[test]
fn a_project_where_many_tests_keep_failing_starts_from_a_higher_share() {
    let least = project(160, 0);
    let prior_odds = |recurring| share(160, recurring) / (1.0 - share(160, recurring));
    for recurring in [3, 8, 16, 32] {
        let ratio = odds(&project(160, recurring)) / odds(&least);
        let expected = prior_odds(recurring) / prior_odds(0);
        // The recurring tests also change the rate at which the stable branch seems to break tests, a little.
        assert!(
            (ratio / expected - 1.0).abs() < 0.03,
            "{recurring}: {ratio} is not {expected}"
        );
    }
}

#[test]
fn a_small_suite_stays_near_the_usual_share() {
    for recurring in [0, 8] {
        let share = share(20, recurring);
        assert!((share - 0.06).abs() < 0.02, "{share}");
    }
    assert!(odds(&project(20, 8)) > odds(&project(20, 0)));
}

#[test]
fn the_plain_model_starts_from_the_same_share() {
    for recurring in [0, 16, 32] {
        reference::compare(&project(120, recurring), now()).unwrap();
    }
}

//! The share of unreliable tests that the scores start from.

use assay_flakiness::{
    Engine,
    domain::{
        observation::History,
        timestamp::Timestamp,
        verdict::{Judge as _, Judgement, Signal},
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

#[test]
fn a_project_where_many_tests_keep_failing_starts_from_a_higher_share() {
    let least = project(160, 0);
    for (recurring, share) in [(3, 0.03), (8, 0.0625), (16, 0.125), (32, 0.25)] {
        let ratio = odds(&project(160, recurring)) / odds(&least);
        let expected = share / (1.0 - share) / (0.03 / 0.97);
        assert!(
            (ratio / expected - 1.0).abs() < 1e-9,
            "{recurring}: {ratio} is not {expected}"
        );
    }
}

#[test]
fn a_small_suite_keeps_the_usual_share() {
    assert_eq!(odds(&project(99, 32)).to_bits(), odds(&project(99, 0)).to_bits());
    assert!(odds(&project(100, 32)) > odds(&project(100, 0)));
}

#[test]
fn the_evidence_names_a_share_that_is_not_the_usual_one() {
    let detail = |tests, recurring| {
        let signals = first(&project(tests, recurring)).evidence.signals;
        let episodes = signals
            .into_iter()
            .find(|signal| signal.signal == Signal::FailureRateFlaky);
        episodes.unwrap().detail
    };
    for (recurring, share) in [(7, "5.5"), (32, "25.0")] {
        let named = detail(160, recurring);
        let expected = format!("; about {share} % of the project's tests are unreliable");
        assert!(named.ends_with(&expected), "{named}");
    }
    assert!(!detail(125, 6).contains('%'), "1.25 x 6 / 125 is the usual share");
}

#[test]
fn the_plain_model_starts_from_the_same_share() {
    for recurring in [0, 16, 32] {
        reference::compare(&project(120, recurring), now()).unwrap();
    }
}

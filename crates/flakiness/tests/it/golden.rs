//! The golden vectors of `docs/engine.md`: one stable chain whose runs are 0.4 days apart. Each letter is a result on a
//! new revision; letters in brackets share one revision.
//!
//! The figures are those of the engine that agrees with the reference implementation (`reference.rs`), which shares no code
//! with it. Those of version 13 were computed by a Python program, too.

use assay_flakiness::{
    Engine,
    domain::verdict::{Judge as _, Signal, Verdict, VerdictStatus},
};

use crate::history::single;

fn judge(text: &str) -> Verdict {
    let (history, now) = single(text);
    let verdicts = Engine::with_window(1_000).verdicts(&history, now);
    let [verdict] = <[Verdict; 1]>::try_from(verdicts).unwrap();
    verdict
}

/// Checks a vector. `broken` is 0.0 where the probability is below half a thousandth.
#[track_caller]
fn check(text: &str, status: &str, score: f64, broken: f64) {
    let verdict = judge(text);
    assert_eq!(verdict.status.as_str(), status, "{text}");
    assert!(
        (verdict.figures.flake_score - score).abs() < 0.0005,
        "{text}: {}",
        verdict.figures.flake_score
    );
    let probability = verdict.figures.broken_probability.unwrap();
    assert!((probability - broken).abs() < 0.0005, "{text}: {probability}");
}

#[test]
fn the_golden_vectors_hold_to_the_digit() {
    check("29P F", "failing", 0.132, 0.880);
    check("20P FF", "broken", 0.030, 0.991);
    check("15P F 14P", "flaky", 0.609, 0.0);
    check("15P [FP] 13P", "flaky", 0.931, 0.0);
    check("50P R 49P", "flaky", 0.830, 0.0);
    check("150P R 149P", "flaky", 0.543, 0.0);
    check("10P 6F 14P", "healthy", 0.021, 0.0);
    check("8P 4F 8P 4F 6P", "healthy", 0.003, 0.0);
    check("PPFPPPFPFPPPPFPPPPPP", "flaky", 1.000, 0.0);
    check("6F", "broken", 0.069, 0.991);
    check("2F", "broken", 0.149, 0.906);
    check("PRP", "flaky", 0.993, 0.0);
    check("PPRPRPRP 60P", "healthy", 1.000, 0.0);
}

#[track_caller]
fn explains(text: &str, reason: Option<Signal>, also: &[Signal], explanation: &str) {
    let verdict = judge(text);
    assert_eq!(verdict.reason, reason, "{text}");
    assert_eq!(verdict.also_active(), also, "{text}");
    assert_eq!(verdict.explanation, explanation, "{text}");
}

#[test]
fn each_verdict_has_an_explanation() {
    use Signal::{
        ConsecutiveFailures, FailureRateBroken, FailureRateFlaky, FlipRate, IsolatedFailure, Resolved,
        RetryRate, SameShaFlip,
    };
    explains(
        "29P F",
        None,
        &[IsolatedFailure],
        "Failed the last run on main, run 30",
    );
    explains(
        "3P F",
        None,
        &[IsolatedFailure],
        "Failed the last run on main, run 4",
    );
    explains(
        "20P FF",
        Some(FailureRateBroken),
        &[ConsecutiveFailures],
        "Failed the last 2 runs on main since run 21; the code is broken with a probability of 0.99",
    );
    explains(
        "20P FFF",
        Some(FailureRateBroken),
        &[ConsecutiveFailures],
        "Failed the last 3 runs on main since run 21; the code is broken with a probability above 0.99",
    );
    explains(
        "20P 6F",
        Some(ConsecutiveFailures),
        &[FailureRateBroken],
        "Failed the last 6 runs on main since run 21",
    );
    explains(
        "15P F 14P",
        Some(FailureRateFlaky),
        &[],
        "Failed once on main and passed again, and nothing in between looks like a fix",
    );
    explains(
        "15P [FP] 13P",
        Some(SameShaFlip),
        &[FailureRateFlaky],
        "Passed and failed on the same revision 1 time",
    );
    explains(
        "50P R 49P",
        Some(RetryRate),
        &[],
        "Passed on retry in 1 of 100 runs",
    );
    explains(
        "10P 6F 14P",
        Some(IsolatedFailure),
        &[],
        "Failed in one episode of 6 runs from run 11 to run 16",
    );
    explains(
        "8P 4F 8P 4F 6P",
        None,
        &[FlipRate],
        "A failed attempt in 8 of 30 runs; breakages and their fixes explain them",
    );
    explains(
        "PPFPPPFPFPPPPFPPPPPP",
        Some(FailureRateFlaky),
        &[FlipRate],
        "Failed in 4 separate episodes on main; breakages and their fixes do not explain them",
    );
    explains(
        "2F",
        Some(FailureRateBroken),
        &[ConsecutiveFailures],
        "Failed the last 2 runs on main since run 1; the code is broken with a probability of 0.91",
    );
    explains(
        "PPRPRPRP 60P",
        Some(Resolved),
        &[RetryRate, FlipRate],
        "No failure in the last 61 runs after 3 in the 7 before",
    );
    explains("40P", None, &[], "Passed in all 40 runs");
    explains("3P", None, &[], "Passed in all 3 runs; 5 are needed");
    explains("P", None, &[], "Passed in its only run; 5 are needed");
    explains("4S", None, &[], "Skipped in all 4 runs");
}

#[test]
fn a_rare_flake_that_failed_early_is_not_resolved() {
    assert_eq!(judge("5P R 60P").status, VerdictStatus::Flaky);
    assert_eq!(judge("5P R 130P").reason, Some(Signal::Resolved));
}

#[test]
fn a_skipped_test_is_still_gathering_data() {
    let verdict = judge("4S");
    assert_eq!(verdict.status, VerdictStatus::InsufficientData);
    assert_eq!(
        (
            verdict.last_run,
            verdict.figures.failure_rate,
            verdict.figures.time_lost_ms
        ),
        (None, None, None)
    );
}

//! Evidence can be recomputed from the history. Histories can be built result by result.

use assay_flakiness::{
    Engine, HistoryBuilder, ObservedAttempt, ObservedRun,
    domain::{
        attempt::AttemptStatus,
        test::TestName,
        timestamp::{DAY_MS, Timestamp},
        verdict::{Judge, Signal, VerdictStatus},
    },
};

use crate::history::{START_MS, add, run, single};

fn observed(number: i64, variant: &str) -> ObservedRun {
    ObservedRun {
        started_at: Timestamp::from_unix_ms(START_MS + number * DAY_MS / 4),
        id: format!("build {number}"),
        branch: Some("main".to_owned()),
        revision: None,
        variant: variant.to_owned(),
    }
}

fn named(name: &str) -> TestName {
    TestName {
        name: name.to_owned(),
        file_path: None,
    }
}

#[test]
fn a_history_is_built_result_by_result() {
    use AttemptStatus::{Failed, Interrupted, Passed, Skipped, TimedOut};
    let mut builder = HistoryBuilder::new("main");
    let timed = |status, ms| ObservedAttempt {
        status,
        duration_ms: Some(ms),
    };
    builder.observe(
        &observed(2, ""),
        &named("b"),
        [timed(Failed, 30), timed(TimedOut, 70), timed(Passed, 5)],
    );
    builder.observe(&observed(1, ""), &named("b"), [Failed]);
    builder.observe(&observed(1, ""), &named("a"), [Passed]);
    builder.observe(&observed(1, ""), &named("c"), [Skipped]);
    builder.observe(&observed(2, ""), &named("c"), [Failed, Interrupted]);
    builder.observe(&observed(2, "firefox"), &named("a"), [Failed]);
    builder.observe(&observed(2, "firefox"), &named("a"), [Passed]);
    builder.observe(&observed(2, "firefox"), &named("d"), Vec::<AttemptStatus>::new());
    let (history, names) = builder.build();
    assert_eq!(names, [named("a"), named("b"), named("c")]);
    assert_eq!((history.tests, history.runs.len()), (3, 3));
    let [first, second, firefox] = &history.runs[..] else {
        panic!("three executions")
    };
    assert_eq!(
        (first.run.number, second.run.number, firefox.run.number),
        (1, 2, 2)
    );
    assert_eq!(first.present.iter().collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(first.skipped.iter().collect::<Vec<_>>(), [2]);
    assert_eq!(first.untimed.iter().collect::<Vec<_>>(), [0, 1, 2]);
    let failure = second.failures[0];
    assert_eq!(
        (
            failure.test,
            failure.recovered,
            failure.failed_attempts,
            failure.lost_ms
        ),
        (1, true, 2, Some(100))
    );
    assert!(second.skipped.is_empty());
    let interrupted = second.failures[1];
    assert_eq!(
        (
            interrupted.test,
            interrupted.recovered,
            interrupted.failed_attempts
        ),
        (2, false, 1),
        "an interrupted attempt does not hide the failure before it"
    );
    assert_eq!(second.failures.len(), 2);
    assert!(
        firefox.failures[0].recovered,
        "attempts of two calls are one result"
    );
}

#[test]
fn the_runs_behind_a_signal_are_named_newest_first() {
    let (history, now) = single("5P 25R");
    let judgement = Engine::default().judge(&history, now).swap_remove(0);
    let evidence = judgement.evidence;
    assert_eq!(
        (evidence.runs_seen, evidence.runs_skipped, evidence.runs_dropped),
        (30, 0, 0)
    );
    assert_eq!((evidence.now, evidence.window_days), (now, 14));
    let retries = evidence
        .signals
        .iter()
        .find(|signal| signal.signal == Signal::RetryRate)
        .unwrap();
    assert_eq!((retries.runs.len(), retries.runs_total), (20, 25));
    assert_eq!(
        (retries.runs[0].as_str(), retries.runs[19].as_str()),
        ("run-30", "run-11")
    );
    assert_eq!(retries.detail, "Passed on retry in 25 of 30 runs");
    assert!((retries.value - 25.0 / 30.0).abs() < 1e-12);
}

#[test]
fn a_contradiction_names_the_latest_pair() {
    let (history, now) = single("5P [FP] 5P [PF] 5P");
    let judgement = Engine::default().judge(&history, now).swap_remove(0);
    let flips = &judgement.evidence.signals[0];
    assert_eq!(flips.signal, Signal::SameShaFlip);
    assert_eq!(flips.runs, ["run-14", "run-13", "run-7", "run-6"]);
    assert_eq!(
        flips.detail,
        "Passed and failed on the same revision 2 times; most recently it failed in run 14 and passed in run 13"
    );
}

#[test]
fn dropped_runs_are_listed_with_their_background_even_for_a_test_that_passed() {
    let (mut history, now) = single("20P");
    history.tests = 60;
    for observed in &mut history.runs {
        for test in 1..60 {
            add(observed, test, if observed.run.number == 12 { 'F' } else { 'P' });
        }
    }
    let mut skipping = run(21, now.unix_ms(), Some("main"), None);
    add(&mut skipping, 0, 'S');
    history.runs.push(skipping);
    let judgement = Engine::default().judge(&history, now).swap_remove(0);
    assert_eq!(judgement.verdict.status, VerdictStatus::Healthy);
    let evidence = judgement.evidence;
    assert_eq!(
        (evidence.runs_seen, evidence.runs_skipped, evidence.runs_dropped),
        (20, 1, 1)
    );
    let [dropped] = &evidence.dropped[..] else {
        panic!("{:?}", evidence.dropped)
    };
    assert_eq!(dropped.run_id, "run-12");
    // 59 fresh failures among 60 tests and none usual: e = 59 - 1 - 0 - 2 = 56, by share 56/60.
    assert!((dropped.beta - 56.0 / 60.0).abs() < 1e-12);
}

#[test]
fn a_mass_failure_counts_exactly_its_runs() {
    let (mut history, now) = single("11P F 3P R 3P F 5P");
    history.tests = 60;
    for observed in &mut history.runs {
        let fails = [12, 16].contains(&observed.run.number);
        for test in 1..60 {
            add(observed, test, if fails { 'F' } else { 'P' });
        }
    }
    let judgement = Engine::default().judge(&history, now).swap_remove(0);
    let of = |wanted: Signal| {
        let signals = &judgement.evidence.signals;
        signals.iter().find(|signal| signal.signal == wanted).unwrap()
    };
    let mass_failure = of(Signal::MassFailure);
    assert_eq!(mass_failure.runs, ["run-16", "run-12"]);
    assert_eq!(mass_failure.runs_total, 2);
    assert_eq!((mass_failure.value, mass_failure.threshold), (2.0, 1.0));
    assert_eq!(of(Signal::FailureRateFlaky).runs, ["run-20"]);
}

#[test]
fn a_retry_rate_names_only_recovered_runs() {
    let (history, now) = single("5P F 5P R 5P F 5P R 5P");
    let judgement = Engine::default().judge(&history, now).swap_remove(0);
    let signals = &judgement.evidence.signals;
    let of = |wanted: Signal| signals.iter().find(|signal| signal.signal == wanted).unwrap();
    let retries = of(Signal::RetryRate);
    assert_eq!(retries.runs, ["run-24", "run-12"]);
    assert_eq!((retries.runs_total, retries.value), (2, 2.0 / 29.0));
    let failures = of(Signal::FailureRateFlaky);
    assert_eq!(failures.runs, ["run-18", "run-6"]);
    assert_eq!(failures.runs_total, 2);
}

#[test]
fn variants_of_one_run_count_once() {
    let mut builder = HistoryBuilder::new("main");
    for number in 0..8 {
        for variant in ["chrome", "firefox"] {
            let fails = variant == "firefox" && number % 3 == 2;
            let attempts = if fails {
                vec![AttemptStatus::Failed, AttemptStatus::Passed]
            } else {
                vec![AttemptStatus::Passed]
            };
            builder.observe(&observed(number, variant), &named("a"), attempts);
        }
    }
    let (history, _) = builder.build();
    let now = observed(8, "").started_at;
    let judgement = Engine::default().judge(&history, now).swap_remove(0);
    assert_eq!(
        (
            judgement.verdict.figures.runs_in_window,
            judgement.verdict.figures.runs_considered
        ),
        (8, 8)
    );
    assert_eq!(judgement.verdict.figures.failure_rate, Some(0.25));
    assert_eq!(
        judgement.verdict.explanation,
        "Passed on retry in 2 of 8 runs; on firefox only, not on the other variant"
    );
    let specific = judgement
        .evidence
        .signals
        .iter()
        .find(|s| s.signal == Signal::VariantSpecific)
        .unwrap();
    assert_eq!(
        specific.detail,
        "All 2 failures are on firefox, one of 2 variants"
    );
    assert_eq!(specific.runs, ["build 5", "build 2"]);
}

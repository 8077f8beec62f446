//! Properties that hold for every history.

use std::sync::Arc;

use assay_flakiness::{
    Engine,
    domain::{
        observation::{Bitmap, Failure, History, Repetition, RunEnding, RunFacts, RunObservations},
        timestamp::Timestamp,
        verdict::{Judge, Judgement, Verdict, VerdictStatus},
    },
};
use proptest::prelude::*;

use crate::history::{add, arbitrary, end, run};

/// Verdicts with the ids of their runs, so that histories in different orders can be compared.
fn verdicts(history: &History) -> Vec<(Verdict, Option<Arc<str>>)> {
    let judged = Engine::default().verdicts(history, end());
    judged
        .into_iter()
        .map(|mut verdict| {
            let last = verdict
                .last_run
                .take()
                .map(|run| Arc::clone(&history.runs[run].run.id));
            (verdict, last)
        })
        .collect()
}

/// Gives every test `t` the ordinal `ordinals[t]`.
fn renumbered(history: &History, ordinals: &[u32]) -> History {
    let renumbered_set = |set: &Bitmap| set.iter().map(|test| ordinals[test as usize]).collect::<Bitmap>();
    let runs = history.runs.iter().map(|run| {
        let mut failures: Vec<Failure> = run
            .failures
            .iter()
            .map(|f| Failure {
                test: ordinals[f.test as usize],
                ..*f
            })
            .collect();
        failures.sort_by_key(|failure| failure.test);
        let mut repeated: Vec<Repetition> = run
            .repeated
            .iter()
            .map(|repetition| Repetition {
                test: ordinals[repetition.test as usize],
                ..*repetition
            })
            .collect();
        repeated.sort_by_key(|repetition| repetition.test);
        RunObservations {
            other_names: Vec::new(),
            run: run.run.clone(),
            present: renumbered_set(&run.present),
            skipped: renumbered_set(&run.skipped),
            untimed: renumbered_set(&run.untimed),
            failures,
            ending: run.ending,
            repeated,
        }
    });
    History {
        runs: runs.collect(),
        ..history.clone()
    }
}

fn shuffled() -> impl Strategy<Value = (History, History)> {
    arbitrary().prop_flat_map(|history| {
        let runs = Just(history.runs.clone()).prop_shuffle();
        (Just(history), runs).prop_map(|(history, runs)| {
            let other = History {
                runs,
                ..history.clone()
            };
            (history, other)
        })
    })
}

fn permuted() -> impl Strategy<Value = (History, Vec<u32>)> {
    arbitrary().prop_flat_map(|history| {
        let order = Just((0..history.tests).collect::<Vec<_>>()).prop_shuffle();
        (Just(history), order)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_runs_never_matters((history, other) in shuffled()) {
        prop_assert_eq!(verdicts(&history), verdicts(&other));
    }

    #[test]
    fn the_order_of_tests_never_matters((history, to) in permuted()) {
        let mut expected = verdicts(&history);
        for (verdict, _) in &mut expected {
            verdict.test = to[verdict.test as usize];
        }
        expected.sort_by_key(|(verdict, _)| verdict.test);
        prop_assert_eq!(expected, verdicts(&renumbered(&history, &to)));
    }

    #[test]
    fn equal_variants_of_equal_runs_are_interchangeable(history in arbitrary()) {
        // Equal numbers leave only the content as a criterion of the order.
        let mut history = history;
        for run in &mut history.runs {
            run.run.number = 1;
            run.run.id = "same".into();
        }
        let mut other = history.clone();
        other.runs.reverse();
        prop_assert_eq!(verdicts(&history), verdicts(&other));
    }

    #[test]
    fn a_skipped_result_changes_nothing(history in arbitrary(), picks in proptest::collection::vec(any::<(u16, u16)>(), 1..9)) {
        let mut other = history.clone();
        for (at, test) in picks {
            let test = u32::from(test) % history.tests;
            match other.runs.len() {
                0 => {}
                runs => {
                    let run = &mut other.runs[usize::from(at) % runs];
                    if !run.present.contains(test) {
                        add(run, test, 'S');
                    }
                }
            }
            let mut skipping = run(900 + i32::from(at), crate::history::START_MS + i64::from(at), Some("main"), Some("rev-3".into()));
            add(&mut skipping, test, 'S');
            other.runs.push(skipping);
        }
        let seen = |history: &History| {
            let mut verdicts = verdicts(history);
            verdicts.retain(|(verdict, _)| verdict.figures.runs_in_window > 0);
            verdicts
        };
        prop_assert_eq!(seen(&history), seen(&other));
    }

    #[test]
    fn verdicts_are_equal_with_and_without_evidence(history in arbitrary()) {
        let engine = Engine::default();
        let judged = engine.judge(&history, end());
        let lean = engine.verdicts(&history, end());
        let suspects = engine.suspects(&history, end());
        let is_suspect = |verdict: &Verdict| matches!(verdict.status, VerdictStatus::Flaky | VerdictStatus::Broken);
        prop_assert_eq!(suspects.verdicts, lean.iter().filter(|verdict| is_suspect(verdict)).cloned().collect::<Vec<_>>());
        let gathering = lean.iter().filter(|verdict| verdict.status == VerdictStatus::InsufficientData).count();
        prop_assert_eq!(suspects.gathering, gathering as u64);
        let failing = lean.iter().filter(|verdict| verdict.status == VerdictStatus::Failing).count();
        prop_assert_eq!(suspects.failing, failing as u64);
        prop_assert_eq!(judged.iter().map(|j| j.verdict.clone()).collect::<Vec<_>>(), lean);
        let some: Vec<u32> = (0..history.tests).filter(|test| test % 3 == 1).collect();
        let expected: Vec<Judgement> = judged.into_iter().filter(|j| j.verdict.test % 3 == 1).collect();
        prop_assert_eq!(engine.judge_tests(&history, end(), &some), expected);
    }

    #[test]
    fn tests_with_equal_failures_get_the_verdict_that_each_gets_alone(mut history in arbitrary()) {
        let tests = history.tests;
        for (place, run) in history.runs.iter_mut().enumerate() {
            run.present = (0..tests).collect();
            run.skipped = Bitmap::default();
            run.failures.retain(|failure| failure.test < 3);
            if place % 7 == 3 {
                let failure = |test| Failure {
                    test,
                    recovered: test % 5 == 4,
                    failed_attempts: 1 + test % 2,
                    lost_ms: Some(test.into()),
                };
                run.failures = (0..tests).map(failure).collect();
            }
        }
        let engine = Engine::default();
        for judged in engine.judge(&history, end()) {
            let alone = engine.judge_tests(&history, end(), &[judged.verdict.test]);
            prop_assert_eq!(alone, vec![judged]);
        }
    }

    #[test]
    fn figures_stay_in_their_ranges(history in arbitrary()) {
        for judgement in Engine::default().judge(&history, end()) {
            let figures = judgement.verdict.figures;
            let unit = 0.0..=1.0;
            prop_assert!(unit.contains(&figures.flake_score) && unit.contains(&figures.flake_rate));
            prop_assert!(unit.contains(&figures.flip_rate));
            prop_assert!(figures.failure_rate.is_none_or(|rate| unit.contains(&rate)));
            prop_assert!(figures.broken_probability.is_none_or(|probability| unit.contains(&probability)));
            prop_assert!(figures.runs_considered <= figures.runs_in_window);
            prop_assert!(figures.failure_streak <= figures.runs_in_window);
            prop_assert!(figures.impact >= 0.0 && figures.impact <= f64::from(figures.runs_considered));
            for signal in &judgement.evidence.signals {
                prop_assert!(signal.value >= signal.threshold, "{signal:?}");
                prop_assert!(signal.runs.len() <= 20 && signal.runs.len() <= signal.runs_total as usize);
                prop_assert!(signal.runs_total > 0, "{signal:?}");
            }
        }
    }

    #[test]
    fn a_pass_never_raises_the_failure_streak(history in arbitrary(), at in 0_i64..15 * 86_400, branch in 0_u8..3) {
        let mut other = history.clone();
        let branch = ["main", "feature", "new"][usize::from(branch)];
        let mut passing = run(900, crate::history::START_MS + at * 1_000, Some(branch), None);
        add(&mut passing, 0, 'P');
        other.runs.push(passing);
        let streak = |history: &History| {
            let verdicts = Engine::default().verdicts(history, end());
            verdicts.iter().find(|verdict| verdict.test == 0).map_or(0, |verdict| verdict.figures.failure_streak)
        };
        prop_assert!(streak(&other) <= streak(&history));
    }

    #[test]
    fn a_test_with_the_broken_signal_is_always_broken(history in arbitrary()) {
        use assay_flakiness::domain::verdict::Signal;
        for verdict in Engine::default().verdicts(&history, end()) {
            let broken = verdict.signals.contains(&Signal::FailureRateBroken);
            prop_assert_eq!(broken, verdict.status == VerdictStatus::Broken);
            if broken {
                prop_assert!(verdict.signals.contains(&Signal::ConsecutiveFailures));
            }
        }
    }

    #[test]
    fn no_history_causes_a_panic(history in wild(), now in any::<i64>()) {
        for now in [Timestamp::from_unix_ms(now), end()] {
            for judgement in Engine::default().judge(&history, now) {
                prop_assert!(judgement.verdict.test < history.tests);
                prop_assert!(judgement.verdict.figures.flake_score.is_finite());
            }
        }
    }
}

/// A history that violates all invariants of its type.
fn wild() -> impl Strategy<Value = History> {
    let words = || proptest::collection::vec(any::<u64>(), 0..4).prop_map(Bitmap::from_words);
    let failure = (0_u32..300, any::<bool>(), any::<u32>(), any::<Option<u64>>()).prop_map(
        |(test, recovered, failed_attempts, lost_ms)| Failure {
            test,
            recovered,
            failed_attempts,
            lost_ms,
        },
    );
    let repetition =
        (0_u32..300, any::<u32>(), any::<u32>()).prop_map(|(test, executions, failed)| Repetition {
            test,
            executions,
            failed,
        });
    let times = prop_oneof![3 => Just(crate::history::START_MS + 1), 1 => any::<i64>()];
    let name = || proptest::option::of("[a-c]?");
    let run = (
        times,
        any::<i32>(),
        name(),
        name(),
        "[x-y]?",
        (words(), words(), words()),
        (
            proptest::collection::vec(failure, 0..40),
            proptest::collection::vec(repetition, 0..9),
        ),
    )
        .prop_map(
            |(at, number, branch, revision, variant, (present, skipped, untimed), (failures, repeated))| {
                RunObservations {
                    other_names: Vec::new(),
                    run: RunFacts {
                        id: "run".into(),
                        number,
                        started_at: Timestamp::from_unix_ms(at),
                        branch: branch.map(Arc::from),
                        revision: revision.map(Arc::from),
                        variant: variant.into(),
                        ..RunFacts::default()
                    },
                    present,
                    skipped,
                    untimed,
                    failures,
                    ending: RunEnding::default(),
                    repeated,
                }
            },
        );
    let tests = prop_oneof![Just(0_u32), Just(u32::MAX), 0_u32..300];
    let runs = proptest::collection::vec(run, 0..30);
    (tests, runs, any::<bool>()).prop_map(|(tests, mut runs, branches_named)| {
        for run in &mut runs {
            run.run.branch = run.run.branch.take().filter(|_| branches_named);
        }
        History {
            stable_branch: "a".into(),
            tests,
            runs,
        }
    })
}

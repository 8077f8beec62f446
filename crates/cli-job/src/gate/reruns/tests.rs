use assay_domain::cause::Action;

use super::*;
use crate::gate::judged::fixture::{flake, run};

fn failure(name: &str, mine: f64) -> JudgedFailure {
    JudgedFailure {
        file_path: Some("cart.test.js".to_owned()),
        cause: Cause::Unclear,
        mine,
        explanation: "Passed in all 41 runs on main and failed on this revision".to_owned(),
        ..flake(name)
    }
}

fn reruns(failures: Vec<JudgedFailure>) -> Reruns {
    Reruns::new(run(failures), ProcessOf::File, |_, _| Some(1.0))
}

const BOUNDS: Bounds = Bounds {
    left_s: 90.0,
    startup_s: 1.0,
    risk: 0.05,
};

#[test]
fn only_tests_in_the_way_run_again_and_passes_lower_the_probability() {
    let mut reruns = reruns(vec![failure("pays", 0.4), failure("odd", 0.01)]);
    assert!(reruns.judged().failures[0].explanation.ends_with("revision"));
    for _ in 0..3 {
        for round in reruns.next(BOUNDS) {
            assert_eq!(round.tests.len(), 1, "{round:?}");
            let ran = reruns.record(&round, |test| (test.name == "pays").then_some(false));
            assert_eq!(ran[0].name, "pays");
        }
        let again = run(vec![failure("pays", 0.02)]);
        reruns.judge_again(Some(&again));
    }
    assert_eq!(reruns.next(BOUNDS), []);
    let judged = reruns.judged();
    assert!(judged.mine < 0.05 && judged.action == Action::Pass, "{judged:?}");
    assert_eq!(judged.failures[0].cause, Cause::Flake);
    assert!(
        judged.failures[0].explanation.contains("; ran again: passed "),
        "{judged:?}"
    );
    let summary = reruns.summary(14.0).unwrap();
    assert_eq!((summary.tests, summary.seconds), (1, 14.0));
}

#[test]
fn the_larger_of_both_probabilities_counts() {
    let mut reruns = reruns(vec![failure("pays", 0.4)]);
    let rounds = reruns.next(BOUNDS);
    reruns.record(&rounds[0], |_| Some(false));
    reruns.judge_again(Some(&run(vec![failure("pays", 0.3)])));
    assert_eq!(reruns.judged().failures[0].mine, 0.3);
    reruns.judge_again(Some(&run(vec![failure("pays", 0.0001)])));
    assert!(reruns.judged().failures[0].mine > 0.005);
}

#[test]
fn the_cause_agrees_with_the_probability_after_the_reruns() {
    let flake = Some(Cause::Flake);
    assert_eq!(cause_after(Cause::Flake, 0.7, flake), Cause::ThisChange);
    assert_eq!(cause_after(Cause::Environment, 0.5, None), Cause::Unclear);
    assert_eq!(cause_after(Cause::ThisChange, 0.5, flake), Cause::Unclear);
    assert_eq!(cause_after(Cause::ThisChange, 0.1, flake), Cause::Flake);
    assert_eq!(
        cause_after(Cause::EarlierOnBranch, 0.7, None),
        Cause::EarlierOnBranch
    );
    assert_eq!(cause_after(Cause::BrokenBefore, 0.1, flake), Cause::BrokenBefore);
}

#[test]
fn a_flake_of_the_server_that_fails_again_is_of_this_change() {
    for (fails, cause) in [(true, Cause::ThisChange), (false, Cause::Flake)] {
        let mut reruns = reruns(vec![failure("pays", 0.4)]);
        for _ in 0..2 {
            for round in reruns.next(BOUNDS) {
                reruns.record(&round, |_| Some(fails));
            }
            let by_server = JudgedFailure {
                cause: Cause::Flake,
                ..failure("pays", 0.1)
            };
            reruns.judge_again(Some(&run(vec![by_server])));
        }
        let judged = reruns.judged();
        assert_eq!(judged.failures[0].cause, cause, "{judged:?}");
    }
}

/// Thirty failures with even chances, of which some are in a mass failure.
fn thirty(in_mass_failure: bool) -> Reruns {
    let failures = (0..30).map(|number| JudgedFailure {
        lasting: 0.5,
        in_mass_failure,
        same_error: 30,
        ..failure(&format!("test {number}"), 0.5)
    });
    reruns(failures.collect())
}

#[test]
fn three_tests_of_a_mass_failure_that_pass_clear_all_of_it() {
    let mut reruns = thirty(true);
    let rounds = reruns.next(BOUNDS);
    assert_eq!(rounds.len(), 1, "{rounds:?}");
    assert_eq!(rounds[0].tests.len(), 3);
    reruns.record(&rounds[0], |_| Some(false));
    reruns.judge_again(None);
    let judged = reruns.judged();
    assert!(
        judged.mine < 0.05 && judged.action == Action::Pass,
        "{}",
        judged.mine
    );
    assert!(
        judged
            .failures
            .iter()
            .all(|failure| failure.cleared && failure.cause == Cause::Environment)
    );
    let said = |text: &str| {
        judged
            .failures
            .iter()
            .filter(|one| one.explanation.ends_with(text))
            .count()
    };
    assert_eq!(said("; ran again: passed 1 with its file"), 3);
    assert_eq!(said("; 3 tests of its mass failure ran again: passed 3"), 27);
    assert_eq!(reruns.next(BOUNDS), []);
    let summary = reruns.summary(14.0).unwrap();
    assert_eq!((summary.tests, summary.times, summary.mine), (3, 1, judged.mine));
}

#[test]
fn a_mass_failure_that_fails_again_is_not_cleared() {
    let mut reruns = thirty(true);
    let mut rounds = reruns.next(BOUNDS);
    while let [round] = rounds.as_slice() {
        reruns.record(round, |_| Some(true));
        reruns.judge_again(None);
        rounds = reruns.next(BOUNDS);
    }
    let judged = reruns.judged();
    // What lasts fails again as broken code does.
    assert!((0.4..0.7).contains(&judged.mine), "{}", judged.mine);
    assert_eq!(judged.action, Action::Rerun);
    assert!(!reruns.may_decide(BOUNDS));
    assert!(judged.failures.iter().all(|failure| !failure.cleared));
    // A larger probability of the server counts for the run.
    let by_server = run(vec![failure(&names_that_ran(&reruns)[0], 0.8)]);
    reruns.judge_again(Some(&by_server));
    assert_eq!(reruns.judged().mine, 0.8);
}

/// The names of the tests that ran again.
fn names_that_ran(reruns: &Reruns) -> Vec<String> {
    let ran = reruns.tests().filter(|(suspect, _)| suspect.results.all() > 0);
    ran.map(|(_, failure)| failure.test_name.clone()).collect()
}

#[test]
fn failures_without_a_mass_failure_do_not_speak_for_each_other() {
    let mut reruns = thirty(false);
    // Each of them must be decided, which no rerun of three can do.
    for name in ["test 0", "test 1", "test 2"] {
        let test = TestName {
            name: name.to_owned(),
            file_path: Some("cart.test.js".to_owned()),
        };
        let round = Round {
            kind: RerunKind::WithFile,
            tests: vec![test],
        };
        assert_eq!(reruns.record(&round, |_| Some(false)).len(), 1);
    }
    reruns.judge_again(None);
    let judged = reruns.judged();
    assert!(judged.mine > 0.99);
    assert_eq!(
        judged
            .failures
            .iter()
            .filter(|failure| failure.mine < 0.25)
            .count(),
        3
    );
    assert_eq!(
        judged.failures.iter().filter(|failure| failure.cleared).count(),
        3
    );
}

#[test]
fn no_probability_blocks_a_run_unseen() {
    let sure = |mines: &[f64], lasting: f64, process| {
        let failures = mines.iter().enumerate().map(|(number, mine)| JudgedFailure {
            lasting,
            ..failure(&format!("test {number}"), *mine)
        });
        let judged = JudgedRun {
            action: Action::Block,
            ..run(failures.collect())
        };
        Reruns::new(judged, process, |_, _| Some(1.0))
    };
    for mines in [&[0.9][..], &[0.98], &[0.999_9], &[1.0], &[0.95, 0.97], &[0.3; 30]] {
        let rounds = sure(mines, 0.0, ProcessOf::File).next(BOUNDS);
        assert!(!rounds.is_empty(), "{mines:?}");
    }
    let reruns = sure(&[0.5; 30], 0.5, ProcessOf::Suite);
    let short = Bounds {
        left_s: 1.5,
        ..BOUNDS
    };
    assert_eq!(reruns.next(short), []);
    assert!(!reruns.next(BOUNDS).is_empty());
}

#[test]
fn a_test_without_a_result_does_not_run_again() {
    let mut reruns = reruns(vec![failure("pays", 0.4)]);
    for _ in 0..2 {
        let rounds = reruns.next(BOUNDS);
        assert_eq!(rounds.len(), 1);
        assert_eq!(reruns.record(&rounds[0], |_| None), []);
    }
    assert_eq!(reruns.next(BOUNDS), []);
    assert_eq!(reruns.summary(1.0), None);
}

//! The rate at which the branches of a project break tests.

use assay_flakiness::{
    Engine,
    domain::{
        observation::{History, RunObservations},
        timestamp::Timestamp,
        verdict::{Judge as _, Signal},
    },
};

use crate::{
    history::{START_MS, add, run},
    judgements::HOUR_MS,
    reference,
};

const BRANCHES: u32 = 60;

/// A project in which test 0 fails on one branch, the tenth from the end.
fn project(tests: u32, broken: u32) -> History {
    project_with(tests, broken, &[BRANCHES - 10])
}

/// A run of the stable branch and one of a new branch, sixty times. Test 0 fails on some branches, and passes on the
/// next revision of each. Each of `broken` other tests fails on one branch.
fn project_with(tests: u32, broken: u32, failing_branches: &[u32]) -> History {
    let mut runs: Vec<RunObservations> = Vec::new();
    let mut add_run = |branch: &str, fails: &dyn Fn(u32) -> bool| {
        let number = i32::try_from(runs.len()).unwrap() + 1;
        let at = START_MS + i64::from(number) * HOUR_MS;
        let mut run = run(number, at, Some(branch), Some(number.to_string()));
        for test in 0..tests {
            add(&mut run, test, if fails(test) { 'F' } else { 'P' });
        }
        runs.push(run);
    };
    for number in 0..BRANCHES {
        add_run("main", &|_| false);
        let branch = format!("branch {number}");
        let fails = |test: u32| {
            if test == 0 {
                failing_branches.contains(&number)
            } else {
                test <= broken && test % BRANCHES == number
            }
        };
        add_run(&branch, &fails);
        if failing_branches.contains(&number) {
            add_run(&branch, &|_| false);
        }
    }
    History {
        stable_branch: "main".into(),
        tests,
        runs,
    }
}

fn now() -> Timestamp {
    Timestamp::from_unix_ms(START_MS + 200 * HOUR_MS)
}

fn score(history: &History) -> f64 {
    let verdict = Engine::default()
        .judge_tests(history, now(), &[0])
        .remove(0)
        .verdict;
    verdict.figures.flake_score
}

#[test]
fn a_failure_on_a_branch_is_more_probably_a_flake_where_branches_break_few_tests() {
    let (none, some, many) = (project(150, 0), project(150, 15), project(150, 45));
    assert!(score(&none) > score(&some), "{} {}", score(&none), score(&some));
    assert!(score(&some) > score(&many), "{} {}", score(&some), score(&many));
}

#[test]
fn a_small_suite_learns_its_rate_too() {
    let (none, many) = (project(40, 0), project(40, 30));
    assert!(score(&none) > score(&many), "{} {}", score(&none), score(&many));
}

#[test]
fn the_evidence_names_a_rate_that_is_not_the_usual_one() {
    let detail = |tests| {
        let judgement = Engine::default()
            .judge_tests(&project_with(tests, 0, &[20, 30, 40, 50]), now(), &[0])
            .remove(0);
        let signals = judgement.evidence.signals.into_iter();
        let mut episodes = signals.filter(|signal| signal.signal == Signal::FailureRateFlaky);
        episodes.next().unwrap().detail
    };
    // 20 runs of the usual rate, and 64 without a breakage, whatever the number of tests.
    for tests in [1, 150] {
        let detail = detail(tests);
        let rate = "; a new revision of a branch breaks about 0.04 % of the project's tests";
        assert!(detail.ends_with(rate), "{detail}");
    }
}

#[test]
fn the_plain_model_learns_the_same_rate() {
    for broken in [0, 15] {
        reference::compare(&project(110, broken), now()).unwrap();
    }
}

//! The rate at which the branches of a project break tests.

use assay_flakiness::{
    Diagnose as _, Engine, ErrorTexts,
    domain::{
        cause::Knowledge,
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
        // A test that fails on several branches and nowhere else may be one that each of them broke.
        let on_main = failing_branches.len() > 1 && failing_branches.contains(&number);
        add_run("main", &|test| test == 0 && on_main);
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

/// P(the newest branch broke test 0), which fails there with `company` other tests. Before, ten branches broke `together`
/// tests each, and failed twice.
fn mine(together: u32, company: u32) -> f64 {
    let mut runs: Vec<RunObservations> = Vec::new();
    let mut add_run = |branch: &str, failed: std::ops::Range<u32>| {
        let number = i32::try_from(runs.len()).unwrap() + 1;
        let at = START_MS + i64::from(number) * HOUR_MS;
        let mut run = run(
            number,
            at,
            Some(branch),
            Some(format!("{branch} {}", failed.is_empty())),
        );
        (0..100).for_each(|test| add(&mut run, test, if failed.contains(&test) { 'F' } else { 'P' }));
        runs.push(run);
    };
    for number in 0..10 {
        (0..3).for_each(|_| add_run("main", 0..0));
        let first = 10 + number * together;
        (0..2).for_each(|_| add_run(&format!("branch {number}"), first..first + together));
    }
    add_run("newest", 0..1 + company);
    let history = History {
        stable_branch: "main".into(),
        tests: 100,
        runs,
    };
    let newest = history.runs.last().unwrap().run.clone();
    let texts = ErrorTexts::new();
    let knowledge = Knowledge::AtTheTime;
    let causes =
        Engine::default().causes_of_run(&history, &texts, newest.number, knowledge, newest.started_at);
    causes[0].probabilities.mine()
}

#[test]
fn a_failure_without_company_is_less_probably_the_branchs_where_breakages_have_company() {
    let good = |together, company| 1.0 - mine(together, company);
    assert!(good(3, 0) > 5.0 * good(3, 2), "{} {}", mine(3, 0), mine(3, 2));
    // A control: where branches break one test at a time, company says nothing.
    assert!(
        (mine(1, 0) - mine(1, 2)).abs() < 0.05,
        "{} {}",
        mine(1, 0),
        mine(1, 2)
    );
    assert!(good(3, 0) > 2.0 * good(1, 0), "{} {}", mine(3, 0), mine(1, 0));
}

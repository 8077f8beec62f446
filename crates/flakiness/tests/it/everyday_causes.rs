//! Failures that people meet every week: a known flaky test, a test that another branch broke, and first failures of
//! `main`.

use std::collections::BTreeSet;

use assay_flakiness::{
    Diagnose as _, EndedStreaks, Engine, ErrorTexts, FailureCause,
    domain::{cause::Knowledge, observation::History, timestamp::DAY_MS},
};

use crate::history::{START_MS, add, run};

/// Below this probability of a breakage by the branch the gate passes, and from the other one on it blocks.
const PASSES_BELOW: f64 = 0.05;
const BLOCKS_FROM: f64 = 0.9;

pub(crate) const HOUR_MS: i64 = 3_600_000;
const AFTER_MAIN_MS: i64 = 30 * 8 * HOUR_MS;

/// A history of one test beside 59 others that always pass.
pub(crate) struct Project {
    pub(crate) history: History,
    texts: ErrorTexts,
}

impl Project {
    pub(crate) fn new() -> Self {
        Self {
            history: History {
                stable_branch: "main".into(),
                tests: 60,
                runs: Vec::new(),
            },
            texts: ErrorTexts::new(),
        }
    }

    /// `main` passed every eight hours until [`AFTER_MAIN_MS`].
    fn with_green_main() -> Self {
        let mut project = Self::new();
        for at_ms in (0..AFTER_MAIN_MS).step_by(8 * 3_600_000) {
            project.run(at_ms, "main", None);
        }
        project
    }

    /// Adds a run on a new revision. The test fails if there is an error, which may have a text.
    pub(crate) fn run(&mut self, at_ms: i64, branch: &str, error: Option<Option<u32>>) -> i32 {
        let index = self.history.runs.len();
        let number = i32::try_from(index).unwrap() + 1;
        let revision = format!("{branch} {number}");
        let mut observed = run(number, START_MS + at_ms, Some(branch), Some(revision));
        add(&mut observed, 0, if error.is_some() { 'F' } else { 'P' });
        (1..60).for_each(|test| add(&mut observed, test, 'P'));
        self.history.runs.push(observed);
        if let Some(text) = error.flatten() {
            self.texts.insert(index, 0, text);
        }
        number
    }

    /// Fails the tests below a number, too, in the newest run.
    pub(crate) fn fail_others(&mut self, until: u32) {
        let index = self.history.runs.len() - 1;
        let newest = self.history.runs.last_mut().unwrap();
        (1..until).for_each(|test| add(newest, test, 'F'));
        if let Some(text) = self.texts.of(index, 0) {
            (1..until).for_each(|test| self.texts.insert(index, test, text));
        }
    }

    /// The cause of the test's failure in a run.
    pub(crate) fn cause(&self, number: i32) -> FailureCause {
        let now = self.history.runs.last().unwrap().run.started_at;
        let causes =
            Engine::default().causes_of_run(&self.history, &self.texts, number, Knowledge::AtTheTime, now);
        causes.into_iter().find(|cause| cause.test == 0).unwrap()
    }

    /// The probability that the branch of a run broke the test.
    fn mine(&self, number: i32) -> f64 {
        self.cause(number).probabilities.mine()
    }
}

/// Three hundred runs in a fortnight, a third of them on `main`; the test failed in some runs of branches, and fails in
/// the first run of another branch.
fn known_flaky(failed: &[i64], text: Option<u32>, on_main: bool) -> FailureCause {
    let mut project = Project::new();
    let step_ms = 13 * DAY_MS / 300;
    for number in 0..300 {
        let branch = if on_main && number % 3 == 0 {
            "main".to_owned()
        } else {
            format!("pull-{number}")
        };
        project.run(
            number * step_ms,
            &branch,
            failed.contains(&number).then_some(text),
        );
    }
    let number = project.run(300 * step_ms, "pull-300", Some(text));
    project.cause(number)
}

#[test]
fn a_test_that_fails_in_two_per_cent_of_the_runs_is_excused_at_a_branchs_first_run() {
    let cause = known_flaky(&[52, 79, 121, 155, 202, 245], Some(7), true);
    assert!(cause.probabilities.mine() < PASSES_BELOW, "{cause:?}");
    assert!(cause.probabilities.flake > 0.9, "{cause:?}");
}

#[test]
fn a_test_that_fails_in_three_per_cent_of_the_runs_is_excused_without_texts() {
    let cause = known_flaky(&[14, 26, 58, 80, 127, 130, 184, 238, 271], None, true);
    assert!(cause.probabilities.mine() < PASSES_BELOW, "{cause:?}");
    assert!(cause.probabilities.flake > 0.9, "{cause:?}");
}

#[test]
fn failures_on_other_branches_count_in_a_project_of_pull_requests_alone() {
    let cause = known_flaky(&[66, 121, 278], Some(7), false);
    assert!(cause.probabilities.mine() < BLOCKS_FROM, "{cause:?}");
    assert!(cause.probabilities.this_change < 0.6, "{cause:?}");
}

/// A branch breaks the test, `main` passes so often, and another branch fails so much later, with this text.
fn after_another_branch(hours: i64, passes_between: i64, text: Option<u32>) -> f64 {
    let mut project = Project::with_green_main();
    let broke = AFTER_MAIN_MS;
    project.run(broke, "feat/a", Some(Some(1)));
    for pass in 0..passes_between {
        project.run(broke + (pass + 1) * 3 * HOUR_MS, "main", None);
    }
    let number = project.run(broke + hours * HOUR_MS, "feat/b", Some(text));
    project.mine(number)
}

#[test]
fn a_failure_that_passed_elsewhere_since_explains_nothing() {
    let alone = {
        let mut project = Project::with_green_main();
        let number = project.run(AFTER_MAIN_MS, "feat/b", Some(Some(2)));
        project.mine(number)
    };
    let mine = after_another_branch(43, 11, Some(2));
    assert!(mine > 0.6 && alone > mine, "{mine} after {alone} alone");
}

#[test]
fn one_other_branch_excuses_no_failure() {
    for text in [Some(1), Some(2), None] {
        let mine = after_another_branch(2, 0, text);
        assert!(mine >= 0.1, "{text:?}: {mine}");
    }
}

#[test]
fn a_failure_on_the_stable_branch_excuses_its_branches() {
    let mut project = Project::with_green_main();
    let broke = AFTER_MAIN_MS;
    project.run(broke, "main", Some(Some(1)));
    project.run(broke + HOUR_MS, "main", Some(Some(1)));
    let number = project.run(broke + 2 * HOUR_MS, "feat/b", Some(Some(1)));
    assert!(project.mine(number) < PASSES_BELOW, "{}", project.mine(number));
}

/// `main` fails this many hours after the first of two failures of a branch.
fn after_a_failing_branch(hours: i64) -> FailureCause {
    let mut project = Project::with_green_main();
    let broke = AFTER_MAIN_MS;
    project.run(broke, "feat/a", Some(Some(1)));
    project.run(broke + HOUR_MS, "feat/a", Some(Some(1)));
    let number = project.run(broke + hours * HOUR_MS, "main", Some(Some(1)));
    project.cause(number)
}

#[test]
fn the_breakage_of_a_branch_is_no_flake_of_main_when_it_merges() {
    let merged = after_a_failing_branch(2);
    assert!(merged.probabilities.flake < 0.1, "{merged:?}");
    assert_eq!(merged.facts.good_failed, 0, "{merged:?}");
    let days_later = after_a_failing_branch(60);
    assert!(
        days_later.probabilities.flake > 3.0 * merged.probabilities.flake,
        "{days_later:?} after {merged:?}"
    );
}

#[test]
fn a_crowd_is_marked_so_that_its_failures_count_once() {
    let mut project = Project::with_green_main();
    let number = project.run(AFTER_MAIN_MS, "feat/a", Some(None));
    let crowd = project.history.runs.last_mut().unwrap();
    (1..40).for_each(|test| add(crowd, test, 'F'));
    let now = crowd.run.started_at;
    let causes = Engine::default().causes_of_run(
        &project.history,
        &project.texts,
        number,
        Knowledge::AtTheTime,
        now,
    );
    assert_eq!(causes.len(), 40);
    assert!(causes.iter().all(|cause| cause.in_mass_failure));
}

/// The cause of a test's failure in the last run of `main`. There are four runs a day, with these failures.
fn on_main(tests: u32, failures: &[BTreeSet<u32>], test: u32) -> FailureCause {
    let mut runs = Vec::new();
    for (index, failed) in failures.iter().enumerate() {
        let number = i32::try_from(index).unwrap() + 1;
        let at = START_MS + i64::from(number) * DAY_MS / 4;
        let mut observed = run(number, at, Some("main"), Some(format!("revision {number}")));
        (0..tests).for_each(|test| {
            add(
                &mut observed,
                test,
                if failed.contains(&test) { 'F' } else { 'P' },
            )
        });
        runs.push(observed);
    }
    let history = History {
        stable_branch: "main".into(),
        tests,
        runs,
    };
    let last = history.runs.last().unwrap().run.clone();
    let texts = ErrorTexts::new();
    let causes = Engine::default().causes_of_run(
        &history,
        &texts,
        last.number,
        Knowledge::AtTheTime,
        last.started_at,
    );
    causes.into_iter().find(|cause| cause.test == test).unwrap()
}

/// The probability that the code of `main` broke the test.
fn broke(cause: &FailureCause) -> f64 {
    cause.probabilities.this_change + cause.probabilities.broken_before
}

/// Fifty-two runs in which this many other tests fail, each in this many runs in a row.
fn quiet_runs(others: u32, in_a_row: usize) -> Vec<BTreeSet<u32>> {
    let mut runs = vec![BTreeSet::new(); 52];
    for (other, first) in (1..=others).zip((2..).step_by(4)) {
        for failed in runs.iter_mut().skip(first).take(in_a_row) {
            failed.insert(other);
        }
    }
    runs
}

#[test]
fn a_breakage_of_main_is_probable_from_the_second_failure_in_a_row_on() {
    for tests in [20, 60, 1_000] {
        let mut runs = quiet_runs(0, 0);
        let mut next = || {
            runs.push(BTreeSet::from([0]));
            broke(&on_main(tests, &runs, 0))
        };
        let (first, second, third) = (next(), next(), next());
        assert!(first < 0.6, "{tests}: {first}");
        assert!(second > 0.6, "{tests}: {second}");
        assert!(third > 0.95, "{tests}: {third}");
    }
}

/// P(the branch broke it) of the only failure at its first run. `tests` is the size of the suite. On `main`, the test ran in
/// the newest `runs` of thirty runs.
fn first_failure_of_a_branch(tests: u32, runs: i32) -> f64 {
    let mut history = History {
        stable_branch: "main".into(),
        tests,
        runs: Vec::new(),
    };
    for number in 1..=31 {
        let branch = if number > 30 { "feat/a" } else { "main" };
        let at_ms = START_MS + i64::from(number) * 8 * HOUR_MS;
        let mut observed = run(number, at_ms, Some(branch), Some(format!("{number}")));
        (1..tests).for_each(|test| add(&mut observed, test, 'P'));
        if number > 30 {
            add(&mut observed, 0, 'F');
        } else if number > 30 - runs {
            add(&mut observed, 0, 'P');
        }
        history.runs.push(observed);
    }
    let now = history.runs.last().unwrap().run.started_at;
    let causes = Engine::default().causes_of_run(&history, &ErrorTexts::new(), 31, Knowledge::AtTheTime, now);
    causes[0].probabilities.mine()
}

#[test]
fn a_change_breaks_few_tests_however_large_the_suite_is() {
    let [small, medium, large] = [200, 600, 6_000].map(|tests| first_failure_of_a_branch(tests, 30));
    assert!((0.94..0.98).contains(&small), "{small}");
    assert!((0.92..0.96).contains(&medium), "{medium}");
    assert!((0.7..0.85).contains(&large), "{large}");
    // A test that may be new does not pass unnoticed.
    for runs in [0, 3] {
        let new = first_failure_of_a_branch(6_000, runs);
        assert!(new > 2.0 * PASSES_BELOW, "{runs}: {new}");
    }
}

#[test]
fn the_first_failure_on_main_is_judged_by_what_became_of_earlier_ones() {
    let after = |in_a_row| {
        let mut runs = quiet_runs(12, in_a_row);
        runs.push(BTreeSet::from([0]));
        on_main(200, &runs, 0)
    };
    let (passed_again, lasted) = (after(1), after(4));
    let streaks = |lasted| EndedStreaks { lasted, all: 12 };
    assert_eq!(passed_again.facts.stable_streaks, streaks(0));
    assert_eq!(lasted.facts.stable_streaks, streaks(12));
    assert!(broke(&passed_again) < 0.1, "{passed_again:?}");
    assert!(broke(&lasted) > 0.8, "{lasted:?}");
}

#[test]
fn a_crowd_on_main_is_judged_by_what_became_of_earlier_ones() {
    let crowd = |number: u32| -> BTreeSet<u32> { (number * 30..(number + 1) * 30).collect() };
    let after = |failed_again: usize| {
        let mut runs = quiet_runs(0, 0);
        for (number, at) in [(1, 10), (2, 20), (3, 30), (4, 40)] {
            for failed in runs.iter_mut().skip(at).take(1 + failed_again) {
                *failed = crowd(number);
            }
        }
        runs.push(crowd(0));
        on_main(200, &runs, 0)
    };
    let (ended, again) = (after(0), after(1));
    assert!(again.in_mass_failure && ended.in_mass_failure);
    assert!(broke(&ended) < 0.15, "{ended:?}");
    assert!(broke(&again) > 3.0 * broke(&ended), "{again:?} after {ended:?}");
}

#[test]
fn what_fails_from_the_first_run_of_the_window_on_was_broken_by_no_revision() {
    let first = |failing: u32| {
        let mut runs = quiet_runs(0, 0);
        for run in &mut runs {
            run.extend(1..=failing);
        }
        runs.push((0..=failing).collect());
        broke(&on_main(200, &runs, 0))
    };
    for failing in [5, 12, 40] {
        assert!(first(failing) < first(0) + 0.05, "{failing}: {}", first(failing));
    }
}

#[test]
fn a_red_main_is_no_branch_that_it_merged() {
    let mut project = Project::with_green_main();
    let broke = AFTER_MAIN_MS;
    project.run(broke, "main", Some(Some(1)));
    project.run(broke + HOUR_MS, "feat/a", Some(Some(1)));
    let number = project.run(broke + 2 * HOUR_MS, "main", Some(Some(1)));
    let cause = project.cause(number);
    assert!(cause.probabilities.broken_before > 0.8, "{cause:?}");
}

#[test]
fn a_branch_name_used_again_for_another_pull_request_begins_anew() {
    let earlier_on_branch = |second: i64| {
        let mut project = Project::with_green_main();
        let mut newest = 0;
        for (hours, pull_request) in [(0, 5), (2, 5), (30, second)] {
            newest = project.run(AFTER_MAIN_MS + hours * HOUR_MS, "renovate/lodash", Some(Some(7)));
            let pushed = project.history.runs.last_mut().unwrap();
            pushed.run.pull_requests = vec![pull_request];
        }
        project.cause(newest).probabilities.earlier_on_branch
    };
    assert!(earlier_on_branch(5) > 0.5, "one pull request");
    assert_eq!(earlier_on_branch(8), 0.0, "another pull request");
}

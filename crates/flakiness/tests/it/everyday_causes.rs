//! Failures of branches that people meet every week: a known flaky test, and a test that another branch broke.

use assay_flakiness::{
    Diagnose as _, Engine, ErrorTexts, FailureCause,
    domain::{cause::Knowledge, observation::History, timestamp::DAY_MS},
};

use crate::history::{START_MS, add, run};

/// Below this probability of a breakage by the branch the gate passes, and from the other one on it blocks.
const PASSES_BELOW: f64 = 0.05;
const BLOCKS_FROM: f64 = 0.9;

const HOUR_MS: i64 = 3_600_000;

/// A history of one test beside 59 others that always pass.
struct Project {
    history: History,
    texts: ErrorTexts,
}

impl Project {
    fn new() -> Self {
        Self {
            history: History {
                stable_branch: "main".into(),
                tests: 60,
                runs: Vec::new(),
            },
            texts: ErrorTexts::new(),
        }
    }

    /// Adds a run on a new revision. The test fails if there is an error, which may have a text.
    fn run(&mut self, at_ms: i64, branch: &str, error: Option<Option<u32>>) -> i32 {
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

    fn cause(&self, number: i32) -> FailureCause {
        let now = self.history.runs.last().unwrap().run.started_at;
        let causes =
            Engine::default().causes_of_run(&self.history, &self.texts, number, Knowledge::AtTheTime, now);
        <[FailureCause; 1]>::try_from(causes).unwrap()[0].clone()
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
    let mut project = Project::new();
    for number in 0..30 {
        project.run(number * 8 * HOUR_MS, "main", None);
    }
    let broke = 30 * 8 * HOUR_MS;
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
        let mut project = Project::new();
        for number in 0..30 {
            project.run(number * 8 * HOUR_MS, "main", None);
        }
        let number = project.run(30 * 8 * HOUR_MS, "feat/b", Some(Some(2)));
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
    let mut project = Project::new();
    for number in 0..30 {
        project.run(number * 8 * HOUR_MS, "main", None);
    }
    let broke = 30 * 8 * HOUR_MS;
    project.run(broke, "main", Some(Some(1)));
    project.run(broke + HOUR_MS, "main", Some(Some(1)));
    let number = project.run(broke + 2 * HOUR_MS, "feat/b", Some(Some(1)));
    assert!(project.mine(number) < PASSES_BELOW, "{}", project.mine(number));
}

#[test]
fn the_breakage_of_a_branch_is_no_flake_of_main_when_it_merges() {
    let mut project = Project::new();
    for number in 0..30 {
        project.run(number * 8 * HOUR_MS, "main", None);
    }
    let broke = 30 * 8 * HOUR_MS;
    project.run(broke, "feat/a", Some(Some(1)));
    project.run(broke + HOUR_MS, "feat/a", Some(Some(1)));
    let number = project.run(broke + 2 * HOUR_MS, "main", Some(Some(1)));
    let cause = project.cause(number);
    assert!(cause.probabilities.flake < 0.5, "{cause:?}");
    assert_eq!(cause.facts.good_failed, 0, "{cause:?}");
}

#[test]
fn a_crowd_is_marked_so_that_its_failures_count_once() {
    let mut project = Project::new();
    for number in 0..30 {
        project.run(number * 8 * HOUR_MS, "main", None);
    }
    let number = project.run(30 * 8 * HOUR_MS, "feat/a", Some(None));
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

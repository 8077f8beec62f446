//! Failures on several variants of a run: one breakage or one outage, not several.

use std::ops::Range;

use assay_flakiness::{
    Diagnose as _, EndedStreaks, Engine, ErrorTexts, FailureCause,
    domain::{cause::Knowledge, observation::History},
};

use crate::history::{START_MS, add, run};

const HOUR_MS: i64 = 3_600_000;
const TESTS: u32 = 200;

/// Runs of 200 tests on several variants, six hours apart, each on a new revision.
struct Project {
    variants: u32,
    history: History,
}

impl Project {
    /// A project whose `main` passed fifty times. `tests` ran then.
    fn new(variants: u32, tests: Range<u32>) -> Self {
        let mut project = Self {
            variants,
            history: History {
                stable_branch: "main".into(),
                tests: TESTS,
                runs: Vec::new(),
            },
        };
        for _ in 0..50 {
            project.add("main", 0..0, 0..0, &tests);
        }
        project
    }

    /// Adds a run in which `failed` tests fail on the variants `on`. Returns its number.
    fn run(&mut self, branch: &str, failed: Range<u32>, on: Range<u32>) -> i32 {
        self.add(branch, failed, on, &(0..TESTS))
    }

    fn add(&mut self, branch: &str, failed: Range<u32>, on: Range<u32>, tests: &Range<u32>) -> i32 {
        let before = self.history.runs.last();
        let number = before.map_or(0, |before| before.run.number) + 1;
        for variant in 0..self.variants {
            let at = START_MS + i64::from(number) * 6 * HOUR_MS;
            let mut observed = run(number, at, Some(branch), Some(format!("{branch} {number}")));
            observed.run.variant = format!("variant {variant:02}").into();
            for test in tests.clone() {
                let fails = failed.contains(&test) && on.contains(&variant);
                add(&mut observed, test, if fails { 'F' } else { 'P' });
            }
            self.history.runs.push(observed);
        }
        number
    }

    /// The causes of the failures of test 0 in a run, by variant.
    fn causes(&self, number: i32, knowledge: Knowledge) -> Vec<FailureCause> {
        let now = self.history.runs.last().unwrap().run.started_at;
        let texts = ErrorTexts::new();
        let causes = Engine::default().causes_of_run(&self.history, &texts, number, knowledge, now);
        let of_test: Vec<_> = causes.into_iter().filter(|cause| cause.test == 0).collect();
        assert!(!of_test.is_empty(), "test 0 has no failure in run {number}");
        of_test
    }

    fn mine(&self, number: i32) -> Vec<f64> {
        let causes = self.causes(number, Knowledge::AtTheTime);
        causes.iter().map(|cause| cause.probabilities.mine()).collect()
    }
}

#[test]
fn an_outage_on_all_variants_of_a_run_is_one_outage() {
    let mine = |variants| {
        let mut project = Project::new(variants, 0..TESTS);
        let number = project.run("feat/a", 0..30, 0..variants);
        project.mine(number)
    };
    let alone = mine(1)[0];
    for mine in mine(8) {
        assert!(
            (mine - alone).abs() < 0.1,
            "{mine} with seven others, {alone} alone"
        );
    }
    let mut project = Project::new(3, 0..TESTS);
    let number = project.run("main", 0..40, 0..3);
    for cause in project.causes(number, Knowledge::AtTheTime) {
        assert!(cause.probabilities.environment > 0.9, "{cause:?}");
    }
}

#[test]
fn a_test_that_fails_alone_on_all_variants_was_broken() {
    for variants in [2, 8, 100] {
        let mut project = Project::new(variants, 0..TESTS);
        let number = project.run("feat/a", 0..1, 0..variants);
        let mine = project.mine(number);
        assert_eq!(mine.len(), usize::try_from(variants).unwrap());
        assert!(mine.iter().all(|mine| *mine > 0.99), "{mine:?}");
    }
}

#[test]
fn an_outage_of_one_variant_is_no_breakage_because_the_others_passed() {
    for variant in 0..3 {
        let mut project = Project::new(3, 0..TESTS);
        let number = project.run("feat/a", 0..40, variant..variant + 1);
        let cause = &project.causes(number, Knowledge::AtTheTime)[0];
        assert!(cause.probabilities.environment > 0.8, "{variant}: {cause:?}");
    }
}

#[test]
fn what_main_broke_on_all_variants_stays_broken_before() {
    let mut project = Project::new(3, 0..TESTS);
    let runs: Vec<i32> = (0..4).map(|_| project.run("main", 0..1, 0..3)).collect();
    // Most first failures of a test on all variants of main last.
    for cause in project.causes(runs[0], Knowledge::AtTheTime) {
        assert!((0.6..0.9).contains(&cause.probabilities.this_change), "{cause:?}");
    }
    for cause in project.causes(runs[0], Knowledge::Hindsight) {
        assert!(cause.probabilities.this_change > 0.97, "{cause:?}");
    }
    for (number, least) in runs[1..].iter().zip([0.6, 0.9, 0.97]) {
        for knowledge in [Knowledge::AtTheTime, Knowledge::Hindsight] {
            for cause in project.causes(*number, knowledge) {
                let p = cause.probabilities;
                assert!(p.broken_before > least, "{knowledge:?}: {cause:?}");
            }
        }
    }
    let of_branch = project.run("feat/a", 0..1, 0..3);
    let mine = project.mine(of_branch);
    assert!(mine.iter().all(|mine| *mine < 0.05), "{mine:?}");
}

/// The mean causes of a test's failure on all variants of main, after three other tests failed so for this many runs.
fn after_failures_of_runs(runs: u32) -> (f64, f64) {
    let mut project = Project::new(3, 0..TESTS);
    for test in 1..4 {
        for _ in 0..runs {
            project.run("main", test..test + 1, 0..3);
        }
        project.run("main", 0..0, 0..0);
    }
    let number = project.run("main", 0..1, 0..3);
    let causes = project.causes(number, Knowledge::AtTheTime);
    let lasted = if runs < 3 { 0 } else { 3 };
    let shared = EndedStreaks { lasted, all: 3 };
    assert!(causes.iter().all(|cause| cause.facts.shared_streaks == shared));
    let mean = |part: fn(&FailureCause) -> f64| causes.iter().map(part).sum::<f64>() / 3.0;
    (
        mean(|cause| cause.probabilities.this_change),
        mean(|cause| cause.probabilities.environment),
    )
}

#[test]
fn failures_of_main_on_all_variants_are_outages_where_such_failures_passed_again() {
    for runs in [1, 2] {
        let (this_change, environment) = after_failures_of_runs(runs);
        assert!(environment > 0.8, "{runs}: {environment} {this_change}");
    }
    for runs in [3, 6] {
        let (this_change, environment) = after_failures_of_runs(runs);
        assert!(this_change > 0.75, "{runs}: {environment} {this_change}");
    }
}

#[test]
fn what_a_branch_broke_on_all_variants_is_no_outage_of_its_next_runs() {
    let mut project = Project::new(3, 0..TESTS);
    let runs: Vec<i32> = (0..3).map(|_| project.run("feat/a", 0..40, 0..3)).collect();
    for cause in project.causes(runs[2], Knowledge::AtTheTime) {
        assert!(cause.probabilities.earlier_on_branch > 0.8, "{cause:?}");
    }
}

#[test]
fn a_new_test_of_main_that_fails_on_all_variants_is_broken() {
    for variants in [3, 100] {
        let mut project = Project::new(variants, 1..TESTS);
        let number = project.run("main", 0..1, 0..variants);
        for cause in project.causes(number, Knowledge::AtTheTime) {
            assert!(cause.probabilities.broken_before > 0.9, "{variants}: {cause:?}");
        }
    }
}

#[test]
fn a_new_variant_among_a_hundred_has_probabilities() {
    for new in ["variant 00", "variant 10"] {
        let mut project = Project::new(100, 0..TESTS);
        let number = project.run("main", 0..1, 0..100);
        project
            .history
            .runs
            .retain(|run| run.run.number == number || &*run.run.variant != new);
        let causes = project.causes(number, Knowledge::AtTheTime);
        assert_eq!(causes.len(), 100);
        for cause in causes {
            let p = cause.probabilities;
            let broken = p.this_change + p.broken_before;
            assert!(broken > 0.3 && broken + p.environment > 0.99, "{cause:?}");
        }
    }
}

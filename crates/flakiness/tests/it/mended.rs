//! What a stable branch broke and mended: a branch may begin before the fix, a change may land it again, and an outage or
//! another error explains no failure of a branch.

use assay_flakiness::FailureCause;

use crate::everyday_causes::{HOUR_MS, Project};

/// A run of `main` every six hours, and runs of branches between them. An error `None` has no text.
struct Story {
    project: Project,
    hour: i64,
}

impl Story {
    fn new() -> Self {
        let mut story = Self {
            project: Project::new(),
            hour: 0,
        };
        story.passes(20);
        story
    }

    fn passes(&mut self, runs: usize) {
        for _ in 0..runs {
            self.main(None);
        }
    }

    fn fails(&mut self, runs: usize, text: Option<u32>) {
        for _ in 0..runs {
            self.main(Some(text));
        }
    }

    fn main(&mut self, error: Option<Option<u32>>) -> i32 {
        self.hour += 6;
        self.project.run(self.hour * HOUR_MS, "main", error)
    }

    /// A run of a branch, an hour after the newest run of `main`.
    fn branch(&mut self, branch: &str, error: Option<Option<u32>>) -> i32 {
        self.project.run((self.hour + 1) * HOUR_MS, branch, error)
    }

    /// The cause of the failure of a new branch.
    fn pull(&mut self, text: Option<u32>) -> FailureCause {
        let branch = format!("pull-{}", self.hour);
        let number = self.branch(&branch, Some(text));
        self.project.cause(number)
    }
}

#[test]
fn a_change_that_lands_a_mended_breakage_again_is_no_flake() {
    for text in [Some(7), None] {
        let mut story = Story::new();
        story.fails(3, text);
        story.passes(14);
        for pull in 0..3 {
            let cause = story.pull(text);
            assert!(cause.probabilities.flake < 0.2, "{text:?} {pull}: {cause:?}");
            assert!(
                cause.probabilities.this_change > 0.75,
                "{text:?} {pull}: {cause:?}"
            );
            assert_eq!(cause.facts.good_failed, 0, "{text:?} {pull}: {cause:?}");
            story.passes(2);
        }
    }
}

#[test]
fn an_old_branch_may_take_over_a_mended_breakage() {
    let mut story = Story::new();
    story.branch("old", None);
    story.fails(3, Some(7));
    story.passes(14);
    let number = story.branch("old", Some(Some(7)));
    let cause = story.project.cause(number);
    assert!(cause.probabilities.flake < 0.1, "{cause:?}");
    assert!(cause.probabilities.this_change > 0.8, "{cause:?}");
}

#[test]
fn main_breaks_again_when_the_change_lands_again() {
    let mut story = Story::new();
    for cycle in 0..3 {
        let number = story.main(Some(Some(7)));
        let cause = story.project.cause(number);
        if cycle > 0 {
            assert!(cause.probabilities.this_change > 0.9, "{cycle}: {cause:?}");
        }
        story.fails(2, Some(7));
        story.passes(8);
    }
}

#[test]
fn a_flaky_test_with_short_episodes_stays_flaky() {
    for in_a_row in [1, 2] {
        let mut story = Story::new();
        for _ in 0..4 {
            story.fails(in_a_row, Some(7));
            story.passes(6);
        }
        for pull in 0..3 {
            let cause = story.pull(Some(7));
            assert!(cause.probabilities.flake > 0.98, "{in_a_row} {pull}: {cause:?}");
            story.passes(2);
        }
    }
}

#[test]
fn an_outage_of_main_is_in_no_base() {
    for (failed, reds, passes) in [
        (20, 1, 0),
        (59, 1, 0),
        (20, 1, 4),
        (40, 1, 12),
        (59, 2, 12),
        (20, 1, 20),
    ] {
        for text in [Some(8), Some(7), None] {
            let mut story = Story::new();
            for _ in 0..reds {
                story.fails(1, Some(7));
                story.project.fail_others(failed);
            }
            story.passes(passes);
            let cause = story.pull(text);
            let case = format!("{failed} tests in {reds} runs, {passes} passes, {text:?}");
            assert!(cause.probabilities.broken_before < 0.01, "{case}: {cause:?}");
            // The newest run of main is a witness of its error.
            if passes > 0 || text == Some(8) {
                assert!(cause.probabilities.this_change > 0.8, "{case}: {cause:?}");
            }
        }
    }
}

#[test]
fn a_mended_breakage_of_many_tests_is_in_the_base_of_a_branch_that_fails_them_all() {
    let mut story = Story::new();
    for _ in 0..3 {
        story.fails(1, Some(7));
        story.project.fail_others(20);
    }
    story.passes(1);
    let number = story.branch("pull", Some(Some(7)));
    story.project.fail_others(20);
    let cause = story.project.cause(number);
    assert!(cause.probabilities.broken_before > 0.7, "{cause:?}");
}

#[test]
fn a_mended_breakage_is_in_a_base_with_its_error_only() {
    // After 18 hours and after two days.
    for (passes, same_at_least) in [(3, 0.7), (8, 0.3)] {
        let of_error = |text| {
            let mut story = Story::new();
            story.fails(3, Some(7));
            story.passes(passes);
            story.pull(text)
        };
        for text in [Some(7), None] {
            let cause = of_error(text);
            assert!(
                cause.probabilities.broken_before > same_at_least,
                "{passes} {text:?}: {cause:?}"
            );
        }
        let other = of_error(Some(8));
        assert!(other.probabilities.broken_before < 0.01, "{passes}: {other:?}");
        assert!(other.probabilities.this_change > 0.6, "{passes}: {other:?}");
    }
}

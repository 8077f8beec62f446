//! Tests that currently fail, and the sentences about their streaks.

use assay_flakiness::{
    Engine,
    domain::{
        timestamp::Timestamp,
        verdict::{FailingOn, Judge as _, Signal, Verdict, VerdictStatus},
    },
};

use crate::{
    history::{START_MS, add, run},
    judgements::{HOUR_MS, Story},
};

fn on(branch: &str, streak: u32, since_run: i32) -> FailingOn {
    FailingOn {
        branch: Some(branch.to_owned()),
        streak,
        since_run,
    }
}

/// Runs the revision of an earlier run again, at the end.
fn rerun(mut story: Story, earlier: usize, letter: char) -> Story {
    story.hours += 1;
    let number = i32::try_from(story.history.runs.len()).unwrap() + 1;
    let at = START_MS + story.hours * HOUR_MS;
    let revision = story.history.runs[earlier - 1].run.revision.clone();
    let branch = story.history.runs[earlier - 1].run.branch.clone();
    let mut rerun = run(number, at, branch.as_deref(), None);
    rerun.run.revision = revision;
    add(&mut rerun, 0, letter);
    story.history.runs.push(rerun);
    story
}

#[test]
fn a_test_whose_newest_runs_failed_is_failing_or_broken() {
    for text in [
        "12P 3F",
        "29P F",
        "12P FF",
        "5P F",
        "F",
        "2F",
        "3P F",
        "20P 6F 10P F",
    ] {
        let verdict = Story::new().on("main", "", text).verdict();
        assert!(
            matches!(verdict.status, VerdictStatus::Failing | VerdictStatus::Broken),
            "{text}: {verdict:?}"
        );
        assert_eq!(verdict.failing_on, [], "{text}: main is the stable branch");
    }
}

#[test]
fn a_flaky_test_whose_newest_runs_failed_is_still_flaky() {
    let verdict = Story::new().on("main", "", "10P R 5P R 5P F").verdict();
    assert_eq!(verdict.status, VerdictStatus::Flaky);
}

#[test]
fn a_test_that_fails_only_on_branches_has_the_status_of_main_and_names_the_branches() {
    let verdict = Story::new()
        .on("main", "", "30P")
        .on("one", "", "PF")
        .on("two", "", "3F")
        .verdict();
    assert_eq!(
        (verdict.status, verdict.reason),
        (VerdictStatus::Healthy, Some(Signal::FailingOffStable))
    );
    assert_eq!(verdict.failing_on, [on("two", 3, 33), on("one", 1, 32)]);
    assert_eq!(verdict.figures.failure_streak, 0);
}

#[test]
fn a_branch_without_recent_runs_is_not_failing_now() {
    let verdict = Story::new().on("one", "", "2F").on("main", "", "74P").verdict();
    assert_eq!(verdict.failing_on, []);
}

#[test]
fn a_test_without_stable_runs_is_failing_if_its_newest_branch_failed() {
    let failing = Story::new().on("old", "", "5P").on("new", "", "PPF").verdict();
    assert_eq!((failing.status, failing.reason), (VerdictStatus::Failing, None));
    assert_eq!(failing.explanation, "Failed the last run on new, run 8");
    assert_eq!(failing.failing_on, [on("new", 1, 8)]);
    let passing = Story::new().on("old", "", "5P F").on("new", "", "3P").verdict();
    assert_eq!(passing.status, VerdictStatus::Healthy);
    assert_eq!(passing.failing_on, [on("old", 1, 6)]);
    // The newest run of the branch lacks the test.
    let mut gone = Story::new().on("new", "", "PPF P").among(1, &[]);
    gone.history.runs[3].present.remove(0);
    let gone = gone.verdict();
    assert_eq!(
        (gone.status, gone.failing_on),
        (VerdictStatus::InsufficientData, vec![])
    );
}

#[test]
fn two_variants_of_a_branch_are_one_entry() {
    let verdict = Story::new()
        .on("main", "chrome", "20P")
        .on("main", "firefox", "20P")
        .on("topic", "chrome", "PF")
        .on("topic", "firefox", "FF")
        .verdict();
    assert_eq!(verdict.failing_on, [on("topic", 2, 43)]);
}

#[test]
fn the_suspects_count_what_fails_now() {
    let story = Story::new().on("main", "", "29P F");
    let now = Timestamp::from_unix_ms(START_MS + story.hours * HOUR_MS);
    let suspects = Engine::default().suspects(&story.history, now);
    assert_eq!(
        (suspects.verdicts.len(), suspects.failing, suspects.gathering),
        (0, 1, 0)
    );
}

/// Checks that the sentence's "the last N runs" agrees with the streak's figure and with the newest runs by time.
fn assert_explained(verdict: &Verdict, explanation: &str, streak: u32) {
    assert_eq!(verdict.explanation, explanation);
    assert_eq!(verdict.figures.failure_streak, streak);
}

#[test]
fn the_sentence_and_the_figure_of_a_streak_use_the_order_of_time() {
    // An older revision passed again after the failures.
    let passed = rerun(Story::new().on("main", "", "20P 4F"), 5, 'P').verdict();
    assert_eq!(passed.status, VerdictStatus::Broken);
    assert_explained(
        &passed,
        "Failed the last 4 runs on main since run 21, in the order of revisions; run 25 passed on an older one",
        0,
    );
    // An older revision failed again before the others did.
    let failed = rerun(Story::new().on("main", "", "20P 4F"), 5, 'F').verdict();
    assert_explained(&failed, "Failed the last 5 runs on main since run 21", 5);
    // Between them is a mass failure in which the test passed.
    let mut story = Story::new().on("main", "", "20P FFF P F");
    story.history.tests = 61;
    for run in &mut story.history.runs {
        for test in 1..=60 {
            add(run, test, if run.run.number == 24 { 'F' } else { 'P' });
        }
    }
    assert_explained(
        &story.verdict(),
        "Failed the last 4 runs on main since run 21; run 24, in which many tests failed together, does not count",
        1,
    );
}

#[test]
fn a_streak_on_main_counts_the_runs_of_main() {
    // Each revision runs on its own branch first, then on main.
    let mut story = Story::new().on("main", "", "20P");
    for revision in 0..4 {
        for branch in ["topic", "main"] {
            story.hours += 1;
            let number = i32::try_from(story.history.runs.len()).unwrap() + 1;
            let at = START_MS + story.hours * HOUR_MS;
            let mut run = run(number, at, Some(branch), Some(format!("both {revision}")));
            add(&mut run, 0, 'F');
            story.history.runs.push(run);
        }
    }
    assert_explained(&story.verdict(), "Failed the last 4 runs on main since run 22", 4);
}

#[test]
fn the_sentence_of_a_test_with_a_contradiction_does_not_deny_signs() {
    let verdict = Story::new().on("main", "", "100P [FFP] 100P").verdict();
    assert!(verdict.signals.contains(&Signal::SameShaFlip));
    assert!(
        !verdict.explanation.contains("no sign"),
        "{}",
        verdict.explanation
    );
}

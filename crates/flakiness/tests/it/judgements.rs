//! Verdicts on histories with branches, variants, retries and outages.

use assay_flakiness::{
    Engine,
    domain::{
        observation::History,
        timestamp::Timestamp,
        verdict::{Judge as _, Judgement, Label, Signal, Verdict, VerdictStatus},
    },
};

use crate::history::{START_MS, add, letters, run};

pub(crate) const HOUR_MS: i64 = 3_600_000;

/// A history of runs an hour apart, given line by line: branch, variant and the letters of test 0.
pub(crate) struct Story {
    pub(crate) history: History,
    pub(crate) hours: i64,
}

impl Story {
    pub(crate) fn new() -> Self {
        Self {
            history: History {
                stable_branch: "main".into(),
                tests: 1,
                runs: Vec::new(),
            },
            hours: 0,
        }
    }

    pub(crate) fn on(mut self, branch: &str, variant: &str, text: &str) -> Self {
        for (revision, letter) in letters(text) {
            self.hours += 1;
            let number = i32::try_from(self.history.runs.len()).unwrap() + 1;
            let branch = (!branch.is_empty()).then_some(branch);
            let revision = format!("{branch:?} {variant} {} {revision}", self.hours / 1_000);
            let mut run = run(number, START_MS + self.hours * HOUR_MS, branch, Some(revision));
            run.run.variant = variant.into();
            add(&mut run, 0, letter);
            self.history.runs.push(run);
        }
        self
    }

    /// The same revisions on several variants, one after the other.
    pub(crate) fn on_variants(mut self, branch: &str, variants: &[&str], texts: &[&str]) -> Self {
        let start = self.hours;
        let name = format!("{branch} from {start}");
        for (variant, text) in variants.iter().zip(texts) {
            self.hours = start;
            for (revision, letter) in letters(text) {
                self.hours += 1;
                let number = i32::try_from(self.history.runs.len()).unwrap() + 1;
                let at = START_MS + self.hours * HOUR_MS;
                let mut run = run(number, at, Some(branch), Some(format!("{name}, {revision}")));
                run.run.variant = (*variant).into();
                add(&mut run, 0, letter);
                self.history.runs.push(run);
            }
        }
        self
    }

    /// Adds `tests` other tests that fail in the runs with these numbers and pass in all other runs.
    pub(crate) fn among(mut self, tests: u32, outages: &[i32]) -> Self {
        self.history.tests = tests + 1;
        for run in &mut self.history.runs {
            for test in 1..=tests {
                add(
                    run,
                    test,
                    if outages.contains(&run.run.number) {
                        'F'
                    } else {
                        'P'
                    },
                );
            }
        }
        self
    }

    pub(crate) fn verdict(&self) -> Verdict {
        Engine::default()
            .verdicts(&self.history, self.now())
            .swap_remove(0)
    }

    pub(crate) fn judgement(&self) -> Judgement {
        Engine::default().judge(&self.history, self.now()).swap_remove(0)
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(START_MS + self.hours * HOUR_MS)
    }
}

#[test]
fn a_broken_main_is_inherited_by_its_branches_and_is_no_flake() {
    let verdict = Story::new()
        .on("main", "", "20P 6F")
        .on("feature", "", "4F")
        .verdict();
    assert_eq!(verdict.status, VerdictStatus::Broken);
    assert!(
        verdict.figures.flake_score < 0.2,
        "{}",
        verdict.figures.flake_score
    );
}

#[test]
fn a_branch_cannot_be_broken() {
    let verdict = Story::new()
        .on("main", "", "30P")
        .on("feature", "", "PP 5F")
        .verdict();
    assert_eq!(
        (verdict.status, verdict.reason),
        (VerdictStatus::Healthy, Some(Signal::FailingOffStable))
    );
    assert_eq!(
        verdict.explanation,
        "Passes on main; failed the last 5 runs on feature since run 33"
    );
    let without_stable = Story::new().on("feature", "", "PP 5F").verdict();
    assert_eq!(
        (without_stable.status, without_stable.reason),
        (VerdictStatus::Failing, Some(Signal::FailingOffStable))
    );
    assert_eq!(without_stable.figures.broken_probability, None);
    assert_eq!(without_stable.figures.failure_streak, 5);
}

#[test]
fn without_any_branch_every_run_is_stable() {
    let verdict = Story::new().on("", "", "20P 6F").verdict();
    assert_eq!(verdict.status, VerdictStatus::Broken);
    assert_eq!(verdict.explanation, "Failed the last 6 runs since run 21");
    let mixed = Story::new().on("main", "", "20P").on("", "", "6F").verdict();
    assert_eq!(mixed.status, VerdictStatus::Healthy);
    assert_eq!(
        mixed.explanation,
        "Passes on main; failed the last 6 runs off the stable branch since run 21"
    );
}

#[test]
fn a_breakage_on_one_variant_is_broken_and_specific() {
    let verdict = Story::new()
        .on("main", "chrome", "20P")
        .on("main", "firefox", "15P 5F")
        .on("main", "chrome", "5P")
        .verdict();
    assert_eq!(verdict.status, VerdictStatus::Broken);
    assert_eq!(
        verdict.explanation,
        "Failed the last 5 runs on main (firefox) since run 36"
    );
    assert!(verdict.signals.contains(&Signal::VariantSpecific));
}

#[test]
fn a_variant_without_recent_runs_is_not_broken() {
    let verdict = Story::new()
        .on("main", "firefox", "15P 5F")
        .on("main", "chrome", "74P")
        .verdict();
    assert_ne!(verdict.status, VerdictStatus::Broken, "{verdict:?}");
    let three_days = Story::new()
        .on("main", "firefox", "15P 5F")
        .on("main", "chrome", "72P")
        .verdict();
    assert_eq!(three_days.status, VerdictStatus::Broken);
}

#[test]
fn an_outage_makes_no_test_flaky() {
    let verdict = Story::new()
        .on("main", "", "20P F 20P")
        .among(40, &[21])
        .verdict();
    assert_eq!(
        (verdict.status, verdict.reason),
        (VerdictStatus::Healthy, Some(Signal::MassFailure))
    );
    assert_eq!(
        (verdict.figures.runs_in_window, verdict.figures.runs_considered),
        (41, 40)
    );
    assert_eq!(verdict.figures.failure_rate, Some(0.0));
    assert_eq!(
        verdict.figures.time_lost_ms,
        Some(1_000),
        "the time is lost all the same"
    );
    assert_eq!(
        verdict.explanation,
        "Failed in 1 run in which many tests failed together"
    );
    let alone = Story::new().on("main", "", "20P F 20P").among(40, &[]).verdict();
    assert_eq!(alone.status, VerdictStatus::Flaky);
}

#[test]
fn a_recovery_in_a_mass_failure_is_described_as_such() {
    let sentence = |text: &str, outages: &[i32]| {
        let verdict = Story::new().on("main", "", text).among(40, outages).verdict();
        assert_eq!(verdict.reason, Some(Signal::MassFailure));
        verdict.explanation
    };
    assert_eq!(
        sentence("20P R 20P", &[21]),
        "Passed on retry in 1 run in which many tests failed together"
    );
    assert_eq!(
        sentence("20P F 9P R 9P F 20P", &[21, 31, 41]),
        "Failed in 2 runs in which many tests failed together, and passed on retry in 1 more"
    );
}

#[test]
fn a_test_that_passed_only_in_mass_failures_needs_other_runs() {
    let story = Story::new().on("main", "", "20S P 9S P 20S");
    let verdict = story.among(40, &[21, 31]).verdict();
    assert_eq!(verdict.status, VerdictStatus::InsufficientData);
    assert_eq!(
        verdict.explanation,
        "Passed only in mass failures (2 runs); 5 other runs are needed"
    );
}

#[test]
fn a_crowd_that_fails_repeatedly_is_flaky_and_not_an_outage() {
    // Sixteen of 601 tests fail together. If this happens once, it is a mass failure.
    let crowd = |text: &str, crowd_runs: &[i32]| {
        let mut story = Story::new().on("main", "", text).among(600, &[]);
        for run in &mut story.history.runs {
            if crowd_runs.contains(&run.run.number) {
                run.failures.clear();
                (0..=15).for_each(|test| add(run, test, 'F'));
            }
        }
        story.verdict()
    };
    let once = crowd("20P F 20P", &[21]);
    assert_eq!(
        (once.status, once.reason),
        (VerdictStatus::Healthy, Some(Signal::MassFailure))
    );
    let twice = crowd("20P F 9P F 20P", &[21, 31]);
    assert_eq!(twice.reason, Some(Signal::MassFailure));
    let again = crowd("20P F 9P F 9P F 20P", &[21, 31, 41]);
    assert_eq!(
        (again.status, again.reason),
        (VerdictStatus::Flaky, Some(Signal::FailureRateFlaky))
    );
}

#[test]
fn a_repeated_outage_is_still_an_outage() {
    let verdict = Story::new()
        .on("main", "", "20P F 9P F 9P F 20P")
        .among(40, &[21, 31, 41])
        .verdict();
    assert_eq!(
        (verdict.status, verdict.reason),
        (VerdictStatus::Healthy, Some(Signal::MassFailure))
    );
}

#[test]
fn an_established_breakage_of_many_tests_is_no_outage() {
    let outages: Vec<i32> = (21..=30).collect();
    let verdict = Story::new()
        .on("main", "", "20P 10F")
        .among(40, &outages)
        .verdict();
    assert_eq!(verdict.status, VerdictStatus::Broken);
}

#[test]
fn a_flaky_test_that_breaks_is_broken_and_still_known_as_flaky() {
    let verdict = Story::new().on("main", "", "10P R 10P R 10P R 10P 12F").verdict();
    assert_eq!(verdict.status, VerdictStatus::Broken);
    assert!(verdict.also_active().contains(&Signal::RetryRate));
    assert_eq!(verdict.labels, [Label::Flips, Label::Retries]);
}

#[test]
fn a_late_rerun_is_ordered_with_the_runs_of_its_revision() {
    // Revision 5 failed. Twenty revisions later it runs again and passes: a contradiction and not a second breakage.
    let mut story = Story::new().on("main", "", "4P F 20P");
    let revision = story.history.runs[4].run.revision.clone();
    let mut rerun = run(26, START_MS + 26 * HOUR_MS, Some("main"), None);
    rerun.run.revision = revision;
    add(&mut rerun, 0, 'P');
    story.history.runs.push(rerun);
    story.hours += 1;
    let verdict = story.verdict();
    assert_eq!(
        (verdict.status, verdict.reason),
        (VerdictStatus::Flaky, Some(Signal::SameShaFlip))
    );
}

#[test]
fn a_revision_that_reached_the_stable_branch_belongs_to_it() {
    // Merged by fast-forward: each revision runs on its branch first, then on main.
    let mut story = Story::new();
    for (revision, letter) in letters("20P 4F") {
        for branch in ["feature", "main"] {
            story.hours += 1;
            let number = i32::try_from(story.history.runs.len()).unwrap() + 1;
            let mut run = run(
                number,
                START_MS + story.hours * HOUR_MS,
                Some(branch),
                Some(format!("rev-{revision}")),
            );
            add(&mut run, 0, letter);
            story.history.runs.push(run);
        }
    }
    let verdict = story.verdict();
    assert_eq!(verdict.status, VerdictStatus::Broken);
    assert_eq!(verdict.figures.failure_streak, 4);
}

#[test]
fn the_impact_of_a_failed_run_is_shared_among_its_failed_tests() {
    let verdict = Story::new()
        .on("main", "", "10P F 10P R 10P")
        .among(1, &[11])
        .verdict();
    assert!(
        (verdict.figures.impact - 0.6).abs() < 1e-12,
        "{}",
        verdict.figures.impact
    );
}

#[test]
fn only_the_window_counts() {
    let story = Story::new().on("main", "", "10P FRFRF 10P");
    let later = Timestamp::from_unix_ms(START_MS + 15 * HOUR_MS).plus_days(14);
    let verdict = Engine::default().verdicts(&story.history, later).swap_remove(0);
    assert_eq!(verdict.figures.runs_in_window, 11);
    let alone = Story::new().on("main", "", "F 10P").verdict();
    assert!((verdict.figures.flake_score - alone.figures.flake_score).abs() < 1e-12);
    assert!(story.verdict().figures.flake_score > alone.figures.flake_score + 0.2);
    assert!(
        (verdict.figures.failure_rate.unwrap() - 1.0 / 11.0).abs() < 1e-12,
        "the window's start belongs to it"
    );
    let before = Timestamp::from_unix_ms(START_MS);
    assert!(Engine::default().verdicts(&story.history, before).is_empty());
}

#[test]
fn unknown_durations_leave_the_lost_time_unknown() {
    let mut story = Story::new().on("main", "", "3P F 3P");
    for run in &mut story.history.runs {
        run.untimed.insert(0);
    }
    assert_eq!(story.verdict().figures.time_lost_ms, None);
    story.history.runs[0].untimed.remove(0);
    story.history.runs[3].failures[0].lost_ms = None;
    assert_eq!(story.verdict().figures.time_lost_ms, Some(0));
}

/// Whether a test that passes on these days has too few runs, judged at the end of each of these days.
fn has_too_few_runs(days: impl IntoIterator<Item = i64>, judged: std::ops::Range<i64>) -> Vec<bool> {
    let day_ms = 24 * HOUR_MS;
    let mut history = History {
        stable_branch: "main".into(),
        tests: 1,
        runs: Vec::new(),
    };
    for (number, day) in (1..).zip(days) {
        let revision = Some(number.to_string());
        let mut run = run(number, START_MS + day * day_ms, Some("main"), revision);
        add(&mut run, 0, 'P');
        history.runs.push(run);
    }
    let status = |day: i64| {
        let now = Timestamp::from_unix_ms(START_MS + day * day_ms + HOUR_MS);
        Engine::default().verdicts(&history, now)[0].status
    };
    judged
        .map(|day| status(day) == VerdictStatus::InsufficientData)
        .collect()
}

#[test]
fn a_test_that_had_enough_runs_has_a_verdict_until_fewer_than_three_are_left() {
    // Of every third day, four or five runs are in a window.
    let regular = has_too_few_runs((0..60).step_by(3), 14..60);
    assert!(regular.iter().all(|too_few| !too_few), "{regular:?}");
    let ended = has_too_few_runs(0..20, 19..32);
    assert_eq!(ended.iter().position(|too_few| *too_few), Some(12), "{ended:?}");
    // Controls: a new test needs five runs, and one that never has five in a window has no verdict.
    assert_eq!(
        has_too_few_runs(20..40, 20..26),
        [true, true, true, true, false, false]
    );
    assert!(
        has_too_few_runs((0..60).step_by(5), 14..60)
            .iter()
            .all(|too_few| *too_few)
    );
}

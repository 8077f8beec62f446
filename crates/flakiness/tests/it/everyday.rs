//! Situations that people meet every week: a breakage of many tests, a nightly suite, a test that left the suite.

use assay_flakiness::{
    Engine,
    domain::{
        observation::{History, Repetition, RunEnding},
        timestamp::{DAY_MS, Timestamp},
        verdict::{Judge as _, Signal, Verdict, VerdictStatus},
    },
};

use crate::{
    history::{START_MS, add, letters, run},
    reference,
};

/// The runs of a suite on `main`. Test 0 has the results of a text; the others pass, apart from a crowd.
pub(crate) struct Suite {
    pub(crate) history: History,
    pub(crate) now: Timestamp,
}

impl Suite {
    /// One run for each letter, so far apart. `crowd` other tests fail where test 0 fails.
    pub(crate) fn new(text: &str, tests: u32, crowd: u32, step_ms: i64) -> Self {
        let mut at = START_MS;
        let runs = (1..).zip(letters(text)).map(|(number, (revision, letter))| {
            let mut run = run(number, at, Some("main"), Some(format!("rev-{revision}")));
            at += step_ms;
            add(&mut run, 0, letter);
            for test in 1..tests {
                add(
                    &mut run,
                    test,
                    if letter == 'F' && test <= crowd { 'F' } else { 'P' },
                );
            }
            run
        });
        let runs = runs.collect();
        Self {
            history: History {
                stable_branch: "main".into(),
                tests,
                runs,
            },
            now: Timestamp::from_unix_ms(at - step_ms),
        }
    }

    fn nightly(text: &str) -> Self {
        Self::new(text, 111, 0, DAY_MS)
    }

    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        reference::compare(&self.history, self.now).unwrap();
        Engine::default().verdicts(&self.history, self.now)
    }

    pub(crate) fn verdict(&self) -> Verdict {
        self.verdicts().swap_remove(0)
    }
}

const STEP_MS: i64 = DAY_MS / 5;

/// The shards of a build arrive one after the other. The verdicts wait for the last one, or for ten minutes.
#[test]
fn an_incomplete_run_counts_ten_minutes_after_its_newest_part() {
    let mut suite = mass_breakage("56P F");
    let (first, minute) = (suite.now, 60_000);
    suite.history.tests += 1;
    let newest = suite.history.runs.last_mut().unwrap();
    add(newest, 111, 'F');
    newest.ending = RunEnding::incomplete(first.plus_ms(25 * minute));
    suite.now = first.plus_ms(34 * minute);
    let before = suite.verdicts();
    assert!(
        before[..111]
            .iter()
            .all(|verdict| verdict.status == VerdictStatus::Healthy)
    );
    assert_eq!(
        before[0].explanation,
        "Passed in all 56 runs; failed in run 57, which is not complete and does not count yet"
    );
    assert_eq!(before[110].explanation, "Passed in all 56 runs");
    assert_eq!(before[111].status, VerdictStatus::InsufficientData);
    assert!(
        before[111]
            .explanation
            .starts_with("Only in runs that are not complete yet; failed in run 57")
    );
    suite.now = first.plus_ms(35 * minute);
    let after = suite.verdicts();
    assert!(
        after[..30]
            .iter()
            .all(|verdict| verdict.status == VerdictStatus::Failing)
    );
    // A complete run counts at once.
    suite.history.runs.last_mut().unwrap().ending = RunEnding::default();
    suite.now = first;
    assert_eq!(suite.verdicts(), after);
}

fn mass_breakage(text: &str) -> Suite {
    Suite::new(text, 111, 29, STEP_MS)
}

#[test]
fn a_commit_that_breaks_thirty_tests_is_failing_at_once_and_broken_at_the_third_run() {
    for (text, status) in [
        ("56P F", VerdictStatus::Failing),
        ("56P [FF]", VerdictStatus::Failing),
        ("56P FF", VerdictStatus::Failing),
        ("56P FFF", VerdictStatus::Broken),
        ("56P FFFF", VerdictStatus::Broken),
    ] {
        let verdicts = mass_breakage(text).verdicts();
        for verdict in &verdicts[..30] {
            assert_eq!(verdict.status, status, "{text}: {verdict:?}");
        }
        assert!(
            verdicts[30..]
                .iter()
                .all(|verdict| verdict.status == VerdictStatus::Healthy)
        );
    }
}

#[test]
fn the_sentence_of_a_red_test_says_that_many_tests_failed_together() {
    let verdict = mass_breakage("56P F").verdict();
    assert_eq!(verdict.reason, Some(Signal::MassFailure));
    assert_eq!(
        verdict.explanation,
        "Failed the last run on main, run 57; 30 tests failed together in run 57"
    );
    let broken = mass_breakage("56P FFF").verdict();
    assert_eq!(
        broken.explanation,
        "Failed the last 3 runs on main since run 57; 30 tests failed together in run 57; the code is broken with a \
         probability above 0.99"
    );
}

#[test]
fn a_breakage_of_many_tests_that_ended_makes_none_of_them_flaky() {
    let verdict = mass_breakage("50P FFF 5P").verdict();
    assert_eq!(
        (verdict.status, verdict.reason),
        (VerdictStatus::Healthy, Some(Signal::MassFailure)),
        "{verdict:?}"
    );
}

/// Ninety tests fail at random, most of them in both runs, as in an outage.
#[test]
fn an_outage_that_hits_other_tests_in_each_run_breaks_none() {
    let mut suite = Suite::new("50P PPPP", 120, 0, STEP_MS);
    for (place, run) in suite.history.runs.iter_mut().enumerate().skip(51) {
        for test in 0..120_u32 {
            if (test * 7 + u32::try_from(place).unwrap() * 31) % 120 < 80 {
                add(run, test, 'F');
            }
        }
    }
    let verdicts = suite.verdicts();
    assert!(
        verdicts
            .iter()
            .all(|verdict| verdict.status != VerdictStatus::Broken),
        "{verdicts:?}"
    );
}

#[test]
fn a_nightly_test_that_is_red_for_good_is_broken_despite_an_earlier_red_night() {
    for text in ["PPF PPP 8F", "FF PP 9F"] {
        let verdict = Suite::nightly(text).verdict();
        assert_eq!(verdict.status, VerdictStatus::Broken, "{text}: {verdict:?}");
    }
}

#[test]
fn one_red_night_of_fourteen_makes_no_test_flaky() {
    let verdict = Suite::nightly("8P F 5P").verdict();
    assert_eq!(verdict.status, VerdictStatus::Healthy, "{verdict:?}");
    // The same results a few hours apart: there was hardly time for a breakage and its fix.
    let busy = Suite::new("8P F 5P", 111, 0, DAY_MS / 24).verdict();
    assert_eq!(busy.status, VerdictStatus::Flaky, "{busy:?}");
}

#[test]
fn two_breakages_of_several_nights_are_no_certain_flake() {
    let verdict = Suite::nightly("5P FFF PP FF PP").verdict();
    let certain = verdict.status == VerdictStatus::Flaky && verdict.figures.flake_score >= 0.9;
    assert!(!certain, "{verdict:?}");
    assert_ne!(verdict.status, VerdictStatus::Broken);
}

/// Judged on days on which only passes came, and only passes left the window.
#[test]
fn a_verdict_stays_the_same_while_the_evidence_does() {
    let mut suite = Suite::new("4P [PPF] 30P", 160, 0, DAY_MS / 2);
    // Other tests fail now and then, more of them in some days than in others.
    for (place, run) in suite.history.runs.iter_mut().enumerate() {
        let place = u32::try_from(place).unwrap();
        for test in
            (1..160).filter(|test| (test * 13 + place * 29).is_multiple_of(71) && test.is_multiple_of(8))
        {
            add(run, test, 'F');
        }
    }
    let statuses: Vec<VerdictStatus> = (24..=32)
        .map(|half_days| {
            suite.now = Timestamp::from_unix_ms(START_MS + half_days * DAY_MS / 2);
            suite.verdict().status
        })
        .collect();
    assert!(
        statuses.iter().all(|status| *status == statuses[0]),
        "{statuses:?}"
    );
}

#[test]
fn a_test_that_later_runs_do_not_contain_is_not_failing_now() {
    let leave = |text: &str, later: usize| {
        let mut suite = Suite::new(text, 20, 0, DAY_MS / 4);
        let runs = suite.history.runs.len();
        for run in &mut suite.history.runs[runs - later..] {
            run.present.remove(0);
            run.failures.clear();
        }
        suite.verdict()
    };
    let renamed = leave("8P 4F 6P", 6);
    assert_eq!(renamed.status, VerdictStatus::Healthy, "{renamed:?}");
    assert!(
        renamed.explanation.ends_with("; not run on main since run 12"),
        "{}",
        renamed.explanation
    );
    assert_eq!(
        leave("8P 4F PP", 2).status,
        VerdictStatus::Broken,
        "twice is chance"
    );
    let failed_once = leave("8P F P", 1);
    assert_eq!(failed_once.status, VerdictStatus::Healthy, "{failed_once:?}");
    // A run without some of its shards may lack the test for that reason.
    let mut cut = Suite::new("8P F P", 20, 0, DAY_MS / 4);
    cut.history.runs[9].present.remove(0);
    cut.history.runs[9].ending.complete = false;
    assert_eq!(cut.verdict().status, VerdictStatus::Failing);
}

#[test]
fn a_test_that_seldom_runs_has_not_left_its_suite() {
    let mut suite = Suite::new("12P 8F 12P", 20, 0, DAY_MS / 8);
    for run in &mut suite.history.runs {
        if run.run.number % 4 != 0 {
            run.present.remove(0);
            run.failures.clear();
        }
    }
    // The runs with numbers 4, 8 and 12 passed, 16 and 20 failed. Three runs without it have followed before, too.
    suite.history.runs.truncate(23);
    assert_eq!(suite.verdict().status, VerdictStatus::Broken);
}

#[test]
fn runs_of_other_tests_do_not_show_that_a_test_left() {
    let mut suite = Suite::new("8P 4F 6P", 40, 0, DAY_MS / 4);
    for run in &mut suite.history.runs[12..] {
        for test in 0..20 {
            run.present.remove(test);
        }
    }
    assert_eq!(suite.verdict().status, VerdictStatus::Broken);
}

#[test]
fn the_sentence_of_a_flaky_test_names_its_streak() {
    let verdict = Suite::new(
        "4P F 3P F 5P F 2P F 3P F 6P FF 2P F 4P F 3P F 5P FF",
        2,
        0,
        DAY_MS / 24,
    )
    .verdict();
    assert_eq!(verdict.status, VerdictStatus::Flaky, "{verdict:?}");
    assert!(
        verdict
            .explanation
            .contains("; failing now: failed the last 2 runs on main since run"),
        "{}",
        verdict.explanation
    );
}

/// Each of the last runs has ten executions, of which these numbers fail in turns.
fn executions(failed: &[u32], last: usize, runs: usize) -> Verdict {
    let text = format!("{}P {last}F", runs - last);
    let mut suite = Suite::new(&text, 120, 0, STEP_MS);
    let mut turns = failed.iter().cycle();
    for run in &mut suite.history.runs {
        let failed = if run.failures.is_empty() {
            0
        } else {
            *turns.next().unwrap()
        };
        run.repeated.push(Repetition {
            test: 0,
            executions: 10,
            failed,
        });
    }
    suite.verdict()
}

#[test]
fn a_test_that_passes_nine_of_ten_executions_is_flaky_and_not_broken() {
    let verdict = executions(&[1, 2, 1], 12, 20);
    assert_eq!(
        (verdict.status, verdict.reason),
        (VerdictStatus::Flaky, Some(Signal::SameShaFlip)),
        "{verdict:?}"
    );
    assert!(verdict.figures.flake_score > 0.99, "{verdict:?}");
    let all = executions(&[10], 4, 20);
    assert_eq!(all.status, VerdictStatus::Broken, "{all:?}");
}

#[test]
fn a_row_of_a_table_that_fails_each_time_beside_others_of_its_name_is_broken() {
    let verdict = executions(&[1], 12, 20);
    assert_eq!(verdict.status, VerdictStatus::Broken, "{verdict:?}");
}

#[test]
fn a_set_up_that_fails_in_one_shard_of_four_is_not_broken() {
    let mut suite = Suite::new("20P FF", 120, 0, STEP_MS);
    for run in &mut suite.history.runs {
        run.repeated.push(Repetition {
            test: 0,
            executions: 4,
            failed: u32::from(!run.failures.is_empty()),
        });
    }
    let verdict = suite.verdict();
    assert_eq!(verdict.status, VerdictStatus::Flaky, "{verdict:?}");
}

#[test]
fn repeated_passes_make_a_flake_rarer() {
    let rate = |executions: u32| {
        let mut suite = Suite::new("6P F 6P F 6P", 120, 0, STEP_MS / 4);
        for run in suite.history.runs.iter_mut().filter(|_| executions > 1) {
            run.repeated.push(Repetition {
                test: 0,
                executions,
                failed: u32::from(!run.failures.is_empty()),
            });
        }
        suite.verdict().figures.flake_rate
    };
    assert!(rate(10) < rate(1) / 3.0, "{} {}", rate(10), rate(1));
}

#[test]
fn a_test_leaves_a_small_suite_too() {
    let mut suite = Suite::new("8P 4F 14P", 6, 0, DAY_MS / 4);
    for run in &mut suite.history.runs[12..] {
        run.present.remove(0);
        run.present.insert(6);
    }
    suite.history.tests = 7;
    let verdict = suite.verdict();
    assert_eq!(verdict.status, VerdictStatus::Healthy, "{verdict:?}");
    // Runs that are not complete show nothing.
    for run in &mut suite.history.runs[12..] {
        run.ending.complete = false;
    }
    let verdicts = Engine::default().verdicts(&suite.history, suite.now);
    assert_eq!(verdicts[0].status, VerdictStatus::Broken);
}

/// Ten runs a day from Thursday 2026-01-01 on, at 00:00, 02:24, 04:48 and so on. Those for which `fails` holds, given the
/// day and the place in it, fail.
fn detail_of_failures(fails: impl Fn(i64, i64) -> bool) -> String {
    let letters = (0..14).flat_map(|day| (0..10).map(move |place| (day, place)));
    let text: String = letters
        .map(|(day, place)| if fails(day, place) { 'F' } else { 'P' })
        .collect();
    let suite = Suite::new(&text, 111, 0, DAY_MS / 10);
    let judgement = Engine::default().judge(&suite.history, suite.now).swap_remove(0);
    assert_eq!(
        judgement.verdict.status,
        VerdictStatus::Flaky,
        "{:?}",
        judgement.verdict
    );
    judgement
        .evidence
        .signals
        .into_iter()
        .map(|signal| signal.detail)
        .collect()
}

#[test]
fn the_evidence_names_the_hour_or_the_weekend_of_all_failures() {
    let at_night = detail_of_failures(|day, place| place == 1 && [2, 5, 8, 11].contains(&day));
    assert!(
        at_night
            .contains("; all failures began between 02:00 and 03:00 UTC, as 14 of the 140 hours with a run"),
        "{at_night}"
    );
    // Days 2, 3, 9 and 10 are weekends.
    let on_weekends = detail_of_failures(|day, place| {
        [(2, 1), (2, 7), (3, 4), (9, 3), (9, 8), (10, 5)].contains(&(day, place))
    });
    assert!(
        on_weekends.contains("; all failures were on a weekend (UTC), as 40 of the 140 hours with a run"),
        "{on_weekends}"
    );
}

#[test]
fn the_evidence_names_no_time_that_chance_or_the_schedule_explains() {
    for (what, detail) in [
        (
            "other hours",
            detail_of_failures(|day, place| [(2, 1), (5, 3), (8, 6), (11, 9)].contains(&(day, place))),
        ),
        (
            "three nights",
            detail_of_failures(|day, place| place == 1 && [2, 5, 8].contains(&day)),
        ),
        (
            "one weekend",
            detail_of_failures(|day, place| day == 10 && [3, 6, 9].contains(&place)),
        ),
    ] {
        assert!(!detail.contains("all failures"), "{what}: {detail}");
    }
    // Every run of a nightly suite begins in the same hour.
    let nightly = Suite::nightly("PFPPFPPPFPPFPP");
    let judgement = Engine::default()
        .judge(&nightly.history, nightly.now)
        .swap_remove(0);
    assert_eq!(judgement.verdict.status, VerdictStatus::Flaky);
    assert!(
        !judgement
            .evidence
            .signals
            .iter()
            .any(|signal| signal.detail.contains("all failures"))
    );
}

/// Forty branches of three revisions, and `main` between them. Every tenth branch has one of two results of test 0 in turn,
/// and each other one passes.
fn on_every_tenth_branch(results: [&str; 2]) -> Verdict {
    let mut runs = Vec::new();
    let mut add_run = |branch: &str, letter: char| {
        let number = i32::try_from(runs.len()).unwrap() + 1;
        let at = START_MS + i64::from(number) * DAY_MS / 14;
        let mut run = run(number, at, Some(branch), Some(number.to_string()));
        add(&mut run, 0, letter);
        for test in 1..120 {
            add(&mut run, test, 'P');
        }
        runs.push(run);
    };
    let mut failing = results.into_iter().cycle();
    for number in 0..40 {
        add_run("main", 'P');
        let results = if number % 10 == 5 {
            failing.next().unwrap()
        } else {
            "PPP"
        };
        for letter in results.chars() {
            add_run(&format!("branch {number}"), letter);
        }
    }
    let now = runs.last().unwrap().run.started_at;
    let history = History {
        stable_branch: "main".into(),
        tests: 120,
        runs,
    };
    reference::compare(&history, now).unwrap();
    Engine::default().verdicts(&history, now).swap_remove(0)
}

#[test]
fn a_test_that_every_tenth_branch_breaks_with_its_first_revision_is_not_flaky() {
    let verdict = on_every_tenth_branch(["FFP", "FPP"]);
    assert_eq!(verdict.status, VerdictStatus::Healthy);
    assert!(verdict.figures.flake_score < 0.1, "{verdict:?}");
    // A branch seldom breaks it later: as many failures between passes are the test's own.
    let verdict = on_every_tenth_branch(["PFP", "PPF"]);
    assert_eq!(verdict.status, VerdictStatus::Flaky);
    assert!(verdict.figures.flake_score > 0.9, "{verdict:?}");
}

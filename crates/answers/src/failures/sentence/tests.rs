use assay_domain::{
    cause::{Action, Cause, Knowledge},
    observation::{Bitmap, Failure, History, RunEnding, RunFacts, RunObservations},
    timestamp::{DAY_MS, Timestamp},
};
use assay_flakiness::{Diagnose as _, Engine, ErrorTexts, FailureCause};

use super::{super::own_unexplained, explanation, gate};

/// Forty runs of `main`, four a day; the test of the same number failed in each of the `failing` ones. Then test 0
/// fails.
fn sentence(failing: u32, branch: Option<&str>, knowledge: Knowledge) -> String {
    let failed = |run| (run <= failing).then_some(run);
    sentence_on(&[""], failed, branch, knowledge)
}

/// The same on these variants. `failed` is the test that failed on all of them in an earlier run.
fn sentence_on(
    variants: &[&str],
    failed: impl Fn(u32) -> Option<u32>,
    branch: Option<&str>,
    knowledge: Knowledge,
) -> String {
    let run = |number: u32, variant: &str| {
        let mut present = Bitmap::default();
        (0..100).for_each(|test| present.insert(test));
        let test = if number == 41 { Some(0) } else { failed(number) };
        let failure = test.map(|test| Failure {
            test,
            recovered: false,
            failed_attempts: 1,
            lost_ms: None,
        });
        RunObservations {
            other_names: Vec::new(),
            run: RunFacts {
                id: format!("run-{number}").into(),
                number: i32::try_from(number).unwrap(),
                started_at: Timestamp::from_unix_ms(i64::from(number) * DAY_MS / 4),
                branch: branch.map(Into::into),
                revision: Some(format!("{number:08}").into()),
                variant: variant.into(),
                ..RunFacts::default()
            },
            present,
            skipped: Bitmap::default(),
            untimed: Bitmap::default(),
            failures: failure.into_iter().collect(),
            ending: RunEnding::default(),
            repeated: Vec::new(),
        }
    };
    let history = History {
        stable_branch: "main".into(),
        tests: 100,
        runs: (1..=41)
            .flat_map(|number| variants.iter().map(move |variant| run(number, variant)))
            .collect(),
    };
    let now = history.runs.last().unwrap().run.started_at;
    let causes = Engine::default().causes_of_run(&history, &ErrorTexts::new(), 41, knowledge, now);
    explanation(&history, &causes[0], knowledge)
}

#[test]
fn a_first_failure_of_main_is_put_beside_the_earlier_ones() {
    let first = "First failure after 40 passed runs; outside of mass failures";
    let streaks = |failing| sentence(failing, Some("main"), Knowledge::AtTheTime);
    assert_eq!(
        streaks(12),
        format!("{first}, 0 of 12 failing streaks of all tests on main lasted three runs")
    );
    assert_eq!(
        streaks(1),
        format!("{first}, 0 of 1 failing streak of all tests on main lasted three runs")
    );
    assert_eq!(
        sentence(12, None, Knowledge::AtTheTime),
        format!("{first}, 0 of 12 failing streaks of all tests lasted three runs")
    );
}

#[test]
fn a_failure_of_main_on_all_variants_is_put_beside_the_earlier_ones() {
    let on_three = |failed: fn(u32) -> Option<u32>, knowledge| {
        let variants = ["linux", "mac", "windows"];
        sentence_on(&variants, failed, Some("main"), knowledge)
    };
    let outside = "Something outside of the code failed it on 3 of 3 variants";
    let broke = "Passed in all 40 runs on main (linux) before and failed on this revision on 3 of 3 variants";
    // Run 1 has no revision before it.
    let passed_again = |run| (run <= 12).then_some(run);
    assert_eq!(
        on_three(passed_again, Knowledge::AtTheTime),
        format!(
            "{outside}; failures on several variants began at 11 earlier revisions on main, and lasted after 0 of them"
        )
    );
    assert_eq!(on_three(|_| None, Knowledge::AtTheTime), broke);
    // Five tests failed in three runs each.
    let lasted = |run: u32| (run < 25 && run % 5 < 3).then_some(1 + run / 5);
    assert_eq!(on_three(lasted, Knowledge::AtTheTime), broke);
    let both = |run| match run {
        10 => Some(1),
        20..23 => Some(2),
        _ => None,
    };
    let unclear = on_three(both, Knowledge::AtTheTime);
    assert_eq!(
        unclear,
        format!(
            "{broke}, or {}; failures on several variants began at 2 earlier revisions on main, and lasted after 1 of them",
            super::uncapitalized(outside)
        )
    );
}

#[test]
fn with_hindsight_no_streaks_are_counted() {
    let sentence = sentence(12, Some("main"), Knowledge::Hindsight);
    assert_eq!(sentence, "No other failure in 40 runs on good code");
}

/// The sentence about test 0 in the last of these runs of 100 tests, which are five hours apart: each with its branch, the
/// tests that failed, and whether they passed on retry.
fn of_last(runs: &[(&str, std::ops::Range<u32>, bool)]) -> String {
    of_last_with(runs, &ErrorTexts::new())
}

/// The same with these errors.
fn of_last_with(runs: &[(&str, std::ops::Range<u32>, bool)], texts: &ErrorTexts) -> String {
    let (history, cause) = judged_last(runs, texts);
    explanation(&history, &cause, Knowledge::AtTheTime)
}

/// The history of these runs, and the cause of a failure of the last one.
fn judged_last(runs: &[(&str, std::ops::Range<u32>, bool)], texts: &ErrorTexts) -> (History, FailureCause) {
    let runs = (1..).zip(runs).map(|(number, (branch, failed, recovered))| {
        let started_at = Timestamp::from_unix_ms(i64::from(number) * 5 * DAY_MS / 24);
        let mut observed = RunObservations::of(RunFacts {
            id: format!("run-{number}").into(),
            number,
            started_at,
            branch: Some((*branch).into()),
            revision: Some(format!("{number:08}").into()),
            ..RunFacts::default()
        });
        (0..100).for_each(|test| observed.present.insert(test));
        observed.failures = failed
            .clone()
            .map(|test| Failure {
                test,
                recovered: *recovered,
                failed_attempts: 1,
                lost_ms: None,
            })
            .collect();
        observed
    });
    let history = History {
        stable_branch: "main".into(),
        tests: 100,
        runs: runs.collect(),
    };
    let last = history.runs.last().unwrap().run.clone();
    let knowledge = Knowledge::AtTheTime;
    let causes = Engine::default().causes_of_run(&history, texts, last.number, knowledge, last.started_at);
    let cause = causes.into_iter().next().unwrap();
    (history, cause)
}

#[test]
fn a_change_that_passed_before_on_the_same_revision_is_named_with_that_run() {
    let mut runs = vec![("main", 0..0, false); 20];
    runs.extend([("feature", 0..0, false), ("feature", 0..1, false)]);
    let (history, mut cause) = judged_last(&runs, &ErrorTexts::new());
    let broke = "Passed in all 20 runs on main and failed on this revision";
    assert_eq!(explanation(&history, &cause, Knowledge::AtTheTime), broke);
    cause.facts.passed_on_revision = Some(20);
    assert_eq!(
        explanation(&history, &cause, Knowledge::AtTheTime),
        format!("{broke}, which passed in run 21")
    );
}

#[test]
fn a_stale_base_is_named_with_the_runs_that_broke_and_mended_it() {
    let mut runs = vec![("main", 0..0, false); 20];
    runs.extend(vec![("main", 0..1, false); 5]);
    runs.extend(vec![("main", 0..0, false); 2]);
    runs.push(("feature", 0..1, false));
    let red = |(_, failed, _): &(&str, std::ops::Range<u32>, bool)| !failed.is_empty();
    let broke = 1 + runs.iter().position(red).unwrap();
    let mended = 1 + broke + runs[broke..].iter().position(|run| !red(run)).unwrap();
    let sentence = of_last(&runs).to_lowercase();
    let rebase = format!(
        "rebase: main failed it since run {broke}, and is mended since revision {mended:08}, run {mended}; \
         this branch probably began before"
    );
    assert!(sentence.contains(&rebase), "{sentence}");
    // The merge base is known.
    let (mut history, _) = judged_last(&runs, &ErrorTexts::new());
    history.runs.last_mut().unwrap().run.merge_base = Some(format!("{broke:08}").into());
    let last = history.runs.last().unwrap().run.clone();
    let knowledge = Knowledge::AtTheTime;
    let causes = Engine::default().causes_of_run(
        &history,
        &ErrorTexts::new(),
        last.number,
        knowledge,
        last.started_at,
    );
    let certain = rebase.replace("this branch probably began", "this branch began");
    assert_eq!(
        explanation(&history, &causes[0], knowledge).to_lowercase(),
        certain
    );
    // A control: main is still red.
    runs.truncate(25);
    runs.push(("feature", 0..1, false));
    assert_eq!(of_last(&runs), format!("Fails on main since run {broke}"));
    // The sentence names the error only if that run has it.
    for (first, error) in [(1, ""), (2, ", with the same error")] {
        let mut texts = ErrorTexts::new();
        (broke - 1..runs.len()).for_each(|run| texts.insert(run, 0, if run < broke { first } else { 2 }));
        assert_eq!(
            of_last_with(&runs, &texts),
            format!("Fails on main since run {broke}{error}")
        );
    }
}

#[test]
fn a_breakage_that_lands_again_is_named_with_the_runs_of_the_first_time() {
    let mut runs = vec![("main", 0..0, false); 20];
    runs.extend(vec![("main", 0..1, false); 3]);
    runs.extend(vec![("main", 0..0, false); 17]);
    runs.push(("feature", 0..1, false));
    let of_error = |last: u32| {
        let mut texts = ErrorTexts::new();
        (0..runs.len()).for_each(|run| texts.insert(run, 0, if run < 40 { 1 } else { last }));
        of_last_with(&runs, &texts)
    };
    let passed = runs
        .iter()
        .filter(|(branch, failed, _)| *branch == "main" && failed.is_empty());
    let failed = format!(
        "Passed in {} of 40 runs on main and failed on this revision",
        passed.count()
    );
    assert_eq!(
        of_error(1),
        format!("{failed}; main began to fail with this error in run 21, and passed again in run 24")
    );
    // A control: another error.
    assert_eq!(
        of_error(2),
        format!("{failed}; this error was not seen in the 14 days before")
    );
}

#[test]
fn a_crowd_that_lasts_is_a_shared_cause_since_its_first_run() {
    let mut runs = vec![("main", 0..0, false); 30];
    runs.extend(vec![("main", 0..20, false); 3]);
    let began = 1 + runs.iter().position(|(_, failed, _)| !failed.is_empty()).unwrap();
    let failed = runs.last().unwrap().1.len();
    assert_eq!(
        of_last(&runs),
        format!("A shared cause on main since run {began}: {failed} tests failed together in this run")
    );
    // A control: in its first run it may pass again.
    runs.truncate(31);
    assert_eq!(
        of_last(&runs),
        format!("{failed} tests failed together in this run")
    );
}

#[test]
fn a_run_whose_tests_all_fail_at_first_is_a_sign_of_the_machine_or_of_a_warm_up() {
    let once: Vec<_> = (1..=20)
        .map(|number| ("main", 0..if number == 20 { 100 } else { 0 }, true))
        .collect();
    let all = "All 100 tests of this run failed at first and passed on retry, and so in";
    let of_once = of_last(&once);
    assert!(
        of_once.contains(&format!(
            "{all} 0 of 19 runs before: a sign of this run's machine"
        )),
        "{of_once}"
    );
    let always = of_last(&vec![("main", 0..100, true); 20]);
    let warm_up = "a warm-up, because what the tests need is not ready when they begin";
    assert!(
        always.contains(&format!("{all} 19 of 19 runs before: {warm_up}")),
        "{always}"
    );
    // A control: one test passed at once.
    let most = of_last(&vec![("main", 0..99, true); 20]);
    assert!(!most.contains("at first"), "{most}");
}

/// 14 green runs of main with 20 tests, then a branch whose runs have another test.
fn with_new_test(of_branch: &[(&str, bool)]) -> (History, Vec<FailureCause>) {
    let run = |number: u32, branch: &str, revision: &str, tests: u32, fails: bool| RunObservations {
        present: (0..tests).collect(),
        failures: fails
            .then_some(Failure {
                test: 20,
                recovered: false,
                failed_attempts: 1,
                lost_ms: None,
            })
            .into_iter()
            .collect(),
        ..RunObservations::of(RunFacts {
            id: format!("run-{number}").into(),
            number: i32::try_from(number).unwrap(),
            started_at: Timestamp::from_unix_ms(i64::from(number) * DAY_MS / 4),
            branch: Some(branch.into()),
            revision: Some(revision.into()),
            ..RunFacts::default()
        })
    };
    let main = (1..=14).map(|number| run(number, "main", &format!("{number:08}"), 20, false));
    let branch = (15..).zip(of_branch);
    let branch = branch.map(|(number, (revision, fails))| run(number, "topic", revision, 21, *fails));
    let history = History {
        stable_branch: "main".into(),
        tests: 21,
        runs: main.chain(branch).collect(),
    };
    let last = history.runs.last().unwrap().run.clone();
    let engine = Engine::default();
    let texts = ErrorTexts::new();
    let mut causes = engine.causes_of_run(
        &history,
        &texts,
        last.number,
        Knowledge::AtTheTime,
        last.started_at,
    );
    own_unexplained(&history, &mut causes);
    (history, causes)
}

#[test]
fn a_new_test_that_fails_is_named_as_new_and_is_no_flake() {
    for (runs, cause, action) in [
        (&[("a", true)][..], Cause::ThisChange, Action::Block),
        (
            &[("a", true), ("b", true), ("c", true)],
            Cause::EarlierOnBranch,
            Action::Block,
        ),
        // It has shown that it fails on the same code.
        (&[("a", false), ("a", true)], Cause::Flake, Action::Pass),
    ] {
        let (history, causes) = with_new_test(runs);
        let sentence = explanation(&history, &causes[0], Knowledge::AtTheTime);
        assert!(sentence.starts_with("New test: "), "{sentence}");
        assert_eq!(gate::cause(&causes[0]), cause, "{runs:?}: {causes:?}");
        if cause != Cause::Flake {
            assert_eq!(gate::gate(&causes).action, action, "{runs:?}: {causes:?}");
            assert!(!sentence.contains("good code"), "{sentence}");
        }
    }
}

#[test]
fn an_unproven_test_of_a_young_project_is_not_excused() {
    // The last run is that of a branch; the test of the failure ran in all others.
    let failed = |runs: &[(&str, std::ops::Range<u32>, bool)]| {
        let (history, cause) = judged_last(runs, &ErrorTexts::new());
        let mut causes = vec![cause];
        own_unexplained(&history, &mut causes);
        (gate::cause(&causes[0]), gate::gate(&causes).action)
    };
    let first = ("one", 0..1, false);
    assert_eq!(
        failed(std::slice::from_ref(&first)),
        (Cause::Unclear, Action::Rerun)
    );
    let of_three = [first.clone(), ("two", 0..0, false), ("three", 0..1, false)];
    assert_eq!(failed(&of_three), (Cause::Flake, Action::Rerun));
    // Controls: it passed and failed in more runs, on other branches or on one that is not the stable one.
    for other in ["two", "three"] {
        let mut runs = vec![(other, 0..1, false)];
        runs.extend(vec![(other, 0..0, false); 3]);
        runs.extend([(other, 0..1, false), (other, 0..0, false), ("three", 0..1, false)]);
        assert_eq!(failed(&runs), (Cause::Flake, Action::Pass), "{other}");
    }
}

#[test]
fn nothing_distinguishes_many_failures_without_a_run_of_another_branch() {
    let (history, cause) = judged_last(&[("one", 0..1, false)], &ErrorTexts::new());
    let mut causes: Vec<FailureCause> = (0..30)
        .map(|test| FailureCause {
            test,
            ..cause.clone()
        })
        .collect();
    own_unexplained(&history, &mut causes);
    assert_eq!(gate::gate(&causes).action, Action::Rerun, "{causes:?}");
    let sentence = explanation(&history, &causes[0], Knowledge::AtTheTime);
    assert!(
        sentence.starts_with("No other branch ran in the 14 days before"),
        "{sentence}"
    );
}

#[test]
fn a_new_test_that_fails_with_others_is_the_subject_of_its_sentence() {
    let (mut history, _) = with_new_test(&[("a", true)]);
    history.tests = 36;
    let last = history.runs.last_mut().unwrap();
    last.present = (0..36).collect();
    let first = last.failures[0];
    last.failures = (20..36).map(|test| Failure { test, ..first }).collect();
    let (number, at) = (last.run.number, last.run.started_at);
    let knowledge = Knowledge::AtTheTime;
    let causes = Engine::default().causes_of_run(&history, &ErrorTexts::new(), number, knowledge, at);
    let sentence = explanation(&history, &causes[0], knowledge);
    assert!(sentence.starts_with("New test: "), "{sentence}");
    assert!(
        sentence.contains("failed with 15 other tests in this run"),
        "{sentence}"
    );
}

#[test]
fn the_strongest_action_of_the_failures_is_that_of_the_run() {
    let (_, one) = with_new_test(&[("a", true)]);
    // The tests of the failures by their numbers: the last two cases are one test on two variants.
    for (mines, tests, run) in [
        (&[0.01, 0.02][..], &[0, 1][..], Action::Pass),
        (&[0.03, 0.03], &[0, 1], Action::Rerun),
        (&[0.5, 0.5, 0.5, 0.5], &[0, 1, 2, 3], Action::Block),
        (&[0.01, 0.95], &[0, 1], Action::Block),
        (&[0.04], &[0], Action::Pass),
        (&[0.03, 0.03], &[0, 0], Action::Pass),
        (&[0.95, 0.999], &[0, 0], Action::Block),
    ] {
        let each = tests.iter().zip(mines);
        let causes: Vec<FailureCause> = each
            .map(|(test, mine)| {
                let mut cause = one[0].clone();
                cause.test = *test;
                cause.probabilities.this_change = *mine;
                cause.probabilities.flake = 1.0 - mine;
                cause.probabilities.environment = 0.0;
                cause.probabilities.broken_before = 0.0;
                cause.probabilities.earlier_on_branch = 0.0;
                cause
            })
            .collect();
        let actions = gate::Actions::of(&causes);
        let order = [Action::Pass, Action::Rerun, Action::Block];
        let place = |action: Action| order.iter().position(|other| *other == action);
        let strongest = mines
            .iter()
            .map(|mine| actions.of_failure(*mine))
            .max_by_key(|action| place(*action));
        assert_eq!(
            (strongest, gate::gate(&causes).action),
            (Some(run), run),
            "{mines:?}"
        );
        for mine in mines {
            let action = actions.of_failure(*mine);
            assert!(*mine < gate::BLOCKS_FROM || action == Action::Block, "{mines:?}");
            let is_unlikely = gate::whose(*mine, action).starts_with("unlikely");
            assert_eq!(is_unlikely, action == Action::Pass, "{mines:?}");
        }
    }
}

//! What the messages about a sequence of runs say.

use assay_messages::{DigestTimes, Every, TimeOfDay, Zone, text};

use crate::world::{Inbox, MINUTE, Run, START, World};

/// A run: its branch, with `, half` if it had half of the tests and `, cut` if it was interrupted after them, the failed tests, and their error, in which `N` is the number of the test.
type Step = (&'static str, Vec<usize>, &'static str);

/// All messages, one after another, each with the number of the run after which it came.
fn messages(tests: usize, minutes: i64, steps: &[Step], digest: Option<DigestTimes>) -> Vec<(usize, String)> {
    let (world, inbox) = (World::new(1), Inbox::default());
    let project = &world.projects[0];
    let mut told = Vec::new();
    for (place, (branch, failed, error)) in steps.iter().enumerate() {
        let number = place + 1;
        let at = START.plus_ms(i64::try_from(number).unwrap() * minutes * MINUTE);
        let error = |test: usize| error.replace('N', &test.to_string());
        let (cut, half) = (branch.strip_suffix(", cut"), branch.strip_suffix(", half"));
        let run = Run {
            key: format!("run {number}"),
            branch: cut.or(half).unwrap_or(branch).to_owned(),
            commit: format!("{number:08x}{}", "0".repeat(32)),
            tests: if cut.or(half).is_some() { tests / 2 } else { tests },
            is_cut: cut.is_some(),
            failed: failed.iter().map(|test| (*test, error(*test))).collect(),
        };
        world.import(project, &run, at);
        for after in [1, 12] {
            world.pass_with(&inbox, digest.clone(), &|| at.plus_ms(after * MINUTE));
        }
        for (_, content) in inbox.lock().unwrap().drain(..) {
            told.push((number, text::plain(&content)));
        }
    }
    told
}

fn green(runs: usize) -> Vec<Step> {
    vec![("main", Vec::new(), ""); runs]
}

#[test]
fn red_on_the_stable_branch_is_told_at_once_whatever_the_number_of_tests() {
    for number in 1..=12 {
        let mut steps = green(12);
        steps.push(("main", (0..number).collect(), "Error: the queue is full"));
        let told = messages(30, 240, &steps, None);
        let [(13, text)] = told.as_slice() else {
            panic!("{number}: {told:?}")
        };
        let tests = match number {
            1 => "1 test broke since".to_owned(),
            _ => format!("{number} tests broke with one error since"),
        };
        assert!(text.contains(&format!("{tests} 0000000d by Ada")), "{text}");
        assert!(
            text.contains("test 0") && text.contains("Error: the queue is full"),
            "{text}"
        );
    }
}

#[test]
fn a_suite_recovers_only_by_a_newer_run() {
    const ERROR: &str = "Error: selector N";
    let steps = [
        ("main", vec![], ERROR),
        ("t1-0", vec![], ERROR),
        ("t2-0", vec![8, 9], ERROR),
        ("main", vec![9], ERROR),
        ("t1-0", vec![9], ERROR),
        ("t2-0", vec![8, 9], ERROR),
        // The rest of the suite is missing.
        ("main, cut", vec![], ERROR),
        ("t1-0", vec![], ERROR),
        ("main, half", vec![], ERROR),
    ];
    let mut told = messages(10, 80, &steps, None);
    assert!(
        told.iter()
            .any(|(run, text)| *run == 4 && text.contains("1 test broke")),
        "{told:?}"
    );
    // A test that left the suite is not repaired.
    let (run, recovered) = told.pop().unwrap();
    assert!(
        run == 9
            && recovered.ends_with("passes again on main as of run 9 (00000009 by Ada): 1 test did not run"),
        "{recovered}"
    );
    assert!(
        told.iter()
            .all(|(_, text)| !text.contains("again") && !text.contains("repaired")),
        "{told:?}"
    );
}

#[test]
fn a_release_branch_is_told_by_its_name() {
    let mut steps = green(6);
    steps.extend(vec![("release/1.2", Vec::new(), ""); 3]);
    steps.push(("release/1.2", vec![0, 1], "Error: first"));
    steps.push(("release/1.2", vec![0, 1], "Error: first"));
    steps.push(("topic", vec![5], "Error: other"));
    steps.push(("release/1.2", Vec::new(), ""));
    let told = messages(30, 240, &steps, None);
    let [(10, broke), (13, recovered)] = told.as_slice() else {
        panic!("{told:?}")
    };
    assert!(
        broke.contains("release/1.2: 2 tests broke with one error since 0000000a by Ada"),
        "{broke}"
    );
    assert!(
        recovered.contains(
            "the suite passes again on release/1.2 as of run 13 (0000000d by Ada): 2 tests repaired"
        ),
        "{recovered}"
    );
}

#[test]
fn another_breakage_of_a_failed_suite_is_told_with_its_own_number_and_so_is_the_recovery_of_each() {
    let mut steps = green(10);
    steps.push(("main", vec![0, 1], "Error: first"));
    steps.push(("main", vec![0, 1, 4, 5, 6], "Error: N"));
    // The second breakage is repaired first, and a third one begins.
    steps.push(("main", vec![0, 1, 9], "Error: N"));
    steps.extend(green(2));
    let told = messages(30, 240, &steps, None);
    let has = |run: usize, part: &str| told.iter().any(|(of, text)| *of == run && text.contains(part));
    assert!(
        has(11, "2 tests broke with one error since 0000000b by Ada"),
        "{told:?}"
    );
    assert!(
        has(12, "3 tests broke with 3 errors since 0000000c by Ada"),
        "{told:?}"
    );
    assert!(
        has(13, "1 test broke since 0000000d by Ada") && !has(13, "suite passes again"),
        "{told:?}"
    );
    assert!(
        has(14, "3 tests pass again as of run 13 (0000000d by Ada)"),
        "{told:?}"
    );
    assert!(
        has(
            15,
            "the suite passes again on main as of run 14 (0000000e by Ada): 3 tests repaired"
        ),
        "{told:?}"
    );
}

#[test]
fn a_digest_is_the_sum_of_what_was_told() {
    let mut steps = green(8);
    steps.extend(vec![("main", (0..6).collect(), "Error: the database is gone"); 3]);
    steps.extend(green(20));
    let digest = DigestTimes {
        every: Every::Day,
        at: TimeOfDay::parse("23:30").unwrap(),
        zone: Zone::utc(),
    };
    let told = messages(30, 60, &steps, Some(digest));
    let digest = told.iter().find(|(_, text)| text.contains("the last day"));
    let (_, digest) = digest.unwrap_or_else(|| panic!("{told:?}"));
    assert!(digest.contains("6 tests broke, 6 repaired"), "{digest}");
    let recovered = told.iter().find(|(_, text)| text.contains("passes again"));
    let (12, recovered) = recovered.unwrap() else {
        panic!("{told:?}")
    };
    assert!(recovered.contains("6 tests repaired"), "{recovered}");
}

#[test]
fn the_number_of_a_breakage_counts_flaky_tests_with_its_error() {
    let mut steps = Vec::new();
    // Tests 0 and 1 fail now and then, and pass again on the same branch.
    for number in 0..24 {
        let failed = (0..2).filter(|test| number % 5 == test * 2).collect();
        steps.push(("main", failed, "Error: flake N"));
    }
    steps.push(("main", (0..20).collect(), "Error: the service is gone"));
    let told = messages(60, 240, &steps, None);
    let last: Vec<&(usize, String)> = told.iter().filter(|(run, _)| *run == 25).collect();
    assert!(
        last.iter()
            .any(|(_, text)| text.contains("20 tests broke with one error since 00000019 by Ada")),
        "{told:?}"
    );
    assert!(
        told.iter()
            .any(|(run, text)| *run < 25 && text.contains(" flaky as of run ")),
        "{told:?}"
    );
}

#[test]
fn a_change_of_a_branch_or_an_outage_makes_no_message_about_a_flaky_test() {
    let mut steps = green(10);
    for (branch, test) in [("a", 1), ("b", 2), ("c", 3)] {
        steps.push((branch, vec![test], "Error: N"));
        steps.push((branch, vec![], ""));
        steps.push(("main", vec![], ""));
    }
    // An outage fails twelve tests, and the same branch passes afterwards.
    steps.push(("d", (10..22).collect(), "Error: connection refused"));
    steps.push(("d", vec![], ""));
    steps.extend(green(3));
    let told = messages(30, 60, &steps, None);
    assert!(told.iter().all(|(_, text)| !text.contains("flaky")), "{told:?}");
}

#[test]
fn a_new_error_is_told_with_its_own_number_and_start_if_some_of_its_tests_failed_before() {
    let mut steps = green(10);
    steps.push(("main", (0..3).collect(), "Error: the first"));
    steps.push(("main", (0..9).collect(), "Error: the second"));
    // The second one grows.
    steps.push(("main", (0..12).collect(), "Error: the second"));
    let told = messages(30, 240, &steps, None);
    for (run, tests) in [(12, 9), (13, 12)] {
        let sentence = format!("{tests} tests broke with one error since 0000000c by Ada");
        assert!(
            told.iter()
                .any(|(of, text)| *of == run && text.contains(&sentence)),
            "{told:?}"
        );
    }
}

#[test]
fn breakages_and_changes_of_one_test_make_it_broken_each_time_and_never_flaky() {
    let mut steps = green(8);
    for [one, other, of_main] in [
        ["Error: no price", "Error: no tax", "Error: no cart"],
        ["Error: no user", "Error: no mail", "Error: no stock"],
        ["Error: no name", "Error: no street", "Error: no town"],
    ] {
        for (branch, error) in [("a", one), ("b", other)] {
            steps.extend([(branch, vec![5], error), (branch, vec![], "")]);
        }
        steps.push(("main", vec![5], of_main));
        steps.extend(green(3));
    }
    let told = messages(30, 240, &steps, None);
    let broken = told.iter().filter(|(run, text)| {
        let (branch, failed, _) = &steps[run - 1];
        *branch == "main"
            && failed.len() == 1
            && text.contains(&format!("1 test broke since {run:08x} by Ada"))
    });
    assert_eq!(broken.count(), 3, "{told:?}");
    assert!(
        told.iter()
            .all(|(_, text)| !text.contains(" flaky as of") && !text.contains("flaky test")),
        "{told:?}"
    );
}

#[test]
fn a_recovery_comes_before_flaky_tests() {
    let mut steps = Vec::new();
    for number in 0..20 {
        let failed = if number % 4 == 1 { vec![7] } else { vec![] };
        steps.push(("main", failed, "Error: flake"));
    }
    steps.push(("main", vec![0, 1], "Error: broken"));
    steps.extend(green(2));
    let told = messages(30, 120, &steps, None);
    for (_, text) in told.iter().filter(|(_, text)| text.contains("passes again")) {
        let first = text.lines().next().unwrap();
        assert!(first.contains("passes again"), "{text}");
    }
}

//! Parts of a run: what one upload adds to another, in any order of arrival.

use std::collections::BTreeMap;

use assay_domain::{
    attempt::{AttemptStatus, ErrorDetail},
    ingest::IngestTerms,
    recording::{Effect, ImportReceipt, Recording, ReplacedResults},
    rules::{RecordingRules, RuleViolation},
    run::{Outcome, RunState},
    store::{Administration, RecordError, Recorder, Store},
    test::TestLookup,
};
use proptest::{prelude::*, test_runner::TestRunner};

use crate::fixture::*;

/// The executions of a test in a run, each as the letters of its attempts, in the order of the answer.
fn executions(world: &World, of: &ImportReceipt, test: &str) -> Vec<String> {
    let lookup = world
        .store
        .attempts(&world.project, of.run_id, &any_file(test))
        .unwrap()
        .unwrap();
    let TestLookup::Found(found) = lookup else {
        panic!("{test}: {lookup:?}")
    };
    let executions = found
        .attempts
        .chunk_by(|one, next| one.execution == next.execution)
        .map(|execution| {
            let retries: Vec<u32> = execution.iter().map(|attempt| attempt.retry).collect();
            assert_eq!(retries, (0..).take(execution.len()).collect::<Vec<u32>>());
            execution.iter().map(|attempt| letter(attempt.status)).collect()
        });
    executions.collect()
}

fn letter(status: AttemptStatus) -> char {
    *['p', 'f', 't', 's', 'i']
        .iter()
        .find(|letter| super::fixture::status(**letter) == status)
        .unwrap()
}

/// A report of a first attempt, in which `b` failed.
fn first() -> Recording {
    report("a")
        .at(3 * HOUR)
        .test("a", "p")
        .test("b", "f")
        .test("c", "p")
}

#[test]
fn a_part_that_lacks_a_failed_test_or_has_a_new_one_is_no_retry() {
    for tests in [&["a"][..], &["a", "b", "c"], &["b", "new"]] {
        let world = World::new();
        world.import(&first());
        let mut other = report("a").content(1).at(2 * HOUR);
        for test in tests {
            other = other.test(test, "p");
        }
        let receipt = world.import(&other);
        assert!(!receipt.standing.continues, "{tests:?}");
        assert_eq!(receipt.standing.beside.len(), 1, "{tests:?}");
        assert_eq!(receipt.status, Some(Outcome::Failed), "{tests:?}");
    }
}

#[test]
fn legs_that_nothing_tells_apart_stay_beside_each_other() {
    let world = World::new();
    let leg = |content: u8, outcome: &str| {
        report("a")
            .content(content)
            .attempt_of("test", 1)
            .test("x", outcome)
    };
    world.import(&leg(0, "f"));
    let second = world.import(&leg(1, "p"));
    assert_eq!(executions(&world, &second, "x"), ["p", "f"], "the worst is last");
    assert_eq!(second.status, Some(Outcome::Failed));
    assert_eq!(second.standing.beside, [leg(0, "p").sender]);
    // Another machine or another job is another sender.
    let mut elsewhere = leg(2, "p");
    elsewhere.sender.runner = Some("elsewhere".to_owned());
    let third = world.import(&elsewhere);
    assert_eq!(executions(&world, &third, "x"), ["p", "p", "f"]);
    let mut lint = leg(3, "p");
    lint.sender.job = Some("lint".to_owned());
    lint.sender.attempt.of_job = 9;
    let fourth = world.import(&lint);
    assert_eq!(
        executions(&world, &fourth, "x"),
        ["p", "p", "p", "f"],
        "not an attempt of the other job"
    );
    assert_eq!(fourth.standing.beside.len(), 2);
    // Three legs have one job and path. A second attempt continues them once as many of its reports have the test.
    let again = |content: u8| {
        let mut again = leg(content, "p");
        again.sender.attempt.of_job = 2;
        again
    };
    for content in [4, 5] {
        assert_eq!(world.import(&again(content)).status, Some(Outcome::Failed));
    }
    let last = world.import(&again(6));
    assert_eq!(last.status, Some(Outcome::Passed));
    assert!(last.standing.continues);
}

#[test]
fn a_repeated_command_is_a_retry_only_if_the_user_says_so() {
    let world = World::new();
    let run = |content: u8, attempt: u32, outcome: &str| {
        let mut run = report("a")
            .content(content)
            .attempt_of("test", 1)
            .test("x", outcome);
        run.sender.attempt.of_command = attempt;
        run
    };
    world.import(&run(0, 1, "f"));
    let second = world.import(&run(1, 2, "p"));
    assert_eq!(executions(&world, &second, "x"), ["fp"]);
    assert!(second.standing.beside.is_empty());
    // The second command of another machine continues nothing here.
    let mut elsewhere = run(2, 3, "p");
    elsewhere.sender.runner = Some("elsewhere".to_owned());
    assert_eq!(world.import(&elsewhere).standing.beside.len(), 1);
}

#[test]
fn the_same_content_of_another_attempt_is_another_part() {
    let world = World::new();
    let attempt = |number| first().attempt_of("unit", number);
    world.import(&attempt(1));
    assert_eq!(world.import(&attempt(1)).effect, Effect::Unchanged);
    let second = world.import(&attempt(2));
    assert_eq!(second.effect, Effect::Added);
    assert_eq!(executions(&world, &second, "b"), ["ff"]);
}

#[test]
fn a_report_replaces_only_on_request_and_counts_what_it_replaced() {
    let world = World::new();
    let first_part = world.import(&first());
    world.import(&report("a").content(1).at(2 * HOUR).test("b", "f").test("d", "f"));
    let replacing = report("a").content(2).replacing().test("a", "p");
    let replaced = world.import(&replacing);
    assert_eq!(replaced.effect, Effect::Replaced);
    assert_eq!(
        replaced.standing.replaced,
        Some(ReplacedResults { tests: 4, failed: 2 })
    );
    assert_eq!(
        (replaced.run_id, replaced.shard_id),
        (first_part.run_id, first_part.shard_id)
    );
    assert_eq!(
        (replaced.counts.total, replaced.status),
        (1, Some(Outcome::Passed))
    );
    assert_eq!(world.import(&replacing).effect, Effect::Unchanged);
    // Other shards stay.
    let shard = |index, content| report("b").shard(index, 2).content(content);
    world.import(&shard(1, 0).test("x", "f"));
    world.import(&shard(2, 0).test("y", "f"));
    let replaced = world.import(&shard(2, 1).replacing().test("y", "p"));
    assert_eq!(
        replaced.standing.replaced,
        Some(ReplacedResults { tests: 1, failed: 1 })
    );
    assert_eq!((replaced.counts.total, replaced.counts.failed), (2, 1));
    assert_eq!(world.rebuild(world.project.id).runs_changed, 0);
}

#[test]
fn a_later_attempt_that_runs_all_tests_again_ends_an_interruption() {
    let cut = || {
        let mut cut = report("a")
            .at(3 * HOUR)
            .attempt_of("unit", 1)
            .test("x", "p")
            .test("y", "i");
        cut.state = RunState::Interrupted;
        cut.report_errors = vec![ErrorDetail::default()];
        cut
    };
    let again = |tests: &[&str]| {
        let mut again = report("a").content(1).at(HOUR).attempt_of("unit", 2);
        for test in tests {
            again = again.test(test, "p");
        }
        again
    };
    let world = World::new();
    world.import(&cut());
    let whole = world.import(&again(&["x", "y", "z"]));
    assert_eq!(whole.status, Some(Outcome::Passed));
    assert_eq!(executions(&world, &whole, "y"), ["ip"]);
    assert_eq!(world.detail(&whole).run.report_errors, []);
    // Tests that did not run again may have been interrupted.
    let world = World::new();
    world.import(&cut());
    let part = world.import(&again(&["y"]));
    assert_eq!(part.status, Some(Outcome::Failed));
    assert_eq!(world.detail(&part).run.report_errors.len(), 1);
    assert_eq!(world.rebuild(world.project.id).runs_changed, 0);
}

#[test]
fn a_job_that_sent_two_reports_is_not_over_with_one() {
    let world = World::new();
    let mut crashed = report("a").content(1).attempt_of("unit", 1);
    crashed.report_errors = vec![ErrorDetail::default()];
    world.import(&report("a").attempt_of("unit", 1).test("x", "p"));
    world.import(&crashed);
    let unit = world.import(&report("a").content(2).attempt_of("unit", 2).test("x", "p"));
    assert_eq!(unit.status, Some(Outcome::Failed), "the other report is missing");
    let both = world.import(&report("a").content(3).attempt_of("unit", 2).test("y", "p"));
    assert_eq!(both.status, Some(Outcome::Passed));
}

#[test]
fn a_report_of_another_revision_is_refused() {
    let world = World::new();
    world.import(&report("a").test("x", "p"));
    let mut other = report("a").content(1).test("y", "p");
    other.context.commit_sha = Some("beef00".to_owned());
    let error = world.try_import(&other).unwrap_err();
    assert!(matches!(error, RecordError::RevisionDiffers { .. }), "{error}");
    for part in ["c0ffee", "beef00", "\"a\"", "run 1"] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    // An abbreviation, the head of a merge commit and an unknown commit are accepted.
    let mut merge = report("b").test("x", "p");
    merge.context.tested_revision = Some("4f1d2c3b5a".to_owned());
    world.import(&merge);
    for (content, commit) in [(1, Some("C0FF")), (2, Some("4f1d2c3b")), (3, None)] {
        let mut same = report("b").content(content).test(&format!("test {content}"), "p");
        same.context.commit_sha = commit.map(str::to_owned);
        world.import(&same);
    }
    let mut other_head = report("b").content(4).test("y", "p");
    other_head.context.tested_revision = Some("aaaa".to_owned());
    assert!(
        world.try_import(&other_head).is_err(),
        "one merge commit, two heads"
    );
    // A report that replaces the whole run may be of another revision.
    let replaced = world.import(&other.replacing());
    assert_eq!(replaced.context.commit_sha.as_deref(), Some("beef00"));
}

/// Jenkins knows neither the stage nor the machine of a report later.
#[test]
fn what_a_ci_service_still_has_of_a_run_changes_nothing_that_its_jobs_sent() {
    let world = World::new();
    let of_build = |key: &str, build: u32| {
        let mut recording = report(key).test("x", "fp").test("y", "p");
        recording.context.run_url = Some(format!("https://ci.test/job/api/{build}/"));
        recording
    };
    let backfilled = |key: &str, build: u32| {
        let mut recording = of_build(key, build).content(9).branch("api");
        recording.is_backfilled = true;
        recording
    };
    // One job has no stage; the other one's is the suite, so that its run has another key.
    for (sent, later) in [("api-1", "api-1"), ("api-2\tunit", "api-2")] {
        let build = later[4..].parse().unwrap();
        let before = world.import(&of_build(sent, build).attempt_of("unit", 1));
        let after = world.import(&backfilled(later, build));
        assert_eq!(
            (after.effect, after.run_number),
            (Effect::Unchanged, before.run_number)
        );
        assert_eq!(executions(&world, &after, "x"), executions(&world, &before, "x"));
    }
    let mut other = backfilled("api-1", 1);
    other.context.commit_sha = Some("beef00".to_owned());
    let refused = world.try_import(&other);
    assert!(
        matches!(refused, Err(RecordError::RevisionDiffers { .. })),
        "{refused:?}"
    );
    // A build without any is stored, once.
    let effects = [(); 2].map(|()| world.import(&backfilled("api-3", 3)).effect);
    assert_eq!(effects, [Effect::Added, Effect::Unchanged]);
    // Its other reports are, too: only what jobs sent themselves takes precedence.
    let rest = world.import(&backfilled("api-3", 3).content(8));
    assert_eq!((rest.effect, rest.run_number), (Effect::Added, 3));
    // A job that the service names may have sent nothing. Its run has the values of the one that did.
    let mut other_job = backfilled("api-1", 1).attempt_of("e2e", 1);
    other_job.context.pull_request_title = Some("Carts".to_owned());
    let added = world.import(&other_job);
    let context = added.context;
    assert_eq!(added.effect, Effect::Added);
    assert_eq!(
        (context.branch.as_deref(), context.pull_request_title.as_deref()),
        (Some("main"), Some("Carts"))
    );
}

#[test]
fn an_attempt_after_the_run_is_closed_begins_a_run_of_its_own() {
    let world = World::new();
    let rules = RecordingRules::of_key(&IngestTerms::default());
    let import = |recording: &Recording, hours: i64| {
        let now = NOW.plus_ms(hours * HOUR);
        world
            .store
            .record_under(world.project.id, recording, rules, &CountingJudge, now)
    };
    let attempt = |number: u64, content: u8| first().content(content).attempt_of("unit", number);
    let closed = import(&attempt(1, 0), 0).unwrap();
    let same_attempt = import(&attempt(1, 1), 25).unwrap_err();
    assert!(
        matches!(
            same_attempt,
            RecordError::NotAllowed(RuleViolation::RunClosed { .. })
        ),
        "{same_attempt}"
    );
    assert_eq!(import(&attempt(1, 0), 25).unwrap().effect, Effect::Unchanged);
    let second = import(&attempt(2, 2), 25).unwrap();
    assert_eq!((second.run_number, second.standing.continues), (2, false));
    assert_ne!(second.run_id, closed.run_id);
    let third = import(&attempt(3, 3), 26).unwrap();
    assert_eq!((third.run_number, third.standing.continues), (2, true));
    let fourth = import(&attempt(4, 4), 60).unwrap();
    assert_eq!(fourth.run_number, 3);
    assert_eq!(world.detail(&closed).counts.total, 3);
}

#[test]
fn a_failed_test_that_an_attempt_after_the_run_is_closed_lacks_leaves_it_red() {
    let world = World::new();
    let rules = RecordingRules::of_key(&IngestTerms::default());
    let import = |recording: &Recording, hours: i64| {
        let now = NOW.plus_ms(hours * HOUR);
        let stored = world
            .store
            .record_under(world.project.id, recording, rules, &CountingJudge, now);
        stored.unwrap()
    };
    let attempt = |number: u64, tests: &str| {
        let report = report("re-run")
            .attempt_of("unit", number)
            .content(u8::try_from(number).unwrap());
        let tests = tests.split_whitespace().map(|test| test.split_once('=').unwrap());
        tests.fold(report, |report, (name, attempts)| report.test(name, attempts))
    };
    import(&attempt(1, "x=f y=f z=p"), 0);
    let some = import(&attempt(2, "x=p"), 26);
    assert_eq!((some.run_number, some.status), (2, Some(Outcome::Failed)));
    let error = world
        .database
        .text("SELECT report_errors ->> 0 FROM part WHERE run_number = 2");
    assert!(
        error
            .unwrap()
            .contains("1 test failed in an earlier attempt of this job, in run 1")
    );
    let all = import(&attempt(3, "x=p y=p"), 27);
    assert_eq!((all.run_number, all.status), (2, Some(Outcome::Passed)));
    // Control: the later attempt has all failed tests.
    let world_control = import(&attempt(4, "x=p y=p"), 80);
    assert_eq!(
        (world_control.run_number, world_control.status),
        (3, Some(Outcome::Passed))
    );
}

/// A part of a random history: attempt of the job, machine, hours before now, and each test's attempts.
type RandomPart = (u64, u8, i64, BTreeMap<u8, &'static str>);

fn parts() -> impl Strategy<Value = Vec<RandomPart>> {
    let attempts = prop_oneof![4 => Just("p"), 3 => Just("f"), 1 => Just("fp"), 1 => Just("s"), 1 => Just("i"),
        1 => Just("p f"), 1 => Just("f f")];
    let tests = prop::collection::btree_map(0u8..4, attempts, 0..4);
    prop::collection::vec((1u64..4, 0u8..2, 1i64..6, tests), 1..6)
}

fn recorded((attempt, machine, hours, tests): &RandomPart, place: usize) -> Recording {
    let mut recording = report("run").at(*hours * HOUR).attempt_of("job", *attempt);
    recording.content[28] = place as u8;
    recording.sender.runner = Some(format!("machine {machine}"));
    for (test, attempts) in tests {
        recording = recording.test(&format!("test {test}"), attempts);
    }
    recording
}

/// What the API shows of a run, without ids.
fn shown(world: &World, project: &assay_domain::project::Project, of: &ImportReceipt) -> String {
    let detail = world.store.run(project, of.run_id).unwrap().unwrap();
    let run = &detail.run;
    let mut text = format!(
        "{:?} {:?} {:?} {:?} {:?}",
        run.status, run.started_at, run.finished_at, run.duration_ms, detail.counts
    );
    for entry in &detail.tests {
        let lookup = world
            .store
            .attempts(project, of.run_id, &any_file(&entry.test_name))
            .unwrap()
            .unwrap();
        let TestLookup::Found(found) = lookup else {
            panic!("{lookup:?}")
        };
        let attempts: Vec<_> = found
            .attempts
            .iter()
            .map(|attempt| {
                (
                    attempt.execution,
                    attempt.retry,
                    attempt.status,
                    attempt.duration_ms,
                )
            })
            .collect();
        text += &format!(
            "\n{} {:?} {} {attempts:?}",
            entry.test_name, entry.status, entry.attempts
        );
    }
    text
}

#[test]
fn the_order_of_arrival_changes_nothing_and_no_failure_is_lost() {
    let world = World::new();
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let orders = parts().prop_flat_map(|parts| {
        let order = Just((0..parts.len()).collect::<Vec<_>>()).prop_shuffle();
        (Just(parts), order)
    });
    runner
        .run(&orders, |(parts, order)| {
            let import_all = |order: &[usize]| {
                let case = world.store.all_projects().unwrap().len();
                let project = world.another_project(&format!("case {case}"));
                let mut last = None;
                for place in order {
                    let recording = recorded(&parts[*place], *place);
                    last = Some(
                        world
                            .store
                            .record(project.id, &recording, &CountingJudge, NOW)
                            .unwrap(),
                    );
                }
                let last = last.unwrap();
                assert_eq!(world.rebuild(project.id).runs_changed, 0);
                (shown(&world, &project, &last), project, last)
            };
            let in_order: Vec<usize> = (0..parts.len()).collect();
            let (first, project, receipt) = import_all(&in_order);
            let (other, ..) = import_all(&order);
            prop_assert_eq!(&first, &other);

            let detail = world.store.run(&project, receipt.run_id).unwrap().unwrap();
            let mut any_open = false;
            for entry in &detail.tests {
                let lookup = world
                    .store
                    .attempts(&project, receipt.run_id, &any_file(&entry.test_name));
                let Some(TestLookup::Found(found)) = lookup.unwrap() else {
                    panic!()
                };
                let number: u8 = entry.test_name.strip_prefix("test ").unwrap().parse().unwrap();
                let sent: Vec<char> = parts
                    .iter()
                    .filter_map(|(.., tests)| tests.get(&number))
                    .flat_map(|attempts| attempts.chars().filter(|letter| *letter != ' '))
                    .collect();
                let mut stored: Vec<char> = found
                    .attempts
                    .iter()
                    .map(|attempt| letter(attempt.status))
                    .collect();
                let mut expected = sent.clone();
                stored.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(stored, expected, "every attempt is in the answer");
                for execution in found
                    .attempts
                    .chunk_by(|one, next| one.execution == next.execution)
                {
                    let ran = execution.iter().rev().find(|attempt| !attempt.status.is_skip());
                    any_open |= ran.is_some_and(|attempt| attempt.status.is_failure());
                }
            }
            prop_assert_eq!(
                receipt.status == Some(Outcome::Failed),
                any_open,
                "green only if every execution passed"
            );
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_report_in_two_parts_gives_the_rows_of_one() {
    let world = World::new();
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 16,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let strategy = (parts(), any::<u8>());
    runner
        .run(&strategy, |(parts, mask)| {
            let whole = recorded(&parts[0], 0);
            let shown_of = |recordings: &[Recording]| {
                let case = world.store.all_projects().unwrap().len();
                let project = world.another_project(&format!("case {case}"));
                let receipts: Vec<ImportReceipt> = recordings
                    .iter()
                    .map(|part| world.store.record(project.id, part, &CountingJudge, NOW).unwrap())
                    .collect();
                shown(&world, &project, receipts.last().unwrap())
            };
            let split = |keep: bool| {
                let mut part = whole.clone();
                part.content[27] = u8::from(keep) + 1;
                let mut place = 0;
                part.tests.retain(|_| {
                    place += 1;
                    (mask >> place & 1 == 1) == keep
                });
                part
            };
            prop_assert_eq!(
                shown_of(std::slice::from_ref(&whole)),
                shown_of(&[split(true), split(false)])
            );
            Ok(())
        })
        .unwrap();
}

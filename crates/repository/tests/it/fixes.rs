//! Fixes of tests: what repetitions show, and claims.

use assay_domain::{
    edge::EdgeSubject,
    fix::{FixError, FixState, MOST_FIXES, NewFix, StoredFix, TestFixes},
    ingest::IngestKeys,
    observation::History,
    period::Days,
    recording::Recording,
    rules::RecordingRules,
    settings::ChatEvent,
    store::{Administration, Outbox, ProjectChange, Recorder, Store},
    test::TestLookup,
    timestamp::Timestamp,
    verdict::{Judge, Judgement},
};

use crate::fixture::*;

fn ingest_key(pull_requests_only: bool) -> RecordingRules {
    RecordingRules::IngestKey {
        backfill: false,
        pull_requests_only,
        budget: None,
    }
}

fn new_fix(test: &str, revision: &str) -> NewFix {
    NewFix {
        test_name: test.to_owned(),
        file_path: excused(test).file_path,
        revision: revision.to_owned(),
        rate_before: Some(0.1),
        check: None,
    }
}

fn test_fixes(world: &World, test: &str) -> TestFixes {
    let period = period(Days::Thirty);
    match world
        .store
        .fixes(&world.project, &any_file(test), &period)
        .unwrap()
    {
        TestLookup::Found(fixes) => fixes,
        other @ (TestLookup::Missing | TestLookup::Ambiguous(_)) => panic!("{other:?}"),
    }
}

fn fixes(world: &World, test: &str) -> Vec<StoredFix> {
    let fixes = test_fixes(world, test).fixes.into_iter();
    fixes.map(|(fix, _)| fix).collect()
}

/// What the page shows of the newest fix.
fn shown(world: &World, test: &str) -> FixState {
    let fixes = test_fixes(world, test).watched(false, |rate| CountingJudge.builds_needed(rate));
    fixes[0].shown.state
}

/// The events about fixes that were written, each with the number of its run.
fn fix_events(world: &World) -> Vec<(ChatEvent, i32)> {
    let edges = world.store.unsettled(world.project.id).unwrap().into_iter();
    let of_fixes = edges.filter(|edge| matches!(edge.subject, EdgeSubject::Fix { .. }));
    of_fixes
        .map(|edge| (edge.event, edge.run.unwrap().number))
        .collect()
}

/// A world with messages, where `pays` failed on the stable branch in its runs 1 and 2.
fn flaky_world() -> World {
    let world = World::new();
    let change = ProjectChange {
        chat: Some(Some(ChatEvent::ALL.to_vec())),
        ..ProjectChange::default()
    };
    let id = world.project.id;
    world.store.set_project(id, &change, &CountingJudge, NOW).unwrap();
    for number in 1..3 {
        import(&world, number, "b0ffee1", "fp", &CountingJudge);
    }
    world
}

/// Run `number` on the stable branch.
fn import(world: &World, number: i64, commit: &str, outcome: &str, judge: &dyn Judge) {
    let mut recording = report(&format!("run {number}"))
        .at((100 - number) * MINUTE)
        .test("pays", outcome);
    recording.context.commit_sha = Some(commit.to_owned());
    world
        .store
        .record(world.project.id, &recording, judge, NOW.plus_ms(number))
        .unwrap();
}

fn claim_fix(world: &World, revision: &str) {
    let fix = new_fix("pays", revision);
    world
        .store
        .record_fix(world.project.id, &fix, ingest_key(false), NOW)
        .unwrap();
}

fn with_message(name: &str, message: &str) -> Recording {
    let mut recording = report(name).test("pays", "p").test("ships", "p");
    recording.context.branch = Some("main".to_owned());
    recording.context.commit_sha = Some(format!("{name}0ffee"));
    recording.context.commit_message = Some(message.to_owned());
    recording
}

#[test]
fn the_newest_fixes_of_a_test_are_kept() {
    let world = World::new();
    world.import(&report("first").test("pays", "p"));
    for number in 0..MOST_FIXES + 5 {
        let at = NOW.plus_ms(i64::from(number));
        let fix = new_fix("pays", &format!("commit{number:03}"));
        world
            .store
            .record_fix(world.project.id, &fix, ingest_key(false), at)
            .unwrap();
    }
    let stored = fixes(&world, "pays");
    assert_eq!(stored.len(), usize::try_from(MOST_FIXES).unwrap());
    assert_eq!(
        (stored[0].revision.as_str(), stored[0].rate_before),
        ("commit024", Some(0.1))
    );
    assert_eq!(stored.last().unwrap().revision, "commit005");
}

#[test]
fn an_unknown_test_and_a_public_key_are_refused() {
    let world = World::new();
    world.import(&report("first").test("pays", "p"));
    let record = |test, rules| {
        let fix = new_fix(test, "c0ffee1");
        world.store.record_fix(world.project.id, &fix, rules, NOW)
    };
    assert!(
        matches!(record("other", ingest_key(false)), Err(FixError::NoTest { test_name }) if test_name == "other")
    );
    assert!(matches!(
        record("pays", ingest_key(true)),
        Err(FixError::NotAllowed)
    ));
    assert!(fixes(&world, "pays").is_empty());
}

#[test]
fn a_message_on_the_stable_branch_claims_a_fix_once() {
    let world = World::new();
    let message = "Wait for the cart\n\nAssay-Fixes: pays\nassay-fixes:  nothing of this report\n";
    let imported = world.import(&with_message("c1", message));
    assert_eq!(imported.standing.unknown_claims, ["nothing of this report"]);
    world.import(&with_message("c1", message).at(HOUR));
    world.import(&with_message("c2", "Assay-Fixes:"));
    let claimed = fixes(&world, "pays");
    let revisions: Vec<&str> = claimed.iter().map(|fix| fix.revision.as_str()).collect();
    assert_eq!(revisions, ["c10ffee"]);
    assert!(claimed[0].check.is_none() && fixes(&world, "ships").is_empty());
    // A branch claims nothing.
    let mut of_branch = with_message("c3", "Assay-Fixes: ships");
    of_branch.context.branch = Some("feature".to_owned());
    let id = world.project.id;
    world
        .store
        .record_under(id, &of_branch, ingest_key(false), &CountingJudge, NOW)
        .unwrap();
    assert!(fixes(&world, "ships").is_empty());
}

#[test]
fn a_fix_that_held_is_reported_once_with_the_run_that_decided_it() {
    let world = flaky_world();
    claim_fix(&world, "c0ffee1");
    assert_eq!(shown(&world, "pays"), FixState::Waiting);
    for number in 3..5 {
        import(&world, number, "c0ffee1", "p", &CountingJudge);
    }
    // Another branch shows nothing of a fix.
    let of_branch = report("branch").branch("feature").test("pays", "p");
    world.import(&of_branch);
    assert_eq!(
        (shown(&world, "pays"), fix_events(&world)),
        (FixState::Watching, vec![])
    );
    import(&world, 6, "d0ffee1", "p", &CountingJudge);
    let held = [(ChatEvent::FixHeld, 6)];
    assert_eq!(
        (shown(&world, "pays"), fix_events(&world)),
        (FixState::Held, held.to_vec())
    );
    // A later failure is another flake. The test was called flaky before, so no edge repeats it.
    let flaky = |world: &World| {
        let edges = world.store.unsettled(world.project.id).unwrap();
        let flaky = edges.iter().filter(|edge| edge.event == ChatEvent::TestFlaky);
        flaky.count()
    };
    let before = flaky(&world);
    import(&world, 7, "d0ffee1", "fp", &CountingJudge);
    assert_eq!((fix_events(&world), flaky(&world)), (held.to_vec(), before));
    assert_eq!((before, shown(&world, "pays")), (1, FixState::Held));
}

#[test]
fn a_fix_that_did_not_hold_is_reported_by_the_next_judgement_if_the_first_one_was_killed() {
    struct KilledJudge;
    impl Judge for KilledJudge {
        fn judge(&self, _: &History, _: Timestamp) -> Vec<Judgement> {
            panic!("killed while it judges")
        }

        fn builds_needed(&self, _: Option<f64>) -> u32 {
            1
        }
    }
    let world = flaky_world();
    claim_fix(&world, "c0ffee1");
    let killed = || import(&world, 3, "c0ffee1", "fp", &KilledJudge);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(killed)).is_err());
    assert_eq!(fix_events(&world), []);
    for number in 4..7 {
        import(&world, number, "c0ffee1", "p", &CountingJudge);
    }
    assert_eq!(fix_events(&world), [(ChatEvent::FixDidNotHold, 3)]);
    assert_eq!(shown(&world, "pays"), FixState::DidNotHold);
    // The newest claim is the one that is reported.
    claim_fix(&world, "d0ffee1");
    import(&world, 7, "d0ffee1", "fp", &CountingJudge);
    assert_eq!(fix_events(&world)[1..], [(ChatEvent::FixDidNotHold, 7)]);
}

#[test]
fn a_judgement_without_messages_decides_a_fix_and_tells_nothing() {
    let world = flaky_world();
    claim_fix(&world, "c0ffee1");
    let id = world.project.id;
    let mut old = report("old").at(20 * MINUTE).test("pays", "fp");
    old.context.commit_sha = Some("c0ffee1".to_owned());
    let rules = RecordingRules::Unrestricted;
    let stored = world.store.store_under(id, &old, rules, NOW).unwrap();
    let mut due = stored.due.unwrap();
    due.is_silent = true;
    world.store.judge_after(&due, &CountingJudge).unwrap();
    import(&world, 90, "c0ffee1", "fp", &CountingJudge);
    assert_eq!(
        (shown(&world, "pays"), fix_events(&world)),
        (FixState::DidNotHold, vec![])
    );
    assert!(test_fixes(&world, "pays").fixes[0].1.is_some());
}

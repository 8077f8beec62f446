//! Fixes of tests: what repetitions show, and claims.

use assay_domain::{
    fix::{FixError, MOST_FIXES, NewFix, StoredFix},
    ingest::IngestKeys,
    recording::Recording,
    rules::RecordingRules,
    store::{Recorder, Store},
    test::TestLookup,
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

fn fixes(world: &World, test: &str) -> Vec<StoredFix> {
    match world.store.fixes(&world.project, &any_file(test)).unwrap() {
        TestLookup::Found(fixes) => fixes,
        other @ (TestLookup::Missing | TestLookup::Ambiguous(_)) => panic!("{other:?}"),
    }
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

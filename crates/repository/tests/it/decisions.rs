//! Decisions of gates on uploads.

use assay_domain::{
    decision::{DecisionError, DecisionReceipt, GateDecision, GateOutcome, RunDecision},
    id::{KeyId, RunId},
    ingest::{IngestKeys, Upload},
    recording::{Effect, ImportReceipt, Recording},
    rules::{RecordingRules, RuleViolation},
    store::{Administration, ReadKeys, Recorder, Store},
    timestamp::Timestamp,
};

use crate::fixture::*;

const ANY: RecordingRules = RecordingRules::IngestKey {
    backfill: false,
    pull_requests_only: false,
    budget: None,
};
const PULL_REQUESTS: RecordingRules = RecordingRules::IngestKey {
    backfill: false,
    pull_requests_only: true,
    budget: None,
};

/// Stores a report and the record of its upload, as the ingest listener does.
fn upload_under(world: &World, recording: &Recording, rules: RecordingRules, at: Timestamp) -> ImportReceipt {
    let store = &world.store;
    let imported = store
        .record_under(world.project.id, recording, rules, &CountingJudge, at)
        .unwrap();
    let upload = Upload {
        key: KeyId(uuid::Uuid::from_bytes([1; 16])),
        project: world.project.id,
        at,
        run_id: imported.run_id,
        run_number: imported.run_number,
        shard_id: imported.shard_id,
        effect: imported.effect,
        bytes: 1,
        files: 1,
        client: None,
        sender: None,
    };
    store.record_upload(&upload).unwrap();
    imported
}

fn upload(world: &World, recording: &Recording, at: Timestamp) -> ImportReceipt {
    upload_under(world, recording, ANY, at)
}

/// A decision on a shard with this many failed tests. These tests are excused.
fn decision(of: &ImportReceipt, failed: u32, tests: &[&str]) -> GateDecision {
    let outcome = match usize::try_from(failed).unwrap() == tests.len() {
        true => GateOutcome::Excused,
        false => GateOutcome::Blocked,
    };
    GateDecision {
        run_id: of.run_id,
        shard_id: Some(of.shard_id),
        outcome,
        failed,
        excused: tests.iter().map(|test| excused(test)).collect(),
    }
}

fn of_whole_run(of: &ImportReceipt, failed: u32, tests: &[&str]) -> GateDecision {
    GateDecision {
        shard_id: None,
        ..decision(of, failed, tests)
    }
}

fn decide(
    world: &World,
    decision: &GateDecision,
    rules: RecordingRules,
    now: Timestamp,
) -> Result<DecisionReceipt, DecisionError> {
    world
        .store
        .record_decision(world.project.id, decision, rules, now)
}

/// The shard of each decision on a run, and the tests that it excused.
fn excused_by_shard(world: &World, of: &ImportReceipt) -> Vec<(Option<u32>, Vec<String>)> {
    let decisions = world.store.decisions(&world.project, of.run_id).unwrap();
    decisions
        .into_iter()
        .map(|RunDecision { shard, decision }| {
            let names = decision.excused.into_iter().map(|test| test.test_name);
            (shard, names.collect())
        })
        .collect()
}

fn names(tests: &[&str]) -> Vec<String> {
    tests.iter().map(|test| (*test).to_owned()).collect()
}

#[test]
fn the_same_decision_changes_nothing_and_a_later_one_replaces_it() {
    let world = World::new();
    let run = upload(&world, &report("a").test("x", "f").test("y", "f"), NOW);
    assert_eq!(excused_by_shard(&world, &run), []);
    let first = decision(&run, 2, &["x"]);
    let receipt = decide(&world, &first, ANY, NOW.plus_ms(1)).unwrap();
    assert_eq!(
        (receipt.run_id, receipt.run_number, receipt.effect),
        (run.run_id, 1, Effect::Added)
    );
    let again = decide(&world, &first, ANY, NOW.plus_ms(2)).unwrap();
    assert_eq!(again.effect, Effect::Unchanged);
    let decisions = world.store.decisions(&world.project, run.run_id).unwrap();
    assert_eq!(decisions.len(), 1);
    let stored = &decisions[0].decision;
    assert_eq!(stored.decided_at, NOW.plus_ms(1), "the time of the first one");
    assert_eq!(
        (stored.outcome, stored.failed, &stored.excused),
        (GateOutcome::Blocked, 2, &vec![excused("x")])
    );
    let later = decide(&world, &decision(&run, 2, &["x", "y"]), ANY, NOW.plus_ms(3)).unwrap();
    assert_eq!(later.effect, Effect::Replaced);
    assert_eq!(excused_by_shard(&world, &run), [(None, names(&["x", "y"]))]);
    let uploads = world.store.uploads(world.project.id, 10).unwrap();
    let listed = uploads[0].upload.decision.as_ref().unwrap();
    assert_eq!(
        (listed.outcome, listed.decided_at),
        (GateOutcome::Excused, NOW.plus_ms(3))
    );

    // The record is deleted with its upload.
    let old = NOW.plus_days(91);
    assert_eq!(world.store.prune(old, false, &mut |_| ()).unwrap().uploads, 1);
    assert_eq!(excused_by_shard(&world, &run), []);
}

#[test]
fn a_decision_holds_for_the_report_that_it_judged() {
    let world = World::new();
    let report_of = |shard, content| report("a").shard(shard, 2).content(content).replacing();
    let one = report_of(1, 0).test("x", "f");
    let first = upload(&world, &one, NOW);
    let second = upload(&world, &report_of(2, 0).test("y", "f"), NOW.plus_ms(1));
    assert_eq!(first.run_id, second.run_id);
    decide(&world, &decision(&first, 1, &["x"]), ANY, NOW).unwrap();
    decide(&world, &decision(&second, 1, &["y"]), ANY, NOW).unwrap();
    let of_shards = [(Some(2), names(&["y"])), (Some(1), names(&["x"]))];
    assert_eq!(excused_by_shard(&world, &first), of_shards);
    // The same report again changes nothing.
    assert_eq!(upload(&world, &one, NOW.plus_ms(2)).effect, Effect::Unchanged);
    assert_eq!(excused_by_shard(&world, &first), of_shards);
    // A decision on all shards is listed beside those on the shards.
    decide(&world, &of_whole_run(&first, 2, &["x", "y"]), ANY, NOW).unwrap();
    let whole = (None, names(&["x", "y"]));
    assert_eq!(excused_by_shard(&world, &first)[0], whole);
    assert_eq!(excused_by_shard(&world, &first).len(), 3);
    let by_shard = ImportReceipt {
        run_id: second.shard_id,
        ..first.clone()
    };
    assert_eq!(
        excused_by_shard(&world, &by_shard).len(),
        3,
        "any shard names the run"
    );

    // The second shard now has other failures. The decisions on it and on the whole run were about the former results.
    let replaced = upload(
        &world,
        &report_of(2, 9).test("y", "p").test("z", "f"),
        NOW.plus_ms(3),
    );
    assert_eq!(replaced.effect, Effect::Replaced);
    assert_eq!(excused_by_shard(&world, &first), [(Some(1), names(&["x"]))]);
    let uploads = world.store.uploads(world.project.id, 10).unwrap();
    let decided = uploads.iter().filter(|upload| upload.upload.decision.is_some());
    assert_eq!(decided.count(), 3, "the record of uploads keeps them");
    decide(&world, &decision(&second, 1, &["z"]), ANY, NOW).unwrap();
    assert_eq!(
        excused_by_shard(&world, &first),
        [(Some(2), names(&["z"])), (Some(1), names(&["x"]))]
    );
}

#[test]
fn a_decision_without_a_matching_upload_or_test_is_refused() {
    let world = World::new();
    let run = upload(&world, &report("a").test("x", "f"), NOW);
    let other = upload(&world, &report("b").test("only in b", "f"), NOW);
    let refused = |decision: &GateDecision| decide(&world, decision, ANY, NOW).unwrap_err();
    let nobodys = RunId(uuid::Uuid::from_bytes([9; 16]));
    for wrong in [
        GateDecision {
            run_id: nobodys,
            ..decision(&run, 1, &["x"])
        },
        GateDecision {
            shard_id: Some(nobodys),
            ..decision(&run, 1, &["x"])
        },
        GateDecision {
            shard_id: Some(other.shard_id),
            ..decision(&run, 1, &["x"])
        },
    ] {
        assert!(matches!(refused(&wrong), DecisionError::NoRun), "{wrong:?}");
    }
    for test in ["y", "only in b"] {
        let error = refused(&decision(&run, 1, &[test]));
        assert!(
            matches!(&error, DecisionError::NoTest { run_number: 1, test_name } if test_name == test),
            "{error:?}"
        );
    }
    let mut in_another_file = decision(&run, 1, &["x"]);
    in_another_file.excused[0].file_path = None;
    assert!(matches!(refused(&in_another_file), DecisionError::NoTest { .. }));
    // A run of another project is absent.
    let api = world.another_project("api");
    let foreign = world
        .store
        .record_decision(api.id, &decision(&run, 1, &["x"]), ANY, NOW);
    assert!(matches!(foreign, Err(DecisionError::NoRun)), "{foreign:?}");
    assert_eq!(world.store.decisions(&api, run.run_id).unwrap(), []);

    let imported = world.import(&report("c").test("x", "f"));
    let error = refused(&of_whole_run(&imported, 1, &["x"]));
    assert!(
        matches!(error, DecisionError::NoUpload { run_number: 3 }),
        "{error:?}"
    );
    for run in [&run, &other, &imported] {
        assert_eq!(excused_by_shard(&world, run), []);
    }
}

#[test]
fn a_key_decides_on_the_runs_that_it_may_change() {
    let world = World::new();
    let mut of_fork = report("a").branch("topic").test("x", "f");
    of_fork.context.pull_request_number = Some(7);
    let of_team = upload(&world, &of_fork, NOW);
    let of_fork = upload_under(&world, &of_fork, PULL_REQUESTS, NOW);
    let on_teams = decide(&world, &decision(&of_team, 1, &["x"]), PULL_REQUESTS, NOW);
    assert!(
        matches!(
            on_teams,
            Err(DecisionError::NotAllowed(RuleViolation::RunOfAnotherKey))
        ),
        "{on_teams:?}"
    );
    decide(&world, &decision(&of_fork, 1, &["x"]), PULL_REQUESTS, NOW).unwrap();
    decide(&world, &of_whole_run(&of_fork, 1, &["x"]), ANY, NOW).unwrap();

    let late = decision(&of_team, 1, &["x"]);
    let closed = decide(&world, &late, ANY, NOW.plus_ms(DAY));
    assert!(
        matches!(
            closed,
            Err(DecisionError::NotAllowed(RuleViolation::RunClosed {
                run_number: 1,
                ..
            }))
        ),
        "{closed:?}"
    );
    decide(&world, &late, ANY, NOW.plus_ms(DAY - 1)).unwrap();
}

#[test]
fn the_decisions_on_a_run_past_retention_are_hidden() {
    let world = World::new();
    let run = upload(&world, &report("a").test("x", "f"), NOW);
    decide(&world, &decision(&run, 1, &["x"]), ANY, NOW).unwrap();
    let later = NOW.plus_days(100);
    let project = world.store.project(&world.caller, world.project.id, later);
    let project = project.unwrap().unwrap();
    assert_eq!(world.store.decisions(&project, run.run_id).unwrap(), []);
    assert_eq!(excused_by_shard(&world, &run).len(), 1);
}

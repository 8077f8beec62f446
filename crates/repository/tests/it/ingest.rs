//! Ingest keys, the record of uploads, and the rules of keys.

use assay_domain::{
    id::KeyId,
    ingest::{IngestKeys, IngestTerms, Upload},
    key::{KeyHash, NewKey},
    period::Days,
    project::Project,
    recording::{Effect, ImportReceipt, Recording},
    rules::{RecordingRules, RuleViolation},
    store::{Administration, KeyRotation, ReadKeys, RecordError, Recorder, Store},
    timestamp::Timestamp,
};

use crate::fixture::*;

fn key(seed: u8) -> NewKey {
    key_at(seed, NOW)
}

fn key_at(seed: u8, created_at: Timestamp) -> NewKey {
    NewKey {
        id: KeyId(uuid::Uuid::from_bytes([seed; 16])),
        hash: KeyHash([seed; 32]),
        prefix: format!("svc_{seed:08}"),
        created_at,
    }
}

fn upload(world: &World, key: &NewKey, at: Timestamp) -> Upload {
    Upload {
        key: key.id,
        project: world.project.id,
        at,
        run_id: assay_domain::id::RunId(uuid::Uuid::from_bytes([7; 16])),
        run_number: 3,
        shard_id: assay_domain::id::RunId(uuid::Uuid::from_bytes([7; 16])),
        effect: Effect::Replaced,
        bytes: 5_000_000_000,
        files: 12,
        client: Some("x".repeat(300)),
        sender: None,
    }
}

const ANY: RecordingRules = RecordingRules::IngestKey {
    backfill: false,
    pull_requests_only: false,
    budget: None,
};
const BACKFILL: RecordingRules = RecordingRules::IngestKey {
    backfill: true,
    pull_requests_only: false,
    budget: None,
};
const PULL_REQUESTS: RecordingRules = RecordingRules::IngestKey {
    backfill: false,
    pull_requests_only: true,
    budget: None,
};

fn send(
    world: &World,
    recording: &Recording,
    rules: RecordingRules,
    now: Timestamp,
) -> Result<ImportReceipt, RecordError> {
    world
        .store
        .record_under(world.project.id, recording, rules, &CountingJudge, now)
}

fn violation(outcome: Result<ImportReceipt, RecordError>) -> RuleViolation {
    match outcome {
        Err(RecordError::NotAllowed(violation)) => violation,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn an_ingest_key_is_found_with_its_project_and_terms_and_a_read_key_is_not() {
    let world = World::new();
    let terms = IngestTerms {
        name: Some("forks".to_owned()),
        expires_at: Some(NOW.plus_days(30)),
        backfill: true,
        pull_requests_only: true,
        trust: None,
    };
    let store = &world.store;
    store
        .create_ingest_key(world.project.id, &key(1), &terms)
        .unwrap();
    store
        .create_read_key(world.caller.organization, &key(2), NOW.plus_days(30))
        .unwrap();
    let ingest_key = store.ingest_key(&KeyHash([1; 32])).unwrap().unwrap();
    assert_eq!(
        (ingest_key.id, ingest_key.project, &ingest_key.terms),
        (key(1).id, world.project.id, &terms)
    );
    assert_eq!(
        (
            ingest_key.project_name.as_str(),
            ingest_key.stable_branch.as_str()
        ),
        ("web", "main")
    );
    assert_eq!(ingest_key.revoked_at, None);
    assert_eq!(store.ingest_key(&KeyHash([2; 32])).unwrap(), None, "a read key");
    assert_eq!(store.ingest_key(&KeyHash([3; 32])).unwrap(), None, "no key");
    assert_eq!(store.key(&KeyHash([1; 32])).unwrap(), None);

    store.revoke_key(key(1).id, NOW).unwrap();
    let ingest_key = store.ingest_key(&KeyHash([1; 32])).unwrap().unwrap();
    assert_eq!(ingest_key.revoked_at, Some(NOW));
    let keys = store.keys(world.caller.organization).unwrap();
    let of_ingest = keys.iter().find(|entry| entry.id == key(1).id).unwrap();
    assert_eq!(of_ingest.name.as_deref(), Some("forks"));
    assert!(of_ingest.backfill && of_ingest.pull_requests_only);

    store
        .create_ingest_key(world.project.id, &key(4), &IngestTerms::default())
        .unwrap();
    let sql = format!(
        "UPDATE project_entry SET deleted_at = now() WHERE id = '{}'",
        world.project.id
    );
    world.database.execute(&sql);
    assert_eq!(
        store.ingest_key(&KeyHash([4; 32])).unwrap(),
        None,
        "its project is deleted"
    );
}

#[test]
fn an_upload_is_listed_with_its_key_for_ninety_days() {
    let world = World::new();
    let store = &world.store;
    let terms = IngestTerms {
        name: Some("ci".to_owned()),
        ..IngestTerms::default()
    };
    store
        .create_ingest_key(world.project.id, &key(1), &terms)
        .unwrap();
    for days in [0, 89, 91] {
        store
            .record_upload(&upload(&world, &key(1), NOW.plus_days(-days)))
            .unwrap();
    }
    let uploads = store.uploads(world.project.id, 10).unwrap();
    let times: Vec<_> = uploads.iter().map(|entry| entry.upload.at).collect();
    assert_eq!(times, [NOW, NOW.plus_days(-89), NOW.plus_days(-91)]);
    let (entry, newest) = (&uploads[0], &uploads[0].upload);
    assert_eq!(
        (newest.key_id, newest.key_name.as_deref()),
        (key(1).id, Some("ci"))
    );
    assert_eq!(
        (newest.bytes, newest.files, newest.run_number),
        (5_000_000_000, 12, 3)
    );
    assert_eq!(newest.effect, Effect::Replaced);
    assert_eq!(entry.client.as_ref().unwrap().len(), 200);
    assert_eq!(store.uploads(world.project.id, 1).unwrap().len(), 1);
    let last_used = store.keys(world.caller.organization).unwrap()[0]
        .last_used_on
        .clone();
    assert_eq!(
        last_used,
        Some(NOW.to_string()[..10].to_owned()),
        "the newest day stays"
    );

    assert_eq!(store.prune(NOW, true, &mut |_| ()).unwrap().uploads, 1);
    assert_eq!(store.prune(NOW, false, &mut |_| ()).unwrap().uploads, 1);
    assert_eq!(store.uploads(world.project.id, 10).unwrap().len(), 2);
    store.revoke_key(key(1).id, NOW).unwrap();
    store.delete_key(key(1).id, NOW).unwrap();
    let remaining = store.uploads(world.project.id, 10).unwrap();
    assert_eq!(
        (remaining.len(), &remaining[0].key_prefix),
        (2, &None),
        "a record outlives its key"
    );
}

#[test]
fn readers_of_a_project_see_the_uploads_of_its_visible_runs() {
    let world = World::new();
    let store = &world.store;
    let terms = IngestTerms {
        name: Some("ci".to_owned()),
        ..IngestTerms::default()
    };
    store
        .create_ingest_key(world.project.id, &key(1), &terms)
        .unwrap();
    let old = world.import(&report("old").at(3 * HOUR).test("a", "p"));
    let new = world.import(&report("new").at(HOUR).test("a", "p"));
    for (minutes, run) in [(1, &old), (2, &new), (3, &new)] {
        let upload = Upload {
            run_id: run.run_id,
            run_number: run.run_number,
            ..upload(&world, &key(1), NOW.plus_ms(minutes * MINUTE))
        };
        store.record_upload(&upload).unwrap();
    }
    // No run with this number is stored.
    store.record_upload(&upload(&world, &key(1), NOW)).unwrap();
    let listed = |project: &Project, limit| -> Vec<(i32, Option<String>)> {
        let uploads = store.project_uploads(project, limit).unwrap();
        uploads
            .into_iter()
            .map(|upload| (upload.run_number, upload.key_name))
            .collect()
    };
    let by = |run: &ImportReceipt| (run.run_number, Some("ci".to_owned()));
    assert_eq!(listed(&world.project, 10), [by(&new), by(&new), by(&old)]);
    assert_eq!(listed(&world.project, 1), [by(&new)]);
    let started = store.runs(&world.project, &run_query()).unwrap().runs[0].started_at;
    let mut later = world.project.clone();
    later.visible_from = started;
    assert_eq!(listed(&later, 10), [by(&new), by(&new)]);
    assert_eq!(listed(&world.another_project("other"), 10), []);
}

#[test]
fn a_replaced_key_works_for_a_while_and_the_new_one_has_its_terms() {
    let world = World::new();
    let store = &world.store;
    let terms = IngestTerms {
        name: Some("ci".to_owned()),
        expires_at: Some(NOW.plus_days(30)),
        backfill: true,
        pull_requests_only: false,
        trust: None,
    };
    store
        .create_ingest_key(world.project.id, &key(1), &terms)
        .unwrap();
    let later = NOW.plus_days(10);
    let until = later.plus_days(1);
    let rotated = KeyRotation::Rotated {
        former_expires_at: until,
        expires_at: Some(later.plus_days(30)),
    };
    let new = key_at(2, later);
    assert_eq!(store.rotate_key(key(1).id, &new, until).unwrap(), rotated);
    assert_eq!(
        store.rotate_key(key(1).id, &new, until).unwrap(),
        rotated,
        "a repetition"
    );
    let terms_of = |seed| store.ingest_key(&KeyHash([seed; 32])).unwrap().unwrap().terms;
    assert_eq!(terms_of(1).expires_at, Some(until));
    let expected = IngestTerms {
        expires_at: Some(later.plus_days(30)),
        ..terms
    };
    assert_eq!(terms_of(2), expected);

    // Replacing never extends a key, and an invalid key cannot be replaced.
    let near_its_end = key_at(3, until.plus_ms(-1));
    let outcome = store
        .rotate_key(key(1).id, &near_its_end, until.plus_days(5))
        .unwrap();
    assert!(matches!(outcome, KeyRotation::Rotated { former_expires_at, .. } if former_expires_at == until));
    let expired = store.rotate_key(key(1).id, &key_at(4, until), until.plus_days(5));
    assert_eq!(expired.unwrap(), KeyRotation::NotValid);
    store.revoke_key(key(2).id, later).unwrap();
    let revoked = store.rotate_key(key(2).id, &key_at(5, later), until);
    assert_eq!(revoked.unwrap(), KeyRotation::NotValid);
    let missing = store.rotate_key(key(9).id, &key_at(6, later), until);
    assert_eq!(missing.unwrap(), KeyRotation::Missing);
}

#[test]
fn a_run_can_be_changed_with_a_key_for_a_day_and_by_an_import_always() {
    let world = World::new();
    let first = report("a").shard(1, 3).test("x", "p");
    send(&world, &first, ANY, NOW).unwrap();
    let second = report("a").shard(2, 3).test("y", "p");
    let nearly = NOW.plus_ms(DAY - 1);
    send(&world, &second, ANY, nearly).unwrap();
    let third = report("a").shard(3, 3).test("z", "p");
    let closed = violation(send(&world, &third, BACKFILL, NOW.plus_ms(DAY)));
    assert!(
        matches!(closed, RuleViolation::RunClosed { run_number: 1, first_shard_at } if first_shard_at == NOW),
        "{closed:?}"
    );
    // The same content again changes nothing, so a closed run accepts it.
    let again = send(&world, &first, ANY, NOW.plus_ms(DAY)).unwrap();
    assert_eq!(again.effect, Effect::Unchanged);
    let imported = send(&world, &third, RecordingRules::Unrestricted, NOW.plus_ms(DAY)).unwrap();
    assert_eq!(imported.counts.total, 3);
}

#[test]
fn a_key_sends_runs_of_the_last_week_unless_it_may_backfill() {
    let world = World::new();
    let old = report("old").at(7 * DAY + 1).test("x", "p");
    let too_old = violation(send(&world, &old, ANY, NOW));
    assert!(matches!(too_old, RuleViolation::StartedTooLongAgo { .. }));
    send(&world, &report("week").at(7 * DAY).test("x", "p"), ANY, NOW).unwrap();
    send(&world, &old, BACKFILL, NOW).unwrap();
    let ahead = report("ahead").at(-10 * MINUTE - 1).test("x", "p");
    for rules in [ANY, BACKFILL] {
        let refused = violation(send(&world, &ahead, rules, NOW));
        assert!(matches!(refused, RuleViolation::StartsInTheFuture { .. }));
    }
    send(&world, &report("soon").at(-10 * MINUTE).test("x", "p"), ANY, NOW).unwrap();
    send(&world, &ahead, RecordingRules::Unrestricted, NOW).unwrap();
}

#[test]
fn a_pull_request_key_sends_pull_requests_that_are_shown_and_do_not_count() {
    let world = World::new();
    for run in 0..6 {
        world.import(&report(&format!("main{run}")).at((run + 2) * HOUR).test("x", "p"));
    }
    let before = world
        .database
        .text("SELECT string_agg(test || status || body, ',' ORDER BY test) FROM verdict");
    let of_pull_request = |name: &str| {
        let mut recording = report(name).branch("topic").test("x", "f").test("fork only", "f");
        recording.context.pull_request_number = Some(7);
        recording
    };
    let mut none = of_pull_request("a");
    none.context.pull_request_number = None;
    let refused = violation(send(&world, &none, PULL_REQUESTS, NOW));
    assert_eq!(refused, RuleViolation::NotAPullRequest);
    let stable = of_pull_request("a").branch("main");
    let refused = violation(send(&world, &stable, PULL_REQUESTS, NOW));
    assert!(matches!(refused, RuleViolation::StableBranch { branch } if branch == "main"));

    let receipt = send(&world, &of_pull_request("a"), PULL_REQUESTS, NOW).unwrap();
    assert_eq!(receipt.verdicts_changed.total, 0);
    assert_eq!(world.detail(&receipt).tests.len(), 2, "the API shows the run");
    assert_eq!(
        world.history(14).runs.len(),
        6,
        "the engine does not read the run"
    );
    let after = world
        .database
        .text("SELECT string_agg(test || status || body, ',' ORDER BY test) FROM verdict");
    assert_eq!(after, before);
    let rebuilt = world.rebuild(world.project.id);
    assert_eq!((rebuilt.runs_changed, rebuilt.verdicts_changed), (0, 0));
    // A superfluous pack is reported.
    world.database.execute(
        "INSERT INTO run_pack SELECT project_id, started_at, 7, pack FROM run_pack WHERE run_number = 1",
    );
    assert_eq!(world.rebuild(world.project.id).runs_changed, 1);
    assert_eq!(world.history(14).runs.len(), 6);
}

#[test]
fn a_run_of_a_pull_request_key_changes_neither_branch_nor_time_of_a_revision_in_a_history() {
    let world = World::new();
    let run = |name: &str, ago: i64, branch: &str| {
        let mut recording = report(name).at(ago).branch(branch).test("x", "p");
        recording.context.commit_sha = Some("aa".to_owned());
        recording.context.pull_request_number = Some(7);
        recording
    };
    send(&world, &run("fork", 3 * HOUR, "fork"), PULL_REQUESTS, NOW).unwrap();
    send(&world, &run("topic", 2 * HOUR, "topic"), ANY, NOW).unwrap();
    let history = world.test_history("x", Days::Seven);
    assert_eq!(
        revision_origins(&history, HOUR),
        [(Some("topic"), Some(2)), (None, None)]
    );
}

#[test]
fn a_pull_request_key_cannot_touch_a_run_of_another_key_nor_take_its_place() {
    let world = World::new();
    let mut report_of_fork = report("build-1").content(9).branch("topic").test("x", "f");
    report_of_fork.context.pull_request_number = Some(7);
    let run_of_team = world.import(&report("build-1").test("x", "p"));
    let receipt = send(&world, &report_of_fork, PULL_REQUESTS, NOW).unwrap();
    assert_ne!(receipt.run_number, run_of_team.run_number);
    assert_eq!(world.detail(&run_of_team).tests.len(), 1);
    assert!(
        world
            .detail(&run_of_team)
            .tests
            .iter()
            .all(|test| !test.status.is_failure())
    );
    // Using the run key first does not help, either.
    report_of_fork.run_key = "build-2".to_owned();
    let receipt = send(&world, &report_of_fork, PULL_REQUESTS, NOW).unwrap();
    let run_of_team = world.import(&report("build-2").test("x", "p"));
    assert_ne!(receipt.run_number, run_of_team.run_number);
    assert_eq!(world.history(14).runs.len(), 2);
}

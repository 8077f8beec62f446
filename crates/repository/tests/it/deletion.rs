//! Deletion removes all rows of a project and none of another, and blocks no other client.

use std::{collections::BTreeMap, sync::mpsc, thread, time::Duration};

use assay_domain::{
    decision::{GateDecision, GateOutcome},
    fix::NewFix,
    id::{OrganizationId, ProjectId},
    ingest::{IngestKeys, IngestTerms, Upload},
    key::KeyHash,
    plan::Plan,
    project::Project,
    recording::{Effect, Recording},
    rules::RecordingRules,
    store::{Administration, ProjectChange, ReadKeys, RecordError, Recorder, Store},
};
use diesel::connection::SimpleConnection;

use crate::{fixture::*, signatures::with_failing_test};

/// The tables with rows of projects, from the catalogue; partitions count as their tables.
const TABLES: &str = "SELECT attrelid::regclass::text FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid \
     WHERE attname = 'project_id' AND relkind IN ('r', 'p') AND NOT relispartition \
         AND relnamespace = 'public'::regnamespace ORDER BY 1";

/// The number of rows of a project in each table, with a checksum of their content.
fn rows(world: &World, project: ProjectId) -> BTreeMap<String, (u64, String)> {
    let tables = world.database.texts(TABLES).into_iter().flatten();
    let sum_of = |table: String| {
        let aggregate = |expression: &str| {
            let sql =
                format!("SELECT {expression} FROM {table} AS stored WHERE stored.project_id = '{project}'");
            world.database.text(&sql).unwrap_or_default()
        };
        let sum = aggregate("md5(string_agg(stored::text, ',' ORDER BY stored::text))");
        let count = aggregate("count(*)").parse().unwrap();
        (table, (count, sum))
    };
    tables.map(sum_of).collect()
}

/// Puts rows into every table.
pub(crate) fn fill(world: &World, project: &Project, seed: u8) {
    let record = |recording: &Recording| {
        let stored = world.store.record(project.id, recording, &CountingJudge, NOW);
        stored.unwrap()
    };
    record(&with_failing_test(
        report("a").at(40 * DAY),
        "a",
        Some("a.ts"),
        &["boom", ""],
    ));
    record(&report("b").shard(1, 2).test("b", "fp"));
    let mut last = report("b").shard(2, 2).test("c", "ff");
    for attempt in last.tests.iter_mut().flat_map(|test| &mut test.attempts) {
        attempt.attempt.browser = Some("chromium".to_owned());
    }
    let stored = record(&last);
    world
        .store
        .create_ingest_key(project.id, &key(seed), &IngestTerms::default())
        .unwrap();
    world
        .store
        .record_upload(&Upload {
            key: key(seed).id,
            project: project.id,
            at: NOW,
            run_id: stored.run_id,
            run_number: stored.run_number,
            shard_id: stored.shard_id,
            effect: Effect::Added,
            bytes: 1,
            files: 1,
            client: None,
            sender: None,
        })
        .unwrap();
    let decision = GateDecision {
        run_id: stored.run_id,
        shard_id: Some(stored.shard_id),
        outcome: GateOutcome::Excused,
        failed: 1,
        excused: vec![excused("c")],
    };
    let rules = RecordingRules::Unrestricted;
    world
        .store
        .record_decision(project.id, &decision, rules, NOW)
        .unwrap();
    let fix = NewFix {
        test_name: "c".to_owned(),
        file_path: excused("c").file_path,
        revision: "c0ffee1".to_owned(),
        rate_before: Some(0.1),
        check: None,
    };
    world.store.record_fix(project.id, &fix, rules, NOW).unwrap();
    world.database.execute(&format!(
        "INSERT INTO upload_day (project_id, day, key_id, tests, bytes) VALUES ('{}', '2026-11-01', gen_random_uuid(), 1, 1)",
        project.id
    ));
    world.database.execute(&format!(
        "INSERT INTO signature_alias (project_id, fingerprint, signature) \
             SELECT project_id, 'former', ordinal FROM signature WHERE project_id = '{}' LIMIT 1",
        project.id
    ));
    world.database.execute(&format!(
        "INSERT INTO edge (project_id, number, judged_at, event, suite, is_red) VALUES ('{0}', 0, now(), 'run_failed', '', true); \
         INSERT INTO message (project_id, target, number, id, kind, through, created_at) \
         VALUES ('{0}', 'team', 0, gen_random_uuid(), 'mark', 0, now())",
        project.id
    ));
    // Pruning of a week in use leaves results without their run.
    record(&report("c").at(30 * DAY).test("a", "f"));
    world.database.execute(&format!(
        "DELETE FROM run WHERE project_id = '{}' AND number = 3",
        project.id
    ));
}

#[test]
fn a_deleted_project_is_gone_from_every_table_and_no_other_is_touched() {
    let world = World::new();
    let other = world.another_project("api");
    fill(&world, &world.project, 1);
    fill(&world, &other, 2);
    let (before, other_rows) = (rows(&world, world.project.id), rows(&world, other.id));
    for (table, (count, _)) in before.iter().chain(&other_rows) {
        assert!(*count > 0, "{table}: fill it, and add it to PROJECT_TABLES");
    }
    assert!(before.len() > 12, "{before:?}");

    let mut reported = Vec::new();
    let deleted = world
        .store
        .delete_project(world.project.id, NOW, &mut |rows| reported.push(rows))
        .unwrap()
        .unwrap();
    for (table, (count, _)) in rows(&world, world.project.id) {
        assert_eq!(count, 0, "{table}");
    }
    assert_eq!(rows(&world, other.id), other_rows);
    assert_eq!(world.store.all_projects().unwrap().len(), 1);
    assert_eq!((deleted.projects, deleted.runs, deleted.results), (1, 2, 4));
    assert!(
        reported.is_sorted() && reported.last() == Some(&deleted.rows),
        "{reported:?}"
    );
    let again = world
        .store
        .delete_project(world.project.id, NOW, &mut |_| ())
        .unwrap();
    assert_eq!(again, None);
}

#[test]
fn deleting_an_organization_deletes_its_projects_and_keys() {
    let world = World::new();
    let beta = world.store.create_organization("Beta", Plan::Pro, NOW).unwrap();
    let project_of_beta = world.store.create_project(beta.id, "web", "main", NOW).unwrap();
    let other = world.another_project("api");
    fill(&world, &world.project, 1);
    fill(&world, &other, 2);
    let expiry = NOW.plus_days(30);
    world
        .store
        .create_read_key(world.caller.organization, &key(3), expiry)
        .unwrap();
    world.store.create_read_key(beta.id, &key(4), expiry).unwrap();
    let deleted = world
        .store
        .delete_organization(world.caller.organization, NOW, &mut |_| ())
        .unwrap()
        .unwrap();
    assert_eq!((deleted.projects, deleted.runs, deleted.results), (2, 4, 8));
    for project in [world.project.id, other.id] {
        assert!(rows(&world, project).values().all(|(count, _)| *count == 0));
    }
    let remaining = world.store.all_projects().unwrap();
    assert_eq!((remaining.len(), remaining[0].id), (1, project_of_beta.id));
    assert_eq!(world.store.organizations().unwrap().len(), 1);
    assert_eq!(world.store.key(&KeyHash([3; 32])).unwrap(), None);
    assert!(world.store.key(&KeyHash([4; 32])).unwrap().is_some());
    let nowhere = OrganizationId(uuid::Uuid::nil());
    let none = world.store.delete_organization(nowhere, NOW, &mut |_| ());
    assert_eq!(none.unwrap(), None);
}

#[test]
fn a_project_under_deletion_is_hidden_and_pruning_finishes_it() {
    let world = World::new();
    let store = &world.store;
    fill(&world, &world.project, 1);
    store
        .create_read_key(world.caller.organization, &key(3), NOW.plus_days(30))
        .unwrap();
    world
        .database
        .execute("UPDATE project SET deleted_at = now(); UPDATE project_entry SET deleted_at = now(); UPDATE organization SET deleted_at = now()");
    let id = world.project.id;
    assert_eq!(store.project(&world.caller, id, NOW).unwrap(), None);
    assert!(store.projects(&world.caller).unwrap().is_empty());
    assert!(store.all_projects().unwrap().is_empty() && store.organizations().unwrap().is_empty());
    assert_eq!(store.key(&KeyHash([3; 32])).unwrap(), None);
    let refused = world.try_import(&report("z").test("x", "p"));
    assert!(matches!(refused, Err(RecordError::NoProject(_))), "{refused:?}");
    let change = ProjectChange {
        stable_branch: Some("trunk".to_owned()),
        ..ProjectChange::default()
    };
    assert!(!store.set_project(id, &change, &CountingJudge, NOW).unwrap());
    assert_eq!(
        store.rebuild(id, &CountingJudge, NOW, &mut |_, _| ()).unwrap(),
        None
    );
    assert!(
        !store
            .create_ingest_key(id, &key(4), &IngestTerms::default())
            .unwrap()
    );
    let organization = world.caller.organization;
    assert!(!store.create_read_key(organization, &key(5), NOW).unwrap());
    assert!(!store.set_plan(organization, Plan::Free).unwrap());
    assert!(store.create_project(organization, "new", "main", NOW).is_err());
    // Its name is free at once.
    store.create_organization("Acme", Plan::Pro, NOW).unwrap();

    let unfinished = store.unfinished_deletions().unwrap();
    assert_eq!((unfinished.projects[0].id, unfinished.projects.len()), (id, 1));
    assert_eq!(unfinished.organizations[0].id, organization);
    let finished = |dry_run| {
        let report = store.prune(NOW, dry_run, &mut |_| ()).unwrap();
        report.deletions_finished
    };
    assert_eq!((finished(true), rows(&world, id)["run"].0), (2, 2));
    assert_eq!((finished(false), finished(false)), (2, 0));
    assert!(rows(&world, id).values().all(|(count, _)| *count == 0));
    assert_eq!(store.organizations().unwrap().len(), 1);
}

#[test]
fn other_clients_continue_while_a_deletion_waits_and_the_deletion_resumes() {
    let world = World::new();
    let other = world.another_project("api");
    world.import(&report("a").test("x", "f"));
    // Two batches of results.
    world.database.execute(&insert_results(&format!(
        "SELECT project_id, started_at, 5, 100 + number, test, NULL, 0, 0, 0, 0 \
             FROM result, generate_series(1, 25000) AS number WHERE project_id = '{}'",
        world.project.id
    )));
    let mut holder = world.database.connection();
    holder
        .batch_execute("BEGIN; SELECT FROM verdict_block FOR UPDATE")
        .unwrap();
    let (send, reported) = mpsc::channel();
    thread::scope(|scope| {
        let deletion = scope.spawn(|| {
            let mut reported = |rows| send.send(rows).unwrap();
            world.store.delete_project(world.project.id, NOW, &mut reported)
        });
        // The batches before the locked row are committed. The deletion waits for that row.
        let patience = Duration::from_secs(60);
        while world.database.text("SELECT count(*) FROM run").as_deref() != Some("0") {
            reported.recv_timeout(patience).unwrap();
        }
        let steps = reported.try_iter().count();
        assert!(!deletion.is_finished(), "{steps}");
        let imported = world
            .store
            .record(other.id, &report("b").test("y", "p"), &CountingJudge, NOW)
            .unwrap();
        assert!(world.store.run(&other, imported.run_id).unwrap().is_some());
        world
            .store
            .create_project(world.caller.organization, "web", "main", NOW)
            .unwrap();
        holder.batch_execute("ROLLBACK").unwrap();
        let deleted = deletion.join().unwrap().unwrap().unwrap();
        assert_eq!((deleted.runs, deleted.results), (1, 25_001));
    });
}

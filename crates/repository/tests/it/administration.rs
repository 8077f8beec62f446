//! Organizations, projects, keys, settings.

use assay_domain::{
    id::{KeyId, OrganizationId, ProjectId},
    ingest::IngestTerms,
    key::{KeyHash, KeyKind, NewKey},
    plan::Plan,
    project::Caller,
    settings::ChatEvent,
    store::{Administration, KeyDeletion, Outbox as _, ProjectChange, ReadKeys, Store},
};

use crate::fixture::*;

fn key(seed: u8) -> NewKey {
    NewKey {
        id: KeyId(uuid::Uuid::from_bytes([seed; 16])),
        hash: KeyHash([seed; 32]),
        prefix: format!("svc_ro_{seed:05}"),
        created_at: NOW.plus_ms(i64::from(seed)),
    }
}

#[test]
fn organizations_and_projects_are_listed_oldest_first() {
    let world = World::new();
    let store = &world.store;
    let other = store.create_organization("Beta", Plan::Free, NOW).unwrap();
    let names: Vec<_> = store
        .organizations()
        .unwrap()
        .into_iter()
        .map(|organization| (organization.name, organization.plan))
        .collect();
    assert_eq!(
        names,
        [("Acme".to_owned(), Plan::Pro), ("Beta".to_owned(), Plan::Free)]
    );
    assert!(store.set_plan(other.id, Plan::Standard).unwrap());
    assert!(
        !store
            .set_plan(OrganizationId(uuid::Uuid::nil()), Plan::Standard)
            .unwrap()
    );
    assert_eq!(store.organizations().unwrap()[1].plan, Plan::Standard);

    for name in ["one", "two", "three"] {
        store
            .create_project(world.caller.organization, name, "trunk", NOW)
            .unwrap();
    }
    let names: Vec<_> = store
        .projects(&world.caller)
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["web", "one", "two", "three"]);
    assert_eq!(
        store.projects_of(world.caller.organization).unwrap(),
        store.projects(&world.caller).unwrap()
    );
    store
        .create_project(other.id, "theirs", "main", NOW.plus_ms(-1))
        .unwrap();
    assert_eq!(store.all_projects().unwrap().len(), 5);
    assert_eq!(
        store.all_projects().unwrap()[0].name,
        "theirs",
        "ordered by age, not by owner"
    );
}

#[test]
fn a_project_is_found_by_its_own_organization_only() {
    let world = World::new();
    let other = world.store.create_organization("Beta", Plan::Pro, NOW).unwrap();
    let stranger = Caller {
        organization: other.id,
        plan: Plan::Pro,
        only: None,
    };
    assert_eq!(
        world.store.project(&stranger, world.project.id, NOW).unwrap(),
        None
    );
    assert_eq!(
        world
            .store
            .project(&world.caller, ProjectId(uuid::Uuid::nil()), NOW)
            .unwrap(),
        None
    );
    let project = world
        .store
        .project(&world.caller, world.project.id, NOW)
        .unwrap()
        .unwrap();
    assert_eq!(project.name, "web");
    assert_eq!(project.visible_from, NOW.plus_days(-90));
    assert!(
        world
            .store
            .create_project(OrganizationId(uuid::Uuid::nil()), "x", "main", NOW)
            .is_err()
    );
}

#[test]
fn a_read_key_is_found_with_the_present_plan() {
    let world = World::new();
    let store = &world.store;
    let expiry = NOW.plus_days(30);
    store
        .create_read_key(world.caller.organization, &key(1), expiry)
        .unwrap();
    assert!(
        store
            .create_ingest_key(world.project.id, &key(2), &IngestTerms::default())
            .unwrap()
    );
    assert!(
        !store
            .create_ingest_key(ProjectId(uuid::Uuid::nil()), &key(3), &IngestTerms::default())
            .unwrap()
    );

    let stored_key = store.key(&KeyHash([1; 32])).unwrap().unwrap();
    assert_eq!(
        (stored_key.id, stored_key.organization, stored_key.plan),
        (key(1).id, world.caller.organization, Plan::Pro)
    );
    assert_eq!((stored_key.expires_at, stored_key.revoked_at), (expiry, None));
    assert_eq!(
        store.key(&KeyHash([2; 32])).unwrap(),
        None,
        "ingest keys are not found"
    );
    assert_eq!(store.key(&KeyHash([9; 32])).unwrap(), None);

    store.set_plan(world.caller.organization, Plan::Free).unwrap();
    assert!(store.revoke_key(key(1).id, NOW).unwrap());
    assert!(store.revoke_key(key(1).id, NOW.plus_days(1)).unwrap());
    assert!(!store.revoke_key(KeyId(uuid::Uuid::nil()), NOW).unwrap());
    let stored_key = store.key(&KeyHash([1; 32])).unwrap().unwrap();
    assert_eq!(
        (stored_key.plan, stored_key.revoked_at),
        (Plan::Free, Some(NOW)),
        "the first date stays"
    );
}

#[test]
fn keys_are_listed_with_the_day_of_their_last_use() {
    let world = World::new();
    let store = &world.store;
    store
        .create_read_key(world.caller.organization, &key(1), NOW.plus_days(30))
        .unwrap();
    store
        .create_ingest_key(world.project.id, &key(2), &IngestTerms::default())
        .unwrap();
    store.key_used(key(1).id, NOW).unwrap();
    store.key_used(key(1).id, NOW).unwrap();
    store.key_used(key(1).id, NOW.plus_days(-3)).unwrap();
    store.key_used(KeyId(uuid::Uuid::nil()), NOW).unwrap();
    let keys = store.keys(world.caller.organization).unwrap();
    let words: Vec<_> = keys
        .iter()
        .map(|key| (key.kind, key.project_id, key.last_used_on.as_deref()))
        .collect();
    assert_eq!(
        words,
        [
            (KeyKind::Read, None, Some("2026-11-18")),
            (KeyKind::Ingest, Some(world.project.id), None)
        ]
    );
    assert_eq!(keys[0].prefix, "svc_ro_00001");
    assert_eq!(
        (keys[0].expires_at, keys[1].expires_at),
        (Some(NOW.plus_days(30)), None)
    );
}

#[test]
fn only_a_key_that_no_longer_works_is_deleted() {
    let world = World::new();
    let store = &world.store;
    let expiry = NOW.plus_days(30);
    store
        .create_read_key(world.caller.organization, &key(1), expiry)
        .unwrap();
    store
        .create_ingest_key(world.project.id, &key(2), &IngestTerms::default())
        .unwrap();
    let delete = |seed: u8, now| store.delete_key(key(seed).id, now).unwrap();
    assert_eq!(delete(1, expiry.plus_ms(-1)), KeyDeletion::StillValid);
    assert_eq!(delete(2, expiry), KeyDeletion::StillValid, "it never expires");
    assert_eq!(store.keys(world.caller.organization).unwrap().len(), 2);

    assert_eq!(delete(1, expiry), KeyDeletion::Deleted);
    assert_eq!(delete(1, expiry), KeyDeletion::Missing);
    store.revoke_key(key(2).id, NOW).unwrap();
    assert_eq!(delete(2, NOW), KeyDeletion::Deleted);
    assert!(store.keys(world.caller.organization).unwrap().is_empty());

    let nowhere = OrganizationId(uuid::Uuid::nil());
    assert!(!store.create_read_key(nowhere, &key(3), expiry).unwrap());
}

#[test]
fn settings_change_one_by_one() {
    let world = World::on(Plan::Standard);
    let set = |change: ProjectChange| {
        world
            .store
            .set_project(world.project.id, &change, &CountingJudge, NOW)
            .unwrap()
    };
    let settings = || {
        let project = world
            .store
            .project(&world.caller, world.project.id, NOW)
            .unwrap()
            .unwrap();
        world.store.settings(&project).unwrap()
    };
    let first = settings();
    assert_eq!((first.stable_branch.as_str(), first.retention_days), ("main", 60));
    assert!(!first.chat.configured && first.chat.events.is_empty() && !first.repohost.pr_comments_enabled);

    assert!(set(ProjectChange {
        chat: Some(Some(vec![ChatEvent::TestFlaky])),
        ..ProjectChange::default()
    }));
    assert!(set(ProjectChange {
        pr_comments: Some(true),
        ..ProjectChange::default()
    }));
    assert!(set(ProjectChange {
        stable_branch: Some("trunk".to_owned()),
        ..ProjectChange::default()
    }));
    assert!(!settings().chat.configured, "nothing sends messages");
    let serve =
        |events: Option<&[ChatEvent]>, at| world.store.register(world.project.id, events, at).unwrap();
    serve(Some(&[ChatEvent::TestFlaky, ChatEvent::NewError]), NOW);
    let changed = settings();
    assert_eq!(changed.stable_branch, "trunk");
    assert_eq!(
        (changed.chat.configured, changed.chat.events),
        (true, vec![ChatEvent::TestFlaky])
    );
    assert!(changed.repohost.pr_comments_enabled);
    // Only events with a target are sent, and none after a while without assay-notify.
    serve(Some(&[ChatEvent::NewError]), NOW);
    assert_eq!(
        (settings().chat.configured, settings().chat.events),
        (true, Vec::new())
    );
    for (events, at) in [(None, NOW), (Some(ChatEvent::ALL), NOW.plus_days(-3))] {
        serve(events, at);
        assert!(!settings().chat.configured, "{at}");
    }
    serve(Some(ChatEvent::ALL), NOW);

    assert!(set(ProjectChange {
        chat: Some(Some(Vec::new())),
        ..ProjectChange::default()
    }));
    assert_eq!(
        (settings().chat.configured, settings().chat.events),
        (true, Vec::new())
    );
    assert!(set(ProjectChange {
        chat: Some(None),
        ..ProjectChange::default()
    }));
    assert!(!settings().chat.configured);
    let nowhere = ProjectId(uuid::Uuid::nil());
    assert!(
        !world
            .store
            .set_project(nowhere, &ProjectChange::default(), &CountingJudge, NOW)
            .unwrap()
    );
}

//! Unique names of organizations and of an organization's projects; renaming and moving.

use std::thread;

use assay_domain::{
    id::{KeyId, OrganizationId, ProjectId},
    ingest::IngestTerms,
    key::{KeyHash, NewKey},
    plan::Plan,
    project::Caller,
    store::{Administration, NameError, ReadKeys, Store},
};

use crate::fixture::*;

fn is_taken<T>(outcome: Result<T, NameError>) -> bool {
    matches!(outcome, Err(NameError::Taken { .. }))
}

#[test]
fn a_name_is_unique() {
    let world = World::new();
    let store = &world.store;
    let acme = world.caller.organization;
    let beta = store.create_organization("Beta", Plan::Pro, NOW).unwrap();
    assert!(is_taken(store.create_organization("Acme", Plan::Pro, NOW)));
    assert!(is_taken(store.rename_organization(beta.id, "Acme")));
    assert!(is_taken(store.create_project(acme, "web", "main", NOW)));
    let api = store.create_project(acme, "api", "main", NOW).unwrap();
    assert!(is_taken(store.rename_project(api.id, "web")));
    assert_eq!(store.organizations().unwrap().len(), 2);
    assert_eq!(store.all_projects().unwrap().len(), 2);

    // Renaming to the own name works, case counts, and names are unique per organization only.
    store.rename_organization(beta.id, "Beta").unwrap();
    store.rename_project(api.id, "Web").unwrap();
    store.create_project(beta.id, "web", "main", NOW).unwrap();
    store.rename_organization(acme, "Gamma").unwrap();
    store.create_organization("Acme", Plan::Pro, NOW).unwrap();
    let names: Vec<_> = store.projects_of(acme).unwrap();
    let names: Vec<_> = names.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["web", "Web"]);

    let (org, project) = (OrganizationId(uuid::Uuid::nil()), ProjectId(uuid::Uuid::nil()));
    for refused in [
        store.rename_organization(org, "x"),
        store.rename_project(project, "x"),
        store.move_project(project, beta.id),
        store.move_project(api.id, org),
    ] {
        assert!(matches!(refused, Err(NameError::Missing(_))), "{refused:?}");
    }
}

#[test]
fn one_of_several_simultaneous_claims_of_a_name_succeeds() {
    let world = World::new();
    let outcomes = |name: &'static str| {
        thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let organization = world.store.create_organization(name, Plan::Pro, NOW);
                        let project =
                            world
                                .store
                                .create_project(world.caller.organization, name, "main", NOW);
                        (organization.is_ok(), project.is_ok())
                    })
                })
                .collect();
            let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            (
                outcomes.iter().filter(|(organization, _)| *organization).count(),
                outcomes.iter().filter(|(_, project)| *project).count(),
            )
        })
    };
    for name in ["one", "two", "three"] {
        assert_eq!(outcomes(name), (1, 1));
    }
}

#[test]
fn duplicates_of_older_versions_stay_until_they_are_renamed() {
    let world = World::new();
    world.database.execute(
        "INSERT INTO organization (id, name, plan, created_at) \
             SELECT gen_random_uuid(), name, plan, created_at + interval '1 hour' FROM organization; \
         INSERT INTO project (id, organization_id, name, stable_branch, created_at) \
             SELECT gen_random_uuid(), organization_id, name, stable_branch, created_at + interval '1 hour' FROM project; \
         INSERT INTO project_entry SELECT id, organization_id, name, stable_branch, created_at FROM project \
             ON CONFLICT DO NOTHING",
    );
    assert!(
        assay_repository::migrate(world.database.url())
            .unwrap()
            .is_empty()
    );
    let store = &world.store;
    let organizations = store.organizations().unwrap();
    let projects = store.all_projects().unwrap();
    assert_eq!((organizations.len(), projects.len()), (2, 2));
    assert!(is_taken(store.create_organization("Acme", Plan::Pro, NOW)));
    store.rename_organization(organizations[1].id, "Other").unwrap();
    store.rename_project(projects[1].id, "other").unwrap();
    assert!(is_taken(store.rename_project(projects[1].id, "web")));
}

#[test]
fn a_moved_project_is_found_by_its_new_organization_with_its_keys() {
    let world = World::new();
    let store = &world.store;
    let imported = world.import(&report("a").test("x", "p"));
    let key = NewKey {
        id: KeyId(uuid::Uuid::from_bytes([1; 16])),
        hash: KeyHash([1; 32]),
        prefix: "svc_00001".to_owned(),
        created_at: NOW,
    };
    store
        .create_ingest_key(world.project.id, &key, &IngestTerms::default())
        .unwrap();
    let beta = store.create_organization("Beta", Plan::Standard, NOW).unwrap();
    let project_of_beta = store.create_project(beta.id, "web", "main", NOW).unwrap();
    assert!(is_taken(store.move_project(world.project.id, beta.id)));
    store.rename_project(project_of_beta.id, "their web").unwrap();
    store.move_project(world.project.id, beta.id).unwrap();

    let beta_caller = Caller {
        organization: beta.id,
        plan: Plan::Standard,
        only: None,
    };
    let find = |caller| store.project(caller, world.project.id, NOW).unwrap();
    assert_eq!(find(&world.caller), None);
    let moved = find(&beta_caller).unwrap();
    assert!(store.run(&moved, imported.run_id).unwrap().is_some());
    assert!(store.keys(world.caller.organization).unwrap().is_empty());
    assert_eq!(store.keys(beta.id).unwrap()[0].project_id, Some(moved.id));
}

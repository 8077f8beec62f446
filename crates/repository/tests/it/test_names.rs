//! The cached names of a project's tests always reflect the database.

use std::sync::Arc;

use assay_domain::{
    plan::Plan,
    store::{Recorder as _, in_snapshot},
    test_names::TestNames,
};
use assay_repository::Database;

use crate::fixture::*;

fn all_names(store: &Database, world: &World) -> Arc<TestNames> {
    in_snapshot(store, &world.project, |snapshot| snapshot.all_test_names()).unwrap()
}

fn texts(names: &TestNames) -> Vec<(&str, Option<&str>)> {
    names
        .iter()
        .map(|(_, test)| (test.name, test.file_path))
        .collect()
}

#[test]
fn names_are_read_once_and_new_ones_are_added() {
    let world = World::on(Plan::Standard);
    assert_eq!(texts(&all_names(&world.store, &world)), []);
    world.import(&report("a").test("x", "p").test_in("y", None, "p"));
    let before = all_names(&world.store, &world);
    assert_eq!(texts(&before), [("x", Some("a.spec.ts")), ("y", None)]);
    // A change by plain SQL, which does not invalidate the cache, shows whether the names are read again.
    world
        .database
        .execute("UPDATE test SET name = 'hidden' WHERE ordinal = 0");
    world.import(&report("b").test("x", "f"));
    assert!(Arc::ptr_eq(&before, &all_names(&world.store, &world)));

    let recording = report("c").test("z", "p");
    let elsewhere = world.database.connect();
    elsewhere
        .record(world.project.id, &recording, &CountingJudge, NOW)
        .unwrap();
    let after = all_names(&world.store, &world);
    assert_eq!(after.get(0).unwrap().name, "x");
    assert_eq!(after.len(), all_names(&elsewhere, &world).len());
    assert!(after.len() > before.len());
}

#[test]
fn after_a_restore_that_numbered_other_tests_they_are_read_again() {
    let world = World::on(Plan::Standard);
    world.import(&report("a").test("x", "p").test("y", "p").test("z", "p"));
    let restored: [(&str, &[&str]); 3] = [
        (
            "UPDATE test SET name = 'other' WHERE ordinal = 2",
            &["x", "y", "other"],
        ),
        ("DELETE FROM test WHERE ordinal = 2", &["x", "y"]),
        ("DELETE FROM test", &[]),
    ];
    for (statement, expected) in restored {
        assert!(!all_names(&world.store, &world).is_empty());
        world.database.execute(statement);
        let names = all_names(&world.store, &world);
        let names: Vec<&str> = names.iter().map(|(_, test)| test.name).collect();
        assert_eq!(names, expected, "{statement}");
    }
}

#[test]
fn another_project_has_its_own_names() {
    let world = World::new();
    world.import(&report("a").test("x", "p"));
    let other = world.another_project("other");
    let recording = report("a").test("y", "p");
    world
        .store
        .record(other.id, &recording, &CountingJudge, NOW)
        .unwrap();
    for (project, expected) in [(&world.project, "x"), (&other, "y")] {
        let names = in_snapshot(&world.store, project, |snapshot| snapshot.all_test_names()).unwrap();
        assert_eq!(texts(&names), [(expected, Some("a.spec.ts"))]);
    }
}

#[test]
fn a_pruned_test_leaves_the_names_of_the_others() {
    let world = World::new();
    world.import(&report("old").at(100 * DAY).test("pruned", "p").test("stays", "p"));
    world.import(&report("new").at(HOUR).test("stays", "p"));
    assert_eq!(all_names(&world.store, &world).len(), 2);
    world.prune(false);
    world.import(&report("newest").test("comes", "p"));
    world.import(&report("last").test("pruned", "p"));
    let without_cache = world.database.connect();
    for store in [&world.store, &without_cache] {
        let names = all_names(store, &world);
        for name in ["stays", "comes", "pruned"] {
            let number = format!("SELECT ordinal::text FROM test WHERE name = '{name}'");
            let number: u32 = world.database.text(&number).unwrap().parse().unwrap();
            assert_eq!(names.get(number).unwrap().name, name);
        }
    }
    assert_eq!(all_names(&without_cache, &world).len(), 3);
}

//! Tests of the kit: databases per test.
#![allow(clippy::unwrap_used)]

mod programs;

use assay_testkit::TestDatabase;

#[test]
fn each_test_has_a_migrated_database_of_its_own() {
    let (one, other) = (TestDatabase::new(), TestDatabase::new());
    one.execute("INSERT INTO organization VALUES (gen_random_uuid(), 'Acme', 'pro', now())");
    assert_eq!(one.text("SELECT name FROM organization").as_deref(), Some("Acme"));
    assert_eq!(
        other.texts("SELECT name FROM organization"),
        Vec::<Option<String>>::new()
    );
    assert_eq!(
        assay_repository::pending(one.url()).unwrap(),
        Vec::<String>::new()
    );
    drop(one);
    assert_ne!(
        assay_repository::pending(TestDatabase::unmigrated().url()).unwrap(),
        Vec::<String>::new()
    );
}

#[test]
fn a_database_is_dropped_with_its_value() {
    let database = TestDatabase::new();
    let name = database.text("SELECT current_database()").unwrap();
    let other = TestDatabase::new();
    let count = format!("SELECT count(*) FROM pg_database WHERE datname = '{name}'");
    assert_eq!(other.text(&count).as_deref(), Some("1"));
    drop(database);
    assert_eq!(other.text(&count).as_deref(), Some("0"));
}

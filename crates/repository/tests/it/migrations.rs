//! Migrations go up, down and up again. The tables are those that the program expects.

use std::collections::BTreeSet;

use assay_domain::store::{Store, StoreError};
use assay_repository::{Database, compare_schema, grant_roles, migrate, pending, revert_all};
use assay_testkit::TestDatabase;

use crate::fixture::*;

const TABLES: &str = "SELECT string_agg(table_name || '.' || column_name || ' ' || udt_name || ' ' || is_nullable, E'\n' \
     ORDER BY table_name, ordinal_position) FROM information_schema.columns WHERE table_schema = 'public' AND table_name NOT IN ('result', 'verdict') \
     AND table_name NOT LIKE 'reader%'";

/// The same without partitions, whose number changes.
const UNPARTITIONED: &str = "SELECT string_agg(attrelid::regclass || '.' || attname || ' ' || atttypid::regtype || ' ' || attnotnull, E'\n' \
     ORDER BY attrelid::regclass::text, attnum) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid \
     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND attnum > 0";

#[test]
fn migrations_run_up_down_and_up_again() {
    let database = TestDatabase::unmigrated();
    let all = pending(database.url()).unwrap();
    assert!(!all.is_empty(), "{all:?}");
    let applied = migrate(database.url()).unwrap();
    assert_eq!(applied.len(), all.len());
    // With partitions, which the down migration must remove.
    database.execute("SELECT assay_create_partition(now(), now())");
    grant_roles(database.url()).unwrap();
    let first = database.text(UNPARTITIONED);
    assert_eq!(pending(database.url()).unwrap(), Vec::<String>::new());
    assert_eq!(
        migrate(database.url()).unwrap(),
        Vec::<String>::new(),
        "a second time changes nothing"
    );
    revert_all(database.url()).unwrap();
    let remaining = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'";
    assert_eq!(
        database.texts(remaining),
        [Some("__diesel_schema_migrations".to_owned())]
    );
    let remaining = "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace";
    assert_eq!(database.texts(remaining), Vec::<Option<String>>::new());
    migrate(database.url()).unwrap();
    assert_eq!(database.text(UNPARTITIONED), first);
}

#[test]
fn many_programs_may_migrate_at_once() {
    let database = TestDatabase::unmigrated();
    let applied: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|_| scope.spawn(|| migrate(database.url()).unwrap().len()))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(applied, pending(TestDatabase::unmigrated().url()).unwrap().len());
}

#[test]
fn readiness_needs_every_migration() {
    let database = TestDatabase::unmigrated();
    let store = Database::connect(database.url(), 1).unwrap();
    assert!(matches!(store.ready(), Err(StoreError::Corrupt { .. })));
    assert_eq!(
        database.text(TABLES),
        None,
        "comparing the schemas created no table"
    );
    migrate(database.url()).unwrap();
    store.ready().unwrap();
    database.execute("INSERT INTO __diesel_schema_migrations VALUES ('29990101000000', now())");
    store.ready().expect("a database with a newer schema is ready");
    database.execute("DELETE FROM __diesel_schema_migrations WHERE version < '2999'");
    assert!(matches!(store.ready(), Err(StoreError::Corrupt { .. })));
}

#[test]
fn a_newer_schema_is_distinguished_from_an_older_one() {
    let database = TestDatabase::new();
    let schema = compare_schema(database.url()).unwrap();
    assert_eq!((schema.pending.len(), schema.unknown.len()), (0, 0));
    database.execute("INSERT INTO __diesel_schema_migrations VALUES ('29990101000000', now())");
    let schema = compare_schema(database.url()).unwrap();
    assert_eq!(schema.unknown, ["29990101000000"]);
}

#[test]
fn a_database_of_other_migrations_with_the_same_names_is_refused() {
    let database = TestDatabase::new();
    database.execute("UPDATE __migration_checksum SET sha256 = '' WHERE version = '20261126000041'");
    for error in [
        compare_schema(database.url()).err(),
        migrate(database.url()).err(),
    ] {
        let error = std::error::Error::source(&error.unwrap()).unwrap().to_string();
        assert!(
            error.contains("another form of the migration 20261126000041"),
            "{error}"
        );
    }
    // A database without checksums: its columns decide.
    let last = concat!(
        include_str!("../../../../migrations/2026-11-30-000057_revert_candidates/down.sql"),
        include_str!("../../../../migrations/2026-11-30-000056_edges_of_release_branches/down.sql"),
        include_str!("../../../../migrations/2026-11-30-000053_number_of_report_files/down.sql"),
        include_str!("../../../../migrations/2026-11-30-000052_lighter_blocks/down.sql"),
        include_str!("../../../../migrations/2026-11-30-000051_release_branches/down.sql"),
        include_str!("../../../../migrations/2026-11-30-000050_decided_fixes/down.sql"),
        include_str!("../../../../migrations/2026-11-30-000049_tokens_of_ci_jobs/down.sql"),
        include_str!("../../../../migrations/2026-11-30-000047_fixes/down.sql"),
        include_str!("../../../../migrations/2026-11-30-000046_evidence_by_run_numbers/down.sql"),
        include_str!("../../../../migrations/2026-11-30-000045_flake_budget_and_health/down.sql"),
        "DROP TABLE __migration_checksum; ALTER TABLE part DROP COLUMN report_path; DELETE FROM __diesel_schema_migrations \
         WHERE version = '20261129000042' OR version >= '20261130000045'"
    );
    database.execute(last);
    assert_eq!(migrate(database.url()).unwrap().len(), 11, "it is upgraded");
    database.execute(last);
    database.execute("ALTER TABLE project DROP COLUMN renames_at");
    let error = migrate(database.url()).unwrap_err();
    let error = std::error::Error::source(&error).unwrap().to_string();
    assert!(error.contains("an earlier state of the migrations"), "{error}");
}

#[test]
fn a_migration_fails_soon_if_a_long_transaction_blocks_it() {
    let database = TestDatabase::new();
    let mut busy = database.connection();
    diesel::connection::SimpleConnection::batch_execute(
        &mut busy,
        "BEGIN; LOCK TABLE organization IN ACCESS SHARE MODE; \
         SELECT pg_advisory_xact_lock_shared(1)",
    )
    .unwrap();
    // The down migration takes the locks of a table change. The time limit is the connection's.
    let url = format!("{}&options=-c%20lock_timeout%3D200", database.url());
    let error = revert_all(&url).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("lock timeout"), "{cause}");
    drop(busy);
    revert_all(&url).unwrap();
    migrate(database.url()).unwrap();
}

/// The declarations of the file, as `table.column type nullable`. The columns of a table may be declared in several parts.
fn declared_columns() -> BTreeSet<String> {
    let source = include_str!("../../src/db/schema.rs");
    let mut table = String::new();
    let mut part_of = None;
    let mut lines = BTreeSet::new();
    for line in source.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("#[sql_name = \"") {
            part_of = name.strip_suffix("\"]");
        } else if let Some((name, _)) = line.split_once(" (").filter(|_| line.ends_with(") {")) {
            table = part_of.take().unwrap_or(name).to_owned();
        } else if let Some((column, kind)) = line.trim_end_matches(',').split_once(" -> ") {
            let inner = kind
                .strip_prefix("Nullable<")
                .map(|inner| inner.strip_suffix('>').unwrap());
            let (kind, nullable) = inner.map_or((kind, "NO"), |inner| (inner, "YES"));
            let udt = match kind {
                "Uuid" => "uuid",
                "Text" => "text",
                "Timestamptz" => "timestamptz",
                "Timestamp" => "timestamp",
                "Bool" => "bool",
                "SmallInt" => "int2",
                "Integer" => "int4",
                "BigInt" => "int8",
                "Bytea" => "bytea",
                "Jsonb" => "jsonb",
                "Date" => "date",
                "Array<Text>" | "Array<Nullable<Text>>" => "_text",
                "Array<SmallInt>" | "Array<Nullable<SmallInt>>" => "_int2",
                "Array<Integer>" | "Array<Nullable<Integer>>" => "_int4",
                "Array<BigInt>" | "Array<Nullable<BigInt>>" => "_int8",
                "Array<Double>" | "Array<Nullable<Double>>" => "_float8",
                "Array<Bool>" => "_bool",
                "Array<Nullable<Timestamptz>>" => "_timestamptz",
                "Array<Uuid>" => "_uuid",
                "Array<Jsonb>" => "_jsonb",
                other => panic!("a column of the unknown type {other}"),
            };
            lines.insert(format!("{table}.{column} {udt} {nullable}"));
        }
    }
    lines
}

#[test]
fn the_tables_are_those_of_the_schema_file() {
    let stored = TestDatabase::new().text(TABLES).unwrap();
    let stored: BTreeSet<String> = stored
        .lines()
        .map(|line| line.replace("varchar", "text"))
        .collect();
    let declared = declared_columns();
    assert!(
        declared.len() > 100,
        "the file was understood: {}",
        declared.len()
    );
    assert_eq!(stored, declared);
}

#[test]
fn every_key_of_a_projects_tables_begins_with_the_project() {
    let database = TestDatabase::new();
    let keys = "SELECT indexrelid::regclass || ' begins with ' || attname FROM pg_index \
         JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0] \
         WHERE indrelid IN (SELECT attrelid FROM pg_attribute WHERE attname = 'project_id') \
             AND indrelid::regclass::text NOT IN ('api_key') AND attname <> 'project_id'";
    assert_eq!(database.texts(keys), Vec::<Option<String>>::new());
}

#[test]
fn a_database_of_a_former_version_has_to_be_made_again() {
    let database = TestDatabase::new();
    database.execute(
        "DELETE FROM __diesel_schema_migrations; INSERT INTO __diesel_schema_migrations VALUES ('20261120000001', now())",
    );
    let error = migrate(database.url()).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("create a new one and import"), "{cause}");
    // Control: a database with the migrations of a newer program is left as it is.
    let database = TestDatabase::new();
    database.execute("INSERT INTO __diesel_schema_migrations VALUES ('29990101000000', now())");
    assert_eq!(migrate(database.url()).unwrap(), Vec::<String>::new());
}

#[test]
fn lighter_blocks_have_the_results_of_before() {
    let world = World::new();
    let mut recording = report("run 1");
    for (test, (start, duration)) in [
        (Some(0), Some(5)),
        (None, Some(70)),
        (Some(90), None),
        (Some(91), Some(40_000)),
        (Some(40_100), Some(3_000_000_000_000)),
        (Some(40_050), Some(32_767)),
        (Some(500_000_000), Some(32_768)),
        (Some(7), Some(0)),
    ]
    .into_iter()
    .enumerate()
    {
        recording = recording.test(&format!("test {test}"), "p");
        for attempt in recording.tests.last_mut().unwrap().attempts.iter_mut() {
            attempt.attempt.started_at = start.map(|ms: i64| recording.started_at.plus_ms(ms));
            attempt.attempt.duration_ms = duration;
        }
    }
    world.import(&recording);
    let results = || {
        world
            .database
            .text("SELECT string_agg(result::text, E'\\n' ORDER BY test) FROM result")
            .unwrap()
    };
    let lighter = results();
    assert!(
        lighter.contains("40050") && lighter.contains("3000000000000"),
        "{lighter}"
    );
    world.database.execute(include_str!(
        "../../../../migrations/2026-11-30-000052_lighter_blocks/down.sql"
    ));
    assert_eq!(results(), lighter);
    world.database.execute(include_str!(
        "../../../../migrations/2026-11-30-000052_lighter_blocks/up.sql"
    ));
    assert_eq!(results(), lighter);
}

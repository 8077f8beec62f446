//! An organization is moved to another database with all of its rows, or not at all.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use assay_domain::{
    id::{OrganizationId, SessionId},
    plan::Plan,
    recording::Effect,
    store::{
        Administration, ArchiveContents, ArchiveImportError, ExportError, ImportedOrganization,
        OrganizationTransfer, ReadKeys, Recorder, RowSink, RowSource,
    },
};
use assay_repository::Database;
use assay_testkit::TestDatabase;
use diesel::{PgConnection, RunQueryDsl, connection::SimpleConnection, sql_query};

use crate::{deletion, fixture::*};

/// Is called for each row with its table and the number of the table's rows so far.
type Meanwhile<'a> = Box<dyn FnMut(&str, u64) + 'a>;

/// An archive in memory.
struct Archive<'a> {
    tables: BTreeMap<String, Vec<u8>>,
    current: (&'static str, u64),
    meanwhile: Meanwhile<'a>,
}

impl<'a> Archive<'a> {
    fn new(meanwhile: impl FnMut(&str, u64) + 'a) -> Self {
        Self {
            tables: BTreeMap::new(),
            current: ("", 0),
            meanwhile: Box::new(meanwhile),
        }
    }
}

impl RowSink for Archive<'_> {
    fn begin_table(&mut self, table: &'static str) -> io::Result<()> {
        self.tables.insert(table.to_owned(), Vec::new());
        self.current = (table, 0);
        Ok(())
    }

    fn write_row(&mut self, row: &[u8]) -> io::Result<()> {
        assert_eq!(row.last(), Some(&b'\n'));
        self.tables.get_mut(self.current.0).unwrap().extend(row);
        self.current.1 += 1;
        (self.meanwhile)(self.current.0, self.current.1);
        Ok(())
    }
}

impl RowSource for Archive<'_> {
    fn open_table(&mut self, table: &str) -> io::Result<Box<dyn io::Read + '_>> {
        match self.tables.get(table) {
            Some(rows) => Ok(Box::new(rows.as_slice())),
            None => Err(io::Error::other(format!("no file of {table}"))),
        }
    }
}

/// An organization that has rows in every table, and another one beside it.
fn filled_world() -> World {
    let world = World::new();
    let store = &world.store;
    let beta = store.create_organization("Beta", Plan::Pro, NOW).unwrap();
    store.create_project(beta.id, "web", "main", NOW).unwrap();
    store
        .create_read_key(beta.id, &key(9), NOW.plus_days(30))
        .unwrap();
    let other = world.another_project("api");
    for (project, seed) in [(&world.project, 1), (&other, 2)] {
        deletion::fill(&world, project, seed);
        world.rebuild(project.id);
    }
    let organization = world.caller.organization;
    store
        .create_read_key(organization, &key(3), NOW.plus_days(30))
        .unwrap();
    let session = SessionId(uuid::Uuid::from_u128(7));
    store
        .end_session(session, Some(key(3).id), NOW.plus_days(7), NOW)
        .unwrap();
    world
}

fn export(world: &World) -> (ArchiveContents, Archive<'static>) {
    let mut archive = Archive::new(|_, _| ());
    let contents = world
        .store
        .export_organization(world.caller.organization, &mut archive);
    (contents.unwrap(), archive)
}

fn import(
    store: &Database,
    contents: &ArchiveContents,
    archive: &mut Archive<'_>,
) -> Result<ImportedOrganization, ArchiveImportError> {
    store.import_organization(contents, archive, &CountingJudge, NOW)
}

/// The rows with an owner in one column, of every table that has it.
fn rows_of_owner(
    database: &TestDatabase,
    column: &str,
    owner: &str,
) -> BTreeMap<String, Vec<Option<String>>> {
    let tables = database.texts(&format!(
        "SELECT attrelid::regclass::text FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid \
         WHERE attname = '{column}' AND relkind IN ('r', 'p') AND NOT relispartition \
             AND relnamespace = 'public'::regnamespace"
    ));
    let rows = |table: &String| {
        database.texts(&format!(
            "SELECT stored::text FROM {table} AS stored WHERE stored.{column} = '{owner}' ORDER BY 1"
        ))
    };
    tables
        .into_iter()
        .flatten()
        .map(|table| (table.clone(), rows(&table)))
        .collect()
}

/// The number of rows of each table but those of the schema itself.
fn counts(database: &TestDatabase) -> BTreeMap<String, String> {
    let tables = database.texts(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace \
         AND relkind IN ('r', 'p') AND NOT relispartition AND relname NOT IN ('partition', '__diesel_schema_migrations', '__migration_checksum')",
    );
    let count = |table: String| {
        let count = database.text(&format!("SELECT count(*) FROM {table}"));
        (table, count.unwrap())
    };
    tables.into_iter().flatten().map(count).collect()
}

#[test]
fn every_row_of_an_organization_is_moved_and_none_of_another() {
    let world = filled_world();
    let (contents, mut archive) = export(&world);
    let moved_tables: BTreeSet<String> = contents.tables.iter().map(|table| table.table.clone()).collect();
    let all_tables: BTreeSet<String> = counts(&world.database).into_keys().collect();
    assert_eq!(
        moved_tables, all_tables,
        "a table belongs into ORGANIZATION_TABLES or PROJECT_TABLES"
    );
    for table in &contents.tables {
        assert!(table.rows > 0, "{table:?}: fill it");
    }

    let target = TestDatabase::new();
    let store = target.connect();
    let imported = import(&store, &contents, &mut archive).unwrap();
    let rows: u64 = contents.tables.iter().map(|table| table.rows).sum();
    assert_eq!(imported.rows, rows);
    let verdicts = target.text("SELECT count(*) FROM verdict").unwrap();
    assert_eq!(imported.verdicts.to_string(), verdicts);
    let organization = world.caller.organization.to_string();
    let mut owners = vec![("id", organization.clone()), ("organization_id", organization)];
    for project in &contents.projects {
        owners.push(("project_id", project.id.to_string()));
    }
    for (column, owner) in owners {
        let (before, after) = (
            rows_of_owner(&world.database, column, &owner),
            rows_of_owner(&target, column, &owner),
        );
        assert_eq!(after, before, "{column}");
        assert!(column == "id" || after.values().all(|rows| !rows.is_empty()));
    }
    let stored: u64 = counts(&target)
        .values()
        .map(|count| count.parse::<u64>().unwrap())
        .sum();
    assert_eq!(stored, rows, "nothing of the other organization");

    // The excused tests stay visible.
    let uploads = store.uploads(world.project.id, 10).unwrap();
    assert_eq!(uploads.len(), 1);
    assert!(
        uploads[0]
            .upload
            .decision
            .as_ref()
            .is_some_and(|decision| decision.excused == [excused("c")])
    );
    assert_eq!(uploads, world.store.uploads(world.project.id, 10).unwrap());

    // Derived rows are correct, and imports and pruning continue.
    for project in &contents.projects {
        let rebuilt = store
            .rebuild(project.id, &CountingJudge, NOW, &mut |_, _| ())
            .unwrap()
            .unwrap();
        let changed = (
            rebuilt.runs_changed,
            rebuilt.branches_changed,
            rebuilt.days_changed,
            rebuilt.verdicts_changed,
        );
        assert_eq!(changed, (0, 0, 0, 0), "{}", project.name);
        let record = |recording| store.record(project.id, &recording, &CountingJudge, NOW).unwrap();
        assert_eq!(record(report("d").test("new", "p")).effect, Effect::Added);
        let same = report("b").shard(1, 2).test("b", "fp");
        assert_eq!(record(same).effect, Effect::Unchanged);
    }
    store.prune(NOW, false, &mut |_| ()).unwrap();
}

#[test]
fn an_empty_organization_is_moved() {
    let world = World::new();
    let empty = world.store.create_organization("Empty", Plan::Free, NOW).unwrap();
    let mut archive = Archive::new(|_, _| ());
    let contents = world.store.export_organization(empty.id, &mut archive).unwrap();
    let target = TestDatabase::new();
    import(&target.connect(), &contents, &mut archive).unwrap();
    assert_eq!(target.connect().organizations().unwrap(), [empty]);
    let missing_id = OrganizationId(uuid::Uuid::nil());
    let missing = world
        .store
        .export_organization(missing_id, &mut Archive::new(|_, _| ()));
    assert!(matches!(missing, Err(ExportError::Missing)), "{missing:?}");
}

#[test]
fn an_export_is_refused_while_an_import_runs_and_keeps_imports_out() {
    let world = filled_world();
    let organization = world.caller.organization;
    let refused = || {
        let mut archive = Archive::new(|_, _| ());
        let refused = world.store.export_organization(organization, &mut archive);
        assert!(archive.tables.is_empty());
        refused.unwrap_err().to_string()
    };
    // As an import does.
    let mut importing = world.database.connection();
    importing
        .batch_execute(&format!(
            "BEGIN; SELECT FROM project WHERE id = '{}' FOR NO KEY UPDATE",
            world.project.id
        ))
        .unwrap();
    let reason = refused();
    assert!(
        reason.contains("an import into the project \"web\" is running"),
        "{reason}"
    );
    importing.batch_execute("ROLLBACK").unwrap();

    world
        .database
        .execute("UPDATE project SET judged = gen_random_uuid() WHERE name = 'api'");
    let reason = refused();
    assert!(reason.contains("the verdicts of the project \"api\""), "{reason}");
    let api = &world.store.projects_of(organization).unwrap()[1];
    assert!(
        reason.contains(&format!("assay-admin rebuild --project {}", api.id)),
        "{reason}"
    );
    world.rebuild(api.id);

    let mut other = world.database.connection();
    let mut attempts = 0;
    let mut archive = Archive::new(|table, row| {
        if row > 1 {
            return;
        }
        // Another state than that of the export.
        let later = "INSERT INTO branch SELECT id, gen_random_uuid(), now() FROM project";
        other.batch_execute(later).unwrap();
        let lock =
            "SELECT FROM project WHERE name = 'web' AND organization_id = '{}' FOR NO KEY UPDATE NOWAIT";
        let lock = lock.replace("{}", &organization.to_string());
        assert!(other.batch_execute(&lock).is_err(), "an import began at {table}");
        attempts += 1;
    });
    let contents = world
        .store
        .export_organization(organization, &mut archive)
        .unwrap();
    drop(archive);
    assert_eq!(attempts, contents.tables.len());
    assert_eq!(contents.rows_of("branch"), 2, "one state of the database");
}

/// Interrupts the running `COPY` of another connection to this database, by this function of Postgres.
fn interrupt_copy(connection: &mut PgConnection, function: &str) {
    let sql = format!(
        "SELECT {function}(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'COPY%'"
    );
    assert_eq!(sql_query(sql).execute(connection).unwrap(), 1);
}

#[test]
fn a_canceled_export_fails_and_one_that_loses_its_connection_starts_again() {
    let world = filled_world();
    world.database.execute(&insert_results(&format!(
        "SELECT project_id, started_at, 5, 100 + number, test, NULL, 0, 0, 0, 0 \
             FROM result, generate_series(1, 50000) AS number WHERE project_id = '{}'",
        world.project.id
    )));
    for function in ["pg_cancel_backend", "pg_terminate_backend"] {
        let mut other = world.database.connection();
        let mut is_interrupted = false;
        let mut archive = Archive::new(|table, row| {
            if table == "result_block" && row == 1 && !std::mem::replace(&mut is_interrupted, true) {
                interrupt_copy(&mut other, function);
            }
        });
        let exported = world
            .store
            .export_organization(world.caller.organization, &mut archive);
        match (function, exported) {
            ("pg_cancel_backend", exported) => assert!(exported.is_err(), "the rest is missing"),
            (_, exported) => assert!(exported.unwrap().rows_of("result_block") > 50_000),
        }
    }
}

#[test]
fn an_import_is_refused_if_any_of_its_rows_is_stored() {
    let world = filled_world();
    let (contents, mut archive) = export(&world);
    let refused = import(&world.store, &contents, &mut archive);
    assert!(
        matches!(refused, Err(ArchiveImportError::OrganizationExists { id, .. }) if id == world.caller.organization),
        "{refused:?}"
    );

    let target = TestDatabase::new();
    let store = target.connect();
    let acme = store.create_organization("Acme", Plan::Pro, NOW).unwrap();
    let mut refused = |reason: &str| {
        let before = counts(&target);
        let refused = import(&store, &contents, &mut archive).unwrap_err().to_string();
        assert!(refused.contains(reason), "{refused}");
        assert_eq!(counts(&target), before);
    };
    refused(&format!(
        "another organization of this database is named \"Acme\", with the id {}",
        acme.id
    ));
    store.rename_organization(acme.id, "Acme of old").unwrap();

    // A project that was moved to another organization before.
    target.execute(&format!(
        "INSERT INTO project (id, organization_id, name, stable_branch, created_at) \
         VALUES ('{}', '{}', 'site', 'main', now())",
        world.project.id, acme.id
    ));
    refused(&format!("the project \"site\" ({})", world.project.id));
    store.delete_project(world.project.id, NOW, &mut |_| ()).unwrap();

    store
        .create_read_key(acme.id, &key(3), NOW.plus_days(30))
        .unwrap();
    refused(&format!("the key {} of the archive is already", key(3).id));
    target.execute("UPDATE api_key SET id = gen_random_uuid()");
    refused("has the same text as another key");
    target.execute("DELETE FROM api_key");

    import(&store, &contents, &mut archive).unwrap();
    assert_eq!(store.organizations().unwrap().len(), 2);
}

#[test]
fn a_wrong_archive_stores_nothing() {
    let world = filled_world();
    let (contents, mut archive) = export(&world);
    let target = TestDatabase::new();
    let store = target.connect();
    let empty = counts(&target);
    let refused = |contents: &ArchiveContents, archive: &mut Archive<'_>, reason: &str| {
        let refused = import(&store, contents, archive).unwrap_err();
        let text = match std::error::Error::source(&refused) {
            Some(source) => format!("{refused}: {source}"),
            None => refused.to_string(),
        };
        assert!(text.contains(reason), "{text}");
        assert_eq!(counts(&target), empty);
    };

    let mut other = contents.clone();
    other.schema = "2020-01-01-000001_ancient".to_owned();
    refused(
        &other,
        &mut archive,
        "the archive has the schema \"2020-01-01-000001_ancient\"",
    );
    let mut other = contents.clone();
    other.tables.pop();
    refused(&other, &mut archive, "is missing or unknown");
    let mut other = contents.clone();
    other.tables.last_mut().unwrap().rows += 1;
    refused(&other, &mut archive, "rows and should have");
    let mut other = contents.clone();
    other.organization.name = "Nobody".to_owned();
    refused(&other, &mut archive, "are not those of its contents");

    let whole = archive.tables["result_block"].clone();
    archive
        .tables
        .insert("result_block".to_owned(), whole[..whole.len() / 2 - 7].to_vec());
    refused(
        &contents,
        &mut archive,
        "the database failed while importing an organization",
    );
    let missing = archive.tables.remove("result_block");
    assert!(missing.is_some());
    refused(&contents, &mut archive, "no file of result_block");
    archive.tables.insert("result_block".to_owned(), whole);

    // The engine does not see these runs.
    let packs = archive.tables.insert("run_pack".to_owned(), Vec::new()).unwrap();
    let mut other = contents.clone();
    for table in &mut other.tables {
        if table.table == "run_pack" {
            table.rows = 0;
        }
    }
    refused(
        &other,
        &mut archive,
        "other verdicts from the results of the project \"web\"",
    );
    archive.tables.insert("run_pack".to_owned(), packs);
    import(&store, &contents, &mut archive).unwrap();
    assert!(store.key(&key(3).hash).unwrap().is_some());
}

#[test]
fn an_archive_with_rows_of_another_organization_stores_nothing() {
    let world = filled_world();
    let (contents, archive) = export(&world);
    let target = TestDatabase::new();
    let store = target.connect();
    let victim = store.create_organization("Victim", Plan::Pro, NOW).unwrap();
    let victims = store.create_project(victim.id, "till", "main", NOW).unwrap();
    let before = counts(&target);
    let organization = contents.organization.id.to_string();
    let project = contents.projects[0].id.to_string();
    let (victim, victims) = (victim.id.to_string(), victims.id.to_string());
    for (table, own, other) in [
        ("api_key", &organization, &victim),
        ("project", &organization, &victim),
        ("run", &project, &victims),
        ("test", &project, &victims),
        ("result_block", &project, &victims),
        ("verdict_block", &project, &victims),
        ("verdict_evidence", &project, &victims),
    ] {
        let mut forged = Archive::new(|_, _| ());
        forged.tables = archive.tables.clone();
        let rows = String::from_utf8(forged.tables[table].clone()).unwrap();
        assert!(rows.contains(own.as_str()), "{table}");
        let rows = rows.replacen(own.as_str(), other, 1);
        forged.tables.insert(table.to_owned(), rows.into_bytes());
        let refused = import(&store, &contents, &mut forged).unwrap_err();
        assert!(
            matches!(
                &refused,
                ArchiveImportError::Damaged(_) | ArchiveImportError::Store(_)
            ),
            "{table}: {refused}"
        );
        assert_eq!(counts(&target), before, "{table}");
    }
    // An ingest key of the own organization for a project of the other one.
    let mut forged = Archive::new(|_, _| ());
    forged.tables = archive.tables.clone();
    let keys = String::from_utf8(forged.tables["api_key"].clone()).unwrap();
    if contents
        .projects
        .iter()
        .any(|own| keys.contains(&own.id.to_string()))
    {
        let keys = contents
            .projects
            .iter()
            .fold(keys, |keys, own| keys.replace(&own.id.to_string(), &victims));
        forged.tables.insert("api_key".to_owned(), keys.into_bytes());
        let refused = import(&store, &contents, &mut forged).unwrap_err();
        assert!(matches!(&refused, ArchiveImportError::Damaged(_)), "{refused}");
        assert_eq!(counts(&target), before);
    }
}

/// An archive of an organization, for tests of lost connections.
pub(crate) fn archived() -> (ArchiveContents, impl RowSource) {
    export(&filled_world())
}

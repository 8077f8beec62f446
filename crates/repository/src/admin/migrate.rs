//! Migrations: embedded in the program, applied under a lock.

use std::collections::HashMap;

use assay_domain::store::StoreError;
use diesel::{
    connection::SimpleConnection,
    dsl::sql,
    migration::MigrationSource,
    pg::Pg,
    prelude::*,
    sql_types::{Binary, Bool, Text},
};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use include_dir::{Dir, include_dir};
use sha2::{Digest as _, Sha256};

use crate::{
    admin::distribute,
    db::{
        column::corrupt,
        connection_string::establish,
        pool::{Read, WorkError},
        schema::{__diesel_schema_migrations as applied, __migration_checksum as checksum},
    },
};

/// The migrations of this program, oldest first.
pub(crate) const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations");

/// Their files, for the checksums.
static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../migrations");

/// The first migration, which databases of earlier commits have without a checksum, and a hash of its columns.
const FIRST: (&str, &str) = ("20261126000041", "4837bcc34bd2bdc011ba732eec3fc74f");

/// The key of the advisory lock for programs that migrate one database at the same time. The number is arbitrary.
const LOCK: i64 = 0x6173_7361_7930;

/// Limits how long a migration waits for a lock, which blocks all later statements meanwhile. The time is short, so
/// that a migration that meets a long transaction fails and can be repeated, instead of blocking a live database.
const SET_LOCK_TIMEOUT: &str = "SET lock_timeout = '5s'";

/// Updates the schema and returns the names of the applied migrations. Safe to call from several programs at once,
/// and on a live database. [`grant_roles`] handles roles, and [`distribute`](crate::distribute) distribution over
/// several machines.
pub fn migrate(url: &str) -> Result<Vec<String>, StoreError> {
    let mut connection = with_lock_timeout(url)?;
    check_origin(&mut connection)?;
    distribute::prepare(&mut connection).map_err(failed)?;
    let names = connection.run_pending_migrations(MIGRATIONS).map_err(failed)?;
    let names = names.iter().map(ToString::to_string).collect();
    for (version, sha256) in checksums() {
        diesel::sql_query("INSERT INTO __migration_checksum VALUES ($1, $2) ON CONFLICT DO NOTHING")
            .bind::<Text, _>(version)
            .bind::<Binary, _>(sha256)
            .execute(&mut connection)
            .map_err(failed)?;
    }
    Ok(names)
}

/// Refuses a database that was created by the migrations of a former version. No migration leads on from it.
fn check_origin(connection: &mut PgConnection) -> Result<(), StoreError> {
    const FORMER: &str = "the database was created by an earlier state of the migrations, from which none leads on: create a new one \
                          and import its reports again";
    let schema = compare(connection)?;
    let is_former = match (&schema.newest, schema.unknown.first()) {
        (None, Some(_)) => true,
        (Some(_), _) if has_checksums(connection).map_err(failed)? => false,
        (Some(_), _) => columns(connection).map_err(failed)? != FIRST.1,
        (None, None) => false,
    };
    if is_former { Err(failed(FORMER)) } else { Ok(()) }
}

/// The version and the SHA-256 of `up.sql` of each migration.
fn checksums() -> impl Iterator<Item = (String, [u8; 32])> {
    FILES.dirs().filter_map(|folder| {
        let name = folder.path().to_str()?;
        let up = folder.files().find(|file| file.path().ends_with("up.sql"))?;
        let version = name.split('_').next()?.replace('-', "");
        Some((version, Sha256::digest(up.contents()).into()))
    })
}

fn has_checksums(connection: &mut PgConnection) -> QueryResult<bool> {
    let exists = sql::<Bool>("to_regclass('__migration_checksum') IS NOT NULL");
    diesel::select(exists).get_result(connection)
}

/// A hash of the names and types of all columns.
fn columns(connection: &mut PgConnection) -> QueryResult<String> {
    diesel::select(sql::<Text>(
        "(SELECT md5(string_agg(relname || '.' || attname || ' ' || format_type(atttypid, NULL) || ' ' || attnotnull, ',' \
         ORDER BY relname COLLATE \"C\", attname COLLATE \"C\")) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid \
         WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition \
         AND attnum > 0 AND NOT attisdropped AND relname <> '__diesel_schema_migrations')",
    ))
    .get_result(connection)
}

/// The versions whose text was changed after it was applied.
fn changed(connection: &mut PgConnection) -> QueryResult<Vec<String>> {
    if !has_checksums(connection)? {
        return Ok(Vec::new());
    }
    let stored: Vec<(String, Vec<u8>)> = checksum::table
        .select((checksum::version, checksum::sha256))
        .load(connection)?;
    let expected: HashMap<String, [u8; 32]> = checksums().collect();
    let is_changed = |(version, sha256): &(String, Vec<u8>)| {
        expected
            .get(version)
            .is_some_and(|expected| expected.as_slice() != sha256.as_slice())
    };
    Ok(stored
        .into_iter()
        .filter(is_changed)
        .map(|(version, _)| version)
        .collect())
}

/// Creates the missing roles for server and importer, and grants them their rights in this database, whose schema is
/// up to date. Returns the SQL that a role with more rights must run first; none if all is done.
pub fn grant_roles(url: &str) -> Result<Option<String>, StoreError> {
    let mut connection = with_migration_lock(url)?;
    diesel::select(assay_grant_roles())
        .get_result(&mut connection)
        .map_err(failed)
}

/// The same as [`with_migration_lock`], with the time limit for other locks.
pub(crate) fn with_lock_timeout(url: &str) -> Result<PgConnection, StoreError> {
    let mut connection = with_migration_lock(url)?;
    connection.batch_execute(SET_LOCK_TIMEOUT).map_err(failed)?;
    Ok(connection)
}

/// A connection that holds the lock of migrations. The lock ends with the connection.
pub(crate) fn with_migration_lock(url: &str) -> Result<PgConnection, StoreError> {
    let mut connection = establish(url)?;
    connection
        .batch_execute(&format!(
            "SET client_min_messages = warning; SET lock_timeout = 0; SELECT pg_advisory_lock({LOCK})"
        ))
        .map_err(failed)?;
    Ok(connection)
}

diesel::define_sql_function! {
    /// Grants the roles of server and importer their rights, and returns the remaining SQL.
    fn assay_grant_roles() -> diesel::sql_types::Nullable<diesel::sql_types::Text>;
}

/// Compares the schema of this database with this program's. Changes nothing.
pub fn compare_schema(url: &str) -> Result<SchemaComparison, StoreError> {
    compare(&mut establish(url)?)
}

/// The names of the migrations that are yet to be applied, oldest first. Changes nothing.
pub fn pending(url: &str) -> Result<Vec<String>, StoreError> {
    missing(&mut establish(url)?).map_err(|error| match error {
        WorkError::Query(error) => failed(error),
        WorkError::Refused(error) => error,
    })
}

/// Compares a database's schema with this program's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaComparison {
    /// The newest migration that both have, if any.
    pub newest: Option<String>,
    /// Migrations that are yet to be applied, oldest first.
    pub pending: Vec<String>,
    /// Versions that a newer program applied, oldest first.
    pub unknown: Vec<String>,
}

/// Compares the schema of this connection's database with this program's. Changes nothing.
pub(crate) fn compare(connection: &mut PgConnection) -> Result<SchemaComparison, StoreError> {
    let (expected, present) = (expected()?, present(connection).map_err(failed)?);
    let changed = changed(connection).map_err(failed)?;
    if let Some(first) = changed.first() {
        return Err(failed(format!(
            "the database has another form of the migration {first} than this program: it was created by another state of \
             the sources; use the program that created it, or a new database"
        )));
    }
    let is_present = |version: &String| present.contains(version);
    let (applied, pending): (Vec<_>, Vec<_>) = expected.iter().partition(|(version, _)| is_present(version));
    Ok(SchemaComparison {
        newest: applied.last().map(|(_, name)| name.clone()),
        pending: pending.into_iter().map(|(_, name)| name.clone()).collect(),
        unknown: present
            .iter()
            .filter(|version| expected.iter().all(|(known, _)| known != *version))
            .cloned()
            .collect(),
    })
}

/// Undoes every migration, with everything stored. Only for the tests of the migrations.
#[doc(hidden)]
pub fn revert_all(url: &str) -> Result<Vec<String>, StoreError> {
    let mut connection = establish(url)?;
    let names = connection.revert_all_migrations(MIGRATIONS).map_err(failed)?;
    Ok(names.iter().map(ToString::to_string).collect())
}

/// Whether the database has every migration of this program. Newer ones are allowed, so that the old version still
/// runs while the next one is rolled out.
pub(crate) fn is_current(connection: &mut PgConnection) -> Read<()> {
    match missing(connection)?.first() {
        Some(first) => Err(corrupt("schema without the migration", first).into()),
        None => Ok(()),
    }
}

/// The names of the migrations that the database does not have. Only reads, so that it works on a standby.
fn missing(connection: &mut PgConnection) -> Read<Vec<String>> {
    let present = present(connection)?;
    let missing = expected()?
        .into_iter()
        .filter(|(version, _)| !present.contains(version));
    Ok(missing.map(|(_, name)| name).collect())
}

/// The versions of the embedded migrations with their names.
fn expected() -> Result<Vec<(String, String)>, StoreError> {
    let migrations = MigrationSource::<Pg>::migrations(&MIGRATIONS).map_err(failed)?;
    let named = migrations.iter().map(|migration| {
        let name = migration.name();
        (name.version().to_string(), name.to_string())
    });
    Ok(named.collect())
}

/// The versions that the database has.
fn present(connection: &mut PgConnection) -> QueryResult<Vec<String>> {
    let was_migrated: bool = diesel::select(sql::<Bool>(
        "to_regclass('__diesel_schema_migrations') IS NOT NULL",
    ))
    .get_result(connection)?;
    if was_migrated {
        applied::table
            .select(applied::version)
            .order(applied::version)
            .load(connection)
    } else {
        Ok(Vec::new())
    }
}

fn failed(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::Failed {
        doing: "migrating",
        source: source.into(),
    }
}

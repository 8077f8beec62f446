//! Migrations: embedded in the program, applied under a lock.

use assay_domain::store::StoreError;
use diesel::{
    Connection, PgConnection, QueryDsl, RunQueryDsl, connection::SimpleConnection,
    migration::MigrationSource, pg::Pg,
};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};

use crate::{column::corrupt, pool::with_timeouts, schema::__diesel_schema_migrations as applied};

/// The migrations of this program, oldest first.
pub(crate) const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations");

/// The key of the lock that programs which migrate one database at the same time wait for; any number would do.
const LOCK: i64 = 0x6173_7361_7930;

/// Brings the schema up to date and returns the names of the migrations that were applied. Safe to call from
/// several programs at once.
pub fn migrate(url: &str) -> Result<Vec<String>, StoreError> {
    let mut connection = connect(url)?;
    connection
        .batch_execute(&format!(
            "SET client_min_messages = warning; SET lock_timeout = '60s'; SELECT pg_advisory_lock({LOCK})"
        ))
        .map_err(|error| failed(Box::new(error)))?;
    // The lock ends with the connection.
    let names = connection.run_pending_migrations(MIGRATIONS).map_err(failed)?;
    Ok(names.iter().map(ToString::to_string).collect())
}

/// The names of the migrations that are yet to be applied, oldest first.
pub fn pending(url: &str) -> Result<Vec<String>, StoreError> {
    let mut connection = connect(url)?;
    let pending = connection.pending_migrations(MIGRATIONS).map_err(failed)?;
    Ok(pending
        .iter()
        .map(|migration| migration.name().to_string())
        .collect())
}

/// Undoes every migration, with everything stored. Only for the tests of the migrations.
#[doc(hidden)]
pub fn revert_all(url: &str) -> Result<Vec<String>, StoreError> {
    let mut connection = connect(url)?;
    let names = connection.revert_all_migrations(MIGRATIONS).map_err(failed)?;
    Ok(names.iter().map(ToString::to_string).collect())
}

/// Whether the database has every migration of this program; newer ones are welcome, so that the former version
/// still runs while the next one is rolled out.
pub(crate) fn is_current(connection: &mut PgConnection) -> diesel::QueryResult<Result<(), StoreError>> {
    let present: Vec<String> = applied::table.select(applied::version).load(connection)?;
    let wanted = match MigrationSource::<Pg>::migrations(&MIGRATIONS) {
        Ok(wanted) => wanted,
        Err(error) => return Ok(Err(failed(error))),
    };
    let missing = wanted.iter().find(|migration| {
        let version = migration.name().version().to_string();
        !present.contains(&version)
    });
    Ok(match missing {
        Some(missing) => Err(corrupt(
            "schema without the migration",
            &missing.name().to_string(),
        )),
        None => Ok(()),
    })
}

fn connect(url: &str) -> Result<PgConnection, StoreError> {
    PgConnection::establish(&with_timeouts(url)).map_err(|error| StoreError::Unreachable(Box::new(error)))
}

fn failed(source: Box<dyn std::error::Error + Send + Sync>) -> StoreError {
    StoreError::Failed {
        doing: "migrating",
        source,
    }
}

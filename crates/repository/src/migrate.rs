//! Migrations: embedded in the program, applied under a lock.

use assay_domain::store::StoreError;
use diesel::{
    Connection, PgConnection, QueryDsl, QueryResult, RunQueryDsl, connection::SimpleConnection, dsl::sql,
    migration::MigrationSource, pg::Pg, sql_types::Bool,
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

/// The names of the migrations that are yet to be applied, oldest first. Changes nothing.
pub fn pending(url: &str) -> Result<Vec<String>, StoreError> {
    let mut connection = connect(url)?;
    let missing = missing(&mut connection).map_err(|error| failed(Box::new(error)))?;
    missing.map_err(failed)
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
pub(crate) fn is_current(connection: &mut PgConnection) -> QueryResult<Result<(), StoreError>> {
    Ok(match missing(connection)? {
        Ok(missing) => match missing.first() {
            Some(first) => Err(corrupt("schema without the migration", first)),
            None => Ok(()),
        },
        Err(error) => Err(failed(error)),
    })
}

/// Why the embedded migrations could not be read.
type BadMigrations = Box<dyn std::error::Error + Send + Sync>;

/// The names of the migrations that the database does not have. By reading alone, which a standby allows, too.
fn missing(connection: &mut PgConnection) -> QueryResult<Result<Vec<String>, BadMigrations>> {
    let was_migrated: bool = diesel::select(sql::<Bool>(
        "to_regclass('__diesel_schema_migrations') IS NOT NULL",
    ))
    .get_result(connection)?;
    let present: Vec<String> = if was_migrated {
        applied::table.select(applied::version).load(connection)?
    } else {
        Vec::new()
    };
    Ok(MigrationSource::<Pg>::migrations(&MIGRATIONS).map(|wanted| {
        wanted
            .iter()
            .filter(|migration| !present.contains(&migration.name().version().to_string()))
            .map(|migration| migration.name().to_string())
            .collect()
    }))
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

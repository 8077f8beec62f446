//! Distribution over several machines by Citus, where the database has that extension.
//!
//! All rows of a project are on one worker: `project` is distributed by its id, and each table with `project_id` with
//! it. Organizations, keys, sessions, entries of projects and migrations are copied to every node, so that a server may
//! connect to any of them. The list of partitions stays on the coordinator, which alone makes partitions. No statement
//! of this program names tables of two kinds.

use assay_domain::store::StoreError;
use diesel::{
    connection::SimpleConnection,
    dsl::sql,
    prelude::*,
    select, sql_query,
    sql_types::{Array, Bool, Nullable, Text},
};

use crate::admin::migrate;

/// The parts of a table change one after the other. Otherwise one transaction could not change the schema twice.
const SEQUENTIAL: &str = "SET citus.multi_shard_modify_mode = 'sequential'";

/// Workers get the settings of a transaction, such as how long it waits for a lock.
const PASS_ON_SETTINGS: &str = "DO $$ BEGIN \
         EXECUTE format('ALTER DATABASE %I SET citus.propagate_set_commands = ''local''', current_database()); \
     END $$";

/// The tables that are not distributed yet, `project` first, each with its column of projects. Those without one are
/// copied to every node, and so are keys, which are looked up by their hash.
const UNDISTRIBUTED: &str = "SELECT relname::text AS name, \
         CASE WHEN relname = 'project' THEN 'id' WHEN relname <> 'api_key' THEN attname::text END AS project_column \
     FROM pg_class LEFT JOIN pg_attribute ON attrelid = pg_class.oid AND attname = 'project_id' AND NOT attisdropped \
     WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition \
         AND relname <> 'partition' \
         AND NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = pg_class.oid) \
     ORDER BY relname <> 'project', relname";

/// The tables of which a distributed database checks no foreign keys. Servers write them, and Citus locks what a written
/// table references, which takes a login with the right to change organizations.
const WITHOUT_FOREIGN_KEYS: [&str; 2] = ["api_key", "ended_session"];

/// The foreign keys from or to some tables.
const FOREIGN_KEYS: &str = "SELECT conrelid::regclass::text AS of_table, quote_ident(conname) AS name, \
         pg_get_constraintdef(oid) AS definition \
     FROM pg_constraint \
     WHERE contype = 'f' AND conparentid = 0 AND connamespace = current_schema()::regnamespace \
         AND (conrelid::regclass::text = ANY ($1) OR confrelid::regclass::text = ANY ($1)) \
     ORDER BY of_table, name";

#[derive(QueryableByName)]
struct Table {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Nullable<Text>)]
    project_column: Option<String>,
}

#[derive(QueryableByName)]
struct ForeignKey {
    #[diesel(sql_type = Text)]
    of_table: String,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    definition: String,
}

/// Prepares a connection for migrations of a distributed database.
pub(crate) fn prepare(connection: &mut PgConnection) -> QueryResult<()> {
    if has_extension(connection)? {
        connection.batch_execute(SEQUENTIAL)?;
    }
    Ok(())
}

/// Distributes the tables that are not distributed yet, and returns their names; none where the database
/// does not have the extension. To be called after each migration. Safe to call from several programs at once.
pub fn distribute(url: &str) -> Result<Vec<String>, StoreError> {
    let mut connection = migrate::with_lock_timeout(url)?;
    connection
        .transaction(|connection| {
            if !has_extension(connection)? {
                return Ok(Vec::new());
            }
            distribute_tables(connection)
        })
        .map_err(failed)
}

/// The tables that [`distribute`] would distribute, in its order. Only for tests.
#[doc(hidden)]
pub fn undistributed(url: &str) -> Result<Vec<String>, StoreError> {
    let tables = find_undistributed(&mut migrate::with_migration_lock(url)?).map_err(failed)?;
    Ok(tables.into_iter().map(|table| table.name).collect())
}

fn failed(error: diesel::result::Error) -> StoreError {
    StoreError::Failed {
        doing: "distributing tables",
        source: Box::new(error),
    }
}

fn has_extension(connection: &mut PgConnection) -> QueryResult<bool> {
    select(sql::<Bool>(
        "EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')",
    ))
    .get_result(connection)
}

fn find_undistributed(connection: &mut PgConnection) -> QueryResult<Vec<Table>> {
    sql_query(UNDISTRIBUTED).load(connection)
}

fn distribute_tables(connection: &mut PgConnection) -> QueryResult<Vec<String>> {
    let tables = find_undistributed(connection)?;
    let names: Vec<String> = tables.iter().map(|table| table.name.clone()).collect();
    if names.is_empty() {
        return Ok(names);
    }
    connection.batch_execute(SEQUENTIAL)?;
    connection.batch_execute(PASS_ON_SETTINGS)?;
    // A foreign key cannot connect a distributed table with a table that is not distributed yet.
    let foreign_keys: Vec<ForeignKey> = sql_query(FOREIGN_KEYS)
        .bind::<Array<Text>, _>(&names)
        .load(connection)?;
    for ForeignKey { of_table, name, .. } in &foreign_keys {
        connection.batch_execute(&format!("ALTER TABLE {of_table} DROP CONSTRAINT {name}"))?;
    }
    for Table { name, project_column } in &tables {
        let with = if name == "project" { "none" } else { "project" };
        sql_query(
            "SELECT CASE WHEN $2 IS NULL THEN create_reference_table($1::regclass) \
                 ELSE create_distributed_table($1::regclass, $2, colocate_with => $3) END",
        )
        .bind::<Text, _>(name)
        .bind::<Nullable<Text>, _>(project_column)
        .bind::<Text, _>(with)
        .execute(connection)?;
    }
    let restored = foreign_keys
        .iter()
        .filter(|key| !WITHOUT_FOREIGN_KEYS.contains(&key.of_table.as_str()));
    for foreign_key in restored {
        let ForeignKey {
            of_table,
            name,
            definition,
        } = foreign_key;
        connection.batch_execute(&format!(
            "ALTER TABLE {of_table} ADD CONSTRAINT {name} {definition}"
        ))?;
    }
    Ok(names)
}

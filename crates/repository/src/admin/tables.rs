//! The tables with rows of one organization. Deletion and transfer go through them, so that neither misses one.

use diesel::{
    dsl::sql,
    pg::{CopyTarget, Pg},
    prelude::*,
    query_builder::{AstPass, QueryFragment},
    sql_types::Bool,
};
use time::Date;
use uuid::Uuid;

use crate::{
    admin::transfer::copy::{self, CopyIn, CopyOut},
    db::{
        column::At,
        schema::{
            api_key, attempt, attempt_texts, branch, browser, daily_count, edge, ended_session, fix, message,
            organization, part, project, project_entry, result_block, run, run_pack, signature,
            signature_alias, test, upload, upload_day, verdict_block, verdict_evidence,
        },
    },
};

/// About how many rows of a table one transaction deletes. All rows of one run go together.
const BATCH_ROWS: i64 = 20_000;
/// The same of blocks of results, which are larger than other rows.
const BATCH_BLOCKS: i64 = 500;

/// Deletes a batch of a project's rows of one table. Returns how many rows it deleted, and whether there may be more.
type DeleteBatch = fn(&mut PgConnection, Uuid) -> QueryResult<(usize, bool)>;

/// How rows are copied out of a table, and into it.
pub(crate) struct CopyTable {
    pub(crate) name: &'static str,
    /// Writes the rows of the owner that [`copy::select_owner`] named: an organization or a project.
    pub(crate) copy_out: CopyOut,
    pub(crate) copy_in: CopyIn,
    /// The number of rows of the owner that [`copy::select_owner`] named.
    pub(crate) count_owned: fn(&mut PgConnection) -> QueryResult<i64>,
}

/// A table whose rows belong to a project.
pub(crate) struct ProjectTable {
    pub(crate) copy: CopyTable,
    pub(crate) delete_batch: DeleteBatch,
}

/// A table, of which the rows with this condition belong to the owner.
macro_rules! copy_table {
    ($table:ident, $condition:literal) => {{
        /// The rows of the owner. Diesel itself copies only whole tables.
        struct OwnedRows;

        impl CopyTarget for OwnedRows {
            type Table = $table::table;
            type SqlType = $table::SqlType;

            fn walk_target(mut pass: AstPass<'_, '_, Pg>) -> QueryResult<()> {
                pass.push_sql("(SELECT ");
                QueryFragment::<Pg>::walk_ast(&$table::all_columns, pass.reborrow())?;
                pass.push_sql(concat!(" FROM ", stringify!($table), " WHERE ", $condition, ")"));
                Ok(())
            }
        }

        CopyTable {
            name: stringify!($table),
            copy_out: |connection, sink| copy::out_of(connection, OwnedRows, sink),
            copy_in: |connection, source| copy::into_table(connection, $table::table, source),
            count_owned: |connection| {
                $table::table
                    .filter(sql::<Bool>($condition))
                    .count()
                    .get_result(connection)
            },
        }
    }};
}

/// A table of projects, whose rows are deleted in the order of a column.
macro_rules! project_table {
    ($table:ident, $key:ident: $type:ty) => {
        project_table!($table, $key: $type, BATCH_ROWS)
    };
    ($table:ident, $key:ident: $type:ty, $batch:expr) => {
        ProjectTable {
            copy: copy_table!($table, "project_id = current_setting('assay.owner')::uuid"),
            delete_batch: |connection: &mut PgConnection, project: Uuid| {
                let end: Option<$type> = $table::table
                    .filter($table::project_id.eq(project))
                    .order($table::$key)
                    .offset($batch)
                    .select($table::$key)
                    .first(connection)
                    .optional()?;
                let rows = diesel::delete($table::table).filter($table::project_id.eq(project));
                match end {
                    Some(end) => Ok((rows.filter($table::$key.le(end)).execute(connection)?, true)),
                    None => Ok((rows.execute(connection)?, false)),
                }
            },
        }
    };
}

/// The tables of an organization itself, each after those that it refers to. Hidden projects are left out.
pub(crate) const ORGANIZATION_TABLES: [CopyTable; 5] = [
    copy_table!(organization, "id = current_setting('assay.owner')::uuid"),
    copy_table!(
        project,
        "organization_id = current_setting('assay.owner')::uuid AND deleted_at IS NULL"
    ),
    copy_table!(
        project_entry,
        "organization_id = current_setting('assay.owner')::uuid AND deleted_at IS NULL"
    ),
    copy_table!(api_key, "organization_id = current_setting('assay.owner')::uuid"),
    copy_table!(
        ended_session,
        "key_id IN (SELECT id FROM api_key WHERE organization_id = current_setting('assay.owner')::uuid)"
    ),
];

/// The tables of projects, each after those that refer to it.
pub(crate) const PROJECT_TABLES: [ProjectTable; 19] = [
    project_table!(result_block, run_number: i32, BATCH_BLOCKS),
    project_table!(attempt, run_number: i32),
    project_table!(attempt_texts, run_number: i32, BATCH_BLOCKS),
    project_table!(run_pack, run_number: i32),
    project_table!(part, run_number: i32),
    project_table!(run, number: i32),
    project_table!(daily_count, day: At),
    project_table!(branch, name: String),
    project_table!(verdict_block, block: i32, BATCH_BLOCKS),
    project_table!(verdict_evidence, test: i32),
    project_table!(test, ordinal: i32),
    project_table!(signature_alias, fingerprint: String),
    project_table!(signature, ordinal: i32),
    project_table!(browser, ordinal: i32),
    project_table!(edge, number: i32),
    project_table!(message, number: i32),
    project_table!(upload, at: At),
    project_table!(upload_day, day: Date),
    project_table!(fix, test: i32),
];

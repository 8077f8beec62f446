//! Writes an organization's rows to an archive, in one state of the database.

use std::collections::BTreeSet;

use assay_domain::{
    id::{KeyId, OrganizationId, ProjectId},
    store::{ArchiveContents, ArchivedOrganization, ArchivedProject, ArchivedTable, ExportError, RowSink},
    timestamp::Timestamp,
};
use diesel::{
    connection::SimpleConnection,
    prelude::*,
    result::{DatabaseErrorKind, Error as QueryError},
    sql_types::{Text, Timestamptz},
};
use uuid::Uuid;

use super::copy::select_owner;
use crate::{
    Database,
    admin::{
        migrate, organization, project,
        tables::{CopyTable, ORGANIZATION_TABLES, PROJECT_TABLES},
    },
    db::{
        column::At,
        pool::WorkError,
        schema::{api_key, attempt, project as projects, result_block, run},
    },
    read::observation::Mark,
};

define_sql_function! {
    /// The beginning of a unit of time, in a time zone.
    fn date_trunc(unit: Text, at: Timestamptz, zone: Text) -> Timestamptz;
}

/// The outcome of the work of an export.
type Work<T> = Result<T, WorkError<ExportError>>;

/// Exports an organization. The locks of its projects keep imports out until the transaction ends.
pub(super) fn export(
    database: &Database,
    id: OrganizationId,
    sink: &mut dyn RowSink,
) -> Result<ArchiveContents, ExportError> {
    database.on_primary("exporting an organization", |connection| {
        connection
            .build_transaction()
            .repeatable_read()
            .run(|connection| export_in_transaction(connection, id, sink))
    })
}

fn export_in_transaction(
    connection: &mut PgConnection,
    id: OrganizationId,
    sink: &mut dyn RowSink,
) -> Work<ArchiveContents> {
    // A large table takes longer than any other statement.
    connection.batch_execute("SET LOCAL statement_timeout = 0")?;
    let schema = known_schema(connection)?;
    let organization = organization::all(connection, false)
        .map_err(WorkError::widened)?
        .into_iter()
        .find(|organization| organization.id == id)
        .ok_or(WorkError::Refused(ExportError::Missing))?;
    let projects: Vec<(Uuid, String)> = project::of_organization(connection, id)
        .map_err(WorkError::widened)?
        .into_iter()
        .map(|project| (project.id.0, project.name))
        .collect();
    for (project, name) in &projects {
        lock(connection, *project, name)?;
        check_judged(connection, *project, name)?;
    }
    let keys: Vec<Uuid> = api_key::table
        .filter(api_key::organization_id.eq(id.0))
        .order((api_key::created_at, api_key::id))
        .select(api_key::id)
        .load(connection)?;
    let ids: Vec<Uuid> = projects.iter().map(|(project, _)| *project).collect();
    let mut tables = Vec::new();
    for table in &ORGANIZATION_TABLES {
        tables.push(copy(connection, table, &[id.0], sink)?);
    }
    for table in PROJECT_TABLES.iter().rev() {
        tables.push(copy(connection, &table.copy, &ids, sink)?);
    }
    Ok(ArchiveContents {
        schema,
        organization: ArchivedOrganization {
            id,
            name: organization.name,
            plan: organization.plan,
        },
        projects: projects
            .into_iter()
            .map(|(id, name)| ArchivedProject {
                id: ProjectId(id),
                name,
            })
            .collect(),
        keys: keys.into_iter().map(KeyId).collect(),
        days: days(connection, &ids)?,
        tables,
    })
}

/// Takes the lock that imports take, unless an import has it or has changed the project meanwhile.
fn lock(connection: &mut PgConnection, project: Uuid, name: &str) -> Work<()> {
    let locked: QueryResult<Option<Uuid>> = projects::table
        .filter(projects::id.eq(project))
        .select(projects::id)
        .for_no_key_update()
        .skip_locked()
        .first(connection)
        .optional();
    match locked {
        Ok(Some(_)) => Ok(()),
        Ok(None) | Err(QueryError::DatabaseError(DatabaseErrorKind::SerializationFailure, _)) => {
            Err(WorkError::Refused(ExportError::ImportRuns(name.to_owned())))
        }
        Err(error) => Err(error.into()),
    }
}

/// The newest migration of the database, which must have no migration that this program does not know.
fn known_schema(connection: &mut PgConnection) -> Work<String> {
    let schema = migrate::compare(connection)?;
    match schema.unknown.into_iter().next_back() {
        Some(newest) => Err(WorkError::Refused(ExportError::NewerSchema(newest))),
        None => Ok(schema.newest.unwrap_or_default()),
    }
}

/// Rejects a project with runs if its verdicts were judged from an earlier state.
fn check_judged(connection: &mut PgConnection, project: Uuid, name: &str) -> Work<()> {
    let is_judged = Mark::find(connection, project)?.is_some_and(|mark| mark.is_judged());
    if is_judged {
        return Ok(());
    }
    let has_runs: bool = diesel::select(diesel::dsl::exists(
        run::table.filter(run::project_id.eq(project)),
    ))
    .get_result(connection)?;
    match has_runs {
        true => Err(WorkError::Refused(ExportError::NotJudged {
            id: ProjectId(project),
            name: name.to_owned(),
        })),
        false => Ok(()),
    }
}

/// Writes the rows of each owner in one table.
fn copy(
    connection: &mut PgConnection,
    table: &CopyTable,
    owners: &[Uuid],
    sink: &mut dyn RowSink,
) -> Work<ArchivedTable> {
    let archive = |error| WorkError::Refused(ExportError::Archive(error));
    sink.begin_table(table.name).map_err(archive)?;
    let mut rows = 0;
    for owner in owners {
        select_owner(connection, *owner)?;
        rows += (table.copy_out)(connection, sink).map_err(|error| error.of_work(ExportError::Archive))?;
    }
    Ok(ArchivedTable {
        table: table.name.to_owned(),
        rows,
    })
}

/// The days on which runs with stored results started.
fn days(connection: &mut PgConnection, projects: &[Uuid]) -> QueryResult<Vec<Timestamp>> {
    let mut days = BTreeSet::new();
    for project in projects {
        let of_results: Vec<At> = result_block::table
            .filter(result_block::project_id.eq(project))
            .select(date_trunc("day", result_block::started_at, "UTC"))
            .distinct()
            .load(connection)?;
        let of_attempts: Vec<At> = attempt::table
            .filter(attempt::project_id.eq(project))
            .select(date_trunc("day", attempt::started_at, "UTC"))
            .distinct()
            .load(connection)?;
        days.extend(of_results.into_iter().chain(of_attempts).map(|At(day)| day));
    }
    Ok(days.into_iter().collect())
}

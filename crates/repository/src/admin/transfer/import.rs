//! Stores the rows of an archive, all or none of them.

use std::collections::BTreeSet;

use assay_domain::{
    id::{KeyId, OrganizationId, ProjectId},
    store::{
        ArchiveContents, ArchiveImportError, ArchivedOrganization, ImportedOrganization, RowSource,
        StoreError,
    },
    timestamp::Timestamp,
    verdict::Judge,
};
use diesel::{
    connection::SimpleConnection,
    prelude::*,
    result::{DatabaseErrorKind, Error as QueryError},
};
use uuid::Uuid;

use super::copy::{CopyError, select_owner};
use crate::{
    Database,
    admin::{
        migrate, organization, project,
        tables::{CopyTable, ORGANIZATION_TABLES, PROJECT_TABLES},
    },
    db::{
        column::{At, long_count},
        partition,
        pool::WorkError,
        schema::{api_key, organization as organizations, project as projects},
    },
    read::observation::Mark,
    record::verdict,
};

/// The outcome of the work of an import.
type Work<T> = Result<T, WorkError<ArchiveImportError>>;

/// Imports an archive in one transaction.
pub(super) fn import(
    database: &Database,
    contents: &ArchiveContents,
    source: &mut dyn RowSource,
    judge: &dyn Judge,
    now: Timestamp,
) -> Result<ImportedOrganization, ArchiveImportError> {
    database.on_primary("reading the schema", |connection| {
        check_schema(connection, contents)?;
        check_tables(contents)
    })?;
    database.in_transaction("looking for the organization", |connection| {
        check_free(connection, contents)
    })?;
    for day in &contents.days {
        partition::create_partition(database, At(*day), now)?;
    }
    let mut stored = None;
    database.in_transaction("importing an organization", |connection| {
        // An earlier attempt committed, and its answer was lost.
        if let Some(imported) = stored
            && is_stored(connection, contents.organization.id)?
        {
            return Ok(imported);
        }
        let imported = import_in_transaction(connection, contents, source, judge)?;
        stored = Some(imported);
        Ok(imported)
    })
}

fn import_in_transaction(
    connection: &mut PgConnection,
    contents: &ArchiveContents,
    source: &mut dyn RowSource,
    judge: &dyn Judge,
) -> Work<ImportedOrganization> {
    // A large table takes longer than any other statement.
    connection.batch_execute("SET LOCAL statement_timeout = 0")?;
    check_free(connection, contents)?;
    // Pruning does not drop these partitions from now on.
    for day in &contents.days {
        if !partition::hold_partition(connection, At(*day))? {
            return Err(WorkError::Refused(ArchiveImportError::Store(
                StoreError::Failed {
                    doing: "importing an organization",
                    source: "a partition was dropped meanwhile; run the command again".into(),
                },
            )));
        }
    }
    let mut imported = ImportedOrganization::default();
    for table in &ORGANIZATION_TABLES {
        imported.rows += copy(connection, table, &[contents.organization.id.0], contents, source)?;
    }
    let projects: Vec<Uuid> = contents.projects.iter().map(|project| project.id.0).collect();
    for table in PROJECT_TABLES.iter().rev() {
        imported.rows += copy(connection, &table.copy, &projects, contents, source)?;
    }
    check_keys(connection, contents)?;
    check_name(connection, &contents.organization)?;
    check_owners(connection, contents)?;
    for archived in &contents.projects {
        let mark = Mark::find(connection, archived.id.0)?;
        let Some(At(judged_at)) = mark.and_then(|mark| mark.evaluated_at) else {
            continue;
        };
        let (differing, verdicts) =
            verdict::differing(connection, archived.id.0, judge, judged_at).map_err(WorkError::widened)?;
        if differing > 0 {
            return Err(WorkError::Refused(ArchiveImportError::OtherVerdicts {
                id: archived.id,
                name: archived.name.clone(),
                differing,
            }));
        }
        imported.verdicts += verdicts;
    }
    Ok(imported)
}

/// All tables, each after those that it refers to.
fn tables() -> impl Iterator<Item = &'static CopyTable> {
    let of_projects = PROJECT_TABLES.iter().rev().map(|table| &table.copy);
    ORGANIZATION_TABLES.iter().chain(of_projects)
}

fn check_schema(connection: &mut PgConnection, contents: &ArchiveContents) -> Work<()> {
    let schema = migrate::compare(connection)?;
    let newest = schema.unknown.into_iter().next_back().or(schema.newest);
    let database = newest.unwrap_or_default();
    match database == contents.schema {
        true => Ok(()),
        false => Err(WorkError::Refused(ArchiveImportError::OtherSchema {
            archive: contents.schema.clone(),
            database,
        })),
    }
}

fn check_tables(contents: &ArchiveContents) -> Work<()> {
    let archived: BTreeSet<&str> = contents.tables.iter().map(|table| table.table.as_str()).collect();
    let expected: BTreeSet<&str> = tables().map(|table| table.name).collect();
    match archived.symmetric_difference(&expected).next() {
        None => Ok(()),
        Some(table) => Err(damaged(format!("the table {table} is missing or unknown"))),
    }
}

/// Rejects an archive if the database has its organization, the organization's name, a project or a key of it.
fn check_free(connection: &mut PgConnection, contents: &ArchiveContents) -> Work<()> {
    let organization = &contents.organization;
    let name: Option<String> = organizations::table
        .find(organization.id.0)
        .select(organizations::name)
        .first(connection)
        .optional()?;
    if let Some(name) = name {
        let id = organization.id;
        return Err(WorkError::Refused(ArchiveImportError::OrganizationExists {
            id,
            name,
        }));
    }
    check_name(connection, organization)?;
    let project: Option<(Uuid, String, Uuid)> = projects::table
        .filter(projects::id.eq_any(contents.projects.iter().map(|project| project.id.0)))
        .order((projects::created_at, projects::id))
        .select((projects::id, projects::name, projects::organization_id))
        .first(connection)
        .optional()?;
    if let Some((id, name, organization)) = project {
        return Err(WorkError::Refused(ArchiveImportError::ProjectExists {
            id: ProjectId(id),
            name,
            organization: OrganizationId(organization),
        }));
    }
    let key: Option<Uuid> = api_key::table
        .filter(api_key::id.eq_any(contents.keys.iter().map(|key| key.0)))
        .order((api_key::created_at, api_key::id))
        .select(api_key::id)
        .first(connection)
        .optional()?;
    match key {
        Some(key) => Err(WorkError::Refused(ArchiveImportError::KeyExists(KeyId(key)))),
        None => Ok(()),
    }
}

/// Refuses the name of another organization. Once the organization is inserted, programs that name another one wait.
fn check_name(connection: &mut PgConnection, archived: &ArchivedOrganization) -> Work<()> {
    match organization::with_name(connection, &archived.name, archived.id.0)? {
        None => Ok(()),
        Some(id) => Err(WorkError::Refused(ArchiveImportError::NameTaken {
            name: archived.name.clone(),
            id: OrganizationId(id),
        })),
    }
}

fn is_stored(connection: &mut PgConnection, id: OrganizationId) -> QueryResult<bool> {
    diesel::select(diesel::dsl::exists(organizations::table.find(id.0))).get_result(connection)
}

/// Stores the rows of a table, of which there must be as many as the contents say, all of them rows of these owners. The
/// owners had no rows before, so that a row of anybody else shows in their number.
fn copy(
    connection: &mut PgConnection,
    table: &CopyTable,
    owners: &[Uuid],
    contents: &ArchiveContents,
    source: &mut dyn RowSource,
) -> Work<u64> {
    let archive = |error| WorkError::Refused(ArchiveImportError::Archive(error));
    let mut rows = source.open_table(table.name).map_err(archive)?;
    let copied = (table.copy_in)(connection, &mut rows).map_err(|error| match error {
        CopyError::Query(QueryError::DatabaseError(DatabaseErrorKind::UniqueViolation, violation)) => {
            match table.name {
                // Another import of the same archive was faster.
                "organization" => WorkError::Refused(ArchiveImportError::OrganizationExists {
                    id: contents.organization.id,
                    name: contents.organization.name.clone(),
                }),
                "api_key" => WorkError::Refused(ArchiveImportError::KeyTextExists),
                _ => QueryError::DatabaseError(DatabaseErrorKind::UniqueViolation, violation).into(),
            }
        }
        other @ (CopyError::Query(_) | CopyError::Archive(_)) => other.of_work(ArchiveImportError::Archive),
    })?;
    let expected = contents.rows_of(table.name);
    if copied != expected {
        return Err(damaged(format!(
            "the table {} has {copied} rows and should have {expected}",
            table.name
        )));
    }
    let mut owned = 0;
    for owner in owners {
        select_owner(connection, *owner)?;
        owned += long_count((table.count_owned)(connection)?).map_err(WorkError::from)?;
    }
    match owned == copied {
        true => Ok(copied),
        false => Err(damaged(format!(
            "the table {} has rows of another organization",
            table.name
        ))),
    }
}

/// Checks that the keys are those of the contents, and that ingest keys are of the archive's own projects.
fn check_keys(connection: &mut PgConnection, contents: &ArchiveContents) -> Work<()> {
    let keys: Vec<(Uuid, Option<Uuid>)> = api_key::table
        .filter(api_key::organization_id.eq(contents.organization.id.0))
        .select((api_key::id, api_key::project_id))
        .load(connection)?;
    let is_own = |(key, project): &(Uuid, Option<Uuid>)| {
        contents.keys.iter().any(|archived| archived.0 == *key)
            && project.is_none_or(|project| contents.projects.iter().any(|own| own.id.0 == project))
    };
    match keys.iter().all(is_own) {
        true => Ok(()),
        false => Err(damaged(
            "a key is not one of its contents, or is for a project of another organization".to_owned(),
        )),
    }
}

/// Checks that the rows are of the organization and the projects of the contents, whose names and ids were free.
fn check_owners(connection: &mut PgConnection, contents: &ArchiveContents) -> Work<()> {
    let id = contents.organization.id;
    let all = organization::all(connection, false).map_err(WorkError::widened)?;
    let is_it = all.iter().any(|stored| {
        stored.id == id
            && stored.name == contents.organization.name
            && stored.plan == contents.organization.plan
    });
    let stored = project::of_organization(connection, id).map_err(WorkError::widened)?;
    let stored: Vec<_> = stored.iter().map(|project| (project.id, &project.name)).collect();
    let archived: Vec<_> = contents
        .projects
        .iter()
        .map(|project| (project.id, &project.name))
        .collect();
    match is_it && stored == archived {
        true => Ok(()),
        false => Err(damaged(
            "the organization and its projects are not those of its contents".to_owned(),
        )),
    }
}

fn damaged(how: String) -> WorkError<ArchiveImportError> {
    WorkError::Refused(ArchiveImportError::Damaged(how))
}

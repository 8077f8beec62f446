//! Deleting projects and organizations with all their data.
//!
//! A deletion first hides the project from readers and importers. Then it deletes the rows in batches. Each batch is
//! a separate transaction on rows of this project only, so imports into other projects and reads of them do not wait.
//! The next deletion of the same project, or pruning, finishes a deletion that was killed.

use std::{thread, time::Duration};

use assay_domain::{
    id::{OrganizationId, ProjectId},
    store::{DeletionReport, StoreError, UnfinishedDeletions},
    timestamp::Timestamp,
};
use diesel::{dsl::sum, prelude::*};
use uuid::Uuid;

use crate::{
    Database,
    admin::{organization, project, tables::PROJECT_TABLES},
    db::{
        column::{At, length, long_count},
        pool::{Read, WorkError},
        schema::{api_key, organization as organizations, project as projects, project_entry, result_block},
    },
};

/// How long a deletion waits until servers know that a project is hidden. They cache look-ups for half a second.
const CACHE_WAIT: Duration = Duration::from_secs(1);

/// Deletes a project with all its data; none if there is no such project.
pub(crate) fn delete_project(
    database: &Database,
    id: ProjectId,
    now: Timestamp,
    progress: &mut dyn FnMut(u64),
) -> Result<Option<DeletionReport>, StoreError> {
    let Some(hidden_at) = hide_project(database, id, now)? else {
        return Ok(None);
    };
    if hidden_at == now {
        thread::sleep(CACHE_WAIT);
    }
    delete_rows(database, id, progress).map(Some)
}

/// Deletes a hidden project with all its data.
fn delete_rows(
    database: &Database,
    id: ProjectId,
    progress: &mut dyn FnMut(u64),
) -> Result<DeletionReport, StoreError> {
    let results: Option<i64> = database.query("counting a project's results", |connection| {
        let of_project = result_block::table.filter(result_block::project_id.eq(id.0));
        let count = sum(length(result_block::status));
        of_project.select(count).get_result(connection)
    })?;
    let mut report = DeletionReport {
        results: long_count(results.unwrap_or(0))?,
        ..DeletionReport::default()
    };
    for table in &PROJECT_TABLES {
        loop {
            let (rows, has_more) = database.query("deleting a project's rows", |connection| {
                (table.delete_batch)(connection, id.0)
            })?;
            let rows = u64::try_from(rows).unwrap_or(u64::MAX);
            report.rows += rows;
            if table.copy.name == "run" {
                report.runs += rows;
            }
            progress(report.rows);
            if !has_more {
                break;
            }
        }
    }
    database.query_in_transaction("deleting a project", |connection| {
        diesel::delete(projects::table.find(id.0)).execute(connection)?;
        diesel::delete(project_entry::table.find(id.0))
            .execute(connection)
            .map(drop)
    })?;
    report.projects = 1;
    Ok(report)
}

/// Hides a project and deletes its keys. Returns the time since which it is hidden; none if there is no such project.
///
/// Waits for the import under way. Later imports find no project.
fn hide_project(database: &Database, id: ProjectId, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
    database.in_transaction("hiding a project", |connection| {
        let deleted_at: Option<Option<At>> = projects::table
            .find(id.0)
            .select(projects::deleted_at)
            .for_no_key_update()
            .first(connection)
            .optional()?;
        let Some(hidden_at) = deleted_at else {
            return Ok(None);
        };
        if hidden_at.is_none() {
            diesel::update(projects::table.find(id.0))
                .set(projects::deleted_at.eq(At(now)))
                .execute(connection)?;
            project::write_entry(connection, id)?;
        }
        diesel::delete(api_key::table.filter(api_key::project_id.eq(id.0))).execute(connection)?;
        Ok::<_, WorkError<StoreError>>(Some(hidden_at.map_or(now, |at| at.0)))
    })
}

/// Deletes an organization with its projects and keys; none if there is no such organization.
pub(crate) fn delete_organization(
    database: &Database,
    id: OrganizationId,
    now: Timestamp,
    progress: &mut dyn FnMut(u64),
) -> Result<Option<DeletionReport>, StoreError> {
    let is_known = database.in_transaction("hiding an organization", |connection| {
        hide_organization(connection, id, now)
    })?;
    if !is_known {
        return Ok(None);
    }
    // No project can be added any longer.
    let all: Vec<Uuid> = database.query("reading projects", |connection| {
        project_entry::table
            .filter(project_entry::organization_id.eq(id.0))
            .order((project_entry::created_at, project_entry::id))
            .select(project_entry::id)
            .load(connection)
    })?;
    let mut is_just_hidden = false;
    for project in &all {
        is_just_hidden |= hide_project(database, ProjectId(*project), now)? == Some(now);
    }
    if is_just_hidden {
        thread::sleep(CACHE_WAIT);
    }
    let mut report = DeletionReport::default();
    for project in all {
        let before = report.rows;
        let of_project = delete_rows(database, ProjectId(project), &mut |rows| progress(before + rows))?;
        report.add(of_project);
    }
    database.query_in_transaction("deleting an organization", |connection| {
        diesel::delete(api_key::table.filter(api_key::organization_id.eq(id.0))).execute(connection)?;
        diesel::delete(organizations::table.find(id.0))
            .execute(connection)
            .map(drop)
    })?;
    Ok(Some(report))
}

/// Hides an organization and deletes its keys; false if there is no such organization.
fn hide_organization(connection: &mut PgConnection, id: OrganizationId, now: Timestamp) -> Read<bool> {
    let deleted_at: Option<Option<At>> = organizations::table
        .find(id.0)
        .select(organizations::deleted_at)
        .for_no_key_update()
        .first(connection)
        .optional()?;
    let Some(hidden_at) = deleted_at else {
        return Ok(false);
    };
    if hidden_at.is_none() {
        diesel::update(organizations::table.find(id.0))
            .set(organizations::deleted_at.eq(At(now)))
            .execute(connection)?;
    }
    diesel::delete(api_key::table.filter(api_key::organization_id.eq(id.0))).execute(connection)?;
    Ok(true)
}

/// The projects and organizations whose deletion was killed.
pub(crate) fn unfinished(connection: &mut PgConnection) -> Read<UnfinishedDeletions> {
    Ok(UnfinishedDeletions {
        organizations: organization::all(connection, true)?,
        projects: project::all(connection, true)?,
    })
}

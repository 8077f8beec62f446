//! Projects and their configuration.

use assay_domain::{
    id::{OrganizationId, ProjectId},
    project::{Caller, Project, ProjectEntry},
    settings::{Chat, ChatEvent, Repohost, Settings},
    store::ProjectChange,
    timestamp::Timestamp,
};
use diesel::{
    ExpressionMethods, JoinOnDsl, OptionalExtension, PgConnection, QueryDsl, QueryResult, RunQueryDsl,
};
use uuid::Uuid;

use crate::{
    column::{At, storable, word},
    pool::Read,
    schema::{organization, project},
};

/// The caller's project of this id.
pub(crate) fn find(
    connection: &mut PgConnection,
    caller: &Caller,
    id: ProjectId,
    now: Timestamp,
) -> Read<Option<Project>> {
    let found: Option<String> = project::table
        .filter(project::id.eq(id.0))
        .filter(project::organization_id.eq(caller.organization.0))
        .select(project::name)
        .first(connection)
        .optional()?;
    Ok(found.map(|name| Project::of_row(id, name, caller.plan, now)))
}

type EntryRow = (Uuid, String, String, At);

fn entries(rows: Vec<EntryRow>) -> Vec<ProjectEntry> {
    rows.into_iter()
        .map(|(id, name, stable_branch, created_at)| ProjectEntry {
            id: ProjectId(id),
            name,
            stable_branch,
            created_at: created_at.0,
        })
        .collect()
}

/// The projects of an organization, oldest first.
pub(crate) fn of_organization(
    connection: &mut PgConnection,
    organization: OrganizationId,
) -> Read<Vec<ProjectEntry>> {
    let rows = project::table
        .filter(project::organization_id.eq(organization.0))
        .select((
            project::id,
            project::name,
            project::stable_branch,
            project::created_at,
        ))
        .order((project::created_at, project::id))
        .load(connection)?;
    Ok(entries(rows))
}

/// Every project, oldest first.
pub(crate) fn all(connection: &mut PgConnection) -> Read<Vec<ProjectEntry>> {
    let rows = project::table
        .select((
            project::id,
            project::name,
            project::stable_branch,
            project::created_at,
        ))
        .order((project::created_at, project::id))
        .load(connection)?;
    Ok(entries(rows))
}

/// The project's configuration.
pub(crate) fn settings(connection: &mut PgConnection, of: &Project) -> Read<Settings> {
    let (stable_branch, events, pr_comments, plan): (String, Option<Vec<String>>, bool, String) =
        project::table
            .inner_join(organization::table.on(organization::id.eq(project::organization_id)))
            .filter(project::id.eq(of.id.0))
            .select((
                project::stable_branch,
                project::chat_events,
                project::pr_comments,
                organization::plan,
            ))
            .first(connection)?;
    let configured = events.is_some();
    let events = events
        .unwrap_or_default()
        .iter()
        .map(|event| word("chat event", event))
        .collect::<Result<_, _>>()?;
    let plan: assay_domain::plan::Plan = word("plan", &plan)?;
    Ok(Settings {
        stable_branch,
        retention_days: plan.retention_days(),
        chat: Chat { configured, events },
        repohost: Repohost {
            pr_comments_enabled: pr_comments,
        },
    })
}

/// Keeps a project. Keeping the same one again changes nothing, so that this may be repeated.
pub(crate) fn insert(
    connection: &mut PgConnection,
    organization: OrganizationId,
    new: &ProjectEntry,
) -> QueryResult<usize> {
    diesel::insert_into(project::table)
        .values((
            project::id.eq(new.id.0),
            project::organization_id.eq(organization.0),
            project::name.eq(&new.name),
            project::stable_branch.eq(&new.stable_branch),
            project::created_at.eq(At(new.created_at)),
        ))
        .on_conflict(project::id)
        .do_nothing()
        .execute(connection)
}

/// A new project.
pub(crate) fn new(id: Uuid, name: &str, stable_branch: &str, now: Timestamp) -> ProjectEntry {
    ProjectEntry {
        id: ProjectId(id),
        name: storable(name),
        stable_branch: storable(stable_branch),
        created_at: now,
    }
}

/// Changes a project's configuration.
pub(crate) fn change(
    connection: &mut PgConnection,
    of: ProjectId,
    change: &ProjectChange,
) -> QueryResult<()> {
    let row = || project::table.find(of.0);
    if let Some(branch) = &change.stable_branch {
        diesel::update(row())
            .set(project::stable_branch.eq(storable(branch)))
            .execute(connection)?;
    }
    if let Some(chat) = &change.chat {
        let events: Option<Vec<&str>> = chat
            .as_ref()
            .map(|events| events.iter().copied().map(ChatEvent::as_str).collect());
        diesel::update(row())
            .set(project::chat_events.eq(events))
            .execute(connection)?;
    }
    if let Some(enabled) = change.pr_comments {
        diesel::update(row())
            .set(project::pr_comments.eq(enabled))
            .execute(connection)?;
    }
    Ok(())
}

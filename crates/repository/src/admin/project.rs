//! Projects and their configuration.
//!
//! A project is found and listed by its entry, a copy of some columns of its row: see [`write_entry`]. No statement
//! names both entries and tables with results, because a distributed database has them on different machines.

use assay_domain::{
    edge::DROPPED_AFTER_DAYS,
    id::{OrganizationId, ProjectId},
    project::{Caller, Project, ProjectEntry},
    release_branch::BranchPattern,
    settings::{Chat, ChatEvent, Repohost, Settings},
    store::{NameError, ProjectChange},
    timestamp::Timestamp,
};
use diesel::{pg::Pg, prelude::*};
use uuid::Uuid;

use crate::{
    admin::outbox,
    db::{
        column::{At, branch_patterns, storable, word},
        pool::{Read, WorkError},
        schema::{api_key, organization, project, project_entry},
    },
    read::judged_figures::budget_state,
};

/// The caller's project of this id.
pub(crate) fn find(
    connection: &mut PgConnection,
    caller: &Caller,
    id: ProjectId,
    now: Timestamp,
) -> Read<Option<Project>> {
    let name: Option<String> = project_entry::table
        .filter(project_entry::id.eq(id.0))
        .filter(project_entry::organization_id.eq(caller.organization.0))
        .filter(project_entry::deleted_at.is_null())
        .select(project_entry::name)
        .first(connection)
        .optional()?;
    Ok(name.map(|name| Project::of_row(id, name, caller.plan, now)))
}

/// The project of an ingest key. The key replaces the check of the organization.
pub(crate) fn of_ingest_key(
    connection: &mut PgConnection,
    id: ProjectId,
    now: Timestamp,
) -> Read<Option<Project>> {
    let row: Option<(String, String)> = project_entry::table
        .inner_join(organization::table.on(organization::id.eq(project_entry::organization_id)))
        .filter(project_entry::id.eq(id.0))
        .filter(project_entry::deleted_at.is_null())
        .filter(organization::deleted_at.is_null())
        .select((project_entry::name, organization::plan))
        .first(connection)
        .optional()?;
    let Some((name, plan)) = row else {
        return Ok(None);
    };
    Ok(Some(Project::of_row(id, name, word("plan", &plan)?, now)))
}

/// The projects of an organization, oldest first.
pub(crate) fn of_organization(
    connection: &mut PgConnection,
    organization: OrganizationId,
) -> Read<Vec<ProjectEntry>> {
    let entries = project_entry::table
        .filter(project_entry::organization_id.eq(organization.0))
        .filter(project_entry::deleted_at.is_null());
    load(connection, entries.into_boxed())
}

/// Every project, or every one whose deletion has begun, oldest first.
pub(crate) fn all(connection: &mut PgConnection, is_hidden: bool) -> Read<Vec<ProjectEntry>> {
    let entries = project_entry::table.filter(project_entry::deleted_at.is_not_null().eq(is_hidden));
    load(connection, entries.into_boxed())
}

fn load(
    connection: &mut PgConnection,
    projects: project_entry::BoxedQuery<'static, Pg>,
) -> Read<Vec<ProjectEntry>> {
    let rows: Vec<(Uuid, String, String, At)> = projects
        .select((
            project_entry::id,
            project_entry::name,
            project_entry::stable_branch,
            project_entry::created_at,
        ))
        .order((project_entry::created_at, project_entry::id))
        .load(connection)?;
    let entry = |(id, name, stable_branch, created_at): (Uuid, String, String, At)| ProjectEntry {
        id: ProjectId(id),
        name,
        stable_branch,
        created_at: created_at.0,
    };
    Ok(rows.into_iter().map(entry).collect())
}

/// The project's configuration.
pub(crate) fn settings(connection: &mut PgConnection, of: &Project) -> Read<Settings> {
    type Words = Option<Vec<String>>;
    type Budget = (Option<Vec<i32>>, bool, Option<Vec<i64>>);
    type Row = (String, Vec<String>, Words, Words, Option<At>, bool, bool, Budget);
    let (stable_branch, release_branches, events, served, served_at, pr_comments, stable_names, budget): Row =
        project::table
            .filter(project::id.eq(of.id.0))
            .select((
                project::stable_branch,
                project::release_branches,
                project::chat_events,
                project::chat_served,
                project::chat_served_at,
                project::pr_comments,
                project::stable_names,
                (
                    project::flake_budget,
                    project::is_budget_exceeded,
                    project::health,
                ),
            ))
            .first(connection)?;
    // Nothing is sent any more after assay-notify was away for as long as messages are kept.
    let sends_since = of.visible_to.plus_days(-DROPPED_AFTER_DAYS);
    let served = served.filter(|_| served_at.is_some_and(|at| at.0 > sends_since));
    let chat = match (events, served) {
        (Some(events), Some(served)) => Chat {
            configured: true,
            events: outbox::events(
                &events
                    .into_iter()
                    .filter(|event| served.contains(event))
                    .collect::<Vec<_>>(),
            )?,
        },
        (Some(_) | None, None) | (None, Some(_)) => Chat {
            configured: false,
            events: Vec::new(),
        },
    };
    Ok(Settings {
        stable_branch,
        release_branches: branch_patterns(&release_branches)?,
        retention_days: of.plan.retention_days(),
        chat,
        repohost: Repohost {
            pr_comments_enabled: pr_comments,
        },
        stable_names,
        flake_budget: budget_state(budget.0.as_deref(), budget.1, budget.2.as_deref()),
    })
}

/// Locks a project against imports and other changes until the transaction ends, and returns its organization; none
/// if there is no such project.
pub(crate) fn lock(connection: &mut PgConnection, id: Uuid) -> QueryResult<Option<Uuid>> {
    project::table
        .find(id)
        .filter(project::deleted_at.is_null())
        .select(project::organization_id)
        .for_no_key_update()
        .first(connection)
        .optional()
}

/// Rejects a name that another project of the organization has. Other programs that name a project of it wait until
/// the transaction ends.
fn check_name(
    connection: &mut PgConnection,
    organization: Uuid,
    own: Uuid,
    name: &str,
) -> Result<(), WorkError<NameError>> {
    let locked: Option<Uuid> = organization::table
        .find(organization)
        .filter(organization::deleted_at.is_null())
        .select(organization::id)
        .for_no_key_update()
        .first(connection)
        .optional()?;
    if locked.is_none() {
        return Err(WorkError::Refused(NameError::Missing("organization")));
    }
    let other: Option<Uuid> = project_entry::table
        .filter(project_entry::organization_id.eq(organization))
        .filter(project_entry::name.eq(name))
        .filter(project_entry::id.ne(own))
        .filter(project_entry::deleted_at.is_null())
        .order((project_entry::created_at, project_entry::id))
        .select(project_entry::id)
        .first(connection)
        .optional()?;
    match other {
        None => Ok(()),
        Some(id) => Err(WorkError::Refused(NameError::Taken {
            what: "a project of this organization",
            name: name.to_owned(),
            id: id.to_string(),
        })),
    }
}

/// Changes a project's name.
pub(crate) fn rename(
    connection: &mut PgConnection,
    id: ProjectId,
    name: &str,
) -> Result<(), WorkError<NameError>> {
    let name = storable(name);
    let organization = lock(connection, id.0)?.ok_or(WorkError::Refused(NameError::Missing("project")))?;
    check_name(connection, organization, id.0, &name)?;
    diesel::update(project::table.find(id.0))
        .set(project::name.eq(&name))
        .execute(connection)?;
    write_entry(connection, id)?;
    Ok(())
}

/// Moves a project and its keys to another organization.
pub(crate) fn move_to(
    connection: &mut PgConnection,
    id: ProjectId,
    to: OrganizationId,
) -> Result<(), WorkError<NameError>> {
    lock(connection, id.0)?.ok_or(WorkError::Refused(NameError::Missing("project")))?;
    let name: String = project::table
        .find(id.0)
        .select(project::name)
        .first(connection)?;
    check_name(connection, to.0, id.0, &name)?;
    diesel::update(project::table.find(id.0))
        .set(project::organization_id.eq(to.0))
        .execute(connection)?;
    write_entry(connection, id)?;
    diesel::update(api_key::table.filter(api_key::project_id.eq(id.0)))
        .set(api_key::organization_id.eq(to.0))
        .execute(connection)?;
    Ok(())
}

/// Stores a project. Storing the same one again changes nothing, so that this may be repeated.
pub(crate) fn insert(
    connection: &mut PgConnection,
    organization: OrganizationId,
    new: &ProjectEntry,
) -> Result<(), WorkError<NameError>> {
    check_name(connection, organization.0, new.id.0, &new.name)?;
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
        .execute(connection)?;
    write_entry(connection, new.id)?;
    Ok(())
}

/// The columns of a project that its entry copies.
#[derive(Queryable, Insertable, AsChangeset)]
#[diesel(table_name = project_entry, treat_none_as_null = true)]
struct Entry {
    id: Uuid,
    organization_id: Uuid,
    name: String,
    stable_branch: String,
    created_at: At,
    deleted_at: Option<At>,
}

/// Writes the entry of a project that was created or changed in this transaction.
pub(crate) fn write_entry(connection: &mut PgConnection, of: ProjectId) -> QueryResult<()> {
    let entry: Entry = project::table
        .find(of.0)
        .select((
            project::id,
            project::organization_id,
            project::name,
            project::stable_branch,
            project::created_at,
            project::deleted_at,
        ))
        .first(connection)?;
    diesel::insert_into(project_entry::table)
        .values(&entry)
        .on_conflict(project_entry::id)
        .do_update()
        .set(&entry)
        .execute(connection)?;
    Ok(())
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

/// The columns of a project's configuration that change.
#[derive(AsChangeset)]
#[diesel(table_name = project)]
struct Changed<'a> {
    stable_branch: Option<String>,
    release_branches: Option<Vec<&'a str>>,
    chat_events: Option<Option<Vec<&'a str>>>,
    pr_comments: Option<bool>,
    stable_names: Option<bool>,
    flake_budget: Option<Option<Vec<i32>>>,
    is_budget_exceeded: Option<bool>,
}

/// Changes a project's configuration.
pub(crate) fn change(
    connection: &mut PgConnection,
    of: ProjectId,
    change: &ProjectChange,
) -> QueryResult<()> {
    let row = || project::table.find(of.0);
    let words = |events: &Vec<ChatEvent>| events.iter().map(|event| event.as_str()).collect();
    let mut changed = Changed {
        stable_branch: change.stable_branch.as_deref().map(storable),
        release_branches: change
            .release_branches
            .as_ref()
            .map(|patterns| patterns.iter().map(BranchPattern::as_str).collect()),
        chat_events: change.chat.as_ref().map(|events| events.as_ref().map(words)),
        pr_comments: change.pr_comments,
        stable_names: change.stable_names,
        flake_budget: change
            .flake_budget
            .map(|budget| budget.map(|budget| vec![budget.most, budget.met_at])),
        is_budget_exceeded: None,
    };
    if let Some(budget) = &changed.flake_budget {
        let before: Option<Vec<i32>> = row().select(project::flake_budget).first(connection)?;
        // The next judgement reports a new budget that is exceeded.
        changed.is_budget_exceeded = (before != *budget).then_some(false);
    }
    diesel::update(row())
        .set(changed)
        .execute(connection)
        .optional_empty_changeset()?;
    if change.stable_branch.is_some() {
        write_entry(connection, of)?;
    }
    Ok(())
}

//! Organizations.

use assay_domain::{
    id::OrganizationId, plan::Plan, project::Organization, store::NameError, timestamp::Timestamp,
};
use diesel::prelude::*;
use uuid::Uuid;

use crate::db::{
    column::{At, storable, word},
    pool::{Read, WorkError, converted},
    schema::organization,
};

/// Makes the other programs that name an organization wait until the transaction ends.
///
/// The refusal names the id of the other organization, which the error of a unique index does not have.
fn lock_names(connection: &mut PgConnection) -> QueryResult<usize> {
    diesel::sql_query("LOCK TABLE organization IN SHARE ROW EXCLUSIVE MODE").execute(connection)
}

/// Refuses a name that another organization has.
fn check_name(connection: &mut PgConnection, own: Uuid, name: &str) -> Result<(), WorkError<NameError>> {
    match with_name(connection, name, own)? {
        None => Ok(()),
        Some(id) => Err(WorkError::Refused(NameError::Taken {
            what: "an organization",
            name: name.to_owned(),
            id: id.to_string(),
        })),
    }
}

/// The id of another organization with this name.
pub(crate) fn with_name(connection: &mut PgConnection, name: &str, own: Uuid) -> QueryResult<Option<Uuid>> {
    organization::table
        .filter(organization::name.eq(name))
        .filter(organization::id.ne(own))
        .filter(organization::deleted_at.is_null())
        .order((organization::created_at, organization::id))
        .select(organization::id)
        .first(connection)
        .optional()
}

/// The plan of an organization; none if there is no such organization.
pub(crate) fn plan(connection: &mut PgConnection, id: OrganizationId) -> Read<Option<Plan>> {
    let plan: Option<String> = organization::table
        .find(id.0)
        .filter(organization::deleted_at.is_null())
        .select(organization::plan)
        .first(connection)
        .optional()?;
    Ok(plan.map(|plan| word("plan", &plan)).transpose()?)
}

/// Stores an organization. Storing the same one again changes nothing, so that this may be repeated.
pub(crate) fn insert(connection: &mut PgConnection, new: &Organization) -> Result<(), WorkError<NameError>> {
    lock_names(connection)?;
    check_name(connection, new.id.0, &new.name)?;
    diesel::insert_into(organization::table)
        .values((
            organization::id.eq(new.id.0),
            organization::name.eq(&new.name),
            organization::plan.eq(new.plan.as_str()),
            organization::created_at.eq(At(new.created_at)),
        ))
        .on_conflict_do_nothing()
        .execute(connection)?;
    Ok(())
}

/// Changes an organization's name.
pub(crate) fn rename(
    connection: &mut PgConnection,
    id: OrganizationId,
    name: &str,
) -> Result<(), WorkError<NameError>> {
    let name = storable(name);
    lock_names(connection)?;
    check_name(connection, id.0, &name)?;
    let renamed = diesel::update(organization::table.find(id.0))
        .filter(organization::deleted_at.is_null())
        .set(organization::name.eq(&name))
        .execute(connection)?;
    if renamed == 0 {
        return Err(WorkError::Refused(NameError::Missing("organization")));
    }
    Ok(())
}

/// A new organization.
pub(crate) fn new(id: Uuid, name: &str, plan: Plan, now: Timestamp) -> Organization {
    Organization {
        id: OrganizationId(id),
        name: storable(name),
        plan,
        created_at: now,
    }
}

/// Every organization, or every one whose deletion has begun, oldest first.
pub(crate) fn all(connection: &mut PgConnection, is_hidden: bool) -> Read<Vec<Organization>> {
    let rows: Vec<(Uuid, String, String, At)> = organization::table
        .filter(organization::deleted_at.is_not_null().eq(is_hidden))
        .select((
            organization::id,
            organization::name,
            organization::plan,
            organization::created_at,
        ))
        .order((organization::created_at, organization::id))
        .load(connection)?;
    converted(rows, |(id, name, plan, created_at)| {
        Ok(Organization {
            id: OrganizationId(id),
            name,
            plan: word("plan", &plan)?,
            created_at: created_at.0,
        })
    })
}

/// Changes a plan; false if there is no such organization.
pub(crate) fn set_plan(
    connection: &mut PgConnection,
    organization: OrganizationId,
    plan: Plan,
) -> QueryResult<bool> {
    let changed = diesel::update(organization::table.find(organization.0))
        .filter(organization::deleted_at.is_null())
        .set(organization::plan.eq(plan.as_str()))
        .execute(connection)?;
    Ok(changed > 0)
}

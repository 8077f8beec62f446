//! Organizations.

use assay_domain::{id::OrganizationId, plan::Plan, project::Organization, timestamp::Timestamp};
use diesel::{ExpressionMethods, PgConnection, QueryDsl, QueryResult, RunQueryDsl};
use uuid::Uuid;

use crate::{
    column::{At, storable, word},
    pool::Read,
    schema::organization,
};

/// Keeps an organization. Keeping the same one again changes nothing, so that this may be repeated.
pub(crate) fn insert(connection: &mut PgConnection, new: &Organization) -> QueryResult<usize> {
    diesel::insert_into(organization::table)
        .values((
            organization::id.eq(new.id.0),
            organization::name.eq(&new.name),
            organization::plan.eq(new.plan.as_str()),
            organization::created_at.eq(At(new.created_at)),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
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

/// Every organization, oldest first.
pub(crate) fn all(connection: &mut PgConnection) -> Read<Vec<Organization>> {
    let rows: Vec<(Uuid, String, String, At)> = organization::table
        .select((
            organization::id,
            organization::name,
            organization::plan,
            organization::created_at,
        ))
        .order((organization::created_at, organization::id))
        .load(connection)?;
    rows.into_iter()
        .map(|(id, name, plan, created_at)| {
            Ok(Organization {
                id: OrganizationId(id),
                name,
                plan: word("plan", &plan)?,
                created_at: created_at.0,
            })
        })
        .collect()
}

/// Changes a plan; false where there is no such organization.
pub(crate) fn set_plan(
    connection: &mut PgConnection,
    organization: OrganizationId,
    plan: Plan,
) -> QueryResult<bool> {
    let changed = diesel::update(organization::table.find(organization.0))
        .set(organization::plan.eq(plan.as_str()))
        .execute(connection)?;
    Ok(changed > 0)
}

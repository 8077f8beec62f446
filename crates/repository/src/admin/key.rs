//! Read keys and ingest keys: storing, finding, listing, rotating and revoking them.

use assay_domain::{
    id::{KeyId, OrganizationId, ProjectId},
    identity::Trust,
    ingest::IngestTerms,
    key::{KeyEntry, KeyHash, KeyKind, NewKey, StoredKey},
    store::{KeyDeletion, KeyRotation, StoreError},
    timestamp::Timestamp,
};
use diesel::{dsl::exists, prelude::*, select};
use serde_json::{Value, json};
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use crate::db::{
    column::{At, corrupt, storable, word},
    pool::{Read, converted},
    schema::{api_key, organization, project_entry},
};

/// Id, organization, its plan, expiry and revocation.
type ReadKeyRow = (Uuid, Uuid, String, Option<At>, Option<At>);

/// The read key with this hash; none if there is no such key.
pub(crate) fn find(connection: &mut PgConnection, hash: &KeyHash) -> Read<Option<StoredKey>> {
    let row: Option<ReadKeyRow> = api_key::table
        .inner_join(organization::table.on(organization::id.eq(api_key::organization_id)))
        .filter(api_key::hash.eq(hash.0.as_slice()))
        .filter(api_key::kind.eq(KeyKind::Read.as_str()))
        .filter(organization::deleted_at.is_null())
        .select((
            api_key::id,
            api_key::organization_id,
            organization::plan,
            api_key::expires_at,
            api_key::revoked_at,
        ))
        .first(connection)
        .optional()?;
    let Some((id, organization, plan, expires_at, revoked_at)) = row else {
        return Ok(None);
    };
    Ok(Some(StoredKey {
        id: KeyId(id),
        is_person: false,
        only: None,
        organization: OrganizationId(organization),
        plan: word("plan", &plan)?,
        expires_at: expires_at
            .ok_or_else(|| corrupt("read key without an expiry", &id.to_string()))?
            .0,
        revoked_at: revoked_at.map(|at| at.0),
    }))
}

/// Stores the day of `now` as the key's last use, unless a later day is stored.
pub(crate) fn used(connection: &mut PgConnection, key: KeyId, now: Timestamp) -> QueryResult<usize> {
    let day = OffsetDateTime::from(now).date();
    diesel::update(api_key::table.filter(api_key::id.eq(key.0)))
        .filter(api_key::last_used_on.is_null().or(api_key::last_used_on.lt(day)))
        .set(api_key::last_used_on.eq(day))
        .execute(connection)
}

/// Stores a read key; false if there is no such organization.
///
/// Storing the same key again changes nothing, because a statement is repeated after its connection was lost, and the
/// first one may have been committed.
pub(crate) fn insert_read(
    connection: &mut PgConnection,
    organization: OrganizationId,
    key: &NewKey,
    expires_at: Timestamp,
) -> QueryResult<bool> {
    let organization_id: Option<Uuid> = organization::table
        .find(organization.0)
        .filter(organization::deleted_at.is_null())
        .select(organization::id)
        .for_share()
        .first(connection)
        .optional()?;
    if organization_id.is_none() {
        return Ok(false);
    }
    diesel::insert_into(api_key::table)
        .values((
            new(key, KeyKind::Read, organization.0),
            api_key::expires_at.eq(At(expires_at)),
        ))
        .on_conflict(api_key::id)
        .do_nothing()
        .execute(connection)?;
    Ok(true)
}

/// Stores an ingest key; false if there is no such project. Storing the same key again changes nothing.
pub(crate) fn insert_ingest(
    connection: &mut PgConnection,
    project: ProjectId,
    key: &NewKey,
    terms: &IngestTerms,
) -> QueryResult<bool> {
    let organization: Option<Uuid> = project_entry::table
        .find(project.0)
        .filter(project_entry::deleted_at.is_null())
        .select(project_entry::organization_id)
        .for_share()
        .first(connection)
        .optional()?;
    let Some(organization) = organization else {
        return Ok(false);
    };
    diesel::insert_into(api_key::table)
        .values((
            new(key, KeyKind::Ingest, organization),
            api_key::project_id.eq(project.0),
            api_key::name.eq(terms.name.as_deref().map(storable)),
            api_key::expires_at.eq(terms.expires_at.map(At)),
            api_key::backfill.eq(terms.backfill),
            api_key::pull_requests_only.eq(terms.pull_requests_only),
            api_key::trust.eq(terms.trust.as_ref().map(|trust| json!(trust))),
        ))
        .on_conflict(api_key::id)
        .do_nothing()
        .execute(connection)?;
    Ok(true)
}

/// The trust of a key without a secret.
pub(crate) fn trusted(value: Value) -> Result<Trust, StoreError> {
    serde_json::from_value(value).map_err(|_| corrupt("trust of a key", "api_key.trust"))
}

type NewRow = (
    diesel::dsl::Eq<api_key::id, Uuid>,
    diesel::dsl::Eq<api_key::kind, &'static str>,
    diesel::dsl::Eq<api_key::hash, Vec<u8>>,
    diesel::dsl::Eq<api_key::prefix, String>,
    diesel::dsl::Eq<api_key::organization_id, Uuid>,
    diesel::dsl::Eq<api_key::created_at, At>,
);

fn new(key: &NewKey, kind: KeyKind, organization: Uuid) -> NewRow {
    (
        api_key::id.eq(key.id.0),
        api_key::kind.eq(kind.as_str()),
        api_key::hash.eq(key.hash.0.to_vec()),
        api_key::prefix.eq(storable(&key.prefix)),
        api_key::organization_id.eq(organization),
        api_key::created_at.eq(At(key.created_at)),
    )
}

/// A key as stored, without its hash.
#[derive(Queryable, Selectable)]
#[diesel(table_name = api_key)]
struct Row {
    id: Uuid,
    kind: String,
    prefix: String,
    organization_id: Uuid,
    project_id: Option<Uuid>,
    created_at: At,
    name: Option<String>,
    backfill: bool,
    pull_requests_only: bool,
    expires_at: Option<At>,
    revoked_at: Option<At>,
    trust: Option<Value>,
    last_used_on: Option<Date>,
}

/// The keys of an organization and its projects, oldest first.
pub(crate) fn list(connection: &mut PgConnection, organization: OrganizationId) -> Read<Vec<KeyEntry>> {
    let rows: Vec<Row> = api_key::table
        .filter(api_key::organization_id.eq(organization.0))
        .select(Row::as_select())
        .order((api_key::created_at, api_key::id))
        .load(connection)?;
    converted(rows, |row| {
        Ok(KeyEntry {
            id: KeyId(row.id),
            kind: word("kind of key", &row.kind)?,
            prefix: row.prefix,
            project_id: row.project_id.map(ProjectId),
            created_at: row.created_at.0,
            name: row.name,
            backfill: row.backfill,
            pull_requests_only: row.pull_requests_only,
            expires_at: row.expires_at.map(|at| at.0),
            revoked_at: row.revoked_at.map(|at| at.0),
            trust: row.trust.map(trusted).transpose()?,
            last_used_on: row.last_used_on.map(|day| day.to_string()),
        })
    })
}

/// Changes the name of a key in lists; false if there is no such key.
pub(crate) fn rename(connection: &mut PgConnection, key: KeyId, name: &str) -> QueryResult<bool> {
    let renamed = diesel::update(api_key::table.find(key.0))
        .set(api_key::name.eq(storable(name)))
        .execute(connection)?;
    Ok(renamed > 0)
}

/// Revokes a key; false if there is no such key. The first date stays.
pub(crate) fn revoke(connection: &mut PgConnection, key: KeyId, now: Timestamp) -> QueryResult<bool> {
    diesel::update(api_key::table.find(key.0).filter(api_key::revoked_at.is_null()))
        .set(api_key::revoked_at.eq(At(now)))
        .execute(connection)?;
    is_stored(connection, key)
}

/// Deletes a key that is revoked, or expired as of `now`.
pub(crate) fn delete(connection: &mut PgConnection, key: KeyId, now: Timestamp) -> QueryResult<KeyDeletion> {
    let deleted = diesel::delete(api_key::table.find(key.0))
        .filter(
            api_key::revoked_at
                .is_not_null()
                .or(api_key::expires_at.le(At(now)).assume_not_null()),
        )
        .execute(connection)?;
    if deleted > 0 {
        return Ok(KeyDeletion::Deleted);
    }
    Ok(match is_stored(connection, key)? {
        true => KeyDeletion::StillValid,
        false => KeyDeletion::Missing,
    })
}

/// Replaces a key by a new one; the old one works until `until` at most.
///
/// A second attempt, after a commit that was not answered, finds the new key and changes nothing.
pub(crate) fn rotate(
    connection: &mut PgConnection,
    key: KeyId,
    new_key: &NewKey,
    until: Timestamp,
) -> Read<KeyRotation> {
    let former: Option<Row> = api_key::table
        .find(key.0)
        .for_no_key_update()
        .select(Row::as_select())
        .first(connection)
        .optional()?;
    let Some(former) = former else {
        return Ok(KeyRotation::Missing);
    };
    let stored: Option<Option<At>> = api_key::table
        .find(new_key.id.0)
        .select(api_key::expires_at)
        .first(connection)
        .optional()?;
    if let Some(expires_at) = stored {
        return Ok(KeyRotation::Rotated {
            former_expires_at: former.expires_at.map_or(until, |at| at.0),
            expires_at: expires_at.map(|at| at.0),
        });
    }
    let now = new_key.created_at;
    if former.revoked_at.is_some() || former.expires_at.is_some_and(|at| at.0 <= now) {
        return Ok(KeyRotation::NotValid);
    }
    let lifetime_ms = former.expires_at.map(|at| at.0.since_ms(former.created_at.0));
    let expires_at = lifetime_ms.map(|ms| now.plus_ms(ms));
    let former_expires_at = former.expires_at.map_or(until, |at| at.0.min(until));
    diesel::insert_into(api_key::table)
        .values((
            new(
                new_key,
                word("kind of key", &former.kind)?,
                former.organization_id,
            ),
            api_key::project_id.eq(former.project_id),
            api_key::name.eq(former.name),
            api_key::backfill.eq(former.backfill),
            api_key::pull_requests_only.eq(former.pull_requests_only),
            api_key::expires_at.eq(expires_at.map(At)),
        ))
        .execute(connection)?;
    diesel::update(api_key::table.find(key.0))
        .set(api_key::expires_at.eq(At(former_expires_at)))
        .execute(connection)?;
    Ok(KeyRotation::Rotated {
        former_expires_at,
        expires_at,
    })
}

fn is_stored(connection: &mut PgConnection, key: KeyId) -> QueryResult<bool> {
    select(exists(api_key::table.find(key.0))).get_result(connection)
}

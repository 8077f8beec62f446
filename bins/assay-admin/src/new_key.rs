//! Makes keys.

use anyhow::ensure;
use assay_domain::{
    id::KeyId,
    ingest::IngestTerms,
    key::{KeyKind, SecretKey, mint},
    project::{Organization, ProjectEntry},
    store::Administration,
    timestamp::Timestamp,
};

/// Makes a read key of an organization. Returns its id and its text, which the database does not have.
pub(crate) fn read_key(
    store: &dyn Administration,
    organization: &Organization,
    expires_at: Timestamp,
    now: Timestamp,
) -> anyhow::Result<(KeyId, SecretKey)> {
    let (secret, new) = mint(KeyKind::Read, now);
    ensure!(
        store.create_read_key(organization.id, &new, expires_at)?,
        "the organization {:?} was deleted meanwhile",
        organization.name
    );
    Ok((new.id, secret))
}

/// Makes an ingest key of a project. Returns what [`read_key`] returns.
pub(crate) fn ingest_key(
    store: &dyn Administration,
    project: &ProjectEntry,
    terms: &IngestTerms,
    now: Timestamp,
) -> anyhow::Result<(KeyId, SecretKey)> {
    let (secret, new) = mint(KeyKind::Ingest, now);
    ensure!(
        store.create_ingest_key(project.id, &new, terms)?,
        "the project {:?} was deleted meanwhile",
        project.name
    );
    Ok((new.id, secret))
}

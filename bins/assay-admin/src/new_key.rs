//! Makes keys.

use anyhow::ensure;
use assay_domain::{
    id::KeyId,
    ingest::IngestTerms,
    key::{KeyKind, SecretKey, mint},
    project::{Organization, ProjectEntry},
    timestamp::Timestamp,
};

use crate::database::Admin;

/// Makes a read key of an organization. Returns its id and its text, which the database does not have.
pub(crate) fn read_key(
    admin: &Admin<'_>,
    organization: &Organization,
    expires_at: Timestamp,
) -> anyhow::Result<(KeyId, SecretKey)> {
    let (secret, new) = mint(KeyKind::Read, admin.now);
    ensure!(
        admin.store.create_read_key(organization.id, &new, expires_at)?,
        "the organization {:?} was deleted meanwhile",
        organization.name
    );
    Ok((new.id, secret))
}

/// Makes an ingest key of a project. Returns what [`read_key`] returns.
pub(crate) fn ingest_key(
    admin: &Admin<'_>,
    project: &ProjectEntry,
    terms: &IngestTerms,
) -> anyhow::Result<(KeyId, SecretKey)> {
    let (secret, new) = mint(KeyKind::Ingest, admin.now);
    ensure!(
        admin.store.create_ingest_key(project.id, &new, terms)?,
        "the project {:?} was deleted meanwhile",
        project.name
    );
    Ok((new.id, secret))
}

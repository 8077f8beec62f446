//! `assay-admin key`: read keys of organizations and ingest keys of projects.

use std::time::Duration;

use anyhow::{Context as _, bail};
use assay_cli_terminal::{
    confirm::confirm,
    message, output,
    table::{Cell, Tone},
    when::{on_day, when},
};
use assay_domain::{
    id::KeyId,
    ingest::IngestTerms,
    key::{KeyEntry, KeyKind, Lifetime, mint},
    project::ProjectEntry,
    store::{KeyDeletion, KeyRotation},
    timestamp::Timestamp,
};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::{
    database::{self, Admin},
    global::Global,
    lookup, new_key, values,
};

/// `assay-admin key`.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Create a read key; it is shown only once
    ///
    /// A read key reads every project of its organization over HTTP. `assay-admin key rotate` replaces it before it expires.
    #[command(after_help = "\
Examples:
  assay-admin key create --org \"Example Shop\" --days 90
  KEY=$(assay-admin key create --org \"Example Shop\" --days 90 --json | jq -r .key)
  curl -H \"Authorization: Bearer $KEY\" http://127.0.0.1:8080/api/v1/projects")]
    Create {
        /// The organization's id or name
        #[arg(long)]
        org: String,
        /// Days until it expires
        #[arg(long, value_parser = values::lifetime())]
        days: Lifetime,
    },
    /// Create a key that sends reports to one project; it is shown only once
    ///
    /// `assay upload` and `assay run` send reports with it (ASSAY_INGEST_KEY). The read API rejects it.
    ///
    /// A key for forks accepts only reports of pull requests (`--pull-requests-only`). It may be public: its runs are
    /// shown and do not count in verdicts.
    #[command(after_help = "\
Examples:
  assay-admin key create-ingest --project storefront --name \"CI of storefront\"
  A key that may be public in a workflow file, for pull requests from forks:
    assay-admin key create-ingest --project storefront --name forks --pull-requests-only
  A key for a week, to send the runs of last year:
    assay-admin key create-ingest --project storefront --backfill --days 7")]
    CreateIngest(CreateIngest),
    /// Replace a key by a new one, which is shown only once
    ///
    /// The new key has the same owner, rights and lifetime. The old one works for a while, so that CI and clients can
    /// be changed without a gap.
    #[command(after_help = "\
Examples:
  assay-admin key rotate 019aa3f4-5b1c-7def-8a3b-0123456789ab
  At once, after the old key became known:
    assay-admin key rotate --overlap 0s 019aa3f4-5b1c-7def-8a3b-0123456789ab")]
    Rotate {
        /// The key's id, as `assay-admin key list` shows it
        key_id: KeyId,
        /// How long the old key still works, at most 24h
        #[arg(long, value_name = "TIME", default_value = "24h", value_parser = values::duration)]
        overlap: Duration,
    },
    /// List keys, oldest first
    ///
    /// Only the first characters of a key are stored and shown.
    #[command(after_help = "\
Examples:
  assay-admin key list
  assay-admin key list --org \"Example Shop\" --json | jq -r '.keys[] | select(.revokedAt == null) | .id'")]
    List {
        /// Only those of this organization and its projects: its id or name
        #[arg(long)]
        org: Option<String>,
    },
    /// Change what lists call a key
    ///
    /// Nothing else changes: the key's text, its id and its rights stay.
    #[command(after_help = "\
Examples:
  assay-admin key rename 019aa3f4-5b1c-7def-8a3b-0123456789ab \"CI of storefront\"")]
    Rename {
        /// The key's id, as `assay-admin key list` shows it
        key_id: KeyId,
        /// The new name
        #[arg(value_parser = values::key_name)]
        name: String,
    },
    /// Revoke a key, on every server within a second
    ///
    /// This cannot be undone. On a terminal the command asks first; elsewhere it does not ask.
    #[command(after_help = "\
Examples:
  assay-admin key revoke 019aa3f4-5b1c-7def-8a3b-0123456789ab
  assay-admin key revoke --yes 019aa3f4-5b1c-7def-8a3b-0123456789ab")]
    Revoke {
        /// The key's id, as `assay-admin key list` shows it
        key_id: KeyId,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Delete a key that is revoked or expired
    ///
    /// It no longer appears in `assay-admin key list`. A valid key must be revoked first. On a terminal the command asks
    /// first; elsewhere it does not ask.
    #[command(after_help = "\
Examples:
  assay-admin key delete 019aa3f4-5b1c-7def-8a3b-0123456789ab
  Every revoked key:
    assay-admin key list --json | jq -r '.keys[] | select(.revokedAt != null) | .id' | xargs -n 1 assay-admin key delete")]
    Delete {
        /// The key's id, as `assay-admin key list` shows it
        key_id: KeyId,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

/// The rights of an ingest key.
#[derive(Debug, Args)]
pub(crate) struct CreateIngest {
    /// The project's id or name
    #[arg(long)]
    project: String,
    /// The key's name in lists
    #[arg(long, value_parser = values::key_name)]
    name: Option<String>,
    /// Days until it expires; without it, the key works until it is revoked
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=3_650))]
    days: Option<i64>,
    /// Accept runs that started more than 7 days ago too
    #[arg(long)]
    backfill: bool,
    /// Accept only reports of pull requests, not of the stable branch; they do not count in verdicts
    #[arg(long)]
    pull_requests_only: bool,
}

/// Runs `assay-admin key`.
pub(crate) fn run(global: &Global, command: KeyCommand) -> anyhow::Result<()> {
    let opened = database::open(global)?;
    let admin = &opened.admin(global);
    match command {
        KeyCommand::Create { org, days } => create_read(admin, &org, days),
        KeyCommand::CreateIngest(args) => create_ingest(admin, args),
        KeyCommand::Rotate { key_id, overlap } => rotate(admin, key_id, overlap),
        KeyCommand::List { org } => list(admin, org.as_deref()),
        KeyCommand::Rename { key_id, name } => rename(admin, key_id, &name),
        KeyCommand::Revoke { key_id, yes } => revoke(admin, key_id, yes),
        KeyCommand::Delete { key_id, yes } => delete(admin, key_id, yes),
    }
}

fn delete(admin: &Admin<'_>, id: KeyId, yes: bool) -> anyhow::Result<()> {
    confirm(yes, || format!("Delete the key {id} for good?"))?;
    match admin.store.delete_key(id, admin.now)? {
        KeyDeletion::Deleted => {}
        KeyDeletion::StillValid => {
            bail!(
                "the key {id} still works, so it was not deleted; revoke it first: assay-admin key revoke {id}"
            )
        }
        KeyDeletion::Missing => return Err(lookup::no_key(admin.store, id)?),
    }
    output::print(admin.json, &json!({ "id": id, "deleted": true }), || {
        format!("The key {id} is deleted")
    })
}

fn rename(admin: &Admin<'_>, id: KeyId, name: &str) -> anyhow::Result<()> {
    if !admin.store.rename_key(id, name)? {
        return Err(lookup::no_key(admin.store, id)?);
    }
    output::print(admin.json, &json!({ "id": id, "name": name }), || {
        format!("Renamed the key {id} to {name:?}")
    })
}

fn revoke(admin: &Admin<'_>, id: KeyId, yes: bool) -> anyhow::Result<()> {
    confirm(yes, || {
        format!("Revoke the key {id} for good? Requests with it are rejected within a second.")
    })?;
    if !admin.store.revoke_key(id, admin.now).context("revoking a key")? {
        return Err(lookup::no_key(admin.store, id)?);
    }
    output::print(admin.json, &json!({ "id": id, "revoked": true }), || {
        format!("The key {id} is revoked")
    })
}

fn create_read(admin: &Admin<'_>, org: &str, days: Lifetime) -> anyhow::Result<()> {
    let organization = lookup::organization(admin.store, org)?;
    let expires_at = days.expiry(admin.now);
    let (id, secret) = new_key::read_key(admin, &organization, expires_at)?;
    if !organization.plan.has_read_api() {
        message!(
            "{:?} is on the plan {}, which has no read API; requests with the key are refused until `assay-admin org set-plan {} standard` (or pro)",
            organization.name,
            organization.plan,
            output::shell_word(&organization.name)
        );
    }
    let value = json!({ "id": id, "key": secret.reveal(), "expiresAt": expires_at });
    output::print(admin.json, &value, || {
        format!(
            "{}\n\nThis read key of {:?} is shown only now. Its id is {}; it works until {}.",
            secret.reveal(),
            organization.name,
            id,
            when(expires_at, admin.now)
        )
    })
}

fn create_ingest(admin: &Admin<'_>, args: CreateIngest) -> anyhow::Result<()> {
    let project = lookup::project(admin.store, &args.project)?;
    let terms = IngestTerms {
        name: args.name,
        expires_at: args.days.map(|days| admin.now.plus_days(days)),
        backfill: args.backfill,
        pull_requests_only: args.pull_requests_only,
        trust: None,
    };
    let (id, secret) = new_key::ingest_key(admin, &project, &terms)?;
    let value = json!({
        "id": id, "key": secret.reveal(), "expiresAt": terms.expires_at, "projectId": project.id,
        "name": terms.name, "backfill": terms.backfill, "pullRequestsOnly": terms.pull_requests_only,
    });
    output::print(admin.json, &value, || {
        format!(
            "{}\n\nThis ingest key of {:?} is shown only now. Its id is {}; it works until {}.\n\
             Give it to the CI job as ASSAY_INGEST_KEY, for `assay upload` or `assay run`.",
            secret.reveal(),
            project.name,
            id,
            expiry_text(terms.expires_at, admin.now)
        )
    })
}

/// The expiry of a key as text.
fn expiry_text(expires_at: Option<Timestamp>, now: Timestamp) -> String {
    expires_at.map_or_else(|| "it is revoked".to_owned(), |at| when(at, now))
}

fn rotate(admin: &Admin<'_>, id: KeyId, overlap: Duration) -> anyhow::Result<()> {
    // The new key has the kind of the old one.
    let found = lookup::keys(admin.store)?.into_iter().find(|key| key.id == id);
    let kind = match found {
        None => return Err(lookup::no_key(admin.store, id)?),
        Some(key) if key.trust.is_some() => {
            bail!(
                "{id} is a trust, which has no text to replace; `assay-admin trust` lists, adds and removes them"
            )
        }
        Some(key) => key.kind,
    };
    let (secret, new) = mint(kind, admin.now);
    let overlap_end = admin
        .now
        .plus_ms(i64::try_from(overlap.as_millis()).unwrap_or(i64::MAX));
    let (former_expires_at, expires_at) = match admin.store.rotate_key(id, &new, overlap_end)? {
        KeyRotation::Rotated {
            former_expires_at,
            expires_at,
        } => (former_expires_at, expires_at),
        KeyRotation::NotValid => bail!(
            "the key {id} is revoked or expired; make a new one with `assay-admin key create` or `create-ingest`"
        ),
        KeyRotation::Missing => return Err(lookup::no_key(admin.store, id)?),
    };
    let value = json!({
        "id": new.id, "key": secret.reveal(), "expiresAt": expires_at, "replaces": id, "formerExpiresAt": former_expires_at,
    });
    output::print(admin.json, &value, || {
        format!(
            "{}\n\nThis key is shown only now. Its id is {}; it works until {}.\nThe key {id} works until {}.",
            secret.reveal(),
            new.id,
            expiry_text(expires_at, admin.now),
            when(former_expires_at, admin.now)
        )
    })
}

fn list(admin: &Admin<'_>, org: Option<&str>) -> anyhow::Result<()> {
    let organizations = lookup::organizations(admin.store, org)?;
    let mut keys = Vec::new();
    for organization in &organizations {
        let of_it = admin.store.keys(organization.id)?;
        keys.extend(of_it.into_iter().map(|key| (organization.name.clone(), key)));
    }
    let projects = admin.store.all_projects()?;
    let entries: Vec<&KeyEntry> = keys.iter().map(|(_, key)| key).collect();
    output::print(admin.json, &json!({ "keys": entries }), || {
        if keys.is_empty() {
            return "No key yet. Make one to read with: assay-admin key create --org ORG --days 90"
                .to_owned();
        }
        output::table(
            &[
                "ORGANIZATION",
                "FOR",
                "NAME",
                "BEGINS",
                "STATE",
                "EXPIRES",
                "LAST USED",
                "ID",
            ],
            keys.iter().map(|(organization, key)| {
                let of = |project: &&ProjectEntry| Some(project.id) == key.project_id;
                row(organization, key, projects.iter().find(of), admin.now)
            }),
        )
    })
}

/// The special rights of an ingest key as text.
fn limits(key: &KeyEntry) -> String {
    let pull_requests = key.pull_requests_only.then_some(", pull requests only");
    let backfill = key.backfill.then_some(", old runs too");
    [pull_requests, backfill].into_iter().flatten().collect()
}

fn row(organization: &str, key: &KeyEntry, project: Option<&ProjectEntry>, now: Timestamp) -> Vec<Cell> {
    let expired = key.expires_at.is_some_and(|at| at <= now);
    let state = match key.revoked_at {
        Some(_) => Cell::new("revoked", Tone::Faint),
        None if expired => Cell::new("expired", Tone::Bad),
        None => Cell::new("valid", Tone::Good),
    };
    let purpose = match (key.kind, project) {
        (KeyKind::Read, _) => "reading".to_owned(),
        (KeyKind::Ingest, Some(project)) if key.trust.is_some() => {
            format!("tokens for {}{}", project.name, limits(key))
        }
        (KeyKind::Ingest, Some(project)) => format!("sending to {}{}", project.name, limits(key)),
        (KeyKind::Ingest, None) => format!("sending{}", limits(key)),
    };
    let used = key.last_used_on.as_deref().map(|day| on_day(day, now));
    vec![
        organization.into(),
        purpose.into(),
        key.name.clone().unwrap_or_default().into(),
        key.prefix.as_str().into(),
        state,
        key.expires_at.map_or_else(String::new, |at| when(at, now)).into(),
        used.unwrap_or_default().into(),
        key.id.to_string().into(),
    ]
}

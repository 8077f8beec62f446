//! `assay key`: read keys of organizations and ingest keys of projects.

use anyhow::{Context as _, ensure};
use assay_access::{key::mint, lifetime::Lifetime};
use assay_domain::{
    id::KeyId,
    key::{KeyEntry, KeyKind},
    store::Administration,
    timestamp::Timestamp,
};
use clap::Subcommand;
use serde_json::json;

use crate::{cli::Global, clock, database, lookup, output};

/// `assay key`.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a read key; it is shown this once
    ///
    /// A read key reads every project of its organization over HTTP. There is no renewal: make a new one and revoke
    /// the old one.
    #[command(after_help = "\
Example:
  KEY=$(assay key create --org \"Example Shop\" --days 90 --json | jq -r .key)
  curl -H \"Authorization: Bearer $KEY\" http://127.0.0.1:8080/api/v1/projects")]
    Create {
        /// The organization's id or name
        #[arg(long)]
        org: String,
        /// How long it works: 30, 60, 90 or 180 days
        #[arg(long)]
        days: Lifetime,
    },
    /// Make a key that sends reports to one project; it is shown this once
    ///
    /// The read API refuses it.
    CreateIngest {
        /// The project's id or name
        #[arg(long)]
        project: String,
    },
    /// List the keys of an organization and its projects, oldest first
    List {
        /// The organization's id or name
        #[arg(long)]
        org: String,
    },
    /// Revoke a key, at once and on every server
    Revoke {
        /// The key's id, as `assay key list` shows it
        key_id: KeyId,
    },
}

/// Runs `assay key`.
pub(crate) fn run(global: &Global, command: KeyCommand) -> anyhow::Result<()> {
    let opened = database::open(global)?;
    let store: &dyn Administration = &opened.database;
    let now = clock::now();
    match command {
        KeyCommand::Create { org, days } => create_read(global, store, &org, days, now),
        KeyCommand::CreateIngest { project } => create_ingest(global, store, &project, now),
        KeyCommand::List { org } => list(global, store, &org, now),
        KeyCommand::Revoke { key_id } => {
            ensure!(
                store.revoke_key(key_id, now).context("revoking a key")?,
                "no key has the id {key_id}; `assay key list` shows them"
            );
            output::print(global.json, &json!({ "id": key_id, "revoked": true }), || {
                format!("The key {key_id} is revoked")
            })
        }
    }
}

fn create_read(
    global: &Global,
    store: &dyn Administration,
    org: &str,
    days: Lifetime,
    now: Timestamp,
) -> anyhow::Result<()> {
    let organization = lookup::organization(store, org)?;
    let (secret, new) = mint(KeyKind::Read, now);
    let expires_at = days.expiry(now);
    store.create_read_key(organization.id, &new, expires_at)?;
    if !organization.plan.has_read_api() {
        eprintln!(
            "assay: {:?} is on the plan {}, which has no read API: the key is refused until `assay org set-plan`",
            organization.name, organization.plan
        );
    }
    let value = json!({ "id": new.id, "key": secret.reveal(), "expiresAt": expires_at });
    output::print(global.json, &value, || {
        format!(
            "{}\n\nThis read key of {:?} is shown only now. Its id is {}; it works until {expires_at}.",
            secret.reveal(),
            organization.name,
            new.id
        )
    })
}

fn create_ingest(
    global: &Global,
    store: &dyn Administration,
    project: &str,
    now: Timestamp,
) -> anyhow::Result<()> {
    let project = lookup::project(store, project)?;
    let (secret, new) = mint(KeyKind::Ingest, now);
    ensure!(
        store.create_ingest_key(project.id, &new)?,
        "the project {:?} has just been removed",
        project.name
    );
    let value = json!({ "id": new.id, "key": secret.reveal(), "expiresAt": null, "projectId": project.id });
    output::print(global.json, &value, || {
        format!(
            "{}\n\nThis ingest key of {:?} is shown only now. Its id is {}; it works until it is revoked.",
            secret.reveal(),
            project.name,
            new.id
        )
    })
}

fn list(global: &Global, store: &dyn Administration, org: &str, now: Timestamp) -> anyhow::Result<()> {
    let organization = lookup::organization(store, org)?;
    let keys = store.keys(organization.id)?;
    output::print(global.json, &json!({ "keys": keys }), || {
        if keys.is_empty() {
            return format!(
                "{:?} has no keys yet; `assay key create` makes one.",
                organization.name
            );
        }
        output::table(
            &["ID", "KIND", "BEGINS", "STATE", "EXPIRES", "LAST USED", "PROJECT"],
            keys.iter().map(|key| row(key, now)),
        )
    })
}

fn row(key: &KeyEntry, now: Timestamp) -> Vec<String> {
    let expired = key.expires_at.is_some_and(|at| at <= now);
    let state = match key.revoked_at {
        Some(_) => "revoked",
        None if expired => "expired",
        None => "valid",
    };
    vec![
        key.id.to_string(),
        key.kind.to_string(),
        key.prefix.clone(),
        state.to_owned(),
        key.expires_at.map_or_else(String::new, |at| at.to_string()),
        key.last_used_on.clone().unwrap_or_default(),
        key.project_id.map_or_else(String::new, |id| id.to_string()),
    ]
}

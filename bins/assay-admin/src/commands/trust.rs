//! `assay-admin trust`: uploads by tokens of CI services, without a secret.

use anyhow::bail;
use assay_cli_terminal::{output, table::Cell};
use assay_domain::{
    id::KeyId, identity::Trust, ingest::IngestTerms, key::KeyEntry, project::ProjectEntry, store::KeyDeletion,
};
use clap::{Args, Subcommand, builder::NonEmptyStringValueParser};
use serde_json::json;

use crate::{
    database::{self, Admin},
    global::Global,
    lookup, new_key, values,
};

/// `assay-admin trust`.
#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// Let the jobs of a repository send reports to a project
    ///
    /// `assay run` and `assay upload` find the token of the job by themselves. Several trusts of a project add up.
    #[command(override_usage = "assay-admin trust add [OPTIONS] --project P --issuer URL --repository ID")]
    #[command(after_help = "\
Examples:
  GitHub Actions; `gh api repos/acme/storefront --jq .id` prints the id:
    assay-admin trust add --project storefront \\
      --issuer https://token.actions.githubusercontent.com --repository 74
  GitLab, the stable branch alone:
    assay-admin trust add --project storefront --issuer https://gitlab.com \\
      --repository 278964 --ref refs/heads/main")]
    Add(TrustArgs),
    /// List trusts, oldest first
    #[command(after_help = "\
Examples:
  assay-admin trust list --project storefront")]
    List {
        /// Only those of this project: its id or name
        #[arg(long)]
        project: Option<String>,
    },
    /// Remove a trust, on every server at once
    #[command(after_help = "\
Examples:
  assay-admin trust remove 019aa3f4-5b1c-7def-8a3b-0123456789ab")]
    Remove {
        /// The id, as `assay-admin trust list` shows it
        id: KeyId,
    },
}

/// Which jobs a project trusts.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The project's id or name
    #[arg(long)]
    project: String,
    /// The issuer of the tokens: the address of the CI service
    #[arg(long, value_name = "https://HOST", value_parser = values::issuer)]
    issuer: String,
    /// The id of the repository or pipeline at the service, which a new owner of its name does not get
    #[arg(long, value_name = "ID", value_parser = values::repository_id)]
    repository: String,
    /// Only this branch or tag, such as refs/heads/main or refs/tags/*
    #[arg(long = "ref", value_name = "REF", value_parser = values::reference)]
    reference: Option<String>,
    /// Only jobs of this environment
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    environment: Option<String>,
    /// The audience of the tokens, where the service sets it; by default the address of the installation
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    audience: Option<String>,
    /// Accept only reports of pull requests, not of the stable branch; they do not count in verdicts
    #[arg(long)]
    pull_requests_only: bool,
}

/// Runs `assay-admin trust`.
pub(crate) fn run(global: &Global, command: TrustCommand) -> anyhow::Result<()> {
    let opened = database::open(global)?;
    let admin = &opened.admin(global);
    match command {
        TrustCommand::Add(args) => add(admin, args),
        TrustCommand::List { project } => list(admin, project.as_deref()),
        TrustCommand::Remove { id } => remove(admin, id),
    }
}

fn add(admin: &Admin<'_>, args: TrustArgs) -> anyhow::Result<()> {
    let project = lookup::project(admin.store, &args.project)?;
    let host = args.issuer.split('/').nth(2).unwrap_or_default();
    let name = format!("jobs of {} at {host}", args.repository);
    let trust = Trust {
        issuer: args.issuer,
        repository: args.repository,
        reference: args.reference,
        environment: args.environment,
        audience: args.audience,
    };
    let is_of_both = |key: &KeyEntry| {
        let is_other = key.project_id != Some(project.id) && key.revoked_at.is_none();
        is_other && key.trust.as_ref().is_some_and(|other| other.overlaps(&trust))
    };
    if let Some(other) = trusts(admin)?.into_iter().find(is_of_both) {
        bail!(
            "the trust {} of another project covers the same jobs, and a job's report goes to one project; give them \
             different --ref, --environment or --audience, or let one project's jobs use a key",
            other.id
        );
    }
    let terms = IngestTerms {
        name: Some(name.clone()),
        pull_requests_only: args.pull_requests_only,
        trust: Some(trust.clone()),
        ..IngestTerms::default()
    };
    // The text of the key is dropped, so only tokens stand for it.
    let (id, _) = new_key::ingest_key(admin, &project, &terms)?;
    let value = json!({
        "id": id, "projectId": project.id, "name": name, "trust": trust, "pullRequestsOnly": terms.pull_requests_only,
    });
    output::print(admin.json, &value, || {
        format!(
            "The project {:?} trusts {name}. The id of this is {id}.",
            project.name
        )
    })
}

/// Every trust, oldest first in each organization.
fn trusts(admin: &Admin<'_>) -> anyhow::Result<Vec<KeyEntry>> {
    let mut found = lookup::keys(admin.store)?;
    found.retain(|key| key.trust.is_some());
    Ok(found)
}

fn list(admin: &Admin<'_>, project: Option<&str>) -> anyhow::Result<()> {
    let wanted = project
        .map(|text| lookup::project(admin.store, text))
        .transpose()?;
    let wanted = wanted.map(|project| project.id);
    let mut found = trusts(admin)?;
    found.retain(|key| wanted.is_none() || key.project_id == wanted);
    let projects = admin.store.all_projects()?;
    output::print(admin.json, &json!({ "trusts": found }), || {
        match found.as_slice() {
            [] => "No trust yet. `assay-admin trust add --help` explains how to make one".to_owned(),
            found => output::table(
                &["PROJECT", "ISSUER", "REPOSITORY", "ONLY", "LAST USED", "ID"],
                found.iter().filter_map(|key| row(key, &projects)),
            ),
        }
    })
}

fn row(key: &KeyEntry, projects: &[ProjectEntry]) -> Option<Vec<Cell>> {
    let trust = key.trust.as_ref()?;
    let project = projects.iter().find(|project| Some(project.id) == key.project_id);
    let pull_requests = key.pull_requests_only.then_some("pull requests");
    let only = [
        trust.reference.as_deref(),
        trust.environment.as_deref(),
        trust.audience.as_deref(),
        pull_requests,
    ];
    let only: Vec<&str> = only.into_iter().flatten().collect();
    let cells = [
        project.map(|project| project.name.clone()).unwrap_or_default(),
        trust.issuer.clone(),
        trust.repository.clone(),
        only.join(", "),
        key.last_used_on.clone().unwrap_or_default(),
        key.id.to_string(),
    ];
    Some(cells.map(Cell::from).into())
}

fn remove(admin: &Admin<'_>, id: KeyId) -> anyhow::Result<()> {
    let is_trust = trusts(admin)?.iter().any(|key| key.id == id);
    if !is_trust
        || !admin.store.revoke_key(id, admin.now)?
        || admin.store.delete_key(id, admin.now)? != KeyDeletion::Deleted
    {
        bail!("no trust has the id {id}; `assay-admin trust list` shows them");
    }
    output::print(admin.json, &json!({ "id": id, "removed": true }), || {
        format!("The trust {id} is removed")
    })
}

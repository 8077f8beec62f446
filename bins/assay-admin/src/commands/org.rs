//! `assay-admin org`: organizations, their names and plans.

use std::path::PathBuf;

use anyhow::ensure;
use assay_cli_terminal::{
    confirm::{confirm, confirm_deletion},
    output, progress,
    when::when,
};
use assay_domain::{plan::Plan, project::Organization};
use clap::Subcommand;
use serde_json::json;

use crate::{
    clock,
    commands::transfer,
    database::{self, Admin},
    global::Global,
    lookup, values,
};

/// `assay-admin org`.
#[derive(Debug, Subcommand)]
pub(crate) enum OrgCommand {
    /// Create an organization
    ///
    /// The organization's read keys cover all of its projects. The plan decides how many days of
    /// results are visible: 90 under pro, 60 under standard. The plan free keeps results for 60 days and closes the
    /// read API.
    #[command(after_help = "\
Examples:
  assay-admin org create \"Example Shop\"
  ORG=$(assay-admin org create \"Example Shop\" --json | jq -r .id)")]
    Create {
        /// Its name, 1 to 200 characters
        #[arg(value_parser = values::name)]
        name: String,
        /// The plan
        #[arg(long, value_name = "PLAN", default_value_t = Plan::Pro, value_parser = values::plan())]
        plan: Plan,
    },
    /// List the organizations, oldest first
    #[command(after_help = "\
Examples:
  assay-admin org list
  assay-admin org list --json | jq -r '.organizations[].name'")]
    List,
    /// Change an organization's plan, on every server within a second
    ///
    /// A shorter retention hides older results. The next `assay-admin prune` deletes them; until then a longer
    /// retention shows them again.
    #[command(after_help = "Example:\n  assay-admin org set-plan \"Example Shop\" standard")]
    SetPlan {
        /// The organization's id or name
        org: String,
        /// The new plan
        #[arg(value_parser = values::plan())]
        plan: Plan,
    },
    /// Change an organization's name
    ///
    /// Commands with the old name need the new one. The id and the keys stay. On a terminal the command asks first;
    /// elsewhere it does not ask.
    #[command(after_help = "\
Examples:
  assay-admin org rename \"Example Shop\" \"Example Store\"
  assay-admin org rename --yes 019aa3f4-5b1c-7def-8a3b-0123456789ab \"Example Store\"")]
    Rename {
        /// The organization's id or name
        org: String,
        /// The new name, 1 to 200 characters, unique among organizations
        #[arg(value_parser = values::name)]
        name: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Delete an organization with all of its projects, results and keys
    ///
    /// This cannot be undone. Its keys are rejected and its projects are hidden within a second. Then the results are
    /// deleted in batches that do not block other projects. If the command is interrupted, the same command or `assay
    /// prune` finishes it. On a terminal the command asks first; elsewhere it requires --yes.
    #[command(after_help = "\
Examples:
  assay-admin org delete \"Example Shop\"
  assay-admin org delete --yes \"Example Shop\" --json")]
    Delete {
        /// The organization's id or name
        org: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Write an organization with all of its projects, results and keys to a folder
    ///
    /// `assay-admin org import` stores them in another database, with the same ids and keys. The folder gets a compressed file
    /// for each table, and a manifest at the end. If the command is interrupted, the folder is no archive, and the same
    /// command starts again. It refuses to run while an import into the organization runs, and imports that begin
    /// meanwhile wait for its end. The organization stays where it is. Protect the folder like a backup.
    #[command(after_help = "\
Examples:
  assay-admin org export \"Example Shop\" /srv/move/shop
  Into another database:
    assay-admin org export \"Example Shop\" /srv/move/shop
    rsync -a /srv/move/shop cell2.internal:/srv/move/
    ssh cell2.internal assay-admin org import /srv/move/shop")]
    Export {
        /// The organization's id or name
        org: String,
        /// A new folder for the archive
        dir: PathBuf,
    },
    /// Store an organization that `assay-admin org export` wrote, with its ids and keys
    ///
    /// Checks the files, then stores everything in one transaction: if the command is interrupted, nothing is stored, and
    /// the same command starts again. Before the end, the engine judges the stored results, and its verdicts must equal
    /// those of the archive. Both databases need the same schema (`assay-admin migrate`). Refused if the organization, its name,
    /// one of its projects or one of its keys is already in the database. Nothing is overwritten. Creating and renaming
    /// organizations waits meanwhile.
    #[command(after_help = "\
Examples:
  assay-admin org import /srv/move/shop
  assay-admin org import /srv/move/shop --json | jq .rows")]
    Import {
        /// The folder that `assay-admin org export` wrote
        dir: PathBuf,
    },
}

/// Runs `assay-admin org`.
pub(crate) fn run(global: &Global, command: OrgCommand) -> anyhow::Result<()> {
    let opened = database::open(global)?;
    let admin = &opened.admin(global);
    let store = admin.store;
    match command {
        OrgCommand::Create { name, plan } => {
            let organization = store.create_organization(&name, plan, admin.now)?;
            let human = || {
                format!(
                    "Made the organization {:?} ({}) with the id {}\nNext: assay-admin project create --org {} NAME",
                    organization.name,
                    organization.plan,
                    organization.id,
                    output::shell_word(&organization.name)
                )
            };
            output::print(global.json, &entry(&organization), human)
        }
        OrgCommand::List => {
            let organizations = store.organizations()?;
            let human = || {
                if organizations.is_empty() {
                    return "No organization yet. Make one: assay-admin org create NAME".to_owned();
                }
                output::table(
                    &["NAME", "PLAN", "CREATED", "ID"],
                    organizations.iter().map(|o| {
                        vec![
                            o.name.clone(),
                            o.plan.to_string(),
                            when(o.created_at, admin.now),
                            o.id.to_string(),
                        ]
                    }),
                )
            };
            output::print(global.json, &json!({ "organizations": organizations }), human)
        }
        OrgCommand::SetPlan { org, plan } => {
            let mut organization = lookup::organization(store, &org)?;
            ensure!(
                store.set_plan(organization.id, plan)?,
                "the organization {org:?} was deleted meanwhile"
            );
            organization.plan = plan;
            let human = || format!("{:?} is on the plan {plan} now", organization.name);
            output::print(global.json, &entry(&organization), human)
        }
        OrgCommand::Rename { org, name, yes } => rename(admin, &org, name, yes),
        OrgCommand::Delete { org, yes } => delete(admin, &org, yes),
        OrgCommand::Export { org, dir } => transfer::export(global, &opened.database, &org, &dir),
        OrgCommand::Import { dir } => transfer::import(global, &opened.database, &dir),
    }
}

fn rename(admin: &Admin<'_>, org: &str, name: String, yes: bool) -> anyhow::Result<()> {
    let mut organization = lookup::organization(admin.store, org)?;
    let former = std::mem::replace(&mut organization.name, name);
    let name = &organization.name;
    confirm(yes, || {
        format!("Rename the organization {former:?} to {name:?}? Commands that name it need the new name.")
    })?;
    admin.store.rename_organization(organization.id, name)?;
    output::print(admin.json, &entry(&organization), || {
        format!("The organization {former:?} is named {name:?} now")
    })
}

fn delete(admin: &Admin<'_>, org: &str, yes: bool) -> anyhow::Result<()> {
    let organization = lookup::organization_to_delete(admin.store, org)?;
    let name = &organization.name;
    let projects = admin.store.projects_of(organization.id)?;
    let mut runs = 0;
    for project in &projects {
        runs += admin.store.stored_runs(project.id)?;
    }
    confirm_deletion(yes, || {
        format!(
            "Delete the organization {name:?} with {}, {} and all of its keys for good?",
            output::count(projects.len(), "project"),
            output::count(runs, "run")
        )
    })?;
    let spinner = progress::spinner(admin.json, format!("deleting {name}"));
    let report = admin
        .store
        .delete_organization(organization.id, clock::now(), &mut |rows| {
            spinner.set_message(format!("deleting {name}: {}", output::count(rows, "row")));
        });
    spinner.finish_and_clear();
    let report = report?.unwrap_or_default();
    let value = json!({
        "id": organization.id, "name": name, "deleted": true,
        "projects": report.projects, "runs": report.runs, "results": report.results,
    });
    output::print(admin.json, &value, || {
        format!(
            "Deleted the organization {name:?} with {}, {} and {}",
            output::count(report.projects, "project"),
            output::count(report.runs, "run"),
            output::count(report.results, "result")
        )
    })
}

fn entry(organization: &Organization) -> serde_json::Value {
    json!({ "id": organization.id, "name": organization.name, "plan": organization.plan })
}

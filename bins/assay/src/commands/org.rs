//! `assay org`: organizations and their retention tiers.

use anyhow::ensure;
use assay_domain::{plan::Plan, project::Organization, store::Administration};
use clap::Subcommand;
use serde_json::json;

use crate::{cli::Global, clock, database, lookup, output, values, when::when};

/// `assay org`.
#[derive(Debug, Subcommand)]
pub(crate) enum OrgCommand {
    /// Make an organization
    ///
    /// The organization's read keys cover all of its projects. The retention tier (plan) decides how many days of results
    /// are visible: 90 under pro, 60 under standard. The tier free keeps results for 60 days and closes the read API.
    #[command(after_help = "\
Examples:
  assay org create \"Example Shop\"
  ORG=$(assay org create \"Example Shop\" --json | jq -r .id)")]
    Create {
        /// Its name, 1 to 200 characters
        #[arg(value_parser = values::name)]
        name: String,
        /// The retention tier
        #[arg(long, value_name = "PLAN", default_value_t = Plan::Pro, value_parser = values::plan())]
        plan: Plan,
    },
    /// List the organizations, oldest first
    #[command(after_help = "\
Examples:
  assay org list
  assay org list --json | jq -r '.organizations[].name'")]
    List,
    /// Change an organization's retention tier (plan), at once and on every server
    ///
    /// A shorter retention hides older results at once. The next `assay prune` deletes them; until then a longer retention
    /// shows them again.
    #[command(after_help = "Example:\n  assay org set-plan \"Example Shop\" standard")]
    SetPlan {
        /// The organization's id or name
        org: String,
        /// The new retention tier
        #[arg(value_parser = values::plan())]
        plan: Plan,
    },
}

/// Runs `assay org`.
pub(crate) fn run(global: &Global, command: OrgCommand) -> anyhow::Result<()> {
    let opened = database::open(global)?;
    let store: &dyn Administration = &opened.database;
    match command {
        OrgCommand::Create { name, plan } => {
            let made = store.create_organization(&name, plan, clock::now())?;
            let human = || {
                format!(
                    "Made the organization {:?} ({}) with the id {}\nNext: assay project create --org {} NAME",
                    made.name,
                    made.plan,
                    made.id,
                    output::shell_word(&made.name)
                )
            };
            output::print(global.json, &entry(&made), human)
        }
        OrgCommand::List => {
            let (all, now) = (store.organizations()?, clock::now());
            let human = || {
                if all.is_empty() {
                    return "No organization yet. Make one: assay org create NAME".to_owned();
                }
                output::table(
                    &["NAME", "PLAN", "CREATED", "ID"],
                    all.iter().map(|o| {
                        vec![
                            o.name.clone(),
                            o.plan.to_string(),
                            when(o.created_at, now),
                            o.id.to_string(),
                        ]
                    }),
                )
            };
            output::print(global.json, &json!({ "organizations": all }), human)
        }
        OrgCommand::SetPlan { org, plan } => {
            let mut organization = lookup::organization(store, &org)?;
            ensure!(
                store.set_plan(organization.id, plan)?,
                "the organization {org:?} has just been removed"
            );
            organization.plan = plan;
            let human = || format!("{:?} is on the plan {plan} now", organization.name);
            output::print(global.json, &entry(&organization), human)
        }
    }
}

fn entry(organization: &Organization) -> serde_json::Value {
    json!({ "id": organization.id, "name": organization.name, "plan": organization.plan })
}

//! `assay project`: projects and their configuration.

use anyhow::ensure;
use assay_domain::{
    settings::ChatEvent,
    store::{Administration, ProjectChange},
};
use assay_flakiness::Engine;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use crate::{cli::Global, clock, database, lookup, output, values, when::when};

/// `assay project`.
#[derive(Debug, Subcommand)]
pub(crate) enum ProjectCommand {
    /// Make a project in an organization
    #[command(after_help = "\
Examples:
  assay project create --org \"Example Shop\" storefront
  assay project create --org \"Example Shop\" backend --stable-branch trunk")]
    Create {
        /// The organization's id or name
        #[arg(long)]
        org: String,
        /// Its name, 1 to 200 characters
        #[arg(value_parser = values::name)]
        name: String,
        /// The branch that releases are made from
        #[arg(long, value_name = "BRANCH", default_value = "main", value_parser = values::name)]
        stable_branch: String,
    },
    /// List projects, oldest first
    #[command(after_help = "\
Examples:
  assay project list
  assay project list --org \"Example Shop\" --json | jq -r '.projects[].id'")]
    List {
        /// Only those of this organization: its id or name
        #[arg(long)]
        org: Option<String>,
    },
    /// Change a project's configuration; what is not named stays
    #[command(after_help = "\
Examples:
  assay project set storefront --stable-branch release
  assay project set storefront --chat-events run_failed,test_flaky --pr-comments on")]
    Set(SetArgs),
}

/// `assay project set`.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// The project's id or name
    project: String,
    #[command(flatten)]
    change: ChangeFlags,
}

/// What to change, at least one thing.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct ChangeFlags {
    /// The branch that releases are made from
    #[arg(long, value_name = "BRANCH", value_parser = values::name)]
    stable_branch: Option<String>,
    /// Events for chat messages, separated by commas. Stored and shown by the settings route; no message is sent yet
    #[arg(
        long,
        value_name = "EVENTS",
        value_delimiter = ',',
        conflicts_with = "no_chat",
        value_parser = values::chat_event()
    )]
    chat_events: Option<Vec<ChatEvent>>,
    /// Remove the events for chat messages
    #[arg(long)]
    no_chat: bool,
    /// Whether pull requests get a comment. Stored and shown by the settings route; no comment is posted yet
    #[arg(long, value_name = "SWITCH")]
    pr_comments: Option<Switch>,
}

impl From<ChangeFlags> for ProjectChange {
    fn from(flags: ChangeFlags) -> Self {
        Self {
            stable_branch: flags.stable_branch,
            chat: match flags.chat_events {
                _ if flags.no_chat => Some(None),
                events => events.map(|events| Some(distinct(events))),
            },
            pr_comments: flags.pr_comments.map(|switch| switch == Switch::On),
        }
    }
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

/// Runs `assay project`.
pub(crate) fn run(global: &Global, command: ProjectCommand) -> anyhow::Result<()> {
    let opened = database::open(global)?;
    let store: &dyn Administration = &opened.database;
    match command {
        ProjectCommand::Create {
            org,
            name,
            stable_branch,
        } => {
            let organization = lookup::organization(store, &org)?;
            let made = store.create_project(organization.id, &name, &stable_branch, clock::now())?;
            let value = json!({ "id": made.id, "name": made.name, "stableBranch": made.stable_branch });
            output::print(global.json, &value, || {
                format!(
                    "Made the project {:?} of {:?} with the id {}\nNext: assay import --project {} PATH",
                    made.name,
                    organization.name,
                    made.id,
                    output::shell_word(&made.name)
                )
            })
        }
        ProjectCommand::List { org } => list(global, store, org.as_deref()),
        ProjectCommand::Set(args) => set(global, store, args),
    }
}

fn list(global: &Global, store: &dyn Administration, org: Option<&str>) -> anyhow::Result<()> {
    let organizations = match org {
        Some(org) => vec![lookup::organization(store, org)?],
        None => store.organizations()?,
    };
    let mut all = Vec::new();
    for organization in &organizations {
        let of_it = store.projects_of(organization.id)?;
        all.extend(
            of_it
                .into_iter()
                .map(|project| (organization.name.clone(), project)),
        );
    }
    let entries: Vec<_> = all.iter().map(|(_, project)| project).collect();
    let now = clock::now();
    output::print(global.json, &json!({ "projects": entries }), || {
        if all.is_empty() {
            return "No project yet. Make one: assay project create --org ORG NAME".to_owned();
        }
        output::table(
            &["NAME", "ORGANIZATION", "STABLE BRANCH", "CREATED", "ID"],
            all.iter().map(|(organization, project)| {
                vec![
                    project.name.clone(),
                    organization.clone(),
                    project.stable_branch.clone(),
                    when(project.created_at, now),
                    project.id.to_string(),
                ]
            }),
        )
    })
}

fn set(global: &Global, store: &dyn Administration, args: SetArgs) -> anyhow::Result<()> {
    let mut project = lookup::project(store, &args.project)?;
    let change = ProjectChange::from(args.change);
    let is_unused = change.pr_comments == Some(true) || matches!(change.chat, Some(Some(_)));
    let known = store.set_project(project.id, &change, &Engine::default(), clock::now())?;
    ensure!(known, "the project {:?} has just been removed", args.project);
    if let Some(branch) = &change.stable_branch {
        project.stable_branch.clone_from(branch);
    }
    let value = json!({ "id": project.id, "name": project.name, "stableBranch": project.stable_branch });
    output::print(global.json, &value, || {
        let changed = format!("Changed the configuration of {:?}", project.name);
        if is_unused {
            format!(
                "{changed}\nChat messages and comments on pull requests are not sent yet; the settings route shows what is stored."
            )
        } else {
            changed
        }
    })
}

/// The events in their fixed order, each once.
fn distinct(mut events: Vec<ChatEvent>) -> Vec<ChatEvent> {
    events.sort_unstable();
    events.dedup();
    events
}

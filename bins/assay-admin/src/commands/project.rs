//! `assay-admin project`: projects, their names, owners and configuration.

use anyhow::ensure;
use assay_cli_terminal::{
    confirm::{confirm, confirm_deletion},
    output, progress,
    when::when,
};
use assay_domain::{
    project::ProjectEntry,
    release_branch::BranchPattern,
    settings::{ChatEvent, FlakeBudget},
    store::ProjectChange,
};
use assay_flakiness::Engine;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use crate::{
    clock,
    database::{self, Admin},
    global::Global,
    lookup, values,
};

/// `assay-admin project`.
#[derive(Debug, Subcommand)]
pub(crate) enum ProjectCommand {
    /// Create a project in an organization
    #[command(after_help = "\
Examples:
  assay-admin project create --org \"Example Shop\" storefront
  assay-admin project create --org \"Example Shop\" backend --stable-branch trunk")]
    Create {
        /// The organization's id or name
        #[arg(long)]
        org: String,
        /// Its name, 1 to 200 characters
        #[arg(value_parser = values::name)]
        name: String,
        /// The stable branch, from which releases are made
        #[arg(long, value_name = "BRANCH", default_value = "main", value_parser = values::name)]
        stable_branch: String,
    },
    /// List projects, oldest first
    #[command(after_help = "\
Examples:
  assay-admin project list
  assay-admin project list --org \"Example Shop\" --json | jq -r '.projects[].id'")]
    List {
        /// Only those of this organization: its id or name
        #[arg(long)]
        org: Option<String>,
    },
    /// Change a project's configuration; settings without a flag stay
    #[command(
        override_usage = "assay-admin project set [OPTIONS] <PROJECT>",
        after_help = "\
Examples:
  assay-admin project set storefront --stable-branch release
  assay-admin project set storefront --release-branches 'release/*,lts'
  assay-admin project set storefront --chat-events run_failed,test_flaky --pr-comments on"
    )]
    Set(SetArgs),
    /// Change a project's name
    ///
    /// Commands with the old name, in CI too, need the new one. The id, results and keys stay. On a terminal the
    /// command asks first; elsewhere it does not ask.
    #[command(after_help = "\
Examples:
  assay-admin project rename storefront shop
  assay-admin project rename --yes 019aa3f4-5b1c-7def-8a3b-0123456789ab shop")]
    Rename {
        /// The project's id or name
        project: String,
        /// The new name, 1 to 200 characters, unique in the organization
        #[arg(value_parser = values::name)]
        name: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Move a project to another organization
    ///
    /// Its results and ingest keys move with it. Read keys of the old organization no longer see it, those of the new
    /// one do, and the new organization's retention applies. On a terminal the command asks first; elsewhere it does
    /// not ask.
    #[command(after_help = "\
Examples:
  assay-admin project move-to-org storefront \"Example Group\"
  assay-admin project move-to-org --yes storefront \"Example Group\"")]
    MoveToOrg {
        /// The project's id or name
        project: String,
        /// The id or name of the new organization
        org: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Delete a project with all of its data
    ///
    /// This cannot be undone. The project is hidden and its reports are rejected within a second. Then its results are
    /// deleted in batches that do not block other projects. If the command is interrupted, the same command or `assay
    /// prune` finishes it. On a terminal the command asks first; elsewhere it requires --yes.
    #[command(after_help = "\
Examples:
  assay-admin project delete storefront
  assay-admin project delete --yes storefront --json")]
    Delete {
        /// The project's id or name
        project: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

/// `assay-admin project set`.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// The project's id or name
    project: String,
    #[command(flatten)]
    change: ChangeFlags,
}

/// The changes, at least one.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct ChangeFlags {
    /// The stable branch, from which releases are made
    #[arg(long, value_name = "BRANCH", value_parser = values::name)]
    stable_branch: Option<String>,
    /// The stable branches beside it, separated by commas: names, or patterns with one *
    #[arg(
        long,
        value_name = "BRANCHES",
        value_delimiter = ',',
        conflicts_with = "no_release_branches"
    )]
    release_branches: Option<Vec<BranchPattern>>,
    /// Have no stable branch beside it
    #[arg(long)]
    no_release_branches: bool,
    /// Events for messages, separated by commas. assay-notify sends them to its targets
    #[arg(
        long,
        value_name = "EVENTS",
        value_delimiter = ',',
        conflicts_with = "no_chat",
        value_parser = values::chat_event()
    )]
    chat_events: Option<Vec<ChatEvent>>,
    /// Remove the events for messages
    #[arg(long)]
    no_chat: bool,
    /// Whether CI jobs post a comment on pull requests
    #[arg(long, value_name = "SWITCH")]
    pr_comments: Option<Switch>,
    /// Whether names are stored without the parts that change from run to run, such as addresses and times
    #[arg(long, value_name = "SWITCH")]
    stable_names: Option<Switch>,
    /// Flake budget: more flaky tests than MOST exceed it, MET or fewer meet it again
    #[arg(long, value_name = "MOST,MET", conflicts_with = "no_flake_budget")]
    flake_budget: Option<FlakeBudget>,
    /// Remove the flake budget
    #[arg(long)]
    no_flake_budget: bool,
}

impl From<ChangeFlags> for ProjectChange {
    fn from(flags: ChangeFlags) -> Self {
        Self {
            stable_branch: flags.stable_branch,
            release_branches: flags
                .release_branches
                .or(flags.no_release_branches.then(Vec::new)),
            chat: match flags.chat_events {
                _ if flags.no_chat => Some(None),
                events => events.map(|events| Some(distinct(events))),
            },
            pr_comments: flags.pr_comments.map(|switch| switch == Switch::On),
            stable_names: flags.stable_names.map(|switch| switch == Switch::On),
            flake_budget: match flags.flake_budget {
                _ if flags.no_flake_budget => Some(None),
                budget => budget.map(Some),
            },
        }
    }
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

/// Runs `assay-admin project`.
pub(crate) fn run(global: &Global, command: ProjectCommand) -> anyhow::Result<()> {
    let opened = database::open(global)?;
    let admin = &opened.admin(global);
    let store = admin.store;
    match command {
        ProjectCommand::Create {
            org,
            name,
            stable_branch,
        } => {
            let organization = lookup::organization(store, &org)?;
            let project = store.create_project(organization.id, &name, &stable_branch, admin.now)?;
            output::print(global.json, &entry(&project), || {
                format!(
                    "Made the project {:?} of {:?} with the id {}\nNext: assay-admin import --project {} PATH",
                    project.name,
                    organization.name,
                    project.id,
                    output::shell_word(&project.name)
                )
            })
        }
        ProjectCommand::List { org } => list(admin, org.as_deref()),
        ProjectCommand::Set(args) => set(admin, args),
        ProjectCommand::Rename { project, name, yes } => rename(admin, &project, name, yes),
        ProjectCommand::MoveToOrg { project, org, yes } => move_to_org(admin, &project, &org, yes),
        ProjectCommand::Delete { project, yes } => delete(admin, &project, yes),
    }
}

fn entry(project: &ProjectEntry) -> serde_json::Value {
    json!({ "id": project.id, "name": project.name, "stableBranch": project.stable_branch })
}

fn rename(admin: &Admin<'_>, project: &str, name: String, yes: bool) -> anyhow::Result<()> {
    let mut project = lookup::project(admin.store, project)?;
    let former = std::mem::replace(&mut project.name, name);
    let name = &project.name;
    confirm(yes, || {
        format!(
            "Rename the project {former:?} to {name:?}? Commands that name it, in CI too, need the new name."
        )
    })?;
    admin.store.rename_project(project.id, name)?;
    output::print(admin.json, &entry(&project), || {
        format!("The project {former:?} is named {name:?} now")
    })
}

fn move_to_org(admin: &Admin<'_>, project: &str, org: &str, yes: bool) -> anyhow::Result<()> {
    let project = lookup::project(admin.store, project)?;
    let organization = lookup::organization(admin.store, org)?;
    confirm(yes, || {
        format!(
            "Move the project {:?} to the organization {:?}? Read keys of its former organization no longer find it.",
            project.name, organization.name
        )
    })?;
    admin.store.move_project(project.id, organization.id)?;
    let mut value = entry(&project);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("organizationId".to_owned(), json!(organization.id));
    }
    output::print(admin.json, &value, || {
        format!(
            "The project {:?} belongs to {:?} now",
            project.name, organization.name
        )
    })
}

fn delete(admin: &Admin<'_>, project: &str, yes: bool) -> anyhow::Result<()> {
    let project = lookup::project_to_delete(admin.store, project)?;
    let name = &project.name;
    let runs = admin.store.stored_runs(project.id)?;
    confirm_deletion(yes, || {
        format!(
            "Delete the project {name:?} with {} for good?",
            output::count(runs, "run")
        )
    })?;
    let spinner = progress::spinner(admin.json, format!("deleting {name}"));
    let report = admin.store.delete_project(project.id, clock::now(), &mut |rows| {
        spinner.set_message(format!("deleting {name}: {}", output::count(rows, "row")));
    });
    spinner.finish_and_clear();
    let report = report?.unwrap_or_default();
    let value = json!({
        "id": project.id, "name": name, "deleted": true, "runs": report.runs, "results": report.results,
    });
    output::print(admin.json, &value, || {
        format!(
            "Deleted the project {name:?} with {} and {}",
            output::count(report.runs, "run"),
            output::count(report.results, "result")
        )
    })
}

fn list(admin: &Admin<'_>, org: Option<&str>) -> anyhow::Result<()> {
    let organizations = lookup::organizations(admin.store, org)?;
    let mut projects = Vec::new();
    for organization in &organizations {
        let of_it = admin.store.projects_of(organization.id)?;
        projects.extend(
            of_it
                .into_iter()
                .map(|project| (organization.name.clone(), project)),
        );
    }
    let entries: Vec<_> = projects.iter().map(|(_, project)| project).collect();
    output::print(admin.json, &json!({ "projects": entries }), || {
        if projects.is_empty() {
            return "No project yet. Make one: assay-admin project create --org ORG NAME".to_owned();
        }
        output::table(
            &["NAME", "ORGANIZATION", "STABLE BRANCH", "CREATED", "ID"],
            projects.iter().map(|(organization, project)| {
                vec![
                    project.name.clone(),
                    organization.clone(),
                    project.stable_branch.clone(),
                    when(project.created_at, admin.now),
                    project.id.to_string(),
                ]
            }),
        )
    })
}

fn set(admin: &Admin<'_>, args: SetArgs) -> anyhow::Result<()> {
    let mut project = lookup::project(admin.store, &args.project)?;
    let change = ProjectChange::from(args.change);
    let has_events = matches!(change.chat, Some(Some(_)));
    let exists = admin
        .store
        .set_project(project.id, &change, &Engine::default(), clock::now())?;
    ensure!(exists, "the project {:?} was deleted meanwhile", args.project);
    if let Some(branch) = &change.stable_branch {
        project.stable_branch.clone_from(branch);
    }
    output::print(admin.json, &entry(&project), || {
        let changed = format!("Changed the configuration of {:?}", project.name);
        if has_events {
            format!("{changed}\nassay-notify sends the messages to the targets of its file.")
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

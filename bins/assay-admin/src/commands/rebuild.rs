//! `assay-admin rebuild`: rebuilds all derived data.

use anyhow::bail;
use assay_cli_terminal::{
    output,
    progress::{self, Unit},
};
use assay_flakiness::Engine;
use assay_repository::RebuildCounts;
use clap::Args;
use serde_json::json;

use crate::{clock, database, global::Global, lookup};

/// Rebuild the data derived from results
///
/// Each import derives counts of runs, the engine's input and verdicts from the stored results. This command derives
/// them again and reports what differed. Use it after a restored backup, a repaired disk, or an upgrade to an engine
/// that judges differently. Imports and reads continue meanwhile.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assay-admin rebuild
  assay-admin rebuild --project storefront --json")]
pub(crate) struct RebuildArgs {
    /// The project's id or name; without it, every project
    #[arg(long)]
    project: Option<String>,
}

/// Runs `assay-admin rebuild`.
pub(crate) fn run(global: &Global, args: &RebuildArgs) -> anyhow::Result<()> {
    let opened = database::open(global)?;
    let mut done = Vec::new();
    for project in lookup::projects(&opened.database, args.project.as_deref())? {
        let bar = progress::bar(global.json, "Rebuilding", 0, Unit::Items("runs"));
        let result =
            opened
                .database
                .rebuild(project.id, &Engine::default(), clock::now(), &mut |runs, of| {
                    bar.set_length(of);
                    bar.set_position(runs);
                })?;
        bar.finish_and_clear();
        let Some(result) = result else {
            bail!("the project {:?} was deleted meanwhile", project.name);
        };
        done.push((project, result));
    }
    let entries: Vec<_> = done
        .iter()
        .map(
            |(project, result)| json!({ "projectId": project.id, "project": project.name, "result": result }),
        )
        .collect();
    output::print(global.json, &json!({ "projects": entries }), || {
        output::table(
            &[
                "PROJECT",
                "RUNS",
                "CORRECTED",
                "BRANCHES CHANGED",
                "DAYS CHANGED",
                "RENAMES CHANGED",
                "VERDICTS CHANGED",
            ],
            done.iter().map(|(project, result)| row(&project.name, result)),
        )
    })
}

fn row(project: &str, result: &RebuildCounts) -> Vec<String> {
    vec![
        project.to_owned(),
        result.runs.to_string(),
        result.runs_changed.to_string(),
        result.branches_changed.to_string(),
        result.days_changed.to_string(),
        u8::from(result.joins_changed).to_string(),
        result.verdicts_changed.to_string(),
    ]
}

//! `assay prune`: deletes what is past the retention.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anyhow::bail;
use assay_domain::store::{Administration, Pruned};
use clap::Args;
use serde_json::json;

use crate::{cli::Global, clock, database, output};

/// Delete what is past each organization's retention
///
/// Results past an organization's retention (free and standard 60 days, pro 90) are visible on no route; this
/// deletes them. On a terminal it shows what would go and asks first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assay prune --dry-run
  Daily, from cron, where nobody is asked:
    15 4 * * *  assay prune --json >> /var/log/assay-prune.log")]
pub(crate) struct PruneArgs {
    /// Only count what would be deleted
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// Runs `assay prune`.
pub(crate) fn run(global: &Global, args: &PruneArgs) -> anyhow::Result<()> {
    let opened = database::open(global)?;
    let store: &dyn Administration = &opened.database;
    let now = clock::now();
    if !args.dry_run && !args.yes && io::stdin().is_terminal() && io::stderr().is_terminal() {
        confirm(&store.prune(now, true)?)?;
    }
    let pruned = store.prune(now, args.dry_run)?;
    let runs: u64 = pruned.iter().map(|project| project.runs).sum();
    let results: u64 = pruned.iter().map(|project| project.results).sum();
    let value = json!({ "dryRun": args.dry_run, "runs": runs, "results": results, "projects": pruned });
    output::print(global.json, &value, || {
        let done = if args.dry_run { "Would delete" } else { "Deleted" };
        let sum = format!(
            "{done} {} with {}",
            output::count(runs, "run"),
            output::count(results, "result")
        );
        if runs == 0 {
            sum
        } else {
            format!("{}\n{sum}", listed(&pruned))
        }
    })
}

/// Asks whether to delete; an error where the answer is not yes.
fn confirm(pruned: &[Pruned]) -> anyhow::Result<()> {
    let runs: u64 = pruned.iter().map(|project| project.runs).sum();
    if runs == 0 {
        return Ok(());
    }
    let mut err = io::stderr().lock();
    write!(
        err,
        "{}Delete {} for good? [y/N] ",
        listed(pruned),
        output::count(runs, "run")
    )?;
    err.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => bail!("nothing was deleted"),
    }
}

fn listed(pruned: &[Pruned]) -> String {
    output::table(
        &["PROJECT", "ID", "RUNS", "RESULTS"],
        pruned.iter().filter(|project| project.runs > 0).map(|project| {
            vec![
                project.project.clone(),
                project.project_id.to_string(),
                project.runs.to_string(),
                project.results.to_string(),
            ]
        }),
    )
}

//! `assay prune`: deletes what is past the retention.

use assay_domain::store::{Administration, PruneReport, PruneStep, Pruned};
use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;

use crate::{
    cli::Global,
    clock,
    confirm::confirm,
    database, output,
    progress::{self, Unit},
    terminal,
};

/// Delete what is past each organization's retention
///
/// Results past an organization's retention (free and standard 60 days, pro 90) are visible on no route; this
/// deletes them, in steps that hold up imports only briefly: whole weeks at once where they are past every plan's retention.
/// It may be ended at any time and run again. It also finishes deletions of projects and
/// organizations that were ended halfway. On a terminal it shows what would go and asks first.
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
    if !args.dry_run && !args.yes && terminal::can_ask() {
        let due = store.prune(now, true, &mut |_| ())?;
        if !due.projects.is_empty() {
            let runs = output::count(runs(&due), "run");
            confirm(false, || {
                format!("{}Delete {runs} for good?", listed(&due.projects))
            })?;
        }
    }
    let bar = progress::bar(global, "Pruning", 0, Unit::Things(""));
    let report = store.prune(now, args.dry_run, &mut |step| show(&bar, step))?;
    bar.finish_and_clear();
    let results: u64 = report.projects.iter().map(|project| project.results).sum();
    let value = json!({
        "dryRun": args.dry_run, "runs": runs(&report), "results": results, "projects": report.projects,
        "periods": report.periods, "periodsLeft": report.periods_left,
        "deletionsFinished": report.deletions_finished,
    });
    output::print(global.json, &value, || text(args.dry_run, &report, results))
}

fn text(dry_run: bool, report: &PruneReport, results: u64) -> String {
    let done = if dry_run { "Would delete" } else { "Deleted" };
    let sum = format!(
        "{done} {} with {}",
        output::count(runs(report), "run"),
        output::count(results, "result")
    );
    let finished = match report.deletions_finished {
        0 => String::new(),
        number if dry_run => format!(
            "\nWould finish {} of projects and organizations that were ended halfway",
            output::count(number, "deletion")
        ),
        number => format!(
            "\nFinished {} of projects and organizations that were ended halfway",
            output::count(number, "deletion")
        ),
    };
    let left = if report.periods_left > 0 {
        format!(
            "\n{} past all retention is in use and was left for the next time; nothing of it is visible",
            output::count(report.periods_left, "period")
        )
    } else {
        String::new()
    };
    if report.projects.is_empty() {
        format!("{sum}{finished}{left}")
    } else {
        format!("{}\n{sum}{finished}{left}", listed(&report.projects))
    }
}

fn runs(report: &PruneReport) -> u64 {
    report.projects.iter().map(|project| project.runs).sum()
}

fn show(bar: &ProgressBar, step: PruneStep<'_>) {
    let (done, of, what) = match step {
        PruneStep::Runs { project, done, of } => (done, of, format!("runs of {project}")),
        PruneStep::Periods { done, of } => (done, of, "periods".to_owned()),
    };
    bar.set_length(of);
    bar.set_position(done);
    bar.set_message(what);
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

//! `assay-admin prune`: deletes results past their retention.

use anyhow::{bail, ensure};
use assay_cli_terminal::{
    confirm::confirm,
    output,
    progress::{self, Unit},
    when::length,
};
use assay_domain::{
    store::{Administration, PruneReport, PruneStep, PrunedCounts},
    timestamp::Timestamp,
};
use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;

use crate::{clock, database, doctor::clocks, global::Global};

/// Delete results past each organization's retention
///
/// Results past an organization's retention (free and standard 60 days, pro 90) are visible on no route. This command
/// deletes them, in steps that block imports only briefly: whole weeks at once if they are past every plan's retention.
/// Records of uploads are kept for 90 days. It may be interrupted at any time and run again. It also finishes
/// interrupted deletions of projects and organizations. It refuses to run if this machine's clock and the database's
/// differ, or if it would delete everything that is stored. On a terminal it shows what it would delete and asks first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assay-admin prune --dry-run
  The last runs of projects that are no longer tested:
    assay-admin prune --all-of-it
  Daily, from cron, without a question:
    15 4 * * *  assay-admin prune --json >> /var/log/assay-prune.log")]
pub(crate) struct PruneArgs {
    /// Only count what would be deleted
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Delete even if nothing would be left: every stored run is past its retention
    #[arg(long)]
    all_of_it: bool,
}

/// Runs `assay-admin prune`.
pub(crate) fn run(global: &Global, args: &PruneArgs) -> anyhow::Result<()> {
    let opened = database::open(global)?;
    let store: &dyn Administration = &opened.database;
    let now = checked_clock(store)?;
    if !args.dry_run {
        let due = store.prune(now, true, &mut |_| ())?;
        let count = runs(&due);
        if count > 0 && count == due.runs_stored && !args.all_of_it {
            bail!(
                "nothing was deleted: everything that is stored ({}) is past its retention, usually because of a wrong clock; \
                 if the clock is right, run `assay-admin prune --all-of-it`",
                output::count(count, "run")
            );
        }
        if count > 0 {
            let runs = output::count(count, "run");
            confirm(args.yes, || {
                format!("{}Delete {runs} for good?", project_lines(&due.projects))
            })?;
        }
    }
    let bar = progress::bar(global.json, "Pruning", 0, Unit::Items(""));
    let report = store.prune(now, args.dry_run, &mut |step| show(&bar, step))?;
    bar.finish_and_clear();
    let results: u64 = report.projects.iter().map(|project| project.results).sum();
    let value = json!({
        "dryRun": args.dry_run, "runs": runs(&report), "results": results, "projects": report.projects,
        "periods": report.partitions, "periodsLeft": report.partitions_left,
        "deletionsFinished": report.deletions_finished, "uploads": report.uploads,
    });
    output::print(global.json, &value, || text(args.dry_run, &report, results))
}

/// The time by this machine's clock, which must agree with the database's: with a clock that is ahead, runs would be
/// deleted too early.
fn checked_clock(store: &dyn Administration) -> anyhow::Result<Timestamp> {
    let before = clock::now();
    let database = store.clock()?;
    let after = clock::now();
    let skew = clocks::skew_ms(before, database, after);
    ensure!(
        skew.abs() < clocks::SKEW_WRONG_MS,
        "nothing was deleted: this machine's clock is {} {} the database's, so it is unknown which results are past their retention; \
         set both clocks by NTP (timedatectl set-ntp true)",
        length(skew.abs()),
        if skew > 0 { "behind" } else { "ahead of" }
    );
    Ok(after)
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
            "\nWould finish {} of projects and organizations that were interrupted",
            output::count(number, "deletion")
        ),
        number => format!(
            "\nFinished {} of projects and organizations that were interrupted",
            output::count(number, "deletion")
        ),
    };
    let periods_left = if report.partitions_left > 0 {
        format!(
            "\nNot dropped because in use: {} past all retention; no route shows their results, and the next prune tries again",
            output::count(report.partitions_left, "partition")
        )
    } else {
        String::new()
    };
    let uploads = match report.uploads {
        0 => String::new(),
        number => format!(
            "\n{done} {} of uploads older than 90 days",
            output::count(number, "record")
        ),
    };
    let rest = format!("{sum}{uploads}{finished}{periods_left}");
    if report.projects.is_empty() {
        rest
    } else {
        format!("{}\n{rest}", project_lines(&report.projects))
    }
}

fn runs(report: &PruneReport) -> u64 {
    report.projects.iter().map(|project| project.runs).sum()
}

fn show(bar: &ProgressBar, step: PruneStep<'_>) {
    let (done, of, what) = match step {
        PruneStep::Runs { project, done, of } => (done, of, format!("runs of {project}")),
        PruneStep::Partitions { done, of } => (done, of, "partitions".to_owned()),
    };
    bar.set_length(of);
    bar.set_position(done);
    bar.set_message(what);
}

fn project_lines(pruned: &[PrunedCounts]) -> String {
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

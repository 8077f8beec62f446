//! `assay-admin import`: stores the test report of a run.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, ensure};
use assay_cli_local::sources::{checkout::Checkout, clocks, files, report_flags::ReportFlags};
use assay_cli_terminal::{changes, message, output, progress};
use assay_domain::{
    attempt::ErrorDetail,
    recording::{Effect, ImportReceipt},
    rules::RecordingRules,
    run::Outcome,
    store::{Administration, RecordError, Recorder as _, StoreError},
    timestamp::Timestamp,
};
use assay_flakiness::Engine;
use assay_ingest::{Arrival, Files, Flags, PreparedReport};
use assay_reports::{Options, PartialReport};
use assay_repository::WaitingFor;
use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;

use crate::{clock, database, environment, global::Global, lookup, values};

const EXAMPLES: &str = "\
All files named in one call make one run (or one shard of one), stored whole or not at all. \
In CI each job is a suite, and each suite of a build is a run. Another report of the job adds to the run: what failed goes on \
if the job ran again, or if only failed tests ran again. Give jobs that run the same tests a --suite each.

Examples:
  Everything in a folder, in CI, whose variables have branch, commit, build and shard:
    assay-admin import --project storefront test-results/
  A shard, by hand:
    assay-admin import --project storefront --run-key build-812 --shard 2/3 results-2.json
  A matrix whose jobs run the same tests on several systems, each a suite:
    assay-admin import --project storefront --suite \"e2e $OS\" test-results/
  From a pipe:
    go test -json ./... | assay-admin import --project backend --branch main --commit \"$SHA\" -
  What would be stored, and where each value comes from:
    assay-admin import --project storefront --dry-run test-results/";

/// Store the test report of a run
///
/// Reads JUnit XML of every dialect, and the formats that --format lists. Flags take precedence over CI's environment
/// variables, and those over the report. The same report under the same run key changes nothing; another report adds
/// to the run, and replaces nothing without --replace.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ImportArgs {
    /// Reports: files, folders (walked), patterns such as 'out/**/*.xml', or - for standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The project's id or name
    #[arg(long)]
    project: String,
    /// Show what would be stored and the source of each value; store nothing
    #[arg(long)]
    dry_run: bool,
    /// Exit with status 0 even if some of the files could not be read
    #[arg(long, help_heading = "The report")]
    lenient: bool,
    /// How long to retry when the database does not answer, has no free connection or is lost: 90s, 5m, 1h, or 0 for a
    /// single attempt [default: 5m; 30s if no server answers]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    retry_for: Option<Duration>,
    #[command(flatten)]
    report: ReportFlags,
}

/// Runs `assay-admin import`.
pub(crate) fn run(global: &Global, args: ImportArgs) -> anyhow::Result<()> {
    let now = clock::now();
    let (dry_run, lenient, project) = (args.dry_run, args.lenient, args.project.clone());
    let retry_for = args.retry_for;
    let stores_stable_names = || {
        if dry_run {
            return Ok(true);
        }
        let opened = database::open_for_import(global, retry_for)?;
        let id = lookup::project(&opened.database, &project)?.id;
        Ok(opened.database.stores_stable_names(id)?)
    };
    let (prepared, unread) = prepare(global, args, stores_stable_names, now).context("nothing was stored")?;
    for reason in &unread {
        message!("not read: {reason}");
    }
    if dry_run {
        output::print_warnings(&prepared.warnings());
        show(global, &prepared, &unread)?;
        return accept(&unread, lenient);
    }

    let mut opened = database::open_for_import(global, retry_for)?;
    let store: &dyn Administration = &opened.database;
    let project = lookup::project(store, &project)?;
    let storing = progress::spinner(
        global.json,
        format!("storing {}", output::counts(&prepared.counts())),
    );
    let (bar, name) = (storing.clone(), project.name.clone());
    opened
        .database
        .on_waiting(move |waiting_for, waited| print_waiting(&bar, &name, waiting_for, waited));
    // Parsing and waiting for a connection take time, in which other imports may have created runs.
    let imported = assay_ingest::import(
        &opened.database,
        &Engine::default(),
        project.id,
        &prepared,
        RecordingRules::Unrestricted,
        clock::now(),
    );
    storing.finish_and_clear();
    let imported = imported
        .inspect_err(|_| output::print_warnings(&prepared.warnings()))
        .map_err(not_stored)?;
    let warnings = prepared.warnings_of(&imported);
    output::print_warnings(&warnings);
    let value = json!({
        "runId": imported.run_id,
        "runNumber": imported.run_number,
        "shardId": imported.shard_id,
        "status": imported.status,
        "counts": imported.counts,
        "tests": prepared.recording.tests.len(),
        "changed": imported.effect != Effect::Unchanged,
        "continues": imported.standing.continues,
        "replaced": imported.standing.replaced,
        "verdictsChanged": imported.verdicts_changed.listed,
        "verdictsChangedTotal": imported.verdicts_changed.total,
        "warnings": warnings,
        "notRead": unread,
    });
    output::print(global.json, &value, || {
        summary(&project.name, &imported, &prepared)
    })?;
    accept(&unread, lenient)
}

/// Prints the reason why the import waits on standard error, also without a terminal, so that a waiting CI job does not
/// look stuck.
fn print_waiting(bar: &ProgressBar, project: &str, waiting_for: WaitingFor, waited: Duration) {
    let waiting_for = match waiting_for {
        WaitingFor::OtherImport => format!("another import into {project}"),
        WaitingFor::Database => "the database, which cannot be reached".to_owned(),
    };
    bar.suspend(|| message!("waiting for {waiting_for}, {} s", waited.as_secs()));
}

/// Returns an error if files could not be read, unless the user accepts that.
fn accept(unread: &[String], lenient: bool) -> anyhow::Result<()> {
    ensure!(
        unread.is_empty() || lenient,
        "{} could not be read, so the run fails; with --lenient they are left out",
        output::count(unread.len(), "file")
    );
    Ok(())
}

/// Adds to an error whether the report was stored.
fn not_stored(error: RecordError) -> anyhow::Error {
    let context = match &error {
        // The connection may have been lost between the commit and its answer.
        RecordError::Store(StoreError::Unreachable(_)) => {
            "it is unknown whether the report was stored; import it again: the same report is stored once"
        }
        RecordError::Store(
            StoreError::Failed { .. }
            | StoreError::Exhausted { .. }
            | StoreError::NotPermitted { .. }
            | StoreError::Corrupt { .. },
        )
        | RecordError::NoProject(_)
        | RecordError::ShardingDiffers { .. }
        | RecordError::RevisionDiffers { .. }
        | RecordError::ClockDiffers { .. }
        | RecordError::NotAllowed(_) => "nothing was stored",
        // The next import judges too.
        RecordError::NotJudged(_) => {
            "the verdicts are behind; import the same report again, which updates them"
        }
    };
    anyhow::Error::new(error).context(context)
}

/// Reads the reports and merges flags, variables and the reports' own values. Also returns each unreadable file with
/// its reason.
fn prepare(
    global: &Global,
    args: ImportArgs,
    stores_stable_names: impl FnOnce() -> anyhow::Result<bool>,
    now: Timestamp,
) -> anyhow::Result<(PreparedReport, Vec<String>)> {
    let ReportFlags {
        format, root, run, ..
    } = &args.report;
    let format = format.0;
    let (ci, job_started_at) = args.report.ci(&environment::variable);
    let checkout = Checkout::of(root.as_deref(), &ci)?;
    let sources = files::read(progress::terminal(global.json), &args.paths, format)?;
    let files = Files::of(&sources);
    let known_files = checkout.known_files(format, &sources);
    let parsing = progress::spinner(
        global.json,
        format!("parsing {}", output::count(sources.len(), "file")),
    );
    let mut options = Options {
        clocks: clocks::clocks(now),
        retries_as_attempts: args.report.retries_as_attempts,
        ..checkout.options(format, known_files.as_ref())
    };
    let read = assay_reports::read_readable(&sources, &options);
    parsing.finish_and_clear();
    let PartialReport {
        mut report,
        mut unread,
    } = read?;
    if report.has_unstable_names() && !stores_stable_names()? {
        options.keeps_written_names = true;
        PartialReport { report, unread } = assay_reports::read_readable(&sources, &options)?;
    }
    drop(sources);
    let reasons: Vec<String> = unread.iter().map(ToString::to_string).collect();
    if !args.lenient {
        // Their tests are unknown, so the run does not pass.
        report.errors.extend(reasons.iter().map(|reason| ErrorDetail {
            message: Some(reason.clone()),
            ..ErrorDetail::default()
        }));
    }
    let flags = Flags::from(run);
    let arrival = Arrival {
        files,
        report,
        flags: &flags,
        ci: &ci,
        job_started_at,
    };
    let prepared = assay_ingest::prepare(arrival, now)?;
    Ok((prepared, reasons))
}

/// The import as text.
fn summary(project: &str, imported: &ImportReceipt, prepared: &PreparedReport) -> String {
    let ImportReceipt {
        run_id,
        run_number,
        shard_id,
        status,
        counts,
        context: _,
        effect,
        standing,
        verdicts_changed,
    } = imported;
    let ended = status.map_or("is not complete yet", |status| match status {
        Outcome::Passed => "passed",
        Outcome::Failed => "failed",
    });
    let shard = match prepared.recording.shard {
        Some(shard) => format!("\nshard {} {shard_id}", shard.index),
        None => String::new(),
    };
    let relation = match effect {
        Effect::Unchanged => "\nIt was already stored; nothing changed".to_owned(),
        Effect::Added | Effect::Replaced => output::relation(standing.continues, standing.replaced),
    };
    format!(
        "Run {run_number} of {project:?} {ended}: {}\nrun {run_id}{shard}{relation}{}",
        output::counts(counts),
        changes::in_words(verdicts_changed)
    )
}

/// Prints what would be stored.
fn show(global: &Global, prepared: &PreparedReport, unread: &[String]) -> anyhow::Result<()> {
    let recording = &prepared.recording;
    let counts = prepared.counts();
    let value = json!({
        "dryRun": true,
        "values": prepared.choices,
        "counts": counts,
        "tests": recording.tests.len(),
        "warnings": prepared.warnings(),
        "notRead": unread,
    });
    output::print(global.json, &value, || {
        let rows = prepared.choices.iter().map(|choice| {
            let first_line = choice.value.lines().next().unwrap_or_default().to_owned();
            vec![choice.what.to_owned(), first_line, choice.from.label().to_owned()]
        });
        format!(
            "{}\nWould store {}; nothing was stored",
            output::table(&["VALUE", "", "FROM"], rows),
            output::counts(&counts)
        )
    })
}

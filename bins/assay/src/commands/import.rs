//! `assay import`: stores the test report of a run.

use std::{path::PathBuf, time::Instant};

use anyhow::{Context as _, ensure};
use assay_domain::{
    recording::{Effect, Imported, RunContext, ShardIndex, VerdictChange, VerdictChanges},
    run::{CiProvider, Counts, Outcome},
    store::{Administration, RecordError, StoreError},
    timestamp::Timestamp,
    verdict::VerdictStatus,
};
use assay_flakiness::Engine;
use assay_ingest::{Arrival, Files, Flags, Prepared};
use assay_reports::{Format, PartialReport, ci::CiContext};
use clap::{Args, builder::TypedValueParser as _};
use serde_json::json;

use crate::{
    checkout::Checkout, cli::Global, clock, database, environment, lookup, output, progress, sources, values,
};

/// Most changed verdicts that are shown to people.
const MOST_SHOWN: usize = 20;
/// Headings of the help.
const RUN: &str = "The run (told by CI's variables unless given)";
const CODE: &str = "The code (told by CI's variables unless given)";

const EXAMPLES: &str = "\
All files named in one call make one run (or one shard of one), stored whole or not at all.
In CI each job is a suite, and each suite of a build is a run. A job that sends another report replaces its first one. The
report of another job in the same place is refused (\"slot taken\"): give each job a --suite or --shard of its own.

Examples:
  Everything in a folder, inside CI, whose variables tell branch, commit, build and shard:
    assay import --project storefront test-results/
  A shard, by hand:
    assay import --project storefront --run-key build-812 --shard 2/3 results-2.json
  A matrix whose jobs run the same tests on several systems, each a suite:
    assay import --project storefront --suite \"e2e $OS\" test-results/
  From a pipe:
    go test -json ./... | assay import --project backend --branch main --commit \"$SHA\" -
  What would be stored, and where each value comes from:
    assay import --project storefront --dry-run test-results/";

/// Store the test report of a run
///
/// Reads Playwright JSON, JUnit XML of every dialect, CTRF, Jest and Vitest JSON, `go test -json`, TRX, TestNG and Allure
/// results. What CI's environment variables tell is the default of the flags; flags go before variables, and those
/// before what the report says of itself. The same report under the same run key again changes nothing; a changed
/// one replaces the earlier.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ImportArgs {
    /// Reports: files, folders (walked), patterns such as 'out/**/*.xml', or - for standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The project's id or name
    #[arg(long)]
    project: String,
    /// Show what would be stored and where each value comes from; store nothing
    #[arg(long)]
    dry_run: bool,
    /// Ignore CI's environment variables
    #[arg(long)]
    no_ci: bool,
    /// The report's format
    #[arg(
        long,
        default_value = "auto",
        value_parser = values::formats(None).try_map(|word| parse_format(&word)),
        help_heading = "The report"
    )]
    format: FormatChoice,
    /// The checkout that the report's files lie in, to store their paths relative to it
    #[arg(long, value_name = "DIR", help_heading = "The report")]
    root: Option<PathBuf>,
    /// Exit with status 0 although some of the files could not be read
    #[arg(long, help_heading = "The report")]
    lenient: bool,
    #[command(flatten)]
    run: RunFlags,
}

/// What the user says of the run.
#[derive(Debug, Args)]
struct RunFlags {
    /// What all shards of one run share; without it CI's build, else the content
    #[arg(long, value_name = "KEY", value_parser = values::run_key, help_heading = RUN)]
    run_key: Option<String>,
    /// Which shard this is, such as 2/5
    #[arg(long, value_name = "I/N", value_parser = values::shard, help_heading = RUN)]
    shard: Option<ShardIndex>,
    /// The suite, where several share one build: each is a run of its own; without it CI's job
    #[arg(long, value_parser = values::line, help_heading = RUN)]
    suite: Option<String>,
    /// The branch
    #[arg(long, value_parser = values::name, help_heading = CODE)]
    branch: Option<String>,
    /// The commit that was checked out
    #[arg(long, value_name = "SHA", value_parser = values::line, help_heading = CODE)]
    commit: Option<String>,
    /// For a pull request, the head behind a merge commit
    #[arg(long, value_name = "SHA", value_parser = values::line, help_heading = CODE)]
    tested_revision: Option<String>,
    /// The commit's message
    #[arg(long, value_parser = values::message, help_heading = CODE)]
    message: Option<String>,
    /// The commit's author
    #[arg(long, value_parser = values::line, help_heading = CODE)]
    author: Option<String>,
    /// The pull request's number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..), help_heading = CODE)]
    pr: Option<i64>,
    /// The pull request's title
    #[arg(long, value_name = "TITLE", value_parser = values::line, help_heading = CODE)]
    pr_title: Option<String>,
    /// The CI service
    #[arg(long, value_name = "PROVIDER", value_parser = values::provider(), help_heading = RUN)]
    ci: Option<CiProvider>,
    /// When the run started (RFC 3339); every time of the report moves with it
    #[arg(long, value_name = "TIME", value_parser = values::timestamp, help_heading = RUN)]
    started_at: Option<Timestamp>,
    /// How long the run took, in milliseconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=31_536_000_000), help_heading = RUN)]
    duration_ms: Option<u64>,
}

impl From<RunFlags> for Flags {
    fn from(flags: RunFlags) -> Self {
        Self {
            run_key: flags.run_key,
            shard: flags.shard,
            context: RunContext {
                branch: flags.branch,
                commit_sha: flags.commit,
                commit_message: flags.message,
                author_name: flags.author,
                tested_revision: flags.tested_revision,
                pull_request_number: flags.pr,
                pull_request_title: flags.pr_title,
                ci_provider: flags.ci,
                suite: flags.suite,
            },
            started_at: flags.started_at,
            duration_ms: flags.duration_ms,
        }
    }
}

/// A format that was asked for; none to look at the content.
#[derive(Debug, Clone, Copy)]
struct FormatChoice(Option<Format>);

fn parse_format(text: &str) -> Result<FormatChoice, String> {
    if text == "auto" {
        return Ok(FormatChoice(None));
    }
    text.parse()
        .map(|format| FormatChoice(Some(format)))
        .map_err(|error| format!("{error}, or auto"))
}

/// Runs `assay import`.
pub(crate) fn run(global: &Global, args: ImportArgs) -> anyhow::Result<()> {
    let now = clock::now();
    let (dry_run, lenient, project) = (args.dry_run, args.lenient, args.project.clone());
    let (prepared, unread) = prepare(global, args, now).context("nothing was stored")?;
    for reason in &unread {
        eprintln!("assay: not read: {reason}");
    }
    warn(&prepared.warnings);
    if dry_run {
        show(global, &prepared, &unread)?;
        return accept(&unread, lenient);
    }

    let opened = database::open(global)?;
    let store: &dyn Administration = &opened.database;
    let project = lookup::project(store, &project)?;
    let storing = progress::spinner(global, format!("storing {}", in_words(&prepared.counts())));
    let imported = assay_ingest::import(&opened.database, &Engine::default(), project.id, &prepared, now);
    storing.finish_and_clear();
    let imported = imported.map_err(not_stored)?;
    let replaced = replaced_notice(&project.name, &imported);
    warn(&replaced);
    let warnings: Vec<_> = replaced.iter().chain(&prepared.warnings).collect();
    let value = json!({
        "runId": imported.run_id,
        "runNumber": imported.run_number,
        "shardId": imported.shard_id,
        "status": imported.status,
        "counts": imported.counts,
        "tests": prepared.recording.tests.len(),
        "changed": imported.effect != Effect::Nothing,
        "verdictsChanged": imported.verdicts_changed.listed,
        "verdictsChangedTotal": imported.verdicts_changed.total,
        "warnings": warnings,
        "notRead": unread,
    });
    output::print(global.json, &value, || told(&project.name, &imported, &prepared))?;
    accept(&unread, lenient)
}

/// Fails where files could not be read, unless the user accepts that.
fn accept(unread: &[String], lenient: bool) -> anyhow::Result<()> {
    ensure!(
        unread.is_empty() || lenient,
        "{} could not be read; only the others count (--lenient accepts this)",
        output::count(u64::try_from(unread.len())?, "file")
    );
    Ok(())
}

/// The error of a report that was not stored, as far as that is known.
fn not_stored(error: RecordError) -> anyhow::Error {
    let context = match &error {
        // The connection may have been lost between the commit and its answer.
        RecordError::Store(StoreError::Unreachable(_)) => {
            "whether the report was stored is not known; import it again: the same report is stored once"
        }
        RecordError::Store(StoreError::Failed { .. } | StoreError::Corrupt { .. })
        | RecordError::NoProject(_)
        | RecordError::ShardingDiffers { .. }
        | RecordError::SlotTaken { .. } => "nothing was stored",
    };
    anyhow::Error::new(error).context(context)
}

/// Says the warnings on standard error.
fn warn<'a>(warnings: impl IntoIterator<Item = &'a String>) {
    for warning in warnings {
        eprintln!("assay: warning: {warning}");
    }
}

/// What to say where an earlier report made room: the jobs of one CI build share its run key, and should not.
fn replaced_notice(project: &str, imported: &Imported) -> Option<String> {
    (imported.effect == Effect::Replaced).then(|| {
        format!(
            "this replaced the earlier report of the same shard of run {} of {project:?}; jobs of one build that run \
             different tests need a --suite each, and parts of one suite a --shard",
            imported.run_number
        )
    })
}

/// Reads the reports and decides between flags, variables and what the reports say. Beside the result: why each file
/// that could not be read was left out.
fn prepare(global: &Global, args: ImportArgs, now: Timestamp) -> anyhow::Result<(Prepared, Vec<String>)> {
    let (ci, job_started_at) = match args.no_ci {
        true => (CiContext::default(), None),
        false => (environment::ci_context(), environment::job_started_at()),
    };
    let checkout = Checkout::of(args.root.as_deref(), &ci)?;
    let sources = sources::read(global, &args.paths, args.format.0)?;
    let files = Files::of(&sources);
    let known_files = checkout.known_files(args.format.0, &sources);
    let parsing = progress::spinner(
        global,
        format!("parsing {}", output::count(u64::try_from(sources.len())?, "file")),
    );
    let count = sources.len();
    let began = Instant::now();
    let read = assay_reports::read_readable(&sources, &checkout.options(args.format.0, known_files.as_ref()));
    parsing.finish_and_clear();
    drop(sources);
    let PartialReport { report, unread } = read?;
    progress::rate(global, count, report.tests.len(), began.elapsed());
    let flags = Flags::from(args.run);
    let arrival = Arrival {
        files,
        report,
        flags: &flags,
        ci: &ci,
        job_started_at,
    };
    let prepared = assay_ingest::prepare(arrival, now)?;
    Ok((prepared, unread.iter().map(ToString::to_string).collect()))
}

/// The import in words.
fn told(project: &str, imported: &Imported, prepared: &Prepared) -> String {
    let Imported {
        run_id,
        run_number,
        shard_id,
        status,
        counts,
        effect,
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
    let unchanged = match effect {
        Effect::Added | Effect::Replaced => "",
        Effect::Nothing => "\nIt was already stored; nothing changed",
    };
    format!(
        "Run {run_number} of {project:?} {ended}: {}\nrun {run_id}{shard}{unchanged}{}",
        in_words(counts),
        changes_in_words(verdicts_changed)
    )
}

/// The verdicts that changed, in lines. Tests that now have enough runs, and are healthy, are only counted.
fn changes_in_words(changes: &VerdictChanges) -> String {
    let is_news = |change: &&VerdictChange| {
        (change.from, change.to) != (VerdictStatus::InsufficientData, VerdictStatus::Healthy)
    };
    let news: Vec<_> = changes.listed.iter().filter(is_news).collect();
    if changes.total == 0 {
        return String::new();
    }
    let rows = news.iter().take(MOST_SHOWN).map(|change| {
        vec![
            change.to.to_string(),
            change.from.to_string(),
            change.test_name.clone(),
            change.file_path.clone().unwrap_or_default(),
        ]
    });
    let shown = rows.len();
    let head = format!(
        "\n{} changed{}",
        output::count(changes.total, "verdict"),
        if shown == 0 { "" } else { ":\n" }
    );
    let table = match shown {
        0 => String::new(),
        _ => output::table(&["VERDICT", "BEFORE", "TEST", "FILE"], rows),
    };
    let rest = changes
        .total
        .saturating_sub(u64::try_from(shown).unwrap_or(u64::MAX));
    let rest = match (shown, rest) {
        (0, _) => " (tests that now have enough runs, and are healthy)".to_owned(),
        (_, 0) => String::new(),
        (_, rest) => format!("and {rest} more; --json lists them"),
    };
    format!("{head}{table}{rest}")
}

fn in_words(counts: &Counts) -> String {
    let Counts {
        total,
        passed,
        failed,
        skipped,
        recovered,
    } = counts;
    format!(
        "{}, {passed} passed ({recovered} recovered), {failed} failed, {skipped} skipped",
        output::count(*total, "test")
    )
}

/// Shows what would be stored.
fn show(global: &Global, prepared: &Prepared, unread: &[String]) -> anyhow::Result<()> {
    let recording = &prepared.recording;
    let counts = prepared.counts();
    let value = json!({
        "dryRun": true,
        "values": prepared.choices,
        "counts": counts,
        "tests": recording.tests.len(),
        "warnings": prepared.warnings,
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
            in_words(&counts)
        )
    })
}

//! `assay backfill`: verdicts from what CI already has.

mod counts;
mod plan;
mod sending;
mod source;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context as _, ensure};
use assay_cli_local::{
    analysis::{self, Collector},
    history::{csv::HistoryWriter, words},
    offline,
    sources::values,
};
use assay_cli_remote::history::{self, PastReport};
use assay_cli_terminal::{
    output,
    progress::{self, Unit},
};
use assay_domain::timestamp::Timestamp;
use clap::{ArgGroup, Args};
use serde_json::json;

use self::{
    counts::Counts,
    sending::{Sender, ServerTarget},
    source::{Source, SourceFlags},
};
use crate::{clock, global::Global};

/// Heading of the help.
const OUTPUT: &str = "Without a server";

const EXAMPLES: &str = "\
Sends each report under the key of its run, oldest first. The same command again goes on where it stopped; nothing is \
stored twice.

Examples:
  assay backfill --github OWNER/REPO --plan
  assay backfill --github OWNER/REPO --analyze flaky.html
  assay backfill --github OWNER/REPO --workflow ci.yml --artifacts 'report-*'
  assay backfill --dir builds --pattern '{branch}/{run}-{commit}'

A key for old runs: assay-admin key create-ingest --project storefront --backfill --days 7

Tokens come from the environment: GITHUB_TOKEN or GH_TOKEN (else `gh auth token`), GITLAB_TOKEN, JENKINS_USER_ID with \
JENKINS_API_TOKEN, BUILDKITE_API_TOKEN, CIRCLE_TOKEN.";

/// Send the reports of old CI runs, or judge them here
///
/// Takes what a CI service still has: artifacts with reports in them, or the results that it keeps itself.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "assay backfill <SOURCE> [OPTIONS]")]
#[command(group(ArgGroup::new("source").required(true)))]
#[command(group(ArgGroup::new("here").multiple(true).conflicts_with("plan")))]
pub(crate) struct BackfillArgs {
    #[command(flatten)]
    source: SourceFlags,
    /// How many days back
    #[arg(long, value_name = "N", default_value_t = 90, value_parser = clap::value_parser!(u16).range(1..=3650))]
    days: u16,
    /// Show what would be read, and read no artifact
    #[arg(long)]
    plan: bool,
    /// Judge here, and write one page
    #[arg(long, value_name = "PAGE.html", group = "here", help_heading = OUTPUT)]
    analyze: Option<PathBuf>,
    /// Write the history here, for `assay analyze` and other tools
    #[arg(long, value_name = "FILE.csv", group = "here", help_heading = OUTPUT)]
    csv: Option<PathBuf>,
    /// The branch that releases are made from; without it, what the CI service says, else main
    #[arg(long, value_name = "BRANCH", value_parser = values::name)]
    stable_branch: Option<String>,
    #[command(flatten)]
    server: ServerTarget,
}

/// Runs `assay backfill`.
pub(crate) fn run(global: &Global, args: &BackfillArgs) -> anyhow::Result<ExitCode> {
    let source = Source::of(global, &args.source, &args.server.ingest.connection)?;
    let is_local = args.plan || args.analyze.is_some() || args.csv.is_some();
    let sender = (!is_local).then(|| Sender::of(global, &args.server, &source.name));
    let sender = sender.transpose()?;
    let now = clock::now();
    let runs = source.runs(now.plus_days(-i64::from(args.days)), now)?;
    ensure!(
        !runs.is_empty(),
        "no finished run of the last {} days; look further back with --days, or see whether the name is right",
        args.days
    );
    if args.plan {
        return plan::run(global, &source, &runs, now);
    }
    let stable_branch = match &args.stable_branch {
        Some(name) => name.clone(),
        None => source.stable_branch()?.unwrap_or_else(|| "main".to_owned()),
    };
    let csv = args.csv.as_deref().map(HistoryWriter::create).transpose();
    let mut backfill = Backfill {
        source: &source,
        now,
        collector: Collector::new(&stable_branch),
        sender,
        csv: csv.context("--csv")?,
        counts: Counts::default(),
        first_start: None,
    };
    let length = u64::try_from(runs.len())?;
    let bar = progress::bar(global.json, "reading", length, Unit::Items("runs"));
    for run in &runs {
        let mut has_report = false;
        for report in source.reports(run)? {
            has_report |= backfill.report(&report)?;
        }
        backfill.counts.runs += 1;
        backfill.counts.runs_with_reports += u64::from(has_report);
        bar.inc(1);
    }
    bar.finish_and_clear();
    backfill.finish(global, args)
}

/// A history that is being read.
struct Backfill<'a> {
    source: &'a Source<'a>,
    now: Timestamp,
    collector: Collector,
    sender: Option<Sender<'a>>,
    csv: Option<HistoryWriter>,
    counts: Counts,
    /// The start of the first run with reports.
    first_start: Option<Timestamp>,
}

impl Backfill<'_> {
    /// Reads and sends the report of a job. Returns whether it has one.
    fn report(&mut self, past: &PastReport) -> anyhow::Result<bool> {
        if self.sender.as_ref().is_some_and(|sender| sender.has(&past.id)) {
            self.counts.known += 1;
            return Ok(true);
        }
        let files = self.source.files(past, &mut self.counts)?;
        let mut report = match history::read(past, files, self.now) {
            Ok(Some(report)) => report,
            Ok(None) => return Ok(false),
            Err(error) => {
                self.counts.unreadable(&format!("{}: {error}", past.id));
                return Ok(false);
            }
        };
        for error in &report.unread {
            self.counts.unreadable(&format!("{}: {error}", past.id));
        }
        let recording = &report.prepared.recording;
        self.first_start = self.first_start.into_iter().chain([recording.started_at]).min();
        self.counts.tests += u64::try_from(recording.tests.len())?;
        if let Some(csv) = &mut self.csv {
            csv.add(recording).context("--csv")?;
        }
        if let Some(sender) = &mut self.sender {
            sender.send(past, &mut report, &mut self.counts)?;
        }
        let name = report.prepared.recording.run_key.replace('\t', " ");
        self.collector.record(&name, report.prepared.recording);
        Ok(true)
    }

    /// Judges everything that was read, and prints what it says. Fails if a report was refused.
    fn finish(mut self, global: &Global, args: &BackfillArgs) -> anyhow::Result<ExitCode> {
        let project = self.sender.map(Sender::judge).transpose()?;
        let has_read = self.collector.runs() > 0;
        ensure!(
            has_read || self.counts.known > 0,
            "none of the {} has a test report; store the reports as artifacts, or look further back with --days\n{}",
            output::count(self.counts.runs, "run"),
            self.counts.in_words()
        );
        if let Some(csv) = self.csv {
            csv.finish().context("--csv")?;
        }
        let mut first_verdicts = None;
        if has_read {
            offline::assume_stable(global.progress(), &mut self.collector, "");
            offline::note_branches(global.progress(), &self.collector);
            let analysis = self.collector.judge(None)?;
            if let Some(page) = &args.analyze {
                let written = std::fs::write(page, analysis::page(&analysis));
                written.with_context(|| format!("--analyze {}", page.display()))?;
            }
            first_verdicts = Some(words::first_verdicts(&analysis, self.first_start));
        }
        let (verdicts, words) = first_verdicts.unzip();
        let summary = json!({
            "source": self.source.name, "project": project, "requests": self.source.requests(),
            "words": words, "verdicts": verdicts, "counts": self.counts,
        });
        output::print(global.json, &summary, || {
            in_words(words, project, &self.counts, args)
        })?;
        Ok(match self.counts.refused {
            0 => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        })
    }
}

fn in_words(words: Option<String>, project: Option<String>, counts: &Counts, args: &BackfillArgs) -> String {
    let file = |path: &Option<PathBuf>| path.as_deref().map(assay_reports::shown_path);
    let newly = "These figures are of the newly read runs. The pages of the server have all.";
    let next = match project {
        None => "Next: keep it up to date. `assay-admin setup` makes a project and its keys and prints the\n\
             lines of a CI job; the same command without --analyze and --csv then sends this history."
            .to_owned(),
        Some(project) => format!(
            "It is in the project {}. Runs older than its plan's retention are stored and not shown.\n\
             Next: let each job send its report, with `assay run --report FILE -- COMMAND`.",
            assay_reports::shown_name(&project)
        ),
    };
    let lines = [
        words.map(|words| format!("{}\n", words.trim_end())),
        Some(counts.in_words()),
        (counts.known > 0).then(|| newly.to_owned()),
        file(&args.analyze).map(|page| format!("Open {page}: each test with its evidence.")),
        file(&args.csv).map(|file| format!("The history is in {file}.")),
        Some(next),
    ];
    let lines: Vec<_> = lines.into_iter().flatten().collect();
    lines.join("\n")
}

//! `assay analyze`: judges a history without a database.

pub(crate) mod causes;
mod history;
mod table;

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::ensure;
use assay_analysis::{Analysis, Collector};
use assay_console::{message, output, terminal};
use assay_domain::timestamp::Timestamp;
use assay_reports::Format;
use assay_sources::values;
use clap::{
    Args, ValueEnum,
    builder::{PossibleValue, TypedValueParser as _},
};

use crate::{clock, global::Global};

const EXAMPLES: &str = "\
Every report is a run of its own; a folder of Allure results, a folder of Surefire's TEST-*.xml, the shards of one build \
and the legs of a matrix in one folder are one run. The verdicts are those that the service would store for the same results at the same time.

Examples:
  A folder of reports, one a run, as a page to look at:
    assay analyze reports/ --output html > flaky.html
  In a script, the broken tests:
    assay analyze reports/ --json | jq -r '.tests[] | select(.status == \"broken\") | .testName'
  A history as CSV, one attempt a row (test,run,started_at,status; optionally
  file,branch,revision,execution,retry,duration_ms,variant,error):
    assay analyze history.csv --stable-branch trunk
  The causes of the failures of one run:
    assay analyze reports/ --causes run-812.xml
  The runs that should not be merged:
    assay analyze reports/ --causes at-the-time --json | jq -r '.gates[] | select(.action == \"block\") | .run'";

/// Judge the tests of reports or CSV histories, with no database
///
/// Reads every format of `assay-admin import` and CSV, and reports which tests are broken or flaky, and why: as a table, as
/// JSON, or as one HTML page that needs no network.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AnalyzeArgs {
    /// Reports or CSV histories: files, folders (walked), patterns such as 'out/**/*.xml', or - for standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The format
    #[arg(
        long,
        default_value = "auto",
        value_parser = values::formats(Some(csv_word())).try_map(|word| parse_format(&word))
    )]
    format: InputFormat,
    /// The time of the judgement (RFC 3339); the newest run's start unless given
    #[arg(long, value_name = "TIME", value_parser = values::timestamp)]
    now: Option<Timestamp>,
    /// The branch that releases are made from
    #[arg(long, value_name = "BRANCH", default_value = "main", value_parser = values::name)]
    stable_branch: String,
    /// How to judge runs that name no branch, where other runs name one
    #[arg(long, value_name = "AS", value_enum, default_value_t = WithoutBranch::Stable)]
    without_branch: WithoutBranch,
    /// The output; --json is the same as --output json
    #[arg(long, value_name = "AS", value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Show the causes of failures: at-the-time (by the runs until each failure) or hindsight (by later runs too). Both
    /// are of the whole window and need --json; the name of a run shows its failures as a table
    #[arg(long, value_name = "at-the-time|hindsight|RUN", value_parser = causes::scope)]
    causes: Option<causes::CauseScope>,
    /// The checkout of the tested sources, to show file paths relative to it
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Count each report as a run: do not join the files of one build
    #[arg(long)]
    one_run_per_file: bool,
    /// Keep the parts of names that change from run to run, such as addresses and times
    #[arg(long)]
    written_names: bool,
}

/// How runs without a branch are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WithoutBranch {
    /// As runs on the stable branch
    Stable,
    /// As runs on a branch of their own
    Unknown,
}

/// The output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A table for a terminal
    Table,
    /// One JSON object with every test and its evidence
    Json,
    /// One self-contained page
    Html,
}

/// The format of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputFormat {
    /// Decided by name and content.
    Auto,
    /// As CSV.
    Csv,
    /// As a report of this format.
    Report(Format),
}

fn csv_word() -> PossibleValue {
    PossibleValue::new("csv").help("A history, one attempt a row")
}

fn parse_format(text: &str) -> Result<InputFormat, String> {
    match text {
        "auto" => Ok(InputFormat::Auto),
        "csv" => Ok(InputFormat::Csv),
        other => other
            .parse()
            .map(InputFormat::Report)
            .map_err(|error| format!("{error}, csv or auto")),
    }
}

/// Runs `assay analyze`.
pub(crate) fn run(global: &Global, args: &AnalyzeArgs) -> anyhow::Result<()> {
    let output = match (global.json, args.output) {
        (false, output) => output,
        (true, Output::Table | Output::Json) => Output::Json,
        (true, Output::Html) => {
            anyhow::bail!("--json and --output html cannot be combined; give one of them")
        }
    };
    causes::check(args.causes.as_ref(), output)?;
    let mut collector = Collector::new(&args.stable_branch);
    let reading = history::Inputs {
        paths: &args.paths,
        format: args.format,
        root: args.root.as_deref(),
        one_run_per_file: args.one_run_per_file,
        keeps_written_names: args.written_names,
    };
    history::read(global, &reading, &mut collector, clock::now())?;
    ensure!(collector.runs() > 0, "no test report and no history was found");
    if args.without_branch == WithoutBranch::Stable {
        assume_stable(
            &mut collector,
            "; --without-branch unknown judges them as on a separate branch",
        );
    }
    print_branch_note(&collector);
    let mut analysis = collector.judge(args.now)?;
    if let Some(scope) = &args.causes {
        let causes = scope.causes(&collector, analysis.now)?;
        if output == Output::Table {
            return output::print(false, &(), || causes::table(&causes, terminal::width()));
        }
        analysis.causes = Some(causes);
    }
    print(&analysis, output)
}

/// Reads reports and histories of any format into a collector, to judge one more run against them. `keeps_written_names`
/// is whether names keep the parts that change from run to run, also those of that run.
pub(crate) fn collect(
    global: &Global,
    paths: &[PathBuf],
    stable_branch: &str,
    root: Option<&Path>,
    keeps_written_names: bool,
) -> anyhow::Result<Collector> {
    let mut collector = Collector::new(stable_branch);
    let reading = history::Inputs {
        paths,
        format: InputFormat::Auto,
        root,
        one_run_per_file: false,
        keeps_written_names,
    };
    history::read(global, &reading, &mut collector, clock::now())?;
    ensure!(collector.runs() > 0, "no test report and no history was found");
    assume_stable(&mut collector, "");
    print_branch_note(&collector);
    Ok(collector)
}

/// Judges runs without a branch as runs of the stable branch, and prints a note about them, because the user may know
/// better. The note ends with `alternative`.
fn assume_stable(collector: &mut Collector, alternative: &str) {
    let assumed = collector.assume_stable();
    if assumed > 0 {
        let (are, name) = if assumed == 1 {
            ("is", "names")
        } else {
            ("are", "name")
        };
        message!(
            "{assumed} of {} runs {name} no branch and {are} judged as on the stable branch {:?}{alternative}",
            collector.runs(),
            collector.stable_branch(),
        );
    }
}

/// Without runs on the stable branch no test can be broken. A misnamed branch is the more likely reason.
fn print_branch_note(collector: &Collector) {
    let branches = collector.branches();
    if branches.is_empty() || branches.contains(&collector.stable_branch()) {
        return;
    }
    let some: Vec<&str> = branches.iter().take(5).copied().collect();
    message!(
        "no run is on the stable branch {:?}, so no test can be broken; there {} {}: name the one that \
         releases are made from with --stable-branch",
        collector.stable_branch(),
        if branches.len() == 1 { "is" } else { "are" },
        some.join(", "),
    );
}

fn print(analysis: &Analysis, output: Output) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(terminal::plain_out());
    match output {
        Output::Table => {
            let mut output = terminal::out();
            output.write_all(table::table(analysis, terminal::width()).as_bytes())?;
            output.flush()?;
        }
        Output::Json => {
            serde_json::to_writer(&mut out, analysis)?;
            out.write_all(b"\n")?;
        }
        Output::Html => out.write_all(assay_analysis::page(analysis).as_bytes())?,
    }
    out.flush()?;
    Ok(())
}

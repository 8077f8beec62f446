//! `assay analyze`: judges a history without a database.

pub(crate) mod causes;

use std::{
    io::{self, Write as _},
    path::PathBuf,
};

use anyhow::ensure;
use assay_cli_local::{
    analysis::{Analysis, Collector},
    offline::InputFormat,
    sources::values,
};
use assay_cli_terminal::{output, terminal, wrap::wrapped};
use assay_domain::timestamp::Timestamp;
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
  file,branch,revision,merge,execution,retry,duration_ms,variant,error):
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
    /// Results of one name in a file are attempts of one test, for a tool whose retries the report does not mark
    #[arg(long)]
    retries_as_attempts: bool,
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
    let reading = assay_cli_local::offline::Inputs {
        paths: &args.paths,
        format: args.format,
        root: args.root.as_deref(),
        one_run_per_file: args.one_run_per_file,
        keeps_written_names: args.written_names,
        retries_as_attempts: args.retries_as_attempts,
    };
    assay_cli_local::offline::read(global.progress(), &reading, &mut collector, clock::now())?;
    ensure!(collector.runs() > 0, "no test report and no history was found");
    if args.without_branch == WithoutBranch::Stable {
        assay_cli_local::offline::assume_stable(
            global.progress(),
            &mut collector,
            "; --without-branch unknown judges them as on a separate branch",
        );
    }
    assay_cli_local::offline::note_branches(global.progress(), &collector);
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

fn print(analysis: &Analysis, output: Output) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(terminal::plain_out());
    match output {
        Output::Table => {
            let mut output = terminal::out();
            let columns = terminal::width();
            let table = assay_cli_local::offline::table(analysis, columns);
            output.write_all(wrapped(&table, columns).as_bytes())?;
            output.flush()?;
        }
        Output::Json => {
            serde_json::to_writer(&mut out, analysis)?;
            out.write_all(b"\n")?;
        }
        Output::Html => out.write_all(assay_cli_local::analysis::page(analysis).as_bytes())?,
    }
    out.flush()?;
    Ok(())
}

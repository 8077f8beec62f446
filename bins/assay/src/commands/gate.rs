//! `assay gate`: whether the failures of a run may be excused.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use assay_cli_job::gate::{
    judged::JudgedRun,
    policy::{self, Decision},
    show,
};
use assay_cli_local::{
    analysis::FailureSelection,
    sources::{checkout::Checkout, files, report_flags::ReportFlags, values},
};
use assay_cli_terminal::{message, misuse::Misuse, output, terminal};
use assay_domain::{cause::Knowledge, id::RunId, recording::LeftOver, release_branch::ReleaseAnswer};
use assay_ingest::{Arrival, Files, Flags};
use assay_reports::SourceFile;
use clap::Args;

use crate::{
    clock, environment, errors,
    gate::{
        flags::{GateFlags, GateOutput},
        record::{self, DecisionTarget},
        stored::{self, StoredRunFlags},
    },
    global::Global,
    report_to,
    sender::Sender,
    upload_flags::UploadFlags,
};

/// The exit status if the causes of the failures are unknown.
pub(crate) const UNKNOWN: u8 = 3;

const EXAMPLES: &str = "\
A failed test is excused if this change most probably did not break it, for example a flake. A run passes only if every failed \
test is excused and the run is valid. docs/gate.md has the rules, and a recipe for each CI service.

Examples:
  After the tests, with ASSAY_URL and ASSAY_INGEST_KEY as variables of the job:
    assay gate results.json
  Around the test command, which also stores the report:
    assay run --report results.json --gate -- npx playwright test
  With a CSV history or a folder of earlier reports, without a server:
    assay gate --history history.csv --branch feature/tax --commit \"$SHA\" results.json
  Tests of changed files are never excused:
    git diff --name-only origin/main... | assay gate --changed - results.json
  With a file from which anyone can decide again, by assay proof check:
    assay gate --proof decision.json results.json
  For all shards of a run, in a job after them, with ASSAY_API_URL and ASSAY_READ_KEY as variables of the job:
    assay gate --run \"$RUN_ID\"
  Before a release is cut from a branch:
    assay gate --release release/1.2

Exit status: 0 no test failed, or every failed test is excused and the run is valid; 1 the run does not pass (or --exit-code); 2 wrong \
usage; 3 the server, the history or a report could not be read, so that nothing is excused.";

/// Decide whether the failures of a run may be excused
///
/// Asks the server, with an ingest key, why the tests of a report failed, and stores nothing. With --history it needs no server.
/// With --run it judges a stored run, with a read key, and stores the decision if it has an ingest key, too. With --release it says
/// whether a release may be cut from a branch.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    // The gate stores no report, so it has none to keep and is always a dry run.
    mut_arg("dry_run", |flag| flag.hide(true)),
    mut_arg("spool", |flag| flag.hide(true)),
    // A report that is only judged belongs to no stored commit.
    mut_arg("report_to", |flag| flag.help("With --run, report the commit's results from this CI job: auto, none, or some of summary,annotations,comment,check")),
    mut_arg("best_effort", |flag| {
        flag.help("End with status 3 instead of 2 if the server's address or key is missing, as for a fork")
    }),
)]
pub(crate) struct GateArgs {
    /// The run's reports: files, folders (walked), patterns such as 'out/**/*.xml', or - for standard input
    #[arg(required_unless_present_any = ["run", "release"], value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Earlier runs: CSV histories, or reports of which each is a run; no server is asked
    #[arg(long, value_name = "PATH", help_heading = "Without a server")]
    history: Vec<PathBuf>,
    /// The branch that releases are made from
    #[arg(long, value_name = "BRANCH", default_value = "main", value_parser = values::name, help_heading = "Without a server")]
    stable_branch: String,
    /// Keep the parts of names that change from run to run, in the report and in its history
    #[arg(long, requires = "history", help_heading = "Without a server")]
    written_names: bool,
    /// How to print the decision; --json is the same as --output json
    #[arg(long, value_name = "AS", value_enum, default_value_t = GateOutput::Text)]
    output: GateOutput,
    #[command(flatten)]
    stored: StoredRunFlags,
    #[command(flatten)]
    gate: GateFlags,
    #[command(flatten)]
    flags: UploadFlags,
}

/// Runs `assay gate`.
pub(crate) fn run(global: &Global, args: &GateArgs) -> anyhow::Result<ExitCode> {
    if args.stored.run.is_none() && !args.flags.report_to.is_none() {
        return Err(Misuse(
            "--report-to needs --run: a report that is only judged belongs to no stored commit".to_owned(),
        )
        .into());
    }
    if let Some(branch) = &args.stored.release {
        return release(global, args, branch);
    }
    let rules = args.gate.rules()?;
    let judged = match args.stored.run {
        Some(run) => args.stored.fetch(global, run, &args.flags),
        None => files::read(global.progress(), &args.paths, args.flags.report.format.0).and_then(|files| {
            match args.history.is_empty() {
                true => judge_by_server(global, args, &files),
                false => judge_by_history(global, args, files),
            }
        }),
    };
    let judged = match judged {
        Ok(judged) => judged,
        Err(error) => {
            return unknown(
                error,
                "the causes of the failures are unknown, so nothing is excused",
            );
        }
    };
    let decision = policy::decide(&judged, &rules);
    args.gate.write_proof(&decision, &rules);
    // A decision that cannot be printed is stored, and has the same status.
    if let Err(error) = print(global, args.output, &decision) {
        errors::print(&error.context("the decision is not printed"));
    }
    // A report is only judged, so there is no upload to store the decision with.
    if let Some(run) = args.stored.run {
        store_decision(global, args, run, &decision);
    }
    Ok(match decision.outcome.passes() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(args.gate.exit_code.unwrap_or(1)),
    })
}

/// The status where the server, the history or a report cannot be read. Wrong usage has its own.
fn unknown(error: anyhow::Error, what: &'static str) -> anyhow::Result<ExitCode> {
    if error.is::<Misuse>() {
        return Err(error);
    }
    errors::print(&error.context(what));
    Ok(ExitCode::from(UNKNOWN))
}

/// Prints whether a release may be cut from a branch.
fn release(global: &Global, args: &GateArgs, branch: &str) -> anyhow::Result<ExitCode> {
    let (release, answer) = match args.stored.fetch_release(global, branch, &args.flags) {
        Ok(fetched) => fetched,
        Err(error) => return unknown(error, "it is not known whether a release may be cut"),
    };
    let is_json = global.json || args.output == GateOutput::Json;
    output::print(is_json, &answer, || stored::text(&release))?;
    Ok(match release.answer {
        ReleaseAnswer::Yes => ExitCode::SUCCESS,
        ReleaseAnswer::No => ExitCode::from(args.gate.exit_code.unwrap_or(1)),
        ReleaseAnswer::Unknown => ExitCode::from(UNKNOWN),
    })
}

/// Stores the decision on a run if an ingest key is given, else prints that it is not stored.
fn store_decision(global: &Global, args: &GateArgs, run: RunId, decision: &Decision) {
    let (ci, _) = args.flags.report.ci(&environment::variable);
    let server = match args.flags.ingest.server() {
        Ok(server) => server,
        Err(error) => {
            record::not_stored(ci.provider, decision, &error);
            if !args.flags.report_to.is_none() {
                message!("the result is not reported, because the server composes it for an ingest key");
            }
            return;
        }
    };
    let deadline = args.flags.ingest.connection.deadline();
    let sender = Sender {
        global,
        flags: &args.flags,
        server: &server,
        ci: &ci,
    };
    record::store(&sender, Ok(DecisionTarget::run(run)), decision, deadline);
    report_to::report(&sender, Ok(run), deadline);
}

/// Prints the decision on standard output.
fn print(global: &Global, output: GateOutput, decision: &Decision) -> anyhow::Result<()> {
    let text = match (output, global.json) {
        (GateOutput::Json, _) | (_, true) => format!("{}\n", show::json(decision)),
        (GateOutput::Text, false) => show::text(decision, terminal::width()),
        (GateOutput::Junit, false) => show::junit(decision),
    };
    let mut out = terminal::out();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// The failures of the report by the runs that a server has stored.
fn judge_by_server(global: &Global, args: &GateArgs, files: &[SourceFile]) -> anyhow::Result<JudgedRun> {
    let (ci, _) = args.flags.report.ci(&environment::variable);
    // Without --best-effort a missing address is wrong usage. With it nothing is excused.
    let server = args
        .flags
        .server(ci.provider)?
        .context("no server is named; set ASSAY_URL, or give --history")?;
    let sender = Sender {
        global,
        flags: &args.flags,
        server: &server,
        ci: &ci,
    };
    let answer = sender.explain(files)?;
    Ok(JudgedRun::of_answer(&answer)?)
}

/// The failures of the report by the runs of a history.
fn judge_by_history(global: &Global, args: &GateArgs, files: Vec<SourceFile>) -> anyhow::Result<JudgedRun> {
    let ReportFlags {
        format, root, run, ..
    } = &args.flags.report;
    let (ci, job_started_at) = args.flags.report.ci(&environment::variable);
    let mut collector = assay_cli_local::offline::collect(
        global.progress(),
        &args.history,
        &args.stable_branch,
        root.as_deref(),
        args.written_names,
        clock::now(),
    )
    .context("--history")?;
    let checkout = Checkout::of(root.as_deref().map(Path::new), &ci)?;
    let known_files = checkout.known_files(format.0, &files);
    let summed = Files::of(&files);
    let mut options = checkout.options(format.0, known_files.as_ref());
    options.keeps_written_names = args.written_names;
    options.retries_as_attempts = args.flags.report.retries_as_attempts;
    let report = assay_reports::read(files, &options)?;
    let arrival = Arrival {
        files: summed,
        report,
        flags: &Flags::from(run),
        ci: &ci,
        job_started_at,
    };
    let recording = assay_ingest::prepare(arrival, clock::now())?.recording;
    let (incomplete, tests, started_at) = (
        recording.why_incomplete(LeftOver::default()),
        recording.tests.len(),
        recording.started_at,
    );
    // A name that no file has.
    let name = collector.record("\0the report", recording);
    let causes = collector.causes(FailureSelection::Run(&name), Knowledge::AtTheTime, started_at)?;
    Ok(JudgedRun::of_causes(causes, incomplete, tests))
}

//! `assay run`: runs a test command and sends the reports that it writes.

use std::{
    ffi::OsString,
    path::PathBuf,
    process::{ExitCode, Stdio},
    time::{Duration, Instant},
};

use assay_cli_job::gate::{
    judged::JudgedRun,
    policy::{self, Decision, Rules},
    show,
};
use assay_cli_local::sources::written::Before;
use assay_cli_terminal::{message, misuse::Misuse, output, terminal, wrap::wrapped};
use assay_domain::{attempt::AttemptStatus, decision::GateOutcome, run::RunState};
use assay_reports::{Options, SourceFile};
use clap::Args;
use serde_json::Value;

use crate::{
    clock, environment, errors,
    forwarding::Place,
    gate::{
        flags::GateFlags,
        record::{self, DecisionTarget},
    },
    global::Global,
    report_to,
    rerun::{self, FirstRun, RerunFlags},
    sender::Sender,
    test_command::{CommandEnd, code_of, run_command},
    upload_flags::UploadFlags,
};

const EXAMPLES: &str = "\
Only files that were written since the start are sent, so the report of an earlier build is not sent again. The command has the \
terminal and the standard streams, and signals are forwarded to it. Messages about the upload go to standard error.

Examples:
  In CI, with ASSAY_URL and ASSAY_INGEST_KEY as variables of the job:
    assay run --report results.json -- npx playwright test
  The same, with the report in a usual place:
    assay run -- npx playwright test
  Every module's reports:
    assay run --report '**/target/surefire-reports/*.xml' -- mvn -B verify
  A shard of a suite:
    assay run --report junit.xml --shard 2/3 -- pytest --junitxml=junit.xml
  A build that must not fail because the server is unreachable, or because a fork has no key:
    assay run --best-effort --report junit.xml -- pytest --junitxml=junit.xml
  A build that continues if this change most probably broke none of the failed tests:
    assay run --report results.json --gate -- npx playwright test
  The same, which runs unclear failures again for at most 90 seconds and then decides:
    assay run --report results.json --gate --rerun 90s -- npx playwright test
  The same, which also runs new tests again for at most a minute, to find those that are flaky:
    assay run --report results.json --gate --rerun 90s --burn-in 60s -- npx playwright test
  A pipeline of commands:
    assay run --report junit.xml -- sh -c 'make test | tee log.txt'

Exit status: the command's own, or 128 and the signal's number. If the command succeeded: 0 stored, 1 not stored. \
With --gate: 0 if every failed test is excused and the run is valid. 2 wrong usage, and the command did not run. 126 or 127 \
if the command cannot be run.";

/// Run a test command and send the reports that it writes
///
/// Sends them as `assay upload` does, whether the tests passed or failed, and ends with the command's own exit status.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// Reports that the command writes: files, folders (walked) or patterns such as 'out/**/*.xml'; without it, the report in
    /// the first usual place that has a new one, such as junit.xml or test-results
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    report: Vec<PathBuf>,
    /// Excuse failed tests that this branch most probably did not break. If all are excused and the run is valid, end with
    /// status 0
    #[arg(long, conflicts_with = "dry_run", help_heading = "The gate")]
    gate: bool,
    #[command(flatten)]
    reruns: RerunFlags,
    #[command(flatten)]
    excuses: GateFlags,
    #[command(flatten)]
    flags: UploadFlags,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs `assay run`.
pub(crate) fn run(global: &Global, mut args: RunArgs) -> anyhow::Result<ExitCode> {
    let (ci, _) = args.flags.report.ci(&environment::variable);
    if ci.run_key.is_none() {
        // The command runs now: an equal report of another time is another run. Reruns are parts of this one.
        args.flags.report.run.run_key.get_or_insert_with(new_run_key);
    }
    let args = &args;
    if args.report.iter().any(|path| path.as_os_str() == "-") {
        return Err(Misuse("--report -: name the file that the command writes".to_owned()).into());
    }
    // Before the command: a wrong setting should not cost the time of the tests.
    let server = args.flags.server(ci.provider)?;
    let rules = match args.gate {
        true => Some(args.excuses.rules()?),
        false => None,
    };
    let before = Before::of(&args.report)?;
    let started = Instant::now();
    let status = match run_command(
        &args.command,
        &[],
        args.flags.report_to,
        Stdio::inherit(),
        Place::Terminal,
    )? {
        CommandEnd::With(ended) => ended.status,
        CommandEnd::NotRun(code) => return Ok(ExitCode::from(code)),
    };
    let took = started.elapsed();
    let sender = server.as_ref().map(|server| Sender {
        global,
        flags: &args.flags,
        server,
        ci: &ci,
    });
    let sent = match sender {
        Some(sender) => {
            send_written(args, &sender, &before, code_of(status)).map(|upload| Some((sender, upload)))
        }
        None => Ok(None),
    };
    if let Some(rules) = &rules {
        match &sent {
            Ok(Some((sender, upload))) => {
                let job = Job {
                    args,
                    sender: *sender,
                    rules,
                };
                return Ok(job.decide(upload, code_of(status), took, &before));
            }
            Ok(None) | Err(_) => {
                message!("nothing is excused, because no report was judged")
            }
        }
    }
    if let Ok(Some((sender, upload))) = &sent
        && !args.flags.dry_run
    {
        let run = DecisionTarget::of_answer(&upload.answer).map(DecisionTarget::run_id);
        report_to::report(sender, run, args.flags.ingest.connection.deadline());
    }
    let sent = sent.map(drop);
    match (args.flags.warn_if_best_effort(ci.provider, sent), code_of(status)) {
        (Ok(()), 0) if args.gate && !is_clean(global, args, &before) => Ok(ExitCode::FAILURE),
        (sent, 0) => sent.map(|()| ExitCode::SUCCESS),
        (Ok(()), code) => Ok(ExitCode::from(code)),
        (Err(error), code) => {
            errors::print(&error);
            Ok(ExitCode::from(code))
        }
    }
}

/// A run key for a run that CI does not name.
fn new_run_key() -> String {
    format!("run-{}-{}", clock::now().unix_ms(), std::process::id())
}

/// Whether the reports that the command wrote are whole and have no failed test.
fn is_clean(global: &Global, args: &RunArgs, before: &Before<'_>) -> bool {
    let format = args.flags.report.format.0;
    let report = before
        .read_written(global.progress(), format)
        .and_then(|mut files| {
            files.extend(before.missing());
            let options = Options {
                format,
                ..Options::default()
            };
            Ok(assay_reports::read(&files, &options)?)
        });
    let Ok(report) = report else { return false };
    let mut statuses = report
        .tests
        .iter()
        .filter_map(|test| Some(test.outcome()?.status));
    report.errors.is_empty()
        && report.state == RunState::Completed
        && statuses.all(|status| status == AttemptStatus::Passed || status.is_skip())
}

/// The answer to an upload, and its files.
struct Upload {
    answer: Value,
    files: Vec<SourceFile>,
}

/// A job that decides on its run.
struct Job<'a> {
    args: &'a RunArgs,
    sender: Sender<'a>,
    rules: &'a Rules,
}

impl Job<'_> {
    /// Decides on the run, if need be after reruns, and stores and prints the decision. Returns the exit status.
    fn decide(&self, upload: &Upload, code: u8, took: Duration, before: &Before<'_>) -> ExitCode {
        let Self { args, sender, rules } = *self;
        let judged = match JudgedRun::of_answer(&upload.answer) {
            Ok(judged) => judged,
            Err(error) => {
                errors::print(&anyhow::Error::new(error).context("nothing is excused"));
                return ExitCode::from(failing(code));
            }
        };
        let mut decision = policy::decide(&judged, rules);
        let first = FirstRun {
            judged,
            files: &upload.files,
            answer: &upload.answer,
            took,
        };
        let job = rerun::Job {
            sender,
            rules,
            flags: &args.reruns,
            command: &args.command,
            report: &args.report,
        };
        let again = rerun::run_again(&job, first, &mut decision, before).unwrap_or_else(|error| {
            errors::print(&error.context("no test ran again"));
            None
        });
        let answer = again.as_ref().unwrap_or(&upload.answer);
        args.excuses.write_proof(&decision, rules);
        print_decision(&decision);
        let target = DecisionTarget::of_answer(answer);
        let run = DecisionTarget::of_answer(answer).map(DecisionTarget::run_id);
        let deadline = args.flags.ingest.connection.deadline();
        record::store(&sender, target, &decision, deadline);
        report_to::report(&sender, run, deadline);
        status_of(args, &decision, code)
    }
}

/// Prints the decision. The exit status does not depend on whether that succeeds.
fn print_decision(decision: &Decision) {
    use std::io::Write as _;
    // Standard output is the command's.
    let _ = write!(
        terminal::err(),
        "{}",
        show::text(decision, terminal::stderr_width())
    );
}

/// The exit status of a decision about a command that ended with `code`.
fn status_of(args: &RunArgs, decision: &Decision, code: u8) -> ExitCode {
    // A command that failed without a failed test is never a success.
    match decision.outcome.passes() && (code == 0 || decision.outcome != GateOutcome::Clean) {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(args.excuses.exit_code.unwrap_or_else(|| failing(code))),
    }
}

/// The command's status if it failed, else 1.
const fn failing(code: u8) -> u8 {
    match code {
        0 => 1,
        code => code,
    }
}

/// Sends the reports that were written since the look at the files, and prints the answer in words on standard error,
/// because standard output belongs to the test command. With the gate, only the gate prints JSON.
fn send_written(
    args: &RunArgs,
    sender: &Sender<'_>,
    before: &Before<'_>,
    status: u8,
) -> anyhow::Result<Upload> {
    use std::io::Write as _;
    let global = sender.global;
    let (progress, format) = (global.progress(), args.flags.report.format.0);
    let mut files = match status {
        0 => before.read_written(progress, format)?,
        _ => before.read_written_of_failed(progress, format)?,
    };
    files.extend(before.missing());
    let answer = sender.send_or_spool(&files, args.gate, Some(status))?;
    if !global.json {
        let words = sender.in_words(&answer);
        let words = wrapped(words.trim_end(), terminal::stderr_width());
        writeln!(terminal::err(), "{words}")?;
    } else if !args.gate {
        output::print(true, &answer, String::new)?;
    }
    Ok(Upload { answer, files })
}

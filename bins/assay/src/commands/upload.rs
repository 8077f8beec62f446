//! `assay upload`: sends the test report of a run to a server.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, anyhow};
use assay_cli_local::sources::{
    checkout::Checkout, clocks, files, git, owners, renames, report_flags::ReportFlags,
};
use assay_cli_remote::server::{
    answer,
    body::{Body, Facts, Field},
    ingest::Server,
    sending::{send_body, send_waiting},
    spool::Spool,
};
use assay_cli_terminal::{message, misuse::Misuse, output, retry::Backoff, terminal};
use assay_domain::test::TestName;
use assay_ingest::Flags;
use assay_reports::{SourceFile, ci::CiContext};
use clap::Args;
use serde_json::{Value, json};

use crate::{
    clock, environment, gate::record::DecisionTarget, global::Global, report_to, upload_flags::UploadFlags,
};

/// Heading of the help.
const SERVER: &str = "The server";

const EXAMPLES: &str = "\
All files named in one call make one run (or one shard of one), stored whole or not at all. The same report again changes \
nothing, so a command that failed can be run again.

Examples:
  In CI, with ASSAY_URL and ASSAY_INGEST_KEY as variables of the job:
    assay upload test-results/
  Whose key it is, and what would be sent:
    assay upload --check test-results/
  What the server would store, and where each value comes from:
    assay upload --dry-run test-results/
  A shard, and a suite beside others of the same build:
    assay upload --shard 2/3 --suite e2e results-2.json
  A build that must not fail because the server is unreachable, and that sends the report later:
    assay upload --best-effort --spool ~/.cache/assay-spool test-results/
  By hand, with the key in a file that only you can read:
    assay upload --url https://assay.example.org --key-file ~/.assay-key results.json

Exit status: 0 stored, 1 not stored, 2 wrong usage.";

/// Send the test report of a run to a server
///
/// Needs no database: ASSAY_URL names the installation, and ASSAY_INGEST_KEY holds an ingest key (`assay-admin key
/// create-ingest`). The files are sent as they are, compressed, in one request. The server reads them and answers once they are
/// stored. Values without a flag come from CI's variables. `assay run` wraps the test command instead.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UploadArgs {
    /// Reports: files, folders (walked), patterns such as 'out/**/*.xml', or - for standard input
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Show whose key it is and what would be sent; send nothing
    #[arg(long, conflicts_with = "dry_run")]
    check: bool,
    /// Also send the spool's uploads of other keys, with this key and so into its project
    #[arg(long, requires = "spool", conflicts_with = "paths", help_heading = SERVER)]
    any_key: bool,
    #[command(flatten)]
    flags: UploadFlags,
}

/// Runs `assay upload`.
pub(crate) fn run(global: &Global, args: &UploadArgs) -> anyhow::Result<ExitCode> {
    let (ci, _) = args.flags.report.ci(&environment::variable);
    if args.paths.is_empty() && (args.check || args.flags.spool.is_none()) {
        return Err(Misuse(
            "no report was named; give paths such as test-results/, or only --spool DIR to send its uploads"
                .to_owned(),
        )
        .into());
    }
    let Some(server) = args.flags.server(ci.provider)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let sent = send(global, args, &server, &ci);
    args.flags.warn_if_best_effort(ci.provider, sent)?;
    Ok(ExitCode::SUCCESS)
}

fn send(global: &Global, args: &UploadArgs, server: &Server, ci: &CiContext) -> anyhow::Result<()> {
    if args.paths.is_empty() {
        let spool = Spool::open(args.flags.spool.as_deref().unwrap_or(".".as_ref()))?;
        let mut backoff = Backoff::new(args.flags.connection.retry_for);
        let waiting = send_waiting(global.json, server, &spool, args.any_key, &mut backoff)?;
        if let Some(error) = waiting.failure {
            return Err(anyhow::Error::new(error).context(format!(
                "sent {} of {}, and others wait",
                output::count(waiting.sent, "upload"),
                spool.name()
            )));
        }
        return output::print(global.json, &json!({ "sent": waiting.sent }), || {
            format!(
                "Sent {} of {}",
                output::count(waiting.sent, "upload"),
                spool.name()
            )
        });
    }
    let format = args.flags.report.format.0;
    let files = files::read(global.json, &args.paths, format).context("nothing was stored")?;
    if args.check {
        return check(global, &args.flags, server, ci, &files);
    }
    let answer = send_or_spool(
        global,
        &args.flags,
        server,
        ci,
        &files,
        Text::OnStandardOutput,
        false,
    )?;
    if !args.flags.dry_run {
        let run = DecisionTarget::of_answer(&answer).map(DecisionTarget::run_id);
        let deadline = args.flags.connection.deadline();
        report_to::report(global.json, &args.flags, server, ci, run, deadline);
    }
    Ok(())
}

/// The stream for the answer in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    OnStandardOutput,
    /// Because standard output belongs to the test command.
    OnStandardError,
}

/// Sends the entries of the spool, then the files. Files that cannot be sent now are added to the spool.
pub(crate) fn send_or_spool(
    global: &Global,
    flags: &UploadFlags,
    server: &Server,
    ci: &CiContext,
    files: &[SourceFile],
    text: Text,
    failures: bool,
) -> anyhow::Result<Value> {
    let (fields, warnings) = fields(
        flags,
        ci,
        files,
        Purpose {
            dry_run: flags.dry_run,
            failures,
            rerun: None,
        },
    )?;
    output::print_warnings(&warnings);
    let body = Body::new(&fields, files)?;
    let spool = flags.spool.as_deref().map(Spool::open).transpose();
    let spool = spool.context("nothing was stored")?;
    let mut backoff = Backoff::new(flags.connection.retry_for);
    let spool = spool.filter(|_| !flags.dry_run);
    if let Some(spool) = &spool {
        // The spool's failures are not this report's.
        if let Err(problem) = send_waiting(global.json, server, spool, false, &mut backoff) {
            message!("warning: the spool's uploads are not sent: {problem:#}");
        }
    }
    let answer = match send_body(global.json, server, &body, &mut backoff) {
        Ok(answer) => answer,
        Err(not_sent) => {
            let spooled = spool.filter(|_| not_sent.error.is_worth_spooling()).map(|spool| {
                (
                    spool.add(&body, &server.key_identifier(), clock::now()),
                    spool.name(),
                )
            });
            return Err(not_sent.with_context(flags.dry_run, spooled));
        }
    };
    output::print_warnings(&answer::warnings(&answer));
    let words = || match flags.dry_run {
        true => answer::of_dry_run(&answer),
        false => answer::in_words(&answer),
    };
    if text == Text::OnStandardError && !global.json {
        use std::io::Write as _;
        writeln!(terminal::err(), "{}", terminal::inert(words().trim_end()))?;
        return Ok(answer);
    }
    // With the gate, only the gate prints on standard output.
    if !failures {
        output::print(global.json, &answer, words)?;
    }
    Ok(answer)
}

/// Asks the server why the tests of a report failed. Nothing is stored.
pub(crate) fn explain(
    global: &Global,
    flags: &UploadFlags,
    server: &Server,
    ci: &CiContext,
    files: &[SourceFile],
) -> anyhow::Result<Value> {
    let asking = Purpose {
        dry_run: true,
        failures: true,
        rerun: None,
    };
    let answer = ask(global, flags, server, ci, files, asking)?;
    output::print_warnings(&answer::warnings(&answer));
    Ok(answer)
}

/// Stores a rerun as a part of the run of its first report. The answer explains the failures.
pub(crate) fn send_rerun(
    global: &Global,
    flags: &UploadFlags,
    server: &Server,
    ci: &CiContext,
    files: &[SourceFile],
    rerun: Rerun<'_>,
) -> anyhow::Result<Value> {
    let asking = Purpose {
        dry_run: false,
        failures: true,
        rerun: Some(rerun),
    };
    ask(global, flags, server, ci, files, asking)
}

/// Sends reports and returns the answer. Nothing is spooled.
fn ask(
    global: &Global,
    flags: &UploadFlags,
    server: &Server,
    ci: &CiContext,
    files: &[SourceFile],
    asking: Purpose<'_>,
) -> anyhow::Result<Value> {
    let (fields, warnings) = fields(flags, ci, files, asking)?;
    output::print_warnings(&warnings);
    let body = Body::new(&fields, files)?;
    let answer = send_body(
        global.json,
        server,
        &body,
        &mut Backoff::new(flags.connection.retry_for),
    )
    .map_err(|not_sent| not_sent.error)?;
    Ok(answer)
}

/// The purpose of a request.
#[derive(Debug, Clone, Copy)]
struct Purpose<'a> {
    /// Nothing is stored.
    dry_run: bool,
    /// The answer explains the failures.
    failures: bool,
    /// Only these tests of the report are stored.
    rerun: Option<Rerun<'a>>,
}

/// A rerun of some tests, whose results continue those of the first report.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rerun<'a> {
    /// The attempt of the command within its job.
    pub(crate) attempt: u32,
    /// The tests.
    pub(crate) tests: &'a [TestName],
}

/// The fields of the request, and warnings.
fn fields(
    flags: &UploadFlags,
    ci: &CiContext,
    files: &[SourceFile],
    purpose: Purpose<'_>,
) -> anyhow::Result<(Vec<Field>, Vec<String>)> {
    let ReportFlags {
        format,
        root,
        run,
        retries_as_attempts,
        ..
    } = &flags.report;
    let checkout = Checkout::of(root.as_deref(), ci)?;
    let is_of_pull_request = run.pr.or(ci.context.pull_request_number).is_some();
    let folder = checkout.folder().unwrap_or(Path::new("."));
    let ((owners, mut warnings), (renames, of_renames)) =
        match purpose.dry_run || purpose.rerun.is_some() || is_of_pull_request {
            true => Default::default(),
            // The server takes them from runs of the stable branch only.
            false => (owners::owners(folder)?, renames::renames(folder)?),
        };
    warnings.extend(of_renames);
    let mut of_run = Flags::from(run);
    if purpose.rerun.is_none() {
        of_run.context.merge_base =
            git::merge_base(folder, &environment::variable, [&of_run.context, &ci.context]);
    }
    if let Some(rerun) = purpose.rerun {
        of_run.attempt = Some(rerun.attempt);
        // It is that of the first report, as the merge base is.
        of_run.replace = false;
    }
    let facts = Facts {
        flags: &of_run,
        format: format.0,
        // Without the flag the server takes it from CI's variables.
        root: root.as_ref().and_then(|_| checkout.root()),
        ci,
        known_files: checkout.file_names(format.0, files),
        owners,
        renames,
        rerun: purpose.rerun.map(|rerun| rerun.tests),
        project: flags.project.as_deref(),
        retries_as_attempts: *retries_as_attempts,
        skip_cached: flags.skip_cached,
        dry_run: purpose.dry_run,
        judgement: None,
        failures: purpose.failures,
        utc_offset_minutes: clocks::utc_offset_minutes(),
    };
    let (fields, of_fields) = facts.fields();
    warnings.extend(of_fields);
    Ok((fields, warnings))
}

/// Shows the key's owner, and the files that would be sent.
fn check(
    global: &Global,
    flags: &UploadFlags,
    server: &Server,
    ci: &CiContext,
    files: &[SourceFile],
) -> anyhow::Result<()> {
    let key = server.key().map_err(anyhow::Error::new)?;
    let purpose = Purpose {
        dry_run: flags.dry_run,
        failures: false,
        rerun: None,
    };
    let (fields, warnings) = fields(flags, ci, files, purpose)?;
    output::print_warnings(&warnings);
    let body = Body::new(&fields, files)?;
    let file_names: Vec<_> = files
        .iter()
        .map(|file| {
            json!({
                "name": file.name,
                "bytes": file.bytes.len(),
                "format": flags.report.format.0.or_else(|| assay_reports::looks_like_report(&file.bytes)).map(|format| format.to_string()),
            })
        })
        .collect();
    let sent: serde_json::Map<_, _> = fields
        .iter()
        .filter(|(name, _)| !["knownFiles", "owners", "ownersFiles", "renames"].contains(name))
        .map(|(name, text)| {
            let value = match *name {
                "ci" => serde_json::from_str(text).unwrap_or(Value::Null),
                _ => Value::from(text.as_str()),
            };
            ((*name).to_owned(), value)
        })
        .collect();
    let value = json!({
        "url": server.address().to_string(),
        "key": key,
        "fields": sent,
        "files": file_names,
        "bytesToSend": body.bytes.len(),
    });
    output::print(global.json, &value, || {
        in_words(&value).unwrap_or_else(|_| value.to_string())
    })
}

/// Describes the check.
fn in_words(value: &Value) -> anyhow::Result<String> {
    let at = |pointer: &str| value.pointer(pointer).ok_or_else(|| anyhow!("{pointer}"));
    let text = |value: &Value| match value {
        Value::String(text) => assay_reports::shown_name(text),
        Value::Null => "unknown".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    let files = at("/files")?.as_array().into_iter().flatten();
    let rows = files.map(|file| {
        let field = |name: &str| file.get(name).map(text).unwrap_or_default();
        vec![field("name"), field("format"), field("bytes")]
    });
    let ci = at("/fields")?.get("ci").and_then(Value::as_object);
    let flags = at("/fields")?.as_object();
    let from_ci = ci
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != "sources" && *name != "workspaceRoot")
        .map(|(name, value)| vec![name.clone(), text(value), "CI".to_owned()]);
    let from_flags = flags
        .into_iter()
        .flatten()
        // The machine's offset from UTC is sent with every report and describes no run.
        .filter(|(name, _)| *name != "ci" && *name != "utcOffset")
        .map(|(name, value)| vec![name.clone(), text(value), "flag".to_owned()]);
    let values: Vec<_> = from_flags.chain(from_ci).collect();
    let values = match values.is_empty() {
        true => "Neither flags nor CI's variables describe the run; give --branch and --commit\n".to_owned(),
        false => output::table(&["VALUE", "", "FROM"], values),
    };
    Ok(format!(
        "The key is of the project {:?} at {}\n\n{values}\n{}\nWould send {} bytes; nothing was sent",
        text(at("/key/project/name")?),
        text(at("/url")?),
        output::table(&["FILE", "FORMAT", "BYTES"], rows),
        at("/bytesToSend")?
    ))
}

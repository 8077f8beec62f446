//! `assay upload`: sends the test report of a run to a server.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context as _, anyhow};
use assay_cli_local::sources::files;
use assay_cli_remote::server::{ingest::Server, sending::send_waiting, spool::Spool};
use assay_cli_terminal::{misuse::Misuse, output, retry::Backoff};
use assay_ingest::{UploadField, ci::CiContext};
use assay_reports::SourceFile;
use clap::Args;
use serde_json::{Value, json};

use crate::{
    environment,
    gate::record::DecisionTarget,
    global::Global,
    report_to,
    sender::{Purpose, Sender},
    upload_flags::UploadFlags,
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
    let flags = &args.flags;
    if args.paths.is_empty() {
        let spool = Spool::open(flags.spool.as_deref().unwrap_or(".".as_ref()))?;
        let mut backoff = Backoff::new(flags.ingest.connection.retry_for);
        let waiting = send_waiting(global.progress(), server, &spool, args.any_key, &mut backoff)?;
        let sent = format!("{} of {}", output::count(waiting.sent, "upload"), spool.name());
        if let Some(error) = waiting.failure {
            return Err(anyhow::Error::new(error).context(format!("sent {sent}, and others wait")));
        }
        let value = json!({ "sent": waiting.sent });
        return output::print(global.json, &value, || format!("Sent {sent}"));
    }
    let sender = Sender {
        global,
        flags,
        server,
        ci,
    };
    let files =
        files::read(global.progress(), &args.paths, flags.report.format.0).context("nothing was stored")?;
    if args.check {
        return check(&sender, &files);
    }
    let answer = sender.send_or_spool(&files, false, None)?;
    output::print(global.json, &answer, || sender.in_words(&answer))?;
    if !flags.dry_run {
        let run = DecisionTarget::of_answer(&answer).map(DecisionTarget::run_id);
        report_to::report(&sender, run, flags.ingest.connection.deadline());
    }
    Ok(())
}

/// Shows the key's owner, and the files that would be sent.
fn check(sender: &Sender<'_>, files: &[SourceFile]) -> anyhow::Result<()> {
    let Sender {
        global,
        flags,
        server,
        ..
    } = *sender;
    let key = server.key().map_err(anyhow::Error::new)?;
    let (fields, body) = sender.request(files, Purpose::default())?;
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
        .filter(|(field, _)| {
            !matches!(
                field,
                UploadField::KnownFiles
                    | UploadField::Owners
                    | UploadField::OwnersFiles
                    | UploadField::Renames
            )
        })
        .map(|(field, text)| {
            let value = match *field == UploadField::Ci {
                true => serde_json::from_str(text).unwrap_or(Value::Null),
                false => Value::from(text.as_str()),
            };
            (field.name().to_owned(), value)
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

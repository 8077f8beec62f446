//! `assay excuse`: failures that a team accepts until a day.

use std::{collections::HashSet, process::ExitCode};

use anyhow::{Context as _, bail};
use assay_cli_job::gate::{
    excuses::{Excuse, ExcuseState, MOST_DAYS},
    judged::{JudgedFailure, JudgedRun},
};
use assay_cli_terminal::{output, when};
use assay_domain::{id::RunId, timestamp::Timestamp};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::{
    clock,
    excused::{Entry, ExcusedFile, PATH, read},
    global::{Global, found_none},
    server_flags::ProjectFlags,
};

/// Accept a failure until a day, by .assay/excused.toml
///
/// `assay gate` and `assay run --gate` excuse a failed test of the file if it failed with the error of the fingerprint, until
/// the end of the day, and unless this change broke it with a probability above 0.5.
#[derive(Debug, Args)]
pub(crate) struct ExcuseArgs {
    #[command(subcommand)]
    command: ExcuseCommand,
}

#[derive(Debug, Subcommand)]
enum ExcuseCommand {
    Propose(ProposeArgs),
    /// Fail if an entry of .assay/excused.toml does not count
    ///
    /// An entry counts until the end of its day, which is at most 30 days ahead. Without the file the check passes.
    #[command(after_help = "\
Example:
  assay excuse check

Exit status: 0 every entry counts, 1 an entry is expired, too long or double, 2 wrong usage or a broken file.")]
    Check,
    /// Print the entries of .assay/excused.toml
    #[command(after_help = "\
Example:
  assay excuse list")]
    List,
}

/// Print entries for .assay/excused.toml
///
/// Lists the failed tests of a stored run that this change did not break with a probability above 0.5. It changes nothing:
/// keep the entries that your team accepts, and fill in what is empty.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assay excuse propose --run 01980000-0000-7000-8000-000000000000
  assay excuse propose --run ID --ticket WEB-7 >> .assay/excused.toml")]
struct ProposeArgs {
    /// A stored run: the runId that `assay upload --json` prints; needs ASSAY_READ_KEY or `assay login`
    #[arg(long, value_name = "ID")]
    run: RunId,
    /// The days from today to the last one of each entry
    #[arg(long, value_name = "N", default_value_t = 14, value_parser = clap::value_parser!(i64).range(0..=MOST_DAYS))]
    days: i64,
    /// Who looks after the failures
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    owner: String,
    /// Where the failures are tracked
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    ticket: String,
    #[command(flatten)]
    server: ProjectFlags,
}

/// Runs `assay excuse`.
pub(crate) fn run(global: &Global, args: &ExcuseArgs) -> anyhow::Result<ExitCode> {
    let now = clock::now();
    match &args.command {
        ExcuseCommand::Propose(args) => propose(global, args, now),
        ExcuseCommand::Check => check(global, &read()?, now),
        ExcuseCommand::List => list(global, &read()?, now),
    }
}

fn check(global: &Global, excuses: &[Excuse], now: Timestamp) -> anyhow::Result<ExitCode> {
    let mut known = HashSet::new();
    let problems = excuses.iter().filter_map(|excuse| {
        let is_double = !known.insert((&excuse.test, &excuse.file, &excuse.fingerprint));
        let (test, until) = (&excuse.test, &excuse.until);
        match excuse.state(now) {
            ExcuseState::Expired => Some(format!(
                "{test} was excused until {until}. Fix it, or agree on another day with {} ({}).",
                excuse.owner, excuse.ticket
            )),
            ExcuseState::TooLong => Some(format!(
                "{test} is excused until {until}. Choose a day at most {MOST_DAYS} days ahead."
            )),
            ExcuseState::InForce => {
                is_double.then(|| format!("{test} is excused twice for one error. Remove one entry."))
            }
        }
    });
    let problems: Vec<String> = problems.collect();
    let value = json!({"path": PATH, "entries": excuses.len(), "problems": problems});
    output::print(global.json, &value, || {
        let entries = if excuses.len() == 1 { "entry" } else { "entries" };
        let lines = problems.iter().map(|problem| format!("\n{PATH}: {problem}"));
        format!("{PATH}: {} {entries}{}", excuses.len(), lines.collect::<String>())
    })?;
    Ok(found_none(&problems))
}

fn list(global: &Global, excuses: &[Excuse], now: Timestamp) -> anyhow::Result<ExitCode> {
    let entry = |excuse: &Excuse| {
        json!({
            "test": excuse.test, "file": excuse.file, "fingerprint": excuse.fingerprint, "owner": excuse.owner,
            "reason": excuse.reason, "ticket": excuse.ticket, "until": excuse.until, "state": excuse.state(now),
        })
    };
    let value = json!({"path": PATH, "excused": excuses.iter().map(entry).collect::<Vec<_>>()});
    output::print(global.json, &value, || {
        let line = |excuse: &Excuse| format!("{}\n  {}", excuse.test, excuse.sentence());
        match excuses {
            [] => format!("{PATH} excuses nothing"),
            _ => excuses.iter().map(line).collect::<Vec<_>>().join("\n"),
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn propose(global: &Global, args: &ProposeArgs, now: Timestamp) -> anyhow::Result<ExitCode> {
    let (mut api, project) = args.server.open(global)?;
    let path = format!("projects/{project}/runs/{}/failures?limit=200", args.run);
    let run = JudgedRun::of_stored_run(&api.get(&path)?)?;
    let until = when::day(now.plus_days(args.days));
    let until = until.parse().context("the day is no date")?;
    let acceptable = run.failed().filter(|failure| failure.may_be_accepted());
    let entry = |failure: &JudgedFailure| Entry {
        test: failure.test_name.clone(),
        file: failure.file_path.clone(),
        fingerprint: failure.fingerprint.clone().unwrap_or_default(),
        owner: args.owner.clone(),
        reason: failure.explanation.clone(),
        ticket: args.ticket.clone(),
        until,
    };
    let excused: Vec<Entry> = acceptable.map(entry).collect();
    if excused.is_empty() {
        bail!(
            "no failed test of the run can be excused: each has an error without a text, or this change probably broke it"
        );
    }
    let file = ExcusedFile { excused };
    let text = toml::to_string(&file).context("the entries are no TOML")?;
    let mut json = json!(file);
    let entries = json.get_mut("excused").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten().filter_map(Value::as_object_mut) {
        // A day of TOML is no text in JSON.
        entry.insert("until".to_owned(), json!(until.to_string()));
    }
    output::print(global.json, &json, || text.trim_end().to_owned())?;
    Ok(ExitCode::SUCCESS)
}

//! `assay renames`: what the renames file of this checkout means, and lines for it.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use assay_cli_local::sources::{
    checkout,
    renames::{self, Suggestion},
};
use assay_cli_terminal::output;
use assay_domain::{
    id::RunId,
    renames::{Renames, RenamesFile},
    test::TestName,
};
use assay_reports::shown_name;
use clap::{Args, Subcommand};
use serde::Deserialize as _;
use serde_json::json;

use crate::{
    global::{Global, found_none},
    server_flags::ProjectFlags,
};

/// Check .assay/renames, by which histories follow renamed tests
///
/// `assay upload` and `assay run` send the checkout's renames file, and the server takes it from runs of the stable branch.
#[derive(Debug, Args)]
pub(crate) struct RenamesArgs {
    #[command(subcommand)]
    command: RenamesCommand,
}

#[derive(Debug, Subcommand)]
enum RenamesCommand {
    Check(CheckArgs),
    Suggest(SuggestArgs),
}

/// Print the lines of .assay/renames that are left out
///
/// With reports it also prints the lines whose old and new test one report has, because they are ignored for such a run.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assay renames check
  assay renames check test-results/

Exit status: 0 read, 1 without a renames file or with lines that are left out, 2 wrong usage.")]
struct CheckArgs {
    /// Reports: files, folders (walked) or patterns such as 'out/**/*.xml'
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The checkout of the tested sources; without it the repository of the current folder
    #[arg(long, value_name = "DIR", default_value = ".", hide_default_value = true)]
    root: PathBuf,
}

/// Print lines to paste into .assay/renames
///
/// Lists the files that git recognises as renamed. With reports it lists only files of their tests, as the reports name them.
/// With --run it lists the tests that a stored run reported under another name. It changes nothing: check each line, because a
/// wrong one joins the histories of two tests.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assay renames suggest test-results/
  assay renames suggest --days 90 >> .assay/renames
  assay renames suggest --run 01980000-0000-7000-8000-000000000000",
    mut_arg("project", |flag| flag.requires("run")))]
struct SuggestArgs {
    /// Reports: files, folders (walked) or patterns such as 'out/**/*.xml'
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// How many days of commits git searches
    #[arg(long, value_name = "N", default_value_t = 14, conflicts_with = "run")]
    days: u32,
    /// A stored run: the runId that `assay upload --json` prints; needs ASSAY_READ_KEY or `assay login`
    #[arg(long, value_name = "ID", conflicts_with = "paths")]
    run: Option<RunId>,
    /// The checkout of the tested sources; without it the repository of the current folder
    #[arg(long, value_name = "DIR", default_value = ".", hide_default_value = true)]
    root: PathBuf,
    #[command(flatten)]
    server: ProjectFlags,
}

/// Runs `assay renames`.
pub(crate) fn run(global: &Global, args: &RenamesArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        RenamesCommand::Check(args) => check(global, args),
        RenamesCommand::Suggest(args) => suggest(global, args),
    }
}

/// The text of the checkout's renames file; empty without one.
fn text(root: &Path) -> anyhow::Result<String> {
    let (file, warnings) = renames::renames(root)?;
    output::print_warnings(&warnings);
    Ok(file.unwrap_or_default().text)
}

fn check(global: &Global, args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let text = text(&args.root)?;
    if text.is_empty() {
        bail!(
            "{} has no {}; `assay renames suggest` prints lines for one",
            shown_name(&args.root.display().to_string()),
            RenamesFile::PATH
        );
    }
    let renames = Renames::parse(&text);
    let problems: Vec<String> = renames.problems().iter().map(ToString::to_string).collect();
    let tests = match args.paths.is_empty() {
        true => Vec::new(),
        false => checkout::tests_of_reports(global.progress(), &args.root, &args.paths)?,
    };
    let names: HashSet<_> = tests.iter().map(TestName::borrowed).collect();
    let ignored: Vec<String> = renames
        .contradictions(&names)
        .iter()
        .map(ToString::to_string)
        .collect();
    let value = json!({
        "path": RenamesFile::PATH,
        "lines": renames.count(),
        "problems": problems,
        "ignored": ignored,
    });
    output::print(global.json, &value, || {
        let lines = output::count(renames.count(), "line");
        let notes = problems
            .iter()
            .map(|problem| format!("\n{}: {problem}", RenamesFile::PATH));
        let ignored = ignored
            .iter()
            .map(|line| format!("\n{}: {line}", RenamesFile::PATH));
        std::iter::once(format!("{}: {lines}", RenamesFile::PATH))
            .chain(notes)
            .chain(ignored)
            .collect()
    })?;
    Ok(found_none(&problems))
}

fn suggest(global: &Global, args: &SuggestArgs) -> anyhow::Result<ExitCode> {
    let known = text(&args.root)?;
    let mut suggested = match args.run {
        Some(run) => of_run(global, args, run)?,
        None => renames::of_git(&args.root, args.days)?,
    };
    if !args.paths.is_empty() {
        let tests = checkout::tests_of_reports(global.progress(), &args.root, &args.paths)?;
        let files: HashSet<&str> = tests
            .iter()
            .filter_map(|test| test.file_path.as_deref())
            .collect();
        suggested = renames::in_files(suggested, &files);
    }
    suggested.retain(|line| !line.is_in(&known));
    let lines: Vec<String> = suggested.iter().map(ToString::to_string).collect();
    output::print(global.json, &json!({ "lines": lines }), || lines.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The lines for the tests that a stored run reported under another name.
fn of_run(global: &Global, args: &SuggestArgs, run: RunId) -> anyhow::Result<Vec<Suggestion>> {
    let (mut api, project) = args.server.open(global)?;
    let run_path = format!("projects/{project}/runs/{run}");
    let started_at = api.get(&run_path)?;
    let started_at = started_at.pointer("/run/startedAt").and_then(|at| at.as_str());
    let date = started_at
        .and_then(|at| at.get(..10))
        .context("the server's answer is not about a run")?;
    let changes = api.get(&format!("{run_path}/changes"))?;
    let pairs = changes
        .pointer("/renamed/tests")
        .context("the server's answer is not about a run")?;
    let pairs = pairs.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut lines: Vec<Suggestion> = Vec::new();
    for pair in pairs {
        let name = |key: &str| TestName::deserialize(pair.get(key).unwrap_or(&serde_json::Value::Null));
        for line in Suggestion::of_test(date, &name("from")?, &name("to")?) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    Ok(lines)
}

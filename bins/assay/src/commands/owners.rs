//! `assay owners check`: what the owners file of this checkout means.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::bail;
use assay_cli_local::sources::{checkout, owners};
use assay_cli_terminal::output;
use assay_domain::owners::{OwnerFilter, Owners, OwnersFile, PLACES};
use assay_reports::shown_name;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::global::{Global, found_none};

/// Most files without an owner, and most files with an unclear one, that the text names.
const MOST_NAMED: usize = 10;

/// Check the owners file of this checkout
///
/// `assay upload` and `assay run` send the checkout's owners file, and the server takes it from runs of the stable branch.
#[derive(Debug, Args)]
pub(crate) struct OwnersArgs {
    #[command(subcommand)]
    command: OwnersCommand,
}

#[derive(Debug, Subcommand)]
enum OwnersCommand {
    Check(CheckArgs),
}

/// Print how many tests or files have an owner, and which have none
///
/// Reads the first of .assay/owners, .github/CODEOWNERS, CODEOWNERS and docs/CODEOWNERS. With reports it counts their tests,
/// as the server does: a report may shorten a path, so a file has an owner if all files of the checkout that end with its path
/// have the same owners. Without reports it counts the files that git tracks.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assay owners check
  assay owners check test-results/
  assay owners check --json junit.xml | jq -r '.unowned[]'

Exit status: 0 read, 1 without an owners file or with lines that are no rules, 2 wrong usage.")]
struct CheckArgs {
    /// Reports: files, folders (walked) or patterns such as 'out/**/*.xml'
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The checkout of the tested sources; without it the repository of the current folder
    #[arg(long, value_name = "DIR", default_value = ".", hide_default_value = true)]
    root: PathBuf,
}

/// Runs `assay owners`.
pub(crate) fn run(global: &Global, args: &OwnersArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        OwnersCommand::Check(args) => check(global, args),
    }
}

fn check(global: &Global, args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let (file, warnings) = owners::owners(&args.root)?;
    output::print_warnings(&warnings);
    let Some(file) = file.filter(|file| !file.path.is_empty()) else {
        bail!(
            "{} has no owners file; write one of {}",
            shown_name(&args.root.display().to_string()),
            PLACES.join(", ")
        );
    };
    let owners = Owners::of_file(&file);
    let counted = match args.paths.is_empty() {
        true => Coverage::of(&owners, "files", file.files.lines().map(Some)),
        false => {
            let tests = checkout::tests_of_reports(global.progress(), &args.root, &args.paths)?;
            Coverage::of(
                &owners,
                "tests",
                tests.iter().map(|test| test.file_path.as_deref()),
            )
        }
    };
    let problems: Vec<String> = owners
        .rules()
        .problems()
        .iter()
        .map(ToString::to_string)
        .collect();
    let value = json!({
        "path": file.path,
        "rules": owners.rules().count(),
        "problems": problems,
        "counted": counted.what,
        "total": counted.total,
        "owned": counted.owned,
        "owners": counted.by_owner,
        "unowned": counted.unowned,
        "ambiguous": counted.ambiguous,
    });
    output::print(global.json, &value, || {
        in_words(&file, &owners, &counted, &problems)
    })?;
    Ok(found_none(&problems))
}

/// How many tests or files have an owner.
#[derive(Debug, Default)]
struct Coverage {
    /// What is counted.
    what: &'static str,
    total: usize,
    owned: usize,
    /// By owner. What has several owners counts for each.
    by_owner: BTreeMap<String, usize>,
    /// The files without an owner.
    unowned: BTreeSet<String>,
    /// The files that may be several ones with different owners.
    ambiguous: BTreeSet<String>,
}

impl Coverage {
    fn of<'a>(owners: &Owners, what: &'static str, files: impl Iterator<Item = Option<&'a str>>) -> Self {
        let mut lookup = owners.lookup();
        let mut coverage = Self {
            what,
            ..Self::default()
        };
        for file in files {
            coverage.total += 1;
            let ownership = lookup.of(file);
            for owner in &ownership.owners {
                *coverage.by_owner.entry(owner.clone()).or_default() += 1;
            }
            let name = file.unwrap_or("(no file)").to_owned();
            match (ownership.owners.is_empty(), ownership.owners_ambiguous) {
                (false, _) => coverage.owned += 1,
                (true, true) => {
                    coverage.ambiguous.insert(name);
                }
                (true, false) => {
                    coverage.unowned.insert(name);
                }
            }
        }
        coverage
    }
}

fn in_words(file: &OwnersFile, owners: &Owners, coverage: &Coverage, problems: &[String]) -> String {
    let Coverage {
        what,
        total,
        owned,
        by_owner,
        unowned,
        ambiguous,
    } = coverage;
    let rules = output::count(owners.rules().count(), "rule");
    let share = match total {
        0 => String::new(),
        total => format!(" ({} %)", owned * 100 / total),
    };
    let mut text = format!(
        "{}: {rules}. {owned} of {total} {what} have an owner{share}\n",
        file.path
    );
    for problem in problems {
        text += &format!("{}: {problem}\n", file.path);
    }
    let mut rows: Vec<(&String, &usize)> = by_owner.iter().collect();
    rows.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let rows = rows
        .into_iter()
        .map(|(owner, count)| vec![shown_name(owner), count.to_string()]);
    if !by_owner.is_empty() {
        text += &format!("\n{}", output::table(&["OWNER", &what.to_uppercase()], rows));
    }
    let named = [
        (OwnerFilter::UNOWNED, unowned),
        (
            "unclear, because several files of this name have different owners",
            ambiguous,
        ),
    ];
    for (heading, files) in named.into_iter().filter(|(_, files)| !files.is_empty()) {
        let heading_files = output::count(files.len(), "file");
        text += &format!("\n{heading_files} {heading}\n");
        for file in files.iter().take(MOST_NAMED) {
            text += &format!("  {}\n", shown_name(file));
        }
        if files.len() > MOST_NAMED {
            text += &format!("  and {} more; --json names all\n", files.len() - MOST_NAMED);
        }
    }
    text.trim_end().to_owned()
}

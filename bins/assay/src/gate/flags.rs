//! The flags of the gate, which `assay gate` and `assay run --gate` share.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use assay_cli_job::gate::{
    changed,
    policy::{Decision, Rules},
    proof::DecisionProof,
};
use assay_cli_terminal::{misuse::Misuse, values::age};
use clap::{Args, ValueEnum};
use glob::Pattern;

use crate::{clock, errors, excused};

/// Heading of the help.
const GATE: &str = "The gate";

/// What the gate excuses.
#[derive(Debug, Args)]
pub(crate) struct GateFlags {
    /// The gate does not pass if the probability that this branch broke one failed test, or any of them, is at least this
    #[arg(long, value_name = "P", default_value_t = 0.05, value_parser = probability, help_heading = GATE)]
    risk: f64,
    /// How many failed tests may be excused
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = GATE)]
    max_excused: usize,
    /// The files of the change, one a line (- for standard input); a failed test in one of them is not excused
    #[arg(long, value_name = "FILE", help_heading = GATE)]
    changed: Option<PathBuf>,
    /// Tests that are never excused: a pattern for names or files; may be given several times
    #[arg(long, value_name = "GLOB", value_parser = pattern, help_heading = GATE)]
    never: Vec<Pattern>,
    /// Excuse tests that are broken on the stable branch, too
    #[arg(long, help_heading = GATE)]
    allow_broken: bool,
    /// Do not excuse a test whose first known failure is longer ago: 30d, 12h
    #[arg(long, value_name = "TIME", value_parser = age, help_heading = GATE)]
    expire_after: Option<Duration>,
    /// The exit status if the gate does not pass
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..), help_heading = GATE)]
    pub(crate) exit_code: Option<u8>,
    /// Write the decision with all that it depends on to this file, for `assay proof check`
    #[arg(long, value_name = "FILE", help_heading = GATE)]
    proof: Option<PathBuf>,
}

/// How the decision is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GateOutput {
    /// For a terminal and a log
    Text,
    /// One JSON object
    Json,
    /// The failed tests as JUnit XML, the excused ones as skipped
    Junit,
}

fn probability(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number| (0.0..=1.0).contains(number))
        .ok_or_else(|| "expected a probability from 0 to 1".to_owned())
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::new(text).map_err(|error| error.to_string())
}

impl GateFlags {
    /// The rules, with the list of changed files and the checkout's excuses read.
    pub(crate) fn rules(&self) -> anyhow::Result<Rules> {
        let changed = match &self.changed {
            Some(path) => changed_files(path)?,
            None => BTreeSet::new(),
        };
        Ok(Rules {
            risk: self.risk,
            most_excused: self.max_excused,
            changed,
            never: self.never.clone(),
            allow_broken: self.allow_broken,
            expire_after_s: self.expire_after.map(|after| after.as_secs()),
            excuses: excused::read()?,
            now: clock::now(),
        })
    }

    /// Writes the file of `--proof`. If that fails, prints why; the decision does not change.
    pub(crate) fn write_proof(&self, decision: &Decision, rules: &Rules) {
        let Some(path) = &self.proof else { return };
        let written = DecisionProof::new(decision, rules)
            .map_err(anyhow::Error::new)
            .and_then(|proof| {
                Ok(fs::write(
                    path,
                    format!("{}\n", serde_json::to_string_pretty(&proof)?),
                )?)
            });
        if let Err(error) = written.with_context(|| format!("--proof {} is not written", path.display())) {
            errors::print(&error);
        }
    }
}

/// The files that the list at `path` names.
fn changed_files(path: &Path) -> anyhow::Result<BTreeSet<String>> {
    let read = if path.as_os_str() == "-" {
        changed::read(io::stdin().lock())
    } else {
        fs::File::open(path).map_err(Into::into).and_then(changed::read)
    };
    Ok(read.map_err(|error| Misuse(format!("--changed {}: {error}", path.display())))?)
}

//! Measures the flakiness engine on simulated populations and real histories, and compares it with simple rules.
//!
//! This program computes figures of the documents; each command names their page. A change of the engine is accepted if no figure gets worse on
//! seeds and histories that were not used for tuning.
#![expect(clippy::print_stdout, reason = "the tables are the program's output")]

use std::path::PathBuf;

use assay_flakiness::{ErrorTexts, domain::observation::History};
use clap::{Args, Parser, Subcommand, ValueEnum};

mod bisect;
mod breakage;
mod burn_in;
mod causes;
mod correlation;
mod daily;
mod fixes;
mod gate_counts;
mod load;
mod node;
mod population;
mod pull_requests;
mod queues;
mod real;
mod reruns;
mod results;
mod revert;
mod rival;
mod runs;
mod score;
mod simulate;
mod slower;
mod truth;
mod world;
mod young;

/// Measure the flakiness engine on simulated and real histories.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// The seeds of simulations.
#[derive(Debug, Args)]
struct Seeds {
    /// Something is simulated for each seed.
    #[arg(long, value_delimiter = ',', default_value = "101,102,103,104")]
    seeds: Vec<u64>,
}

/// A real history.
#[derive(Debug, Args)]
struct RealHistory {
    /// The format of the path.
    #[arg(long, value_enum, default_value = "csv")]
    format: Format,
    /// A CSV file (test,run,started_at,status and optionally file,branch,revision,retry,duration_ms,variant), a
    /// directory of the dask-distributed data set, or the folder `reports` of nodejs/reliability.
    path: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Judge simulated projects, whose truth is known: precision, recall and F1 of flaky and broken (docs/engine.md).
    Simulate {
        /// The populations; all by default.
        #[arg(long, value_delimiter = ',', value_enum)]
        population: Vec<population::Name>,
        #[command(flatten)]
        seeds: Seeds,
        /// Also print recall by true rate, and the upper bound.
        #[arg(long)]
        rates: bool,
    },
    /// Judge a real history by windows of 14 days, with and without its revisions (docs/engine.md, docs/causes.md).
    Real {
        #[command(flatten)]
        history: RealHistory,
        /// Judge all windows, not only those of the later half.
        #[arg(long)]
        all: bool,
        /// New failures of a run from which on its contradictions prove nothing of a test.
        #[arg(long, default_value_t = real::CROWD)]
        crowd: u32,
    },
    /// Judge the failures of simulated branches with known causes, and evaluate the gate on their runs (docs/causes.md).
    Causes(Seeds),
    /// Advise what to revert on simulated stable branches, and count which revisions are named rightly (docs/causes.md).
    Revert(Seeds),
    /// Advise what to revert in a real history: whether the suspects broke the tests (docs/causes.md).
    RevertHistory(RealHistory),
    /// Say whose failures the ejections of simulated merge queues are (docs/causes.md).
    Queues(Seeds),
    /// Evaluate the gate on simulated projects from the first run to the 200th, by the share of breakages (docs/gate.md).
    Young {
        #[command(flatten)]
        seeds: Seeds,
        /// The budget of a run in seconds.
        #[arg(long, default_value_t = reruns::BUDGET_S)]
        budget: f64,
    },
    /// Plant slower tests into simulated durations, and count which are found (docs/pull-requests.md).
    Slower {
        #[command(flatten)]
        seeds: Seeds,
        /// The runs in which a planted test is slower.
        #[arg(long, default_value_t = 1)]
        after: u32,
    },
    /// Measure how far repeated runs of flaky tests are correlated (docs/reruns.md).
    Correlation {
        /// A folder with fail_rates.csv and bursts.csv.
        folder: PathBuf,
    },
    /// Rerun the failed tests of simulated branches, and evaluate the gate before and after (docs/reruns.md).
    Reruns(Seeds),
    /// Plant breakages into the pull requests of Node.js, and evaluate the gate before and after reruns (docs/reruns.md).
    PullRequests {
        /// The folder `reports` of the repository nodejs/reliability.
        folder: PathBuf,
        #[command(flatten)]
        seeds: Seeds,
    },
    /// Run new tests of known rates again, and count which are found to be flaky (docs/reruns.md).
    BurnIn {
        /// The budget of a change in seconds.
        #[arg(long, default_value_t = 60.0)]
        budget: f64,
    },
    /// Search planted commits in simulated histories with a test that also fails by itself (docs/reruns.md).
    Bisect,
    /// Repeat simulated fixes, of which a third is true, beside fixed numbers of runs (docs/verify.md).
    Fixes,
    /// Claim fixes in a real history, and count which prove wrong (docs/verify.md).
    ClaimFixes(RealHistory),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// One attempt per row.
    Csv,
    /// `runs.csv` and `results.csv.gz`.
    Dask,
    /// Daily reports of Node.js, as one branch on which each run has a revision of its own.
    Node,
}

impl RealHistory {
    /// The history with the texts of its errors, if the format has any.
    fn load(&self) -> anyhow::Result<(History, ErrorTexts)> {
        match self.format {
            Format::Csv => Ok((load::csv(&self.path)?, ErrorTexts::new())),
            Format::Dask => Ok((load::dask(&self.path)?, ErrorTexts::new())),
            Format::Node => Ok(node::read(&self.path)?.as_branch()),
        }
    }
}

fn main() -> anyhow::Result<()> {
    let table = match Arguments::parse().command {
        Command::Simulate {
            population,
            seeds,
            rates,
        } => {
            let all = population::Name::value_variants();
            let names = if population.is_empty() { all } else { &population };
            let tables = names
                .iter()
                .map(|name| simulate::table(*name, &seeds.seeds, rates));
            tables.collect::<Vec<_>>().join("\n")
        }
        Command::Real { history, all, crowd } => {
            let (history, _) = history.load()?;
            real::table(&history, all, crowd) + "\n" + &daily::table(&history, all)
        }
        Command::Causes(Seeds { seeds }) => causes::table(&seeds),
        Command::Revert(Seeds { seeds }) => revert::table(&seeds),
        Command::RevertHistory(history) => {
            let (history, texts) = history.load()?;
            revert::real(&history, &texts)
        }
        Command::Queues(Seeds { seeds }) => queues::table(&seeds),
        Command::Young { seeds, budget } => young::table(&seeds.seeds, budget),
        Command::Slower { seeds, after } => slower::table(&seeds.seeds, after),
        Command::Correlation { folder } => correlation::table(&folder)?,
        Command::Reruns(Seeds { seeds }) => reruns::table(&seeds),
        Command::PullRequests { folder, seeds } => pull_requests::table(&folder, &seeds.seeds)?,
        Command::BurnIn { budget } => burn_in::table(budget),
        Command::Bisect => bisect::table(),
        Command::Fixes => fixes::simulated(),
        Command::ClaimFixes(history) => fixes::real(&history.load()?.0),
    };
    print!("{table}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_runs_an_existing_command_of_this_program() {
        let justfile = include_str!("../../../justfile");
        let runs: Vec<&str> = justfile
            .lines()
            .filter(|line| line.contains("--bin assay-evaluate"))
            .collect();
        assert!(!runs.is_empty());
        for line in runs {
            let arguments = line.split_once(" -- ").map_or("", |(_, arguments)| arguments);
            let words = std::iter::once("assay-evaluate").chain(arguments.split_whitespace());
            assert!(Arguments::try_parse_from(words).is_ok(), "{line}");
        }
    }
}

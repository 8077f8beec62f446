//! Measures the flakiness engine on simulated populations and real histories, and compares it with simple rules.
//!
//! This program computes the figures of docs/engine.md. A change of the engine is accepted if no figure gets worse on
//! seeds and histories that were not used for tuning.
#![expect(clippy::print_stdout, reason = "the tables are the program's output")]

use std::path::{Path, PathBuf};

use assay_flakiness::domain::{observation::History, test::TestName};
use clap::{Parser, Subcommand, ValueEnum};

mod bisect;
mod breakage;
mod burn_in;
mod causes;
mod correlation;
mod daily;
mod fixes;
mod gate_counts;
mod latency;
mod load;
mod node_history;
mod node_reports;
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

#[derive(Debug, Subcommand)]
enum Command {
    /// Judge simulated projects, whose truth is known: precision, recall and F1 of flaky and broken.
    Simulate {
        /// The populations; all by default.
        #[arg(long, value_delimiter = ',', value_enum)]
        population: Vec<population::Name>,
        /// A project is simulated for each seed.
        #[arg(long, value_delimiter = ',', default_value = "101,102,103,104")]
        seeds: Vec<u64>,
        /// Also print recall by true rate, and the upper bound.
        #[arg(long)]
        rates: bool,
    },
    /// Count the runs from the onset of a flake or a breakage to its verdict.
    Latency {
        /// The populations; S1 and S2 by default.
        #[arg(long, value_delimiter = ',', value_enum)]
        population: Vec<population::Name>,
        /// A project is simulated for each seed.
        #[arg(long, value_delimiter = ',', default_value = "101,102,103,104")]
        seeds: Vec<u64>,
    },
    /// Judge the failures of simulated branches with known causes, and evaluate the gate on their runs.
    Causes {
        /// A project is simulated for each seed.
        #[arg(long, value_delimiter = ',', default_value = "101,102,103,104")]
        seeds: Vec<u64>,
    },
    /// Advise what to revert on simulated stable branches, and count which revisions are named rightly.
    Revert {
        /// A branch is simulated for each seed.
        #[arg(long, value_delimiter = ',', default_value = "101,102,103,104")]
        seeds: Vec<u64>,
    },
    /// Say whose failures the ejections of simulated merge queues are, with and without the kind of run.
    Queues {
        /// A month is simulated for each seed.
        #[arg(long, value_delimiter = ',', default_value = "101,102,103,104")]
        seeds: Vec<u64>,
    },
    /// Rerun the failed tests of simulated branches within a budget, and evaluate the gate before and after.
    Reruns {
        /// A project is simulated for each seed.
        #[arg(long, value_delimiter = ',', default_value = "101,102,103,104")]
        seeds: Vec<u64>,
        /// The budget of a run in seconds.
        #[arg(long, default_value_t = 90.0)]
        budget: f64,
    },
    /// Evaluate the gate on simulated projects from the first run to the 200th, by the share of breakages.
    Young {
        /// A project is simulated for each seed.
        #[arg(long, value_delimiter = ',', default_value = "101,102,103,104")]
        seeds: Vec<u64>,
        /// The budget of a run in seconds.
        #[arg(long, default_value_t = 90.0)]
        budget: f64,
    },
    /// Plant breakages into the pull requests of Node.js, rerun failed tests, and evaluate the gate before and after.
    PullRequests {
        /// The folder `reports` of the repository nodejs/reliability.
        folder: PathBuf,
        /// Breakages are planted for each seed.
        #[arg(long, value_delimiter = ',', default_value = "101,102,103,104")]
        seeds: Vec<u64>,
        /// The budget of a run in seconds.
        #[arg(long, default_value_t = 90.0)]
        budget: f64,
    },
    /// Run new tests of known rates again within a budget, and count which are found to be flaky.
    BurnIn {
        /// The changes of each rate, with three new tests each.
        #[arg(long, default_value_t = 1_000)]
        changes: u32,
        /// The budget of a change in seconds.
        #[arg(long, default_value_t = 60.0)]
        budget: f64,
        /// The seed.
        #[arg(long, default_value_t = 101)]
        seed: u64,
    },
    /// Plant slower tests into simulated durations, and count which are found.
    Slower {
        /// Runs are simulated for each seed.
        #[arg(long, value_delimiter = ',', default_value = "101,102,103,104")]
        seeds: Vec<u64>,
        /// How many times as long a planted test takes.
        #[arg(long, default_value_t = 1.5)]
        factor: f64,
        /// The runs in which it does.
        #[arg(long, default_value_t = 1)]
        after: u32,
    },
    /// Search planted commits in simulated histories with a test that also fails by itself.
    Bisect {
        /// The histories of each length.
        #[arg(long, default_value_t = 200)]
        histories: u32,
        /// The seed.
        #[arg(long, default_value_t = 101)]
        seed: u64,
    },
    /// Measure how far repeated runs of flaky tests are correlated.
    Correlation {
        /// A folder with fail_rates.csv, bursts.csv and correlated_rounds.csv.
        folder: PathBuf,
    },
    /// Repeat simulated fixes, of which a third is true, and claim fixes in a real history; beside fixed numbers of runs.
    Fixes {
        /// The simulated fixes.
        #[arg(long, default_value_t = 9_000)]
        fixes: u32,
        /// The seed.
        #[arg(long, default_value_t = 101)]
        seed: u64,
        /// The format of the history.
        #[arg(long, value_enum, default_value = "csv")]
        format: Format,
        /// A history as for `real`; without it, only simulated fixes.
        path: Option<PathBuf>,
    },
    /// Judge a real history by windows of 14 days, with and without its revisions.
    Real {
        /// The format of the path.
        #[arg(long, value_enum, default_value = "csv")]
        format: Format,
        /// A CSV file (test,run,started_at,status and optionally file,branch,revision,retry,duration_ms,variant) or a
        /// directory of the dask-distributed data set.
        path: PathBuf,
        /// The stable branch.
        #[arg(long, default_value = "main")]
        stable_branch: String,
        /// Judge all windows, not only those of the later half.
        #[arg(long)]
        all: bool,
        /// New failures of a run from which on its contradictions prove nothing of a test.
        #[arg(long, default_value_t = real::CROWD)]
        crowd: u32,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// One attempt per row.
    Csv,
    /// `runs.csv` and `results.csv.gz`.
    Dask,
}

impl Format {
    fn load(self, path: &Path, stable_branch: &str) -> anyhow::Result<(History, Vec<TestName>)> {
        match self {
            Self::Csv => load::csv(path, stable_branch),
            Self::Dask => load::dask(path),
        }
    }
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Simulate {
            population,
            seeds,
            rates,
        } => {
            let names = if population.is_empty() {
                population::Name::value_variants().to_vec()
            } else {
                population
            };
            for name in names {
                println!("{}", simulate::table(name, &seeds, rates));
            }
        }
        Command::Latency { population, seeds } => {
            let usual = || vec![population::Name::S1, population::Name::S2];
            for name in if population.is_empty() {
                usual()
            } else {
                population
            } {
                println!("{}", latency::table(name, &seeds));
            }
        }
        Command::Causes { seeds } => println!("{}", causes::table(&seeds)),
        Command::Revert { seeds } => print!("{}", revert::table(&seeds)),
        Command::Queues { seeds } => print!("{}", queues::table(&seeds)),
        Command::Young { seeds, budget } => print!("{}", young::table(&seeds, budget)),
        Command::Reruns { seeds, budget } => println!("{}", reruns::table(&seeds, budget)),
        Command::PullRequests {
            folder,
            seeds,
            budget,
        } => {
            print!("{}", pull_requests::table(&folder, &seeds, budget)?);
        }
        Command::BurnIn {
            changes,
            budget,
            seed,
        } => print!("{}", burn_in::table(changes, budget, seed)),
        Command::Slower { seeds, factor, after } => print!("{}", slower::table(&seeds, factor, after)),
        Command::Bisect { histories, seed } => print!("{}", bisect::table(histories, seed)),
        Command::Fixes {
            fixes,
            seed,
            format,
            path,
        } => match path {
            None => print!("{}", fixes::simulated(fixes, seed)),
            Some(path) => print!("{}", fixes::real(&format.load(&path, "main")?.0)),
        },
        Command::Correlation { folder } => print!("{}", correlation::table(&folder)?),
        Command::Real {
            format,
            path,
            stable_branch,
            all,
            crowd,
        } => {
            let (history, names) = format.load(&path, &stable_branch)?;
            println!("{}", real::table(&history, all, crowd));
            println!("{}", daily::table(&history, &names, all));
        }
    }
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

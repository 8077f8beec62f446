//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};

use crate::shape::{Shape, Size};

const EXAMPLES: &str = "\
In ten minutes on a laptop, a sixteenth of the full size:
  assay-bench all --size 1/16 --seconds 2

In full, with growth: 31 million results, 3 GB of disk, half an hour:
  assay-bench all --growth

A shape of your own:
  assay-bench generate --data-dir /tmp/mine --projects 30 --tests 900 --runs-per-day 5 --storm-days 0
  assay-bench load --data-dir /tmp/mine";

/// Measure the service on a data set of known size
///
/// The data set has its own private Postgres. Client, server and Postgres share the machine: compare ratios rather than
/// figures of different machines. Tables are printed in Markdown.
#[derive(Debug, Parser)]
#[command(name = "assay-bench", version, after_help = EXAMPLES, max_term_width = 80)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Generate the data set, unless it exists
    ///
    /// Every report is imported by the code of `assay-admin import`. The last import of each project judges its verdicts. The
    /// same seed gives the same data, and the history ends now.
    Generate {
        #[command(flatten)]
        shape: Shape,
    },
    /// Measure routes and tools for agents
    Load,
    /// Measure imports into the full database; adds some runs to it
    Import {
        /// Number of runs of each kind
        #[arg(long, value_name = "N", default_value_t = 15)]
        times: u32,
    },
    /// Measure several sizes and the growth of figures; generates missing data sets
    Growth {
        #[command(flatten)]
        shape: Shape,
        /// The sizes
        #[arg(
            long,
            value_delimiter = ',',
            value_name = "SIZE",
            default_value = "1/16,1/4,1"
        )]
        sizes: Vec<Size>,
    },
    /// All of these, one after the other
    All {
        #[command(flatten)]
        shape: Shape,
        /// Measure the growth as well, at 1/16 and 1/4 of this size and at this size
        #[arg(long)]
        growth: bool,
    },
}

/// Options of all subcommands.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Every subcommand")]
pub(crate) struct Options {
    /// Folder of the data set and its Postgres
    #[arg(long, global = true, value_name = "DIR", default_value = "/tmp/assay-bench")]
    pub(crate) data_dir: PathBuf,
    /// The size of the data set: a fraction. Its square root scales the tests and the runs. Each size has its own
    /// folder
    #[arg(long, global = true, value_name = "SIZE", default_value = "1")]
    pub(crate) size: Size,
    /// Seconds for each measurement of a route
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 5.0, value_parser = seconds)]
    pub(crate) seconds: f64,
    /// The program to measure; by default the one in this program's folder
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) server: Option<PathBuf>,
    /// The folder of Postgres' programs
    #[arg(long, global = true, value_name = "DIR", env = "PG_BIN")]
    pub(crate) pg_bin: Option<PathBuf>,
}

impl Options {
    /// The folder of the data set.
    pub(crate) fn dir(&self) -> PathBuf {
        self.data_dir.join(self.size.folder())
    }

    /// The duration of a measurement.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|seconds| (0.01..=3600.0).contains(seconds))
        .ok_or_else(|| "expected seconds from 0.01 to 3600".to_owned())
}

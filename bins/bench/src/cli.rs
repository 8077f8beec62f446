//! The command line.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Parser, Subcommand};

use crate::{
    options::Options,
    shape::{Shape, Size},
    shapes::Other,
};

const EXAMPLES: &str = "\
In a quarter of an hour on a laptop, a sixteenth of the full size:
  assay-bench all --size 1/16 --seconds 2

In full, about 26 million results (15 GB of disk, about an hour), and into the documentation:
  assay-bench all --growth --docs docs/performance.md

Other shapes: 1,000 projects, one test in a million runs, 100,000 tests in a run, 10,000 branches; or one of your own:
  assay-bench shapes
  assay-bench generate --data-dir /tmp/mine --projects 30 --alike --tests 900 --runs-per-day 5 --storm-days 0
  assay-bench load --data-dir /tmp/mine

Every measurement is kept in DIR/size-N/results and printed; --json prints it as one object.";

/// Measures the service on a data set of known size.
///
/// The data set has its own private Postgres. The same run measures the real server over HTTP, the same statements in
/// pgbench, a server that does nothing, and other implementations. Client, server and Postgres share the machine:
/// compare ratios rather than figures of different machines.
#[derive(Debug, Parser)]
#[command(name = "assay-bench", version, after_help = EXAMPLES, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make the data set, unless it is there
    ///
    /// Every report is imported by the code of `assay import`. Verdicts are judged with the last import of each
    /// project. The same seed gives the same data, which end now.
    Generate {
        #[command(flatten)]
        shape: Shape,
        /// Make it anew in any case
        #[arg(long)]
        replace: bool,
    },
    /// Measure every route, and the same work in other ways
    Load,
    /// Measure one route beside its limits, and beside other builds of the server
    ///
    /// All take turns, so that other load of the machine affects each of them equally.
    Route {
        /// Its name in the table of `load`
        #[arg(value_name = "ROUTE", default_value = crate::cases::STATUS)]
        name: String,
        /// Another program to compare with the first
        #[arg(long, value_name = "PATH")]
        against: Vec<PathBuf>,
    },
    /// Measure imports into the full database; adds some runs to it
    Import {
        /// How many runs of each kind
        #[arg(long, value_name = "N", default_value_t = 15)]
        times: u32,
    },
    /// Measure the server's memory
    Memory,
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
    /// Measure data sets of other shapes; makes those that are missing
    Shapes {
        /// These alone
        #[arg(long, value_delimiter = ',', value_name = "NAME", value_enum)]
        only: Vec<Other>,
    },
    /// Prune the oldest month during reads; the data set must be generated again afterwards
    Prune,
    /// Write the measurements into a document's tables
    Report {
        /// The document with the marks
        #[arg(long, value_name = "FILE", default_value = "docs/performance.md")]
        docs: PathBuf,
    },
    /// All of these, one after the other
    All {
        #[command(flatten)]
        shape: Shape,
        /// Measure the growth too, at 1/16 and 1/4 of this size and at this size
        #[arg(long)]
        growth: bool,
        /// Do not prune, so that the data set stays usable
        #[arg(long)]
        keep: bool,
        /// Write the tables into this document
        #[arg(long, value_name = "FILE")]
        docs: Option<PathBuf>,
    },
    /// A server that answers this number of bytes from memory
    #[command(hide = true)]
    ServeBare {
        #[arg(long)]
        listen: SocketAddr,
        #[arg(long)]
        bytes: usize,
    },
    /// The status route the textbook way
    #[command(hide = true)]
    ServeTextbook {
        #[arg(long)]
        listen: SocketAddr,
        #[arg(long)]
        url: String,
    },
}

//! Options of every measurement.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use crate::{number::whole, shape::Size};

/// Options of all subcommands.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Every subcommand")]
pub(crate) struct Options {
    /// Where the data set, its Postgres and the results lie
    #[arg(long, global = true, value_name = "DIR", default_value = "/tmp/assay-bench")]
    pub(crate) data_dir: PathBuf,
    /// The size of the data set: a fraction, whose root scales the tests and the runs. Each size has its own folder
    #[arg(long, global = true, value_name = "SIZE", default_value = "1")]
    pub(crate) size: Size,
    /// Print one JSON object instead of tables
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Seconds for each measurement of a route
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 5.0, value_parser = seconds)]
    pub(crate) seconds: f64,
    /// The program to measure; by default the one beside this program
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) server: Option<PathBuf>,
    /// Log filter of the measured server; `info` is its default, with a line a request
    #[arg(long, global = true, value_name = "FILTER", default_value = "warn")]
    pub(crate) server_log: String,
    /// Do not empty the system's file caches before cold answers, since other programs may need them
    #[arg(long, global = true)]
    pub(crate) keep_caches: bool,
    /// The folder of Postgres' programs
    #[arg(long, global = true, value_name = "DIR", env = "PG_BIN")]
    pub(crate) pg_bin: Option<PathBuf>,
}

impl Options {
    /// The folder of the data set.
    pub(crate) fn dir(&self) -> PathBuf {
        self.data_dir.join(self.size.folder())
    }

    /// How long a measurement takes.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// The same for programs that count whole seconds, at least one.
    pub(crate) fn whole_seconds(&self) -> u64 {
        whole(self.seconds.ceil()).max(1)
    }

    /// Scales a number of repetitions from the usual length of a measurement to this one.
    pub(crate) fn repeats(&self, usual: usize) -> usize {
        if self.seconds < 1.0 { 1 } else { usual }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|seconds| (0.01..=3600.0).contains(seconds))
        .ok_or_else(|| "expected seconds from 0.01 to 3600".to_owned())
}

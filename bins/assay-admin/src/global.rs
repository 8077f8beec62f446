//! Options of every command: the output, and which database.

use std::path::PathBuf;

use clap::Args;

use crate::environment;

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options", mut_args(|arg| arg.hide_env_values(true)))]
pub(crate) struct Global {
    /// Print one JSON object on standard output instead of text for people
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// The Postgres database; without it, a private one in the data directory is started when needed
    #[arg(long, global = true, value_name = "URL", env = "ASSAY_DATABASE_URL")]
    database_url: Option<String>,

    /// The directory of the private database; by default .assay, in this folder or the nearest one above
    #[arg(long, global = true, value_name = "DIR", env = "ASSAY_DATA_DIR")]
    data_dir: Option<PathBuf>,
}

impl Global {
    /// The named database; an empty variable counts as unset.
    pub(crate) fn database_url(&self) -> Option<&str> {
        self.database_url.as_deref().filter(|url| !url.trim().is_empty())
    }

    /// The folder of the private database; an empty variable counts as unset.
    pub(crate) fn data_dir(&self) -> PathBuf {
        match &self.data_dir {
            Some(dir) if !dir.as_os_str().is_empty() => dir.clone(),
            Some(_) | None => assay_local_postgres::nearest(".assay", &environment::current_folder()),
        }
    }
}

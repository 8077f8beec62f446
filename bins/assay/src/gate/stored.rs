//! The failures of a stored run, from the read API.

use assay_cli_job::gate::judged::JudgedRun;
use assay_cli_terminal::progress::Progress;
use assay_domain::id::RunId;
use clap::Args;

use crate::server_flags::{ConnectionFlags, ReadApiFlags};

/// Heading of the help.
const STORED: &str = "A stored run";
/// Most failures in an answer of the route.
const MOST_LISTED: u32 = 200;

/// Which stored run to judge, and where it is.
#[derive(Debug, Args)]
#[command(next_help_heading = STORED)]
pub(crate) struct StoredRunFlags {
    /// Judge a stored run with all its shards: the runId that `assay upload --json` prints; needs ASSAY_READ_KEY or `assay login`
    #[arg(long, value_name = "ID", conflicts_with_all = ["paths", "history"])]
    pub(crate) run: Option<RunId>,
    /// The run does not pass if it no longer reports more than this many tests of the stable branch
    #[arg(long, value_name = "N", requires = "run")]
    max_vanished: Option<u64>,
    #[command(flatten)]
    api: ReadApiFlags,
}

impl StoredRunFlags {
    /// Asks the server for the failures of a run.
    pub(crate) fn fetch(
        &self,
        progress: &dyn Progress,
        run: RunId,
        project: Option<&str>,
        connection: &ConnectionFlags,
    ) -> anyhow::Result<JudgedRun> {
        let mut api = self.api.client(progress, connection)?;
        let project = api.project_of_run(project, run)?;
        let answer = api.get(&format!(
            "projects/{project}/runs/{run}/failures?limit={MOST_LISTED}"
        ))?;
        let judged = JudgedRun::of_stored_run(&answer)?;
        let Some(most) = self.max_vanished else {
            return Ok(judged);
        };
        let changes = api.get(&format!("projects/{project}/runs/{run}/changes"))?;
        Ok(judged.with_changes(&changes, most)?)
    }
}

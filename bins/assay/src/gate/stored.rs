//! The failures of a stored run, and the state of a branch, from the read API.

use assay_answers::{links, release::ReleaseState};
use assay_cli_job::gate::judged::JudgedRun;
use assay_domain::id::RunId;
use clap::Args;
use serde::Deserialize as _;
use serde_json::Value;

use crate::{global::Global, server_flags::ReadApiFlags, upload_flags::UploadFlags};

/// Heading of the help.
const STORED: &str = "A stored run";
/// Most failures in an answer of the route.
const MOST_LISTED: u32 = 200;

/// The sentence of an answer, and the tests that fail on the branch only, one a line.
pub(crate) fn text(release: &ReleaseState) -> String {
    let there_only = release.tests.iter().filter(|test| !test.fails_on_stable);
    let lines = there_only.map(|test| {
        let (run, revision) = (test.failing_since.run_number, &test.failing_since.revision);
        let revision = revision.as_ref().map(|revision| format!(", {revision}"));
        let author = test.author_name.as_ref().map(|author| format!(" by {author}"));
        let commit = revision.unwrap_or_default() + &author.unwrap_or_default();
        format!("  {}: since run {run}{commit}, {}\n", test.test_name, test.status)
    });
    format!("{}\n{}", release.explanation, lines.collect::<String>())
}

/// Which stored run to judge, and where it is.
#[derive(Debug, Args)]
#[command(next_help_heading = STORED)]
pub(crate) struct StoredRunFlags {
    /// Judge a stored run with all its shards: the runId that `assay upload --json` prints; needs ASSAY_READ_KEY or `assay login`
    #[arg(long, value_name = "ID", conflicts_with_all = ["paths", "history"])]
    pub(crate) run: Option<RunId>,
    /// Say whether a release may be cut from this branch, by what fails there and not on the stable branch; needs
    /// ASSAY_READ_KEY
    #[arg(long, value_name = "BRANCH", conflicts_with_all = ["paths", "history", "run"])]
    pub(crate) release: Option<String>,
    /// The run does not pass if it no longer reports more than this many tests of the stable branch
    #[arg(long, value_name = "N", requires = "run")]
    max_vanished: Option<u64>,
    #[command(flatten)]
    api: ReadApiFlags,
}

impl StoredRunFlags {
    /// Asks the server whether a release may be cut from a branch.
    pub(crate) fn fetch_release(
        &self,
        global: &Global,
        branch: &str,
        flags: &UploadFlags,
    ) -> anyhow::Result<(ReleaseState, Value)> {
        let mut api = self.api.client(global.progress(), &flags.ingest.connection)?;
        let project = api.project(flags.project.as_deref())?;
        let branch = links::escaped(branch);
        let answer = api.get(&format!("projects/{project}/releases/{branch}?perPage=50"))?;
        Ok((ReleaseState::deserialize(&answer)?, answer))
    }

    /// Asks the server for the failures of a run.
    pub(crate) fn fetch(
        &self,
        global: &Global,
        run: RunId,
        flags: &UploadFlags,
    ) -> anyhow::Result<JudgedRun> {
        let mut api = self.api.client(global.progress(), &flags.ingest.connection)?;
        let project = api.project_of_run(flags.project.as_deref(), run)?;
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

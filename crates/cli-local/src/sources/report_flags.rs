//! The flags that describe a report and its run, for every command that stores reports.

use std::path::{Path, PathBuf};

use assay_domain::{
    recording::{RunContext, ShardIndex},
    run::CiProvider,
    timestamp::Timestamp,
};
use assay_ingest::{ArtifactsUrl, Flags, ci::CiContext};
use assay_reports::Format;
use clap::{Args, builder::TypedValueParser as _};

use crate::sources::{Variables, ci, git, values};

/// Headings of the help.
const RUN: &str = "The run (from CI's variables unless given)";
const CODE: &str = "The code (from CI's variables unless given)";

/// The user's description of a report and its run.
#[derive(Debug, Args)]
pub struct ReportFlags {
    /// Ignore CI's environment variables
    #[arg(long)]
    pub no_ci: bool,
    /// The report's format
    #[arg(
        long,
        default_value = "auto",
        value_parser = values::formats(None).try_map(|word| FormatChoice::parse(&word)),
        help_heading = "The report"
    )]
    pub format: FormatChoice,
    /// The checkout of the tested sources, to store file paths relative to it
    #[arg(long, value_name = "DIR", help_heading = "The report")]
    pub root: Option<PathBuf>,
    /// Results of one name in a file are attempts of one test, for a tool whose retries the report does not mark
    #[arg(long, help_heading = "The report")]
    pub retries_as_attempts: bool,
    /// The run.
    #[command(flatten)]
    pub run: RunFlags,
}

impl ReportFlags {
    /// The context from CI's variables, and the start of the job. If the job checked out other code, only the commit of the
    /// code is known.
    pub fn ci(&self, variables: Variables<'_>) -> (CiContext, Option<Timestamp>) {
        if self.no_ci {
            return (CiContext::default(), None);
        }
        let mut of_run = ci::context(variables);
        let folder = of_run.workspace_root.as_deref().map(Path::new);
        let folder = self.root.as_deref().or(folder).unwrap_or(Path::new("."));
        if self.run.commit.is_none()
            && self.run.branch.is_none()
            && let Some(commit) = git::other_commit(folder, variables, &of_run.context)
        {
            log::warn!(
                "the checkout is at {commit}, which CI's variables do not name: the results are of that commit, and \
                 of no branch; --branch names it"
            );
            of_run = of_run.of_other_commit(commit);
        }
        (of_run, ci::job_started_at(variables))
    }
}

/// The user's description of the run.
#[derive(Debug, Clone, Args)]
pub struct RunFlags {
    /// The key that all shards of one run share; without it, CI's build, else the content, or with
    /// `assay run` a key of its own
    #[arg(long, value_name = "KEY", value_parser = values::run_key, help_heading = RUN)]
    pub run_key: Option<String>,
    /// Which shard this is, such as 2/5
    #[arg(long, value_name = "I/N", value_parser = values::shard, help_heading = RUN)]
    pub shard: Option<ShardIndex>,
    /// The suite, if several suites share one build: each is a run of its own; without it, CI's job
    #[arg(long, value_parser = values::line, help_heading = RUN)]
    pub suite: Option<String>,
    /// The attempt of this command in its job, for a command that was repeated: it goes on with what failed in the attempt
    /// before
    #[arg(long, value_name = "N", value_parser = values::attempt, help_heading = RUN)]
    pub attempt: Option<u32>,
    /// Replace what is stored for the run and shard, instead of adding to it
    #[arg(long, help_heading = RUN)]
    pub replace: bool,
    /// The branch
    #[arg(long, value_parser = values::name, help_heading = CODE)]
    pub branch: Option<String>,
    /// The commit that was checked out
    #[arg(long, value_name = "SHA", value_parser = values::revision, help_heading = CODE)]
    pub commit: Option<String>,
    /// For a pull request, the head behind a merge commit
    #[arg(long, value_name = "SHA", value_parser = values::revision, help_heading = CODE)]
    pub tested_revision: Option<String>,
    /// The commit's message
    #[arg(long, value_parser = values::message, help_heading = CODE)]
    pub message: Option<String>,
    /// The commit's author
    #[arg(long, value_parser = values::line, help_heading = CODE)]
    pub author: Option<String>,
    /// The pull request's number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..), help_heading = CODE)]
    pub pr: Option<i64>,
    /// The pull request's title
    #[arg(long, value_name = "TITLE", value_parser = values::line, help_heading = CODE)]
    pub pr_title: Option<String>,
    /// The CI service
    #[arg(long, value_name = "PROVIDER", value_parser = values::provider(), help_heading = RUN)]
    pub ci: Option<CiProvider>,
    /// The page of the CI run, to which the pages link
    #[arg(long, value_name = "URL", value_parser = values::web_address, help_heading = RUN)]
    pub run_url: Option<String>,
    /// Where CI keeps the files that the report names, with {path} for a file's path
    #[arg(long, value_name = "URL", value_parser = clap::value_parser!(ArtifactsUrl), help_heading = RUN)]
    pub artifacts_url: Option<ArtifactsUrl>,
    /// When the run started (RFC 3339); all times of the report are shifted with it
    #[arg(long, value_name = "TIME", value_parser = values::timestamp, help_heading = RUN)]
    pub started_at: Option<Timestamp>,
    /// How long the run took, in milliseconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=values::LONGEST_DURATION_MS), help_heading = RUN)]
    pub duration_ms: Option<u64>,
}

impl From<&RunFlags> for Flags {
    fn from(flags: &RunFlags) -> Self {
        let flags = flags.clone();
        Self {
            run_key: flags.run_key,
            shard: flags.shard,
            context: RunContext {
                branch: flags.branch,
                commit_sha: flags.commit,
                commit_message: flags.message,
                author_name: flags.author,
                tested_revision: flags.tested_revision,
                pull_request_number: flags.pr,
                pull_request_title: flags.pr_title,
                ci_provider: flags.ci,
                suite: flags.suite,
                run_url: flags.run_url,
                merge_base: None,
                base_branch: None,
            },
            attempt: flags.attempt,
            replace: flags.replace,
            started_at: flags.started_at,
            duration_ms: flags.duration_ms,
            artifacts_url: flags.artifacts_url,
        }
    }
}

/// The requested format; `None` if the content decides.
#[derive(Debug, Clone, Copy)]
pub struct FormatChoice(pub Option<Format>);

impl FormatChoice {
    /// Parses the name of a format, or `auto`.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self(None));
        }
        text.parse()
            .map(|format| Self(Some(format)))
            .map_err(|error| format!("{error}, or auto"))
    }
}

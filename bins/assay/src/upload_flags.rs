//! The flags for sending a report.

use std::path::{Path, PathBuf};

use assay_cli_local::sources::report_flags::ReportFlags;
use assay_cli_remote::{
    codehost::ReportTo,
    server::{
        address::{MissingSetting, Settings},
        ingest::Server,
        job_token::TokenSource,
    },
};
use assay_cli_terminal::misuse::Misuse;
use assay_domain::run::CiProvider;
use clap::Args;

use crate::{environment, errors, server_flags::ConnectionFlags};

/// Heading of the help.
const SERVER: &str = "The server";
/// Heading of the help.
const HOST: &str = "The code host";

/// Where to send reports.
#[derive(Debug, Args)]
pub(crate) struct IngestFlags {
    /// The address of the server's ingest listener; without it ASSAY_URL
    #[arg(long, value_name = "https://HOST", env = "ASSAY_INGEST_URL", hide_env_values = true, help_heading = SERVER)]
    url: Option<String>,
    /// The file with the ingest key; without it the variable ASSAY_INGEST_KEY
    #[arg(long, value_name = "FILE", help_heading = SERVER)]
    key_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: ConnectionFlags,
}

impl IngestFlags {
    /// Creates the client. The error is a [`MissingSetting`] if the address or the key was not given.
    pub(crate) fn server(&self) -> anyhow::Result<Server> {
        server_of(self.url.as_deref(), self.key_file.as_deref(), &self.connection)
    }
}

/// The flags for sending a report.
#[derive(Debug, Args)]
pub(crate) struct UploadFlags {
    #[command(flatten)]
    pub(crate) ingest: IngestFlags,
    /// Keep unsent uploads in this folder, and first send those in it that wait for this key
    #[arg(long, value_name = "DIR", help_heading = SERVER)]
    pub(crate) spool: Option<PathBuf>,
    /// Only warn if the report cannot be stored
    #[arg(long)]
    best_effort: bool,
    /// Let the server read the report and answer what it would store; store nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Leave out files whose tests began more than 24 hours ago, such as those of a build cache
    #[arg(long)]
    pub(crate) skip_cached: bool,
    /// The project that the key must belong to: its id or name
    #[arg(long)]
    pub(crate) project: Option<String>,
    /// Report the commit's results from this CI job: auto, none, or some of summary,annotations,comment,check
    #[arg(long, value_name = "LIST", default_value = "none", help_heading = HOST)]
    pub(crate) report_to: ReportTo,
    #[command(flatten)]
    pub(crate) report: ReportFlags,
}

/// The client of the ingest listener. The error is a [`MissingSetting`] if the address or the key was not given.
pub(crate) fn server_of(
    url: Option<&str>,
    key_file: Option<&Path>,
    connection: &ConnectionFlags,
) -> anyhow::Result<Server> {
    let own = url.filter(|url| !url.trim().is_empty()).map(str::to_owned);
    let url = own.or_else(environment::installation);
    let settings = Settings {
        url: url.as_deref(),
        key_file,
        key: environment::ingest_key(),
        tokens: TokenSource::of(environment::variable),
        insecure_http: connection.insecure_http,
    };
    let (address, key) = settings.resolve()?;
    Server::new(address, key)
}

impl UploadFlags {
    /// Creates the client. With `--best-effort` a missing address or key is only a warning, and there is no client.
    pub(crate) fn server(&self, provider: Option<CiProvider>) -> anyhow::Result<Option<Server>> {
        match self.ingest.server() {
            Ok(server) => Ok(Some(server)),
            Err(error) => match error.downcast::<MissingSetting>() {
                Ok(missing) if self.best_effort => {
                    errors::warn(provider, &missing.to_string());
                    Ok(None)
                }
                Ok(missing) => Err(Misuse(format!(
                    "{missing}. Set ASSAY_URL and ASSAY_INGEST_KEY as variables of the CI job; `assay-admin key create-ingest \
                     --project P` makes a key. Without a key, a job that a project trusts needs the right to tokens (on GitHub \
                     `permissions: id-token: write`). The pull request of a fork does not get them: use a key made with \
                     --pull-requests-only, or --best-effort"
                ))
                .into()),
                Err(error) => Err(error),
            },
        }
    }

    /// With `--best-effort`, turns a failure into a warning. Wrong usage stays an error.
    pub(crate) fn warn_if_best_effort(
        &self,
        provider: Option<CiProvider>,
        sent: anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        match sent {
            Err(error) if self.best_effort && !error.is::<Misuse>() => {
                errors::warn(provider, &format!("{error:#}"));
                Ok(())
            }
            sent => sent,
        }
    }
}

//! The flags of every command that asks a server.

use std::time::{Duration, Instant};

use assay_answers::links::PublicPages;
use assay_cli_remote::server::{address::Address, login::Logins, read_api::ReadApi};
use assay_cli_terminal::{misuse::Misuse, progress::Progress, values::duration};
use assay_domain::id::ProjectId;
use clap::Args;

use crate::{clock, environment, global::Global};

/// Which installation to sign in to.
#[derive(Debug, Args)]
pub(crate) struct InstallationFlags {
    /// The address of the installation
    #[arg(long, value_name = "URL", env = "ASSAY_URL", hide_env_values = true)]
    url: Option<String>,
    /// Allow plain http:// to another machine, which sends the key unencrypted
    #[arg(long)]
    pub(crate) insecure_http: bool,
}

impl InstallationFlags {
    /// The address, which must be given.
    pub(crate) fn required(&self) -> Result<String, Misuse> {
        let url = self.url.as_deref().map(installation);
        url.filter(|url| !url.is_empty()).ok_or_else(|| {
            Misuse("ASSAY_URL is not set; set it to the address of the installation, or use --url".to_owned())
        })
    }
}

/// The address of an installation by that of one of its parts.
fn installation(url: &str) -> String {
    let url = url.trim().trim_end_matches('/');
    url.trim_end_matches("/api/v1")
        .trim_end_matches("/mcp")
        .to_owned()
}

/// The read key, else the session of `assay login` at the installation with this address.
pub(crate) fn read_key(url: &str) -> anyhow::Result<Option<String>> {
    if let Some(key) = environment::read_key() {
        return Ok(Some(key));
    }
    // Without a folder for sessions there is none.
    let Ok(path) = environment::logins() else {
        return Ok(None);
    };
    let installation = installation(url);
    let login = Logins::open(path)?.find(&installation);
    Ok(login
        .map(|login| login.token(&installation, clock::now()))
        .transpose()?)
}

/// Neither a read key nor a session.
pub(crate) fn no_key() -> Misuse {
    Misuse("ASSAY_READ_KEY is not set; set it to a read key (`assay-admin key create`), or sign in with `assay login`".to_owned())
}

/// Where the read API is.
#[derive(Debug, Args)]
pub(crate) struct ReadApiFlags {
    /// The address of the server's read API, for ASSAY_READ_KEY; without it, /api/v1 of ASSAY_URL
    #[arg(
        long,
        value_name = "https://HOST/api/v1",
        env = "ASSAY_API_URL",
        hide_env_values = true
    )]
    api_url: Option<String>,
}

/// Which project to ask a server about.
#[derive(Debug, Args)]
pub(crate) struct ProjectFlags {
    /// The project: its id or name; without it the only one of the key
    #[arg(long)]
    pub(crate) project: Option<String>,
    #[command(flatten)]
    api: ReadApiFlags,
    #[command(flatten)]
    pub(crate) connection: ConnectionFlags,
}

impl ProjectFlags {
    /// Whether there is a read key, or a session, also one that has ended.
    pub(crate) fn has_key(&self) -> bool {
        let url = environment::installation().or_else(|| self.api.address());
        !matches!(read_key(&url.unwrap_or_default()), Ok(None))
    }

    /// The address of the pages, which the server has beside its read API.
    pub(crate) fn pages(&self) -> PublicPages {
        let address = self.api.address().unwrap_or_default();
        PublicPages::at(address.trim_end_matches('/').trim_end_matches("/api/v1"))
    }

    /// The client of the read API, and the project.
    pub(crate) fn open(&self, global: &Global) -> anyhow::Result<(ReadApi<'static>, ProjectId)> {
        let mut api = self.api.client(global.progress(), &self.connection)?;
        let project = api.project(self.project.as_deref())?;
        Ok((api, project))
    }
}

/// How to connect to a server.
#[derive(Debug, Args)]
pub(crate) struct ConnectionFlags {
    /// Allow plain http:// to another machine, which sends key and reports unencrypted
    #[arg(long, help_heading = SERVER)]
    pub(crate) insecure_http: bool,
    /// How long to retry while the server is unreachable or busy: 90s, 5m, 1h, or 0 for a single attempt
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration, help_heading = SERVER)]
    pub(crate) retry_for: Duration,
}

/// Heading of the help.
const SERVER: &str = "The server";
/// The least time for what follows an upload.
const LEAST: Duration = Duration::from_secs(5);

impl ConnectionFlags {
    /// When everything ends that follows the upload: the decision, the comment, and all requests to the code host.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.retry_for.max(LEAST)
    }
}

impl ReadApiFlags {
    fn address(&self) -> Option<String> {
        let own = self.api_url.clone().filter(|url| !url.trim().is_empty());
        let of_installation =
            || environment::installation().map(|url| format!("{}/api/v1", url.trim().trim_end_matches('/')));
        own.or_else(of_installation)
    }

    /// The client. An address or a key that is missing is wrong usage.
    pub(crate) fn client<'a>(
        &self,
        progress: &'a dyn Progress,
        connection: &ConnectionFlags,
    ) -> anyhow::Result<ReadApi<'a>> {
        let url = self.address().ok_or_else(|| {
            Misuse(
                "ASSAY_API_URL is not set; set it to the address of the read API, such as \
                 https://assay.example.org/api/v1, or ASSAY_URL to the host's"
                    .to_owned(),
            )
        })?;
        let key =
            read_key(&environment::installation().unwrap_or_else(|| url.clone()))?.ok_or_else(no_key)?;
        let address = Address::parse("the read API", &url, connection.insecure_http)?;
        ReadApi::new(address, &key, connection.retry_for, progress)
    }
}

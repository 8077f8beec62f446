//! `assay-admin setup`: everything between an empty database and a CI job.

use std::net::IpAddr;

use assay_cli_terminal::{confirm::ask, misuse::Misuse, output};
use assay_domain::{
    ci_service::CiService,
    id::KeyId,
    ingest::IngestTerms,
    key::{KeyEntry, KeyKind, Lifetime, SecretKey},
    plan::Plan,
    project::{Organization, ProjectEntry},
    timestamp::Timestamp,
};
use clap::Args;
use http::Uri;
use serde::Serialize;
use serde_json::json;

use crate::{
    database::{self, Admin},
    environment,
    global::Global,
    new_key, values,
};

/// The address of a server on this machine that takes everything on one port.
const HERE: &str = "http://127.0.0.1:8080";

const EXAMPLES: &str = "\
What exists stays as it is, so the command can be repeated. A key is shown only when it is made.

Examples:
  assay-admin setup
  In a script:
    assay-admin setup --org \"Example Shop\" --project storefront --url https://assay.example.org --json";

/// Make an organization, a project, a read key and an ingest key
///
/// Brings the schema up to date first. Prints the address, the server's command, the keys and the lines of a job for the CI services whose files are in this folder. On a terminal it asks
/// for what no flag names.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SetupArgs {
    /// The organization's name, or the id of one that exists
    #[arg(long, value_parser = values::name)]
    org: Option<String>,
    /// The project's name
    #[arg(long, value_parser = values::name)]
    project: Option<String>,
    /// The branch that releases are made from, for a new project
    #[arg(long, value_name = "BRANCH", default_value = "main", value_parser = values::name)]
    stable_branch: String,
    /// The address under which people and CI reach the server
    #[arg(long, value_name = "URL", env = "ASSAY_PUBLIC_URL", hide_env_values = true)]
    url: Option<String>,
}

/// A key: new with its text, or one that exists.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SetupKey {
    id: KeyId,
    /// None for a key that exists, because only its owner has it.
    key: Option<String>,
    expires_at: Option<Timestamp>,
}

impl SetupKey {
    fn new(id: KeyId, key: Option<&SecretKey>, expires_at: Option<Timestamp>) -> Self {
        let key = key.map(|secret| secret.reveal().to_owned());
        Self { id, key, expires_at }
    }

    /// The key, or how to replace one whose text is lost.
    fn line(&self) -> String {
        self.key.clone().unwrap_or_else(|| {
            format!(
                "exists already; `assay-admin key rotate {}` replaces it by a new one",
                self.id
            )
        })
    }
}

/// Runs `assay-admin setup`.
pub(crate) fn run(global: &Global, args: &SetupArgs) -> anyhow::Result<()> {
    let org = named(
        args.org.as_deref(),
        "--org",
        "The organization's name?",
        "My organization",
    )?;
    let project = named(
        args.project.as_deref(),
        "--project",
        "The project's name?",
        "my-project",
    )?;
    let url = args.url.as_deref().map(str::trim).filter(|url| !url.is_empty());
    let url = match url {
        Some(url) => url.to_owned(),
        None => ask("The server's address for people and CI?", HERE)?.unwrap_or_else(|| HERE.to_owned()),
    };
    let address = PublicAddress::parse(&url).map_err(|error| Misuse(format!("--url {url}: {error}")))?;
    let url = url.trim_end_matches('/');
    let migrated = database::migrate(global)?;
    let opened = database::open(global)?;
    let admin = &opened.admin(global);
    let organization = organization(admin, &org)?;
    let project = project_of(admin, &organization, &project, &args.stable_branch)?;
    let keys = admin.store.keys(organization.id)?;
    let read_key = read_key(admin, &organization, &keys)?;
    let ingest_key = ingest_key(admin, &project, &keys)?;
    let folder = environment::current_folder();
    let is_here = |service: &CiService| folder.join(service.file()).exists();
    let services: Vec<_> = CiService::ALL.into_iter().filter(is_here).collect();
    let jobs = services.iter().map(
        |service| json!({ "service": service.name(), "file": service.file(), "lines": address.job(*service, url) }),
    );
    let value = json!({
        "applied": migrated.applied,
        "organizationId": organization.id,
        "projectId": project.id,
        "url": url,
        "readKey": read_key,
        "ingestKey": ingest_key,
        "jobs": jobs.collect::<Vec<_>>(),
    });
    output::print(global.json, &value, || {
        let head = format!(
            "The project {:?} of {:?} is ready.\n\n\
             Pages and API    {url}\n\
             Read key         {}\n\
             ASSAY_URL        {url}\n\
             ASSAY_INGEST_KEY {}\n",
            project.name,
            organization.name,
            read_key.line(),
            ingest_key.line(),
        );
        let once = match read_key.key.is_some() || ingest_key.key.is_some() {
            true => "A key is shown only now. ",
            false => "",
        };
        head + &format!(
            "\n{once}Make ASSAY_INGEST_KEY a secret of the CI service. The server for all of this:\n"
        ) + &address.server(global)
            + &in_words(&address, &services, url)
    })
}

/// The address under which people and CI reach the server.
struct PublicAddress {
    is_encrypted: bool,
    host: String,
    port: Option<u16>,
}

impl PublicAddress {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let invalid = "expected an address such as https://assay.example.org, without a path";
        let address: Uri = text.parse().map_err(|_| invalid)?;
        let is_encrypted = match address.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(invalid),
        };
        let host = address.host().filter(|host| !host.is_empty()).ok_or(invalid)?;
        let has_more = address.path() != "/" || address.query().is_some();
        let port = address.port_u16();
        let plain = port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        if has_more
            || address
                .authority()
                .is_none_or(|authority| authority.as_str() != plain)
        {
            return Err(invalid);
        }
        Ok(Self {
            is_encrypted,
            host: host.to_owned(),
            port,
        })
    }

    fn is_here(&self) -> bool {
        let ip: Option<IpAddr> = self.bare_host().parse().ok();
        self.host == "localhost" || ip.is_some_and(|ip| ip.is_loopback())
    }

    fn bare_host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// The lines of a job. A key goes to another machine without TLS only if the job says so.
    fn job(&self, service: CiService, url: &str) -> String {
        let lines = service.job(url);
        match self.is_encrypted || self.is_here() {
            true => lines,
            false => lines.replace("assay run ", "assay run --insecure-http "),
        }
    }

    /// The lines that start a server for this address and this database.
    fn server(&self, global: &Global) -> String {
        let Self {
            is_encrypted,
            host,
            port,
        } = self;
        let ip: Option<IpAddr> = self.bare_host().parse().ok();
        let is_here = self.is_here();
        let mut line = "  assay-server --front-listen same --ingest-listen same".to_owned();
        if global.database_url().is_none() {
            // The server may be started in another folder.
            let folder = environment::current_folder().join(global.data_dir());
            line += &format!(
                " --data-dir {}",
                output::shell_word(&folder.display().to_string())
            );
        }
        if !is_encrypted {
            let interface = match ip {
                Some(_) if is_here => host,
                _ if is_here => "127.0.0.1",
                Some(IpAddr::V6(_)) => "[::]",
                Some(IpAddr::V4(_)) | None => "0.0.0.0",
            };
            line += &format!(" --listen {interface}:{}", port.unwrap_or(80));
        }
        if !is_here {
            let (scheme, end) = (
                if *is_encrypted { "https" } else { "http" },
                port.map(|port| format!(":{port}")),
            );
            line += &format!(" --public-url {scheme}://{host}{}", end.unwrap_or_default());
        }
        line.push('\n');
        if !is_encrypted && !is_here {
            line += "Without TLS, keys go unencrypted to this address.\n";
        }
        if *is_encrypted {
            line += &format!("A proxy with TLS passes the requests for {host} to 127.0.0.1:8080.\n");
        }
        if global.database_url().is_some() {
            line +=
                "The server needs the same ASSAY_DATABASE_URL, or a login of its own for this database.\n";
        }
        line
    }
}

/// The lines of the jobs; those of GitHub Actions if no file of a service is here.
fn in_words(address: &PublicAddress, services: &[CiService], url: &str) -> String {
    let services = match services {
        [] => &[CiService::GithubActions],
        services => services,
    };
    let job = |service: &CiService| {
        let lines = address.job(*service, url).replace('\n', "\n  ");
        format!("\n{} ({}):\n  {lines}\n", service.name(), service.file())
    };
    services.iter().map(job).collect()
}

/// The value of a flag, else the answer to a question.
fn named(given: Option<&str>, flag: &str, question: &str, default_value: &str) -> anyhow::Result<String> {
    let text = match given {
        Some(text) => return Ok(text.to_owned()),
        None => ask(question, default_value)?,
    };
    let text = text.ok_or_else(|| Misuse(format!("there is no terminal to ask on; give {flag} NAME")))?;
    values::name(&text).map_err(|error| Misuse(format!("{flag}: {error}")).into())
}

fn organization(admin: &Admin<'_>, name: &str) -> anyhow::Result<Organization> {
    let existing = admin
        .store
        .organizations()?
        .into_iter()
        .find(|organization| organization.name == name || organization.id.to_string() == name);
    match existing {
        Some(existing) => Ok(existing),
        None => Ok(admin.store.create_organization(name, Plan::Pro, admin.now)?),
    }
}

fn project_of(
    admin: &Admin<'_>,
    organization: &Organization,
    name: &str,
    stable_branch: &str,
) -> anyhow::Result<ProjectEntry> {
    let existing = admin
        .store
        .projects_of(organization.id)?
        .into_iter()
        .find(|project| project.name == name);
    match existing {
        Some(existing) => Ok(existing),
        None => Ok(admin
            .store
            .create_project(organization.id, name, stable_branch, admin.now)?),
    }
}

fn is_valid(key: &KeyEntry, now: Timestamp) -> bool {
    key.revoked_at.is_none() && key.expires_at.is_none_or(|at| at > now)
}

/// The organization's valid read key, or a new one of 90 days.
fn read_key(admin: &Admin<'_>, organization: &Organization, keys: &[KeyEntry]) -> anyhow::Result<SetupKey> {
    let is_read_key = |key: &&KeyEntry| key.kind == KeyKind::Read && is_valid(key, admin.now);
    if let Some(key) = keys.iter().find(is_read_key) {
        return Ok(SetupKey::new(key.id, None, key.expires_at));
    }
    let expires_at = Lifetime::Ninety.expiry(admin.now);
    let (id, secret) = new_key::read_key(admin, organization, expires_at)?;
    Ok(SetupKey::new(id, Some(&secret), Some(expires_at)))
}

/// The project's valid ingest key, or a new one. A key for pull requests only, and one that tokens stand for,
/// does not count.
fn ingest_key(admin: &Admin<'_>, project: &ProjectEntry, keys: &[KeyEntry]) -> anyhow::Result<SetupKey> {
    let is_of_project = |key: &&KeyEntry| {
        let is_ingest_key = key.kind == KeyKind::Ingest && key.project_id == Some(project.id);
        is_ingest_key && !key.pull_requests_only && key.trust.is_none() && is_valid(key, admin.now)
    };
    if let Some(key) = keys.iter().find(is_of_project) {
        return Ok(SetupKey::new(key.id, None, key.expires_at));
    }
    let terms = IngestTerms {
        name: Some("CI".to_owned()),
        ..IngestTerms::default()
    };
    let (id, secret) = new_key::ingest_key(admin, project, &terms)?;
    Ok(SetupKey::new(id, Some(&secret), None))
}

//! `assay login` and `assay logout`: a session in the place of a read key.

use anyhow::Context as _;
use assay_cli_remote::server::{address::Address, http::Client, login::Logins};
use assay_cli_terminal::{message, output};
use assay_domain::identity::TerminalSignIn;
use assay_reports::shown_name;
use clap::Args;
use serde_json::json;

use crate::{clock, environment, global::Global, server_flags::InstallationFlags};

/// Sign in with your company's account in place of a read key
///
/// Shows an address and a code for your browser, waits until you have signed in there, and stores a session that lasts
/// at most an hour and reads what you may read on the pages. Commands use it where ASSAY_READ_KEY is not set. The server
/// needs a provider with the device authorization grant (`identity.toml`).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  export ASSAY_URL=https://assay.example.org
  assay login
  assay quarantine --project storefront --format pytest
  assay logout")]
pub(crate) struct LoginArgs {
    /// The provider's name, if the installation has several
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    #[command(flatten)]
    installation: InstallationFlags,
}

/// End the session of `assay login`, here and on the server
#[derive(Debug, Args)]
#[command(after_help = "Example: assay logout")]
pub(crate) struct LogoutArgs {
    #[command(flatten)]
    installation: InstallationFlags,
}

/// Runs `assay login`.
pub(crate) fn sign_in(global: &Global, args: &LoginArgs) -> anyhow::Result<()> {
    let (client, mut logins) = opened(&args.installation)?;
    let url = client.address.base().to_owned();
    let begun = client.begin_login(args.provider.as_deref())?;
    message!("{}", instruction(&begun));
    let login = client.finish_login(&begun, clock::now())?;
    let expires_at = login.expires_at;
    logins.set(&url, Some(login), clock::now())?;
    if environment::read_key().is_some() {
        message!("warning: ASSAY_READ_KEY is set; commands use it and not this session");
    }
    output::print(
        global.json,
        &json!({ "url": url, "expiresAt": expires_at }),
        || format!("Signed in to {url} until {expires_at}; `assay logout` ends it"),
    )
}

/// What the person does at the provider.
fn instruction(begun: &TerminalSignIn) -> String {
    let code = shown_name(&begun.user_code);
    match &begun.verification_uri_complete {
        Some(url) => format!("Open {} and compare the code: {code}", shown_name(url)),
        None => format!(
            "Open {} and enter the code: {code}",
            shown_name(&begun.verification_uri)
        ),
    }
}

/// Runs `assay logout`.
pub(crate) fn sign_out(global: &Global, args: &LogoutArgs) -> anyhow::Result<()> {
    let (client, mut logins) = opened(&args.installation)?;
    let url = client.address.base().to_owned();
    let found = logins.find(&url);
    if let Some(login) = &found {
        logins.set(&url, None, clock::now())?;
        let ended = client.end_login(login);
        ended.with_context(|| {
            format!(
                "the session is removed here, and works until {}",
                login.expires_at
            )
        })?;
    }
    let was_signed_in = found.is_some();
    output::print(
        global.json,
        &json!({ "url": url, "wasSignedIn": was_signed_in }),
        || match was_signed_in {
            true => format!("Signed out of {url}"),
            false => format!("There is no session at {url}"),
        },
    )
}

fn opened(flags: &InstallationFlags) -> anyhow::Result<(Client, Logins)> {
    let address = Address::parse("the installation", &flags.required()?, flags.insecure_http)?;
    Ok((Client::new(address)?, Logins::open(environment::logins()?)?))
}

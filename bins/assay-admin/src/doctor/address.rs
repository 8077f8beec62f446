//! The address of the installation: what people, programs and CI reach there.

use assay_cli_remote::server::{
    address::Address,
    http::{Answer, Client, NoAnswer},
};

use crate::doctor::check::{Check, Status};

/// The check's name.
const NAME: &str = "address";
/// MiB of a report that the ingest listener takes by default (ASSAY_INGEST_BODY_MIB).
pub(crate) const BODY_MIB: u64 = 64;

/// What the address of the installation answers. Without one nothing is asked.
pub(crate) fn installation(url: Option<&str>, body_mib: u64) -> Check {
    let Some(url) = url.map(str::trim).filter(|url| !url.is_empty()) else {
        return Check::warn(
            NAME,
            "ASSAY_PUBLIC_URL is not set here: nothing is known of the address for people and CI",
            "set ASSAY_PUBLIC_URL=https://HOST for each server and for this command",
        );
    };
    let parsed = Address::parse("the installation", url, true).map_err(anyhow::Error::from);
    let client = match parsed.and_then(Client::new) {
        Ok(client) => client,
        Err(error) => return Check::fail(NAME, format!("{error:#}"), "correct ASSAY_PUBLIC_URL"),
    };
    match client.get("/login") {
        Ok(answer) => parts(&client, url, body_mib, &answer),
        Err(error) => Check::fail(NAME, error.to_string(), advice(&error)),
    }
}

/// The parts behind an address that answers. `login` is the answer of the sign-in page.
fn parts(client: &Client, url: &str, body_mib: u64, login: &Answer) -> Check {
    let mut check = Check::ok(NAME, format!("{url} answers"));
    if !login.status.is_success() || !login.beginning().contains("Assay") {
        let found = format!("{url}/login is not the sign-in page: it answers {}", login.status);
        check = check.with_finding(
            Status::Fail,
            found,
            "serve the pages (ASSAY_FRONT_LISTEN), and let the proxy pass / to them (deploy/nginx.conf)",
        );
    }
    for (path, listener, setting) in [
        ("/api/v1/projects", "the read API", "ASSAY_LISTEN"),
        ("/ingest/v1/key", "the ingest listener", "ASSAY_INGEST_LISTEN"),
    ] {
        let is_there = client
            .get(path)
            .is_ok_and(|answer| answer.text("code").as_deref() == Some("missing_key"));
        if !is_there {
            check = check.with_finding(
                Status::Fail,
                format!("{url}{path} is not {listener}"),
                format!("serve it ({setting}), and let the proxy pass its path to it (deploy/nginx.conf)"),
            );
        }
    }
    match client.refuses_length(body_mib << 20) {
        Ok(false) => check,
        Ok(true) => check.with_finding(
            Status::Fail,
            format!("a proxy refuses reports of {body_mib} MiB, which the server takes"),
            format!("client_max_body_size {body_mib}m; for /ingest/ in the proxy (deploy/nginx.conf)"),
        ),
        Err(error) => check.with_finding(Status::Fail, error.to_string(), advice(&error)),
    }
}

const fn advice(error: &NoAnswer) -> &'static str {
    match error {
        NoAnswer::Unreachable(_) => "start the server and its proxy, or correct ASSAY_PUBLIC_URL",
        NoAnswer::NoToken(_)
        | NoAnswer::Untrusted(_)
        | NoAnswer::Authority(_)
        | NoAnswer::OtherProtocol(_) => error.advice(),
    }
}

//! The providers at which people sign in: their addresses and clocks, and the address that they send browsers back to.

use std::path::Path;

use assay_domain::timestamp::Timestamp;
use assay_identity::{Client, IdentityFile};

use crate::doctor::{
    check::{Check, Status},
    clocks::{SKEW_WRONG_MS, skew_ms},
};

/// Checks the operator's file and each provider of it.
pub(crate) fn providers(path: &Path, public_url: Option<&str>, clock: fn() -> Timestamp) -> Check {
    let file = match IdentityFile::read(path) {
        Ok(file) => file,
        Err(error) => {
            return Check::fail(
                "sign-in",
                error.to_string(),
                "correct ASSAY_IDENTITY_FILE or the file",
            );
        }
    };
    let mut check = match public_url {
        Some(url) if url.starts_with("https://") => {
            let back = format!("{}/login/callback", url.trim_end_matches('/'));
            Check::ok(
                "sign-in",
                format!("providers send browsers back to {back}, which each must know"),
            )
        }
        Some(_) | None => Check::warn(
            "sign-in",
            "ASSAY_PUBLIC_URL names no https address for providers to send browsers back to",
            "set ASSAY_PUBLIC_URL=https://HOST, and name https://HOST/login/callback to the provider",
        ),
    };
    let client = Client::new(file.private_addresses.clone());
    for provider in file.providers() {
        let before = clock();
        let issuer = &provider.issuer;
        check = match client.discover(issuer) {
            Err(problem) => check.with_finding(
                Status::Fail,
                format!("the issuer {issuer} cannot be used: {problem}"),
                "correct the issuer; its address with /.well-known/openid-configuration must open from this machine",
            ),
            Ok(found) if !found.signs_people_in() => check.with_finding(
                Status::Fail,
                format!("the issuer {issuer} has no addresses for sign-in"),
                "name a provider of OpenID Connect with authorization_endpoint and token_endpoint",
            ),
            Ok(found) => match found.clock.map(|at| skew_ms(before, at, clock())) {
                Some(skew) if skew.abs() > SKEW_WRONG_MS => check.with_finding(
                    Status::Fail,
                    format!("the clock of {issuer} differs by {} s", skew / 1_000),
                    "synchronise the clock of this machine; tokens are refused beyond 60 s",
                ),
                Some(_) | None => check.with_finding(Status::Ok, format!("{issuer} answers"), ""),
            },
        };
    }
    check
}

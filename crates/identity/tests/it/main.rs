//! Tokens and issuers, right and wrong.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panics"
)]

mod issuers;
mod tokens;

use assay_domain::{
    identity::{Claims, TokenError, TokenVerifier as _},
    timestamp::Timestamp,
};
use assay_identity::{Client, Verifier};
use assay_testkit::{Issuer, unix_s};

/// The address of the installation.
const AUDIENCE: &str = "https://assay.example.org";

fn now() -> Timestamp {
    Timestamp::from_unix_ms(unix_s() * 1_000)
}

fn verifier() -> Verifier {
    Verifier::new(Client::new(["127.0.0.1".to_owned()]), |_| ())
}

/// Verifies a token, with the issuer's keys fetched as a listener does.
fn verify(verifier: &Verifier, issuer: &Issuer, token: &str, at: Timestamp) -> Result<Claims, TokenError> {
    let once = || verifier.verify(token, &issuer.url, &[AUDIENCE], at);
    once().or_else(|error| match error {
        TokenError::KeysNeeded => {
            verifier.fetch_keys(&issuer.url, at);
            once()
        }
        error @ (TokenError::Unavailable | TokenError::Wrong(_)) => Err(error),
    })
}

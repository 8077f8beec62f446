//! Issuers that fail, misbehave, or change their keys.

use std::time::{Duration, Instant};

use assay_domain::identity::TokenError;
use assay_identity::{Client, Verifier};
use assay_testkit::{Behaviour, Issuer};
use serde_json::json;

use crate::{AUDIENCE, now, verifier, verify};

fn fetches(issuer: &Issuer) -> usize {
    issuer.requests().len()
}

#[test]
fn no_hostile_issuer_gives_keys_or_takes_long() {
    let issuer = Issuer::new();
    let token = issuer.mint(&issuer.claims(AUDIENCE, &json!({})));
    for behaviour in [
        Behaviour::Failing,
        Behaviour::Redirecting,
        Behaviour::OfAnother,
        Behaviour::Huge,
        Behaviour::Slow,
        Behaviour::ManyKeys,
        Behaviour::OtherKeys,
        Behaviour::PrivateKeys,
    ] {
        issuer.behave(behaviour);
        let (verifier, began) = (verifier(), Instant::now());
        let error = verify(&verifier, &issuer, &token, now()).unwrap_err();
        assert_eq!(error, TokenError::Unavailable, "{behaviour:?}");
        // Two requests of four seconds, and what a busy machine adds.
        assert!(began.elapsed() < Duration::from_secs(30), "{behaviour:?}");
        assert!(
            !issuer.requests().iter().any(|path| path.starts_with("/moved")),
            "{behaviour:?}"
        );
    }
}

#[test]
fn a_private_address_that_nobody_named_is_not_asked() {
    let issuer = Issuer::new();
    let token = issuer.mint(&issuer.claims(AUDIENCE, &json!({})));
    let verifier = Verifier::new(Client::new([]), |_| ());
    assert_eq!(
        verify(&verifier, &issuer, &token, now()),
        Err(TokenError::Unavailable)
    );
    assert_eq!(fetches(&issuer), 0);
}

#[test]
fn a_new_key_is_found_and_unknown_ids_of_keys_are_asked_for_once_in_a_while() {
    let (issuer, verifier) = (Issuer::new(), verifier());
    let mint = || issuer.mint(&issuer.claims(AUDIENCE, &json!({})));
    verify(&verifier, &issuer, &mint(), now()).unwrap();
    assert_eq!(fetches(&issuer), 2);
    issuer.rotate();
    // Within half a minute of the first fetch, the new id is taken for an invented one.
    let wrong = Err(TokenError::Wrong("its issuer has no such key"));
    for _ in 0..100 {
        assert_eq!(verify(&verifier, &issuer, &mint(), now()).map(drop), wrong);
    }
    assert_eq!(fetches(&issuer), 2);
    let later = now().plus_ms(40_000);
    verify(&verifier, &issuer, &mint(), later).unwrap();
    assert_eq!(fetches(&issuer), 4);
    // The former key is not accepted any more.
    issuer.rotate();
    let hour = now().plus_ms(3_700_000);
    let token = issuer.mint(&issuer.claims(AUDIENCE, &json!({ "exp": hour.unix_ms() / 1_000 + 60 })));
    verify(&verifier, &issuer, &token, hour).unwrap();
    assert_eq!(fetches(&issuer), 6);
}

#[test]
fn keys_outlive_an_outage_of_their_issuer_for_a_day() {
    let (issuer, verifier) = (Issuer::new(), verifier());
    let token =
        issuer.mint(&issuer.claims(AUDIENCE, &json!({ "exp": now().plus_days(9).unix_ms() / 1_000 })));
    verify(&verifier, &issuer, &token, now()).unwrap();
    issuer.behave(Behaviour::Failing);
    verify(&verifier, &issuer, &token, now().plus_ms(23 * 3_600_000)).unwrap();
    let late = verify(&verifier, &issuer, &token, now().plus_ms(25 * 3_600_000));
    assert_eq!(late, Err(TokenError::Unavailable));
    issuer.behave(Behaviour::Usual);
    verify(&verifier, &issuer, &token, now().plus_ms(26 * 3_600_000)).unwrap();
}

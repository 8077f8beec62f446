//! Tokens of a usual issuer: `testdata/identity/wrong-tokens.json` has those that are refused.

use assay_domain::identity::TokenError;
use assay_testkit::{Issuer, Signer, unix_s};
use serde_json::{Value, json};

use crate::{AUDIENCE, now, verifier, verify};

fn signer(row: &Value) -> Signer {
    match row["by"].as_str() {
        None => Signer::Ecdsa,
        Some("stranger") => Signer::Stranger,
        Some("hmac") => Signer::Hmac,
        Some("nothing") => Signer::Nothing,
        Some("rsa") => Signer::Rsa,
        Some("rsa384") => Signer::Rsa384,
        Some("ed25519") => Signer::Ed25519,
        Some(other) => panic!("{other}"),
    }
}

/// A value of a row with its placeholders filled in.
fn filled(value: &Value, issuer: &Issuer) -> Value {
    match value.as_str() {
        Some("{now-61}") => json!(unix_s() - 61),
        Some("{now+120}") => json!(unix_s() + 120),
        Some("{long}") => json!("x".repeat(16 << 10)),
        Some(text) => json!(text.replace("{issuer}", &issuer.url)),
        None => value.clone(),
    }
}

#[test]
fn every_wrong_token_is_refused_for_its_reason() {
    let rows: Vec<Value> =
        serde_json::from_str(include_str!("../../../../testdata/identity/wrong-tokens.json")).unwrap();
    assert!(rows.len() >= 40);
    let (issuer, verifier) = (Issuer::new(), verifier());
    for row in &rows {
        let mut more = json!({});
        for (name, value) in row["claims"].as_object().into_iter().flatten() {
            more[name] = filled(value, &issuer);
        }
        let none = json!({});
        let header = if row["header"].is_object() {
            &row["header"]
        } else {
            &none
        };
        let token = issuer.signed(header, &issuer.claims(AUDIENCE, &more), signer(row));
        let token = match row["text"].as_str() {
            Some(text) => text.replace("{token}", &token),
            None => token,
        };
        let error = verify(&verifier, &issuer, &token, now()).unwrap_err();
        let TokenError::Wrong(why) = error else {
            panic!("{}: {error}", row["name"]);
        };
        assert!(
            why.contains(row["refused"].as_str().unwrap()),
            "{}: {why}",
            row["name"]
        );
    }
    // The table was tried with the issuer's keys, which were fetched once, and once more for unknown ids.
    let fetches = issuer.requests().iter().filter(|path| *path == "/keys").count();
    assert!(fetches <= 2, "{fetches}");
}

#[test]
fn right_tokens_of_every_algorithm_are_accepted_within_the_skew() {
    let (issuer, verifier) = (Issuer::new(), verifier());
    for by in [Signer::Ecdsa, Signer::Rsa, Signer::Ed25519] {
        for more in [
            json!({}),
            json!({ "aud": ["https://other.example.org", AUDIENCE] }),
            json!({ "exp": unix_s() - 50 }),
            json!({ "nbf": unix_s() + 50, "iat": unix_s() + 50 }),
            json!({ "nbf": null, "iat": null }),
        ] {
            let token = issuer.signed(&json!({}), &issuer.claims(AUDIENCE, &more), by);
            let claims = verify(&verifier, &issuer, &token, now()).unwrap();
            assert_eq!(claims.text("sub").as_deref(), Some("somebody"), "{by:?} {more}");
        }
    }
}

#[test]
fn any_changed_character_of_a_token_is_refused() {
    let (issuer, verifier) = (Issuer::new(), verifier());
    let token = issuer.mint(&issuer.claims(AUDIENCE, &json!({})));
    verify(&verifier, &issuer, &token, now()).unwrap();
    for place in 0..token.len() {
        let mut changed = token.clone().into_bytes();
        changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert!(verify(&verifier, &issuer, &changed, now()).is_err(), "{place}");
    }
}

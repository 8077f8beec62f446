//! The check of an ingest key: its form, its states, and the delay of changes.

use std::sync::{Arc, Mutex};

use assay_access::{
    check::{CheckError, Grant, PresentedKey, Refusal, budget_id},
    directory::Directory,
    limit::{Admission, DEFAULT_UPLOAD_LIMIT, InProcessLimiter, RateLimiter},
};
use assay_domain::{
    decision::{DecisionError, DecisionReceipt, GateDecision},
    fix::{FixError, NewFix},
    id::ProjectId,
    ingest::{IngestKeys, IngestTerms, StoredIngestKey, Upload},
    key::{KeyHash, KeyKind, SecretKey, mint},
    project::Project,
    rules::RecordingRules,
    store::StoreError,
    timestamp::Timestamp,
};

use crate::check::NOW;

/// A store with one ingest key.
struct OneKey(Mutex<State>);

struct State {
    hash: KeyHash,
    key: StoredIngestKey,
    fails: bool,
    look_ups: usize,
}

impl OneKey {
    fn change(&self, change: impl FnOnce(&mut StoredIngestKey)) {
        change(&mut self.0.lock().unwrap().key);
    }
}

impl IngestKeys for OneKey {
    fn ingest_key(&self, hash: &KeyHash) -> Result<Option<StoredIngestKey>, StoreError> {
        let mut state = self.0.lock().unwrap();
        state.look_ups += 1;
        if state.fails {
            return Err(StoreError::Unreachable("down".into()));
        }
        Ok((state.hash == *hash).then(|| state.key.clone()))
    }

    fn trusted_keys(&self, _: &str, _: &str) -> Result<Vec<StoredIngestKey>, StoreError> {
        unreachable!()
    }

    fn project_of_key(&self, _: ProjectId, _: Timestamp) -> Result<Option<Project>, StoreError> {
        unreachable!()
    }

    fn record_upload(&self, _: &Upload) -> Result<(), StoreError> {
        unreachable!()
    }

    fn record_decision(
        &self,
        _: ProjectId,
        _: &GateDecision,
        _: RecordingRules,
        _: Timestamp,
    ) -> Result<DecisionReceipt, DecisionError> {
        unreachable!()
    }

    fn record_fix(&self, _: ProjectId, _: &NewFix, _: RecordingRules, _: Timestamp) -> Result<(), FixError> {
        unreachable!()
    }
}

fn a_key(terms: IngestTerms) -> (SecretKey, Arc<OneKey>, Directory<StoredIngestKey>) {
    let (secret, new) = mint(KeyKind::Ingest, NOW);
    let key = StoredIngestKey {
        id: new.id,
        project: ProjectId("019aa3f4-5b1c-7def-8a3b-000000000001".parse().unwrap()),
        project_name: "storefront".to_owned(),
        stable_branch: "main".to_owned(),
        terms,
        revoked_at: None,
        sender: None,
    };
    let keys = Arc::new(OneKey(Mutex::new(State {
        hash: new.hash,
        key,
        fails: false,
        look_ups: 0,
    })));
    (secret, Arc::clone(&keys), Directory::<StoredIngestKey>::new(keys))
}

fn presented(secret: &SecretKey) -> PresentedKey {
    PresentedKey::of_header(
        KeyKind::Ingest,
        Some(format!("Bearer {}", secret.reveal()).as_bytes()),
    )
    .unwrap()
}

fn refusal(outcome: Result<Grant<StoredIngestKey>, CheckError>) -> Refusal {
    match outcome {
        Err(CheckError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_malformed_ingest_key_is_refused_without_a_look_up() {
    let (ingest, _) = mint(KeyKind::Ingest, NOW);
    let (read, _) = mint(KeyKind::Read, NOW);
    let (ingest, read) = (ingest.reveal(), read.reveal());
    assert_eq!(
        PresentedKey::of_header(KeyKind::Ingest, None),
        Err(Refusal::MissingKey)
    );
    for (header, expected) in [
        (String::new(), Refusal::MissingKey),
        ("Bearer ".to_owned(), Refusal::MissingKey),
        (format!("Basic {ingest}"), Refusal::MissingKey),
        (ingest.to_owned(), Refusal::MissingKey),
        (format!("Bearer {read}"), Refusal::WrongKeyType),
        ("Bearer svc_ro_".to_owned(), Refusal::WrongKeyType),
        (format!("Bearer {ingest}x"), Refusal::InvalidKey),
        (format!("Bearer {}", ingest.to_uppercase()), Refusal::InvalidKey),
        ("Bearer other".to_owned(), Refusal::InvalidKey),
    ] {
        let refused = PresentedKey::of_header(KeyKind::Ingest, Some(header.as_bytes()));
        assert_eq!(refused, Err(expected));
    }
    let header = format!("bearer  {ingest} ");
    assert!(PresentedKey::of_header(KeyKind::Ingest, Some(header.as_bytes())).is_ok());
}

#[test]
fn a_good_key_grants_its_project_and_its_terms() {
    let terms = IngestTerms {
        name: Some("forks".to_owned()),
        pull_requests_only: true,
        ..IngestTerms::default()
    };
    let (secret, _, directory) = a_key(terms.clone());
    let grant = directory.check(&presented(&secret), NOW).unwrap();
    assert_eq!(
        (grant.project_name.as_str(), &grant.terms),
        ("storefront", &terms)
    );
    let expected = RecordingRules::IngestKey {
        backfill: false,
        pull_requests_only: true,
        budget: None,
    };
    assert_eq!(grant.rules(), expected);
    // A key without an expiry is valid for years.
    directory
        .check(&presented(&secret), NOW.plus_days(3_650))
        .unwrap();
    let (other, _) = mint(KeyKind::Ingest, NOW);
    assert_eq!(
        refusal(directory.check(&presented(&other), NOW)),
        Refusal::InvalidKey
    );
}

#[test]
fn a_revocation_takes_effect_after_half_a_second_and_an_expiry_immediately() {
    let (secret, keys, directory) = a_key(IngestTerms {
        expires_at: Some(NOW.plus_days(30)),
        ..IngestTerms::default()
    });
    let check = |at| directory.check(&presented(&secret), at);
    check(NOW.plus_days(30).plus_ms(-1)).unwrap();
    assert_eq!(refusal(check(NOW.plus_days(30))), Refusal::KeyExpired);
    assert_eq!(keys.0.lock().unwrap().look_ups, 1);
    check(NOW).unwrap();
    keys.change(|key| key.revoked_at = Some(NOW));
    assert_eq!(refusal(check(NOW.plus_ms(500))), Refusal::KeyRevoked);
    // A revoked key is reported as revoked, also past its expiry.
    assert_eq!(refusal(check(NOW.plus_days(31))), Refusal::KeyRevoked);
}

#[test]
fn a_failing_store_does_not_invalidate_an_ingest_key() {
    let (secret, keys, directory) = a_key(IngestTerms::default());
    keys.0.lock().unwrap().fails = true;
    let failed = directory.check(&presented(&secret), NOW);
    assert!(matches!(failed, Err(CheckError::Store(_))));
    keys.0.lock().unwrap().fails = false;
    directory.check(&presented(&secret), NOW).unwrap();
}

#[tokio::test]
async fn a_key_may_send_six_hundred_uploads_a_minute() {
    let (secret, _, _) = a_key(IngestTerms::default());
    let budget = presented(&secret).budget_id("upload");
    let limiter = InProcessLimiter::new(DEFAULT_UPLOAD_LIMIT);
    let header = format!("Bearer {}", secret.reveal());
    assert_ne!(budget, budget_id(header.as_bytes()));
    for _ in 0..600 {
        assert_ne!(limiter.admit(&budget, NOW).await, Admission::Refused);
    }
    assert_eq!(limiter.admit(&budget, NOW).await, Admission::Refused);
}

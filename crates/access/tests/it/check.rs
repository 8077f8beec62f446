//! The check of a well-formed key against its row.

use std::sync::Arc;

use assay_access::{
    check::{CheckError, Grant, PresentedKey, Refusal},
    directory::Directory,
    usage::KeyUsage,
};
use assay_domain::{
    id::OrganizationId,
    key::{KeyKind, Lifetime, SecretKey, StoredKey, mint},
    plan::Plan,
    timestamp::Timestamp,
};

use crate::store::Keys;

pub(crate) const NOW: Timestamp = Timestamp::from_unix_ms(1_795_200_363_120);

pub(crate) fn a_key() -> (SecretKey, StoredKey, Arc<Keys>) {
    let (secret, new) = mint(KeyKind::Read, NOW);
    let stored = StoredKey {
        id: new.id,
        is_person: false,
        only: None,
        organization: OrganizationId("019aa3f4-5b1c-7def-8a3b-0123456789ab".parse().unwrap()),
        plan: Plan::Pro,
        expires_at: Lifetime::Thirty.expiry(NOW),
        revoked_at: None,
    };
    (secret, stored.clone(), Arc::new(Keys::of(new.hash, stored)))
}

pub(crate) fn presented(secret: &SecretKey) -> PresentedKey {
    PresentedKey::of_header(
        KeyKind::Read,
        Some(format!("Bearer {}", secret.reveal()).as_bytes()),
    )
    .unwrap()
}

/// The check of a key by a process with an empty cache.
fn check(secret: &SecretKey, keys: &Arc<Keys>, now: Timestamp) -> Result<Grant<StoredKey>, CheckError> {
    Directory::<StoredKey>::new(keys.clone()).check(&presented(secret), now)
}

#[test]
fn a_good_key_grants_its_organization() {
    let (secret, stored, keys) = a_key();
    let grant = check(&secret, &keys, NOW).unwrap();
    assert_eq!(grant.caller().organization, stored.organization);
    assert_eq!(grant.caller().plan, Plan::Pro);
    assert_eq!((grant.id, grant.expires_at), (stored.id, stored.expires_at));
}

#[test]
fn an_unknown_key_is_invalid() {
    let (_, _, keys) = a_key();
    let (other, _) = mint(KeyKind::Read, NOW);
    assert!(matches!(
        check(&other, &keys, NOW),
        Err(CheckError::Refused(Refusal::InvalidKey))
    ));
}

#[test]
fn a_key_works_until_the_moment_of_its_expiry() {
    let (secret, stored, keys) = a_key();
    assert!(check(&secret, &keys, stored.expires_at.plus_ms(-1)).is_ok());
    let late = check(&secret, &keys, stored.expires_at);
    assert!(matches!(late, Err(CheckError::Refused(Refusal::KeyExpired))));
}

#[test]
fn revoked_comes_before_expired_and_both_before_the_plan() {
    let (secret, _, keys) = a_key();
    let late = NOW.plus_days(31);
    keys.change(|key| key.plan = Plan::Free);
    assert!(matches!(
        check(&secret, &keys, NOW),
        Err(CheckError::Refused(Refusal::TierTooLow))
    ));
    assert!(matches!(
        check(&secret, &keys, late),
        Err(CheckError::Refused(Refusal::KeyExpired))
    ));
    keys.change(|key| key.revoked_at = Some(NOW));
    assert!(matches!(
        check(&secret, &keys, late),
        Err(CheckError::Refused(Refusal::KeyRevoked))
    ));
    keys.change(|key| (key.revoked_at, key.plan) = (None, Plan::Standard));
    assert!(
        check(&secret, &keys, NOW).is_ok(),
        "the same key works again after an upgrade"
    );
}

#[test]
fn a_failing_store_does_not_invalidate_the_key() {
    let (secret, _, keys) = a_key();
    keys.fail(true);
    assert!(matches!(check(&secret, &keys, NOW), Err(CheckError::Store(_))));
}

#[test]
fn a_use_is_recorded_once_a_day() {
    let (_, stored, keys) = a_key();
    let usage = KeyUsage::default();
    usage.record::<StoredKey>(&*keys, &stored, NOW);
    usage.record::<StoredKey>(&*keys, &stored, NOW.plus_ms(1));
    assert_eq!(keys.uses(), [NOW]);
    usage.record::<StoredKey>(&*keys, &stored, NOW.plus_days(1));
    assert_eq!(keys.uses(), [NOW, NOW.plus_days(1)]);
}

#[test]
fn a_use_that_could_not_be_recorded_is_recorded_a_minute_later() {
    let (_, stored, keys) = a_key();
    let usage = KeyUsage::default();
    keys.fail(true);
    usage.record::<StoredKey>(&*keys, &stored, NOW);
    keys.fail(false);
    usage.record::<StoredKey>(&*keys, &stored, NOW.plus_ms(59_999));
    assert!(keys.uses().is_empty());
    usage.record::<StoredKey>(&*keys, &stored, NOW.plus_ms(60_000));
    assert_eq!(keys.uses(), [NOW.plus_ms(60_000)]);
}

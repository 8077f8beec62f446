//! The cache of keys and projects, and its lifetime.

use std::sync::Arc;

use assay_access::{
    check::{CheckError, Refusal},
    directory::Directory,
};
use assay_domain::{
    id::{OrganizationId, ProjectId},
    key::{KeyKind, StoredKey, mint},
    plan::Plan,
    project::Caller,
    timestamp::Timestamp,
};

use crate::{
    check::{NOW, a_key, presented},
    store::Keys,
};

/// The lifetime of a cached entry.
const CACHED_MS: i64 = 500;

fn refusal(outcome: Result<impl std::fmt::Debug, CheckError>) -> Refusal {
    match outcome {
        Err(CheckError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn project() -> ProjectId {
    ProjectId("019aa3f4-5b1c-7def-8a3b-000000000001".parse().unwrap())
}

fn caller(of: &StoredKey) -> Caller {
    Caller {
        organization: of.organization,
        plan: of.plan,
        only: None,
    }
}

#[test]
fn a_key_is_read_once_in_half_a_second() {
    let (secret, _, keys) = a_key();
    let directory = Directory::<StoredKey>::new(keys.clone());
    let check = |at: Timestamp| directory.check(&presented(&secret), at);
    for ms in [0, 1, CACHED_MS - 1] {
        check(NOW.plus_ms(ms)).unwrap();
    }
    assert_eq!(keys.look_ups(), 1);
    check(NOW.plus_ms(CACHED_MS)).unwrap();
    assert_eq!(keys.look_ups(), 2);
}

#[test]
fn a_revocation_and_a_plan_take_effect_after_half_a_second() {
    let (secret, stored, keys) = a_key();
    let directory = Directory::<StoredKey>::new(keys.clone());
    let check = |at: Timestamp| directory.check(&presented(&secret), at);
    assert_eq!(check(NOW).unwrap().caller().plan, Plan::Pro);
    keys.change(|key| key.plan = Plan::Free);
    let late = NOW.plus_ms(CACHED_MS);
    assert_eq!(refusal(check(late)), Refusal::TierTooLow);
    // A rejection is not cached either.
    keys.change(|key| key.plan = Plan::Standard);
    let later = late.plus_ms(CACHED_MS);
    assert_eq!(check(later).unwrap().caller().plan, Plan::Standard);
    keys.change(|key| key.revoked_at = Some(later));
    let latest = later.plus_ms(CACHED_MS);
    assert_eq!(refusal(check(latest)), Refusal::KeyRevoked);
    assert_eq!(stored.plan, Plan::Pro);
}

#[test]
fn an_expiry_takes_effect_immediately() {
    let (secret, stored, keys) = a_key();
    let directory = Directory::<StoredKey>::new(keys.clone());
    let check = |at: Timestamp| directory.check(&presented(&secret), at);
    check(stored.expires_at.plus_ms(-1)).unwrap();
    assert_eq!(refusal(check(stored.expires_at)), Refusal::KeyExpired);
    assert_eq!(keys.look_ups(), 1, "no further look-up was needed");
}

#[test]
fn an_absent_key_is_looked_up_again() {
    let (_, stored, _) = a_key();
    let (secret, new) = mint(KeyKind::Read, NOW);
    let (other, _) = mint(KeyKind::Read, NOW);
    let keys = Arc::new(Keys::of(new.hash, stored));
    let directory = Directory::<StoredKey>::new(keys.clone());
    for _ in 0..3 {
        assert_eq!(
            refusal(directory.check(&presented(&other), NOW)),
            Refusal::InvalidKey
        );
    }
    assert_eq!(keys.look_ups(), 3);
    directory.check(&presented(&secret), NOW).unwrap();
}

#[test]
fn a_failure_of_the_store_is_not_cached() {
    let (secret, _, keys) = a_key();
    let directory = Directory::<StoredKey>::new(keys.clone());
    keys.fail(true);
    let failed = directory.check(&presented(&secret), NOW);
    assert!(matches!(failed, Err(CheckError::Store(_))));
    keys.fail(false);
    directory.check(&presented(&secret), NOW).unwrap();
}

#[test]
fn after_the_clock_was_set_back_every_key_is_read_again() {
    let (secret, _, keys) = a_key();
    let directory = Directory::<StoredKey>::new(keys.clone());
    directory.check(&presented(&secret), NOW).unwrap();
    keys.change(|key| key.plan = Plan::Free);
    let before = directory.check(&presented(&secret), NOW.plus_days(-1));
    assert_eq!(refusal(before), Refusal::TierTooLow);
}

#[test]
fn a_project_belongs_to_its_organization_and_is_limited_by_the_plan() {
    let (_, stored, keys) = a_key();
    let directory = Directory::<StoredKey>::new(keys.clone());
    let ask = |caller: &Caller, at: Timestamp| directory.project(caller, project(), at).unwrap();
    let ours = caller(&stored);
    let project = ask(&ours, NOW).unwrap();
    assert_eq!(project.visible_from, NOW.plus_days(-90));

    let stranger = Caller {
        organization: OrganizationId(uuid()),
        ..ours.clone()
    };
    assert_eq!(
        ask(&stranger, NOW),
        None,
        "another organization's key does not find it"
    );
    assert_eq!(keys.look_ups(), 2);

    // The same row, at another time and under another plan.
    let standard = Caller {
        plan: Plan::Standard,
        ..ours.clone()
    };
    let later = NOW.plus_ms(CACHED_MS - 1);
    let project = ask(&standard, later).unwrap();
    assert_eq!(project.visible_from, later.plus_days(-60));
    assert_eq!(keys.look_ups(), 2);
    ask(&ours, NOW.plus_ms(CACHED_MS)).unwrap();
    assert_eq!(keys.look_ups(), 3);
}

fn uuid() -> uuid::Uuid {
    "019aa3f4-5b1c-7def-8a3b-0000000000ff".parse().unwrap()
}

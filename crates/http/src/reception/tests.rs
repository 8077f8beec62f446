use std::{sync::Mutex, thread, time::Duration};

use assay_access::limit::InProcessLimiter;
use assay_domain::{
    id::{KeyId, OrganizationId, ProjectId, SessionId},
    key::{KeyHash, KeyKind, mint},
    plan::Plan,
    project::{Caller, Project},
    store::{ReadKeys, StoreError},
};

use super::*;

const NOW: Timestamp = Timestamp::from_unix_ms(1_795_200_363_120);

/// A store with one key.
struct Keys(Mutex<State>);

struct State {
    hash: KeyHash,
    key: StoredKey,
    fails: bool,
    /// Whether look-ups of unknown keys wait until this changes.
    hangs: bool,
    look_ups: usize,
    uses: usize,
}

impl ReadKeys for Keys {
    fn key(&self, hash: &KeyHash) -> Result<Option<StoredKey>, StoreError> {
        let mut state = self.0.lock().unwrap();
        state.look_ups += 1;
        if state.fails {
            return Err(StoreError::Unreachable("down".into()));
        }
        let key = (state.hash == *hash).then(|| state.key.clone());
        while key.is_none() && state.hangs {
            drop(state);
            thread::sleep(Duration::from_millis(1));
            state = self.0.lock().unwrap();
        }
        Ok(key)
    }

    fn plan(&self, _: OrganizationId) -> Result<Option<Plan>, StoreError> {
        unreachable!()
    }

    fn organization_named(&self, _: &str) -> Result<Option<OrganizationId>, StoreError> {
        unreachable!()
    }

    fn key_used(&self, _: KeyId, _: Timestamp) -> Result<(), StoreError> {
        self.0.lock().unwrap().uses += 1;
        Ok(())
    }

    fn project(&self, _: &Caller, _: ProjectId, _: Timestamp) -> Result<Option<Project>, StoreError> {
        unreachable!()
    }

    fn end_session(
        &self,
        _: SessionId,
        _: Option<KeyId>,
        _: Timestamp,
        _: Timestamp,
    ) -> Result<(), StoreError> {
        unreachable!()
    }

    fn is_session_ended(&self, _: SessionId) -> Result<bool, StoreError> {
        unreachable!()
    }
}

/// A reception, its store, and the header with the store's key.
fn reception() -> (ReadReception, Arc<Keys>, String) {
    let (secret, new) = mint(KeyKind::Read, NOW);
    let key = StoredKey {
        id: new.id,
        is_person: false,
        only: None,
        organization: OrganizationId("019aa3f4-5b1c-7def-8a3b-0123456789ab".parse().unwrap()),
        plan: Plan::Pro,
        expires_at: NOW.plus_days(30),
        revoked_at: None,
    };
    let keys = Arc::new(Keys(Mutex::new(State {
        hash: new.hash,
        key,
        fails: false,
        hangs: false,
        look_ups: 0,
        uses: 0,
    })));
    let reception = ReadReception::new(keys.clone(), 4, None);
    (reception, keys, format!("Bearer {}", secret.reveal()))
}

fn presented(header: &str) -> Result<PresentedKey, Refusal> {
    PresentedKey::of_header(KeyKind::Read, Some(header.as_bytes()))
}

fn work(grant: Grant<StoredKey>) -> Result<Plan, Problem> {
    Ok(grant.plan)
}

#[actix_web::test]
async fn work_runs_with_the_grant_and_the_use_is_recorded_once_a_day() {
    let (reception, keys, header) = reception();
    let limiter = InProcessLimiter::new(3);
    for remaining in [2, 1] {
        let counted_by = CountedBy::key(&limiter, &presented(&header), "page");
        let received = reception.receive(presented(&header), counted_by, NOW, work);
        let (plan, budget) = received.await.unwrap();
        assert_eq!((plan, budget.unwrap().remaining), (Plan::Pro, remaining));
    }
    // Other requests of the key have another budget.
    let counted_by = CountedBy::key(&limiter, &presented(&header), "tool");
    let identified = reception.identify(presented(&header), counted_by, NOW).await;
    let (key, grant) = identified.unwrap();
    assert_eq!((Ok(key), grant.plan), (presented(&header), Plan::Pro));
    let state = keys.0.lock().unwrap();
    assert_eq!((state.look_ups, state.uses), (1, 1));
}

#[actix_web::test]
async fn the_budget_comes_before_the_form_of_the_key_and_both_before_a_look_up() {
    let (reception, keys, header) = reception();
    let limiter = InProcessLimiter::new(1);
    let receive = async |header: &str| {
        let counted_by = CountedBy {
            limiter: &limiter,
            id: header.as_bytes().into(),
        };
        let work = |_| -> Result<(), Problem> { panic!("the work of a refused request ran") };
        reception
            .receive(presented(header), Some(counted_by), NOW, work)
            .await
            .unwrap_err()
    };
    for code in ["invalid_key", "rate_limited"] {
        let problem = receive("Bearer svc_ro_wrong").await;
        assert_eq!(problem.status_and_code(KeyKind::Read).1, code);
    }
    assert_eq!(keys.0.lock().unwrap().look_ups, 0);
    // An unknown key is looked up, and its work does not run.
    let (other, _) = mint(KeyKind::Read, NOW);
    let problem = receive(&format!("Bearer {}", other.reveal())).await;
    assert!(matches!(problem, Problem::Refused(Refusal::InvalidKey)));
    assert_eq!(keys.0.lock().unwrap().look_ups, 1);
    keys.0.lock().unwrap().key.revoked_at = Some(NOW);
    let problem = receive(&header).await;
    assert!(matches!(problem, Problem::Refused(Refusal::KeyRevoked)));
    assert_eq!(keys.0.lock().unwrap().uses, 0);
}

#[actix_web::test]
async fn a_failure_of_the_store_and_of_the_work_are_the_servers_problem() {
    let (reception, keys, header) = reception();
    keys.0.lock().unwrap().fails = true;
    let problem = reception
        .receive(presented(&header), None, NOW, work)
        .await
        .unwrap_err();
    let [read, ingest] = [KeyKind::Read, KeyKind::Ingest].map(|kind| {
        let (status, code) = problem.status_and_code(kind);
        (status.as_u16(), code, problem.retry_after_s(kind))
    });
    assert_eq!(read, (503, "internal_error", Some(1)));
    assert_eq!(ingest, (503, "busy", Some(5)));
    assert!(problem.is_failure());
    keys.0.lock().unwrap().fails = false;
    let work = |_| -> Result<(), Problem> { panic!("on purpose") };
    let problem = reception
        .receive(presented(&header), None, NOW, work)
        .await
        .unwrap_err();
    assert!(matches!(problem, Problem::Panicked));
    assert_eq!(
        problem.sentence(KeyKind::Read),
        "The server failed to answer; try again later."
    );
}

#[actix_web::test]
async fn unknown_keys_take_no_more_threads_together_than_one_key() {
    let (reception, keys, header) = reception();
    let known = async || reception.receive(presented(&header), None, NOW, work).await;
    known().await.unwrap();
    keys.0.lock().unwrap().hangs = true;
    let unknown_keys: Vec<_> = (0..8)
        .map(|_| {
            let (reception, secret) = (reception.clone(), mint(KeyKind::Read, NOW).0);
            actix_web::rt::spawn(async move {
                let header = format!("Bearer {}", secret.reveal());
                reception.receive(presented(&header), None, NOW, work).await
            })
        })
        .collect();
    // One look-up of the known key, and those on half of the threads.
    let look_ups = || keys.0.lock().unwrap().look_ups;
    while look_ups() < 3 {
        actix_web::rt::time::sleep(Duration::from_millis(1)).await;
    }
    for _ in 0..3 {
        known().await.unwrap();
    }
    assert_eq!(look_ups(), 3);
    keys.0.lock().unwrap().hangs = false;
    for answer in unknown_keys {
        let problem = answer.await.unwrap().unwrap_err();
        assert!(matches!(problem, Problem::Refused(Refusal::InvalidKey)));
    }
}

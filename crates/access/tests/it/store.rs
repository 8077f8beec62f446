//! A store with one key, whose organization has every project.

use std::sync::Mutex;

use assay_domain::{
    id::{KeyId, OrganizationId, ProjectId, SessionId},
    key::{KeyHash, StoredKey},
    plan::Plan,
    project::{Caller, Project},
    store::{ReadKeys, StoreError},
    timestamp::Timestamp,
};

/// One key, whose organization has every project.
pub(crate) struct Keys(Mutex<State>);

struct State {
    hash: KeyHash,
    key: StoredKey,
    fails: bool,
    uses: Vec<Timestamp>,
    /// The number of look-ups of keys and projects.
    look_ups: usize,
}

impl Keys {
    pub(crate) fn of(hash: KeyHash, key: StoredKey) -> Self {
        Self(Mutex::new(State {
            hash,
            key,
            fails: false,
            uses: Vec::new(),
            look_ups: 0,
        }))
    }

    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut StoredKey) -> R) {
        change(&mut self.0.lock().unwrap().key);
    }

    pub(crate) fn fail(&self, fails: bool) {
        self.0.lock().unwrap().fails = fails;
    }

    pub(crate) fn look_ups(&self) -> usize {
        self.0.lock().unwrap().look_ups
    }

    pub(crate) fn uses(&self) -> Vec<Timestamp> {
        self.0.lock().unwrap().uses.clone()
    }
}

impl State {
    fn answers(&self) -> Result<(), StoreError> {
        if self.fails {
            Err(StoreError::Unreachable("down".into()))
        } else {
            Ok(())
        }
    }
}

impl ReadKeys for Keys {
    fn key(&self, hash: &KeyHash) -> Result<Option<StoredKey>, StoreError> {
        let mut state = self.0.lock().unwrap();
        state.look_ups += 1;
        state.answers()?;
        Ok((state.hash == *hash).then(|| state.key.clone()))
    }

    fn plan(&self, id: OrganizationId) -> Result<Option<Plan>, StoreError> {
        let mut state = self.0.lock().unwrap();
        state.look_ups += 1;
        Ok((id == state.key.organization).then_some(state.key.plan))
    }

    fn organization_named(&self, _: &str) -> Result<Option<OrganizationId>, StoreError> {
        unreachable!()
    }

    fn key_used(&self, key: KeyId, now: Timestamp) -> Result<(), StoreError> {
        let mut state = self.0.lock().unwrap();
        state.answers()?;
        assert_eq!(state.key.id, key);
        state.uses.push(now);
        Ok(())
    }

    fn project(&self, caller: &Caller, id: ProjectId, now: Timestamp) -> Result<Option<Project>, StoreError> {
        let mut state = self.0.lock().unwrap();
        state.look_ups += 1;
        state.answers()?;
        let project = Project::of_row(id, "shop".to_owned(), caller.plan, now);
        Ok((caller.organization == state.key.organization).then_some(project))
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

//! A store with one key and the projects of its organization.

use std::sync::Mutex;

use assay_domain::{
    attempt::TestAttempts,
    decision::RunDecision,
    history::{HistoryRest, Occurrence, TestHistory, TestSummary},
    id::{KeyId, ProjectId, RunId},
    key::{KeyHash, StoredKey},
    project::{Caller, Project, ProjectEntry},
    run::{RunDetail, RunPage, RunPart, RunQuery, RunRest, SomeTests, TestEntry},
    settings::Settings,
    signature::{NewSignature, SignatureDays, SignatureDetail, SignaturePage, SignatureQuery, TestSignature},
    store::{Connections, NodeReads, SnapshotWork, Store, StoreError},
    test::{TestLookup, TestSelector},
    timestamp::Timestamp,
    verdict::TestVerdict,
    window::Window,
};

/// A store with one key, whose organization has every project. Any other call is an error in the code under test.
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

impl Store for Keys {
    fn ready(&self) -> Result<(), StoreError> {
        self.0.lock().unwrap().answers()
    }

    fn connections(&self) -> Connections {
        Connections {
            busy: 1,
            idle: 2,
            most: 4,
        }
    }

    fn reads_by_node(&self) -> Vec<NodeReads> {
        Vec::new()
    }

    fn key(&self, hash: &KeyHash) -> Result<Option<StoredKey>, StoreError> {
        let mut state = self.0.lock().unwrap();
        state.look_ups += 1;
        state.answers()?;
        Ok((state.hash == *hash).then_some(state.key))
    }

    fn key_used(&self, key: KeyId, now: Timestamp) -> Result<(), StoreError> {
        let mut state = self.0.lock().unwrap();
        state.answers()?;
        assert_eq!(state.key.id, key);
        state.uses.push(now);
        Ok(())
    }

    fn projects(&self, _: &Caller) -> Result<Vec<ProjectEntry>, StoreError> {
        unreachable!()
    }

    fn project(&self, caller: &Caller, id: ProjectId, now: Timestamp) -> Result<Option<Project>, StoreError> {
        let mut state = self.0.lock().unwrap();
        state.look_ups += 1;
        state.answers()?;
        let found = Project::of_row(id, "shop".to_owned(), caller.plan, now);
        Ok((caller.organization == state.key.organization).then_some(found))
    }

    fn settings(&self, _: &Project) -> Result<Settings, StoreError> {
        unreachable!()
    }

    fn branches(&self, _: &Project) -> Result<assay_domain::branch::Branches, StoreError> {
        unreachable!()
    }

    fn runs(&self, _: &Project, _: &RunQuery) -> Result<RunPage, StoreError> {
        unreachable!()
    }

    fn run(&self, _: &Project, _: RunId) -> Result<Option<RunDetail>, StoreError> {
        unreachable!()
    }

    fn run_with(&self, _: &Project, _: RunId, _: &SomeTests) -> Result<Option<RunDetail>, StoreError> {
        unreachable!()
    }

    fn run_part(&self, _: &Project, _: &RunRest, _: &RunPart) -> Result<Option<Vec<TestEntry>>, StoreError> {
        unreachable!()
    }

    fn history_part(
        &self,
        _: &Project,
        _: HistoryRest,
    ) -> Result<(Vec<Occurrence>, Option<HistoryRest>), StoreError> {
        unreachable!()
    }

    fn decisions(&self, _: &Project, _: RunId) -> Result<Vec<RunDecision>, StoreError> {
        unreachable!()
    }

    fn attempts(
        &self,
        _: &Project,
        _: RunId,
        _: &TestSelector,
    ) -> Result<Option<TestLookup<TestAttempts>>, StoreError> {
        unreachable!()
    }

    fn history(
        &self,
        _: &Project,
        _: &TestSelector,
        _: &Window,
    ) -> Result<TestLookup<TestHistory>, StoreError> {
        unreachable!()
    }

    fn verdict(&self, _: &Project, _: &TestSelector) -> Result<TestLookup<TestVerdict>, StoreError> {
        unreachable!()
    }

    fn signature(&self, _: &Project, _: &str, _: &Window) -> Result<Option<SignatureDetail>, StoreError> {
        unreachable!()
    }

    fn signatures(&self, _: &Project, _: &SignatureQuery) -> Result<SignaturePage, StoreError> {
        unreachable!()
    }

    fn signature_days(
        &self,
        _: &Project,
        _: &[&str],
        _: &Window,
        _: Option<&str>,
    ) -> Result<Vec<SignatureDays>, StoreError> {
        unreachable!()
    }

    fn new_signatures(&self, _: &Project, _: &Window) -> Result<Vec<NewSignature>, StoreError> {
        unreachable!()
    }

    fn test_signatures(
        &self,
        _: &Project,
        _: &TestSelector,
        _: &Window,
    ) -> Result<TestLookup<Vec<TestSignature>>, StoreError> {
        unreachable!()
    }

    fn test_summary(
        &self,
        _: &Project,
        _: &TestSelector,
        _: &Window,
        _: u32,
    ) -> Result<TestLookup<TestSummary>, StoreError> {
        unreachable!()
    }

    fn with_snapshot(&self, _: &Project, _: &mut SnapshotWork<'_>) -> Result<(), StoreError> {
        unreachable!()
    }
}

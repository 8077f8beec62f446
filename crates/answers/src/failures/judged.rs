//! The judgement of a run's failures: their causes, before they are paged.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use assay_domain::{
    cause::{ErrorName, FailedRun, FinalStatus, Knowledge, WindowErrors},
    observation::{History, RunObservations},
    owners::{OwnerFilter, Owners},
    page::Page,
    store::{SharedKey, Snapshot, StoreError, shared},
    test::{TestName, TestOrdinal},
    test_names::TestNameRef,
    timestamp::Timestamp,
};
use assay_flakiness::{Diagnose, ErrorTexts, FailureCause};

use super::{Actions, Beginnings, ExplainedFailure, own_unexplained, runs_elsewhere};
use crate::{changes::NotRun, numbers::count, owners};

/// The runs of a window with this run, as the history of the stable branch to which it belongs, and whether it was added
/// because it counts in no verdict or its pack is damaged.
pub(crate) fn window_with(
    snapshot: &mut dyn Snapshot,
    run: &FailedRun,
    (from, to): (Timestamp, Timestamp),
) -> Result<(Arc<History>, bool), StoreError> {
    let history = snapshot.observations(from, to)?;
    let known = history
        .runs
        .iter()
        .find(|observed| observed.run.number == run.run_number);
    if let Some(known) = known {
        let release_branch = known.run.release_branch.clone();
        return Ok((history.of_stable_branch(release_branch.as_deref()), false));
    }
    let Some(uncounted) = snapshot.uncounted_run(run)? else {
        return Ok((history, false));
    };
    let mut history = history.of_stable_branch(uncounted.run.release_branch.as_deref());
    let start_and_number = |observed: &RunObservations| (observed.run.started_at, observed.run.number);
    let at = history
        .runs
        .partition_point(|other| start_and_number(other) < start_and_number(&uncounted));
    Arc::make_mut(&mut history).runs.insert(at, uncounted);
    Ok((history, true))
}

/// The failures of a run before they are paged.
pub(super) struct UnpagedFailures {
    pub(super) history: Arc<History>,
    pub(super) judged: Arc<JudgedFailures>,
    pub(super) owners: Arc<Owners>,
}

impl UnpagedFailures {
    /// Reads the window and judges the run. Requests over the same runs share the judgement.
    pub(super) fn read(
        snapshot: &mut dyn Snapshot,
        engine: &dyn Diagnose,
        run: &FailedRun,
        knowledge: Knowledge,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let window = engine.causes_window(run.started_at, knowledge, now);
        let (history, is_added) = window_with(snapshot, run, window)?;
        let judge = |snapshot: &mut dyn Snapshot, history: &History| {
            JudgedFailures::read(snapshot, engine, history, run, (knowledge, window, now))
        };
        let judged = if is_added {
            Arc::new(judge(snapshot, &history)?)
        } else {
            let key = SharedKey {
                kind: knowledge.as_str(),
                of: run.run_number,
            };
            shared(snapshot, key, window, |snapshot| {
                let judged = judge(snapshot, &history)?;
                let bytes = judged.bytes();
                Ok((judged, bytes))
            })?
        };
        Ok(Self {
            owners: owners::in_window(snapshot, window)?,
            history,
            judged,
        })
    }

    pub(super) fn causes(&self) -> impl Iterator<Item = &FailureCause> {
        self.judged.failures.iter().map(|failure| &failure.cause)
    }

    /// The failures that `is_listed` admits.
    pub(super) fn only(&self, is_listed: impl FnMut(&&JudgedFailure) -> bool) -> Vec<&JudgedFailure> {
        self.judged.failures.iter().filter(is_listed).collect()
    }

    /// Whether a failure is of a test with this owner; without one, every failure is.
    pub(super) fn has_owner<'a>(
        &'a self,
        owner: Option<&'a OwnerFilter>,
    ) -> impl FnMut(&JudgedFailure) -> bool + 'a {
        let mut lookup = self.owners.lookup();
        move |failure| owner.is_none_or(|owner| owner.selects(lookup.of(failure.name.file_path.as_deref())))
    }

    /// One page of the `selected` failures.
    pub(super) fn entries(
        &self,
        snapshot: &mut dyn Snapshot,
        knowledge: Knowledge,
        selected: &[&JudgedFailure],
        (page, per_page): (u64, u32),
    ) -> Result<(Page, Vec<ExplainedFailure>), StoreError> {
        let page = Page::of_size(page, per_page, count(selected.len()));
        let on_page = || page.part(selected);
        let tests: Vec<TestOrdinal> = on_page().map(|failure| failure.cause.test).collect();
        let facts = snapshot.stored_facts(&tests)?;
        let mut owners = self.owners.lookup();
        let beginnings = Beginnings::of(&self.history, self.causes());
        let entries = on_page().map(|failure| {
            let error = failure.cause.text.and_then(|text| self.judged.errors.get(&text));
            let facts = facts.get(&failure.cause.test).copied().unwrap_or_default();
            ExplainedFailure::of(
                &self.history,
                failure,
                knowledge,
                facts,
                (error, &mut owners, &self.judged.actions, &beginnings),
            )
        });
        Ok((page, entries.collect()))
    }
}

/// A failure with its final status and its test's name. Requests over the same runs share it.
pub(super) struct JudgedFailure {
    pub(super) cause: FailureCause,
    /// The final status of its test in the run.
    pub(super) final_status: FinalStatus,
    /// The test's name.
    pub(super) name: TestName,
    pub(super) runs_elsewhere: u32,
}

impl JudgedFailure {
    pub(super) fn new(
        history: &History,
        cause: FailureCause,
        final_status: FinalStatus,
        name: TestName,
    ) -> Self {
        Self {
            runs_elsewhere: runs_elsewhere(history, &cause),
            cause,
            final_status,
            name,
        }
    }
}

/// The causes of a run's failures. They depend only on the runs of the window.
pub(super) struct JudgedFailures {
    /// In the order of [`listed_before`], then by name.
    failures: Vec<JudgedFailure>,
    /// The names of their errors.
    errors: HashMap<u32, ErrorName>,
    actions: Actions,
    pub(super) not_run: NotRun,
}

impl JudgedFailures {
    pub(super) fn read(
        snapshot: &mut dyn Snapshot,
        engine: &dyn Diagnose,
        history: &History,
        run: &FailedRun,
        (knowledge, (from, to), now): (Knowledge, (Timestamp, Timestamp), Timestamp),
    ) -> Result<Self, StoreError> {
        let of_run = history
            .runs
            .iter()
            .filter(|observed| observed.run.number == run.run_number);
        let failures = of_run.flat_map(|observed| observed.failures.iter().map(|failure| failure.test));
        let failed: BTreeSet<TestOrdinal> = failures.collect();
        if failed.is_empty() {
            return Ok(Self::new(
                history,
                Vec::new(),
                Vec::new(),
                WindowErrors::default(),
            ));
        }
        let failed = Vec::from_iter(failed);
        let errors = snapshot.window_errors(run.run_number, &failed, from, to)?;
        let texts = texts(history, &errors);
        let mut causes = engine.causes_of_run(history, &texts, run.run_number, knowledge, now);
        own_unexplained(history, &mut causes);
        let tests: Vec<TestOrdinal> = causes.iter().map(|cause| cause.test).collect();
        let finals = snapshot.final_statuses(run, &tests)?;
        let names = snapshot.all_test_names()?;
        let name = |test| names.get(test).map(TestNameRef::owned);
        Ok(Self {
            not_run: NotRun::of(history, run.run_number, false, name),
            ..Self::new(history, causes, finals, errors)
        })
    }

    /// `finals` has the same order as the causes.
    pub(super) fn new(
        history: &History,
        causes: Vec<FailureCause>,
        finals: Vec<(FinalStatus, TestName)>,
        errors: WindowErrors,
    ) -> Self {
        let actions = Actions::of(&causes);
        let failures = causes.into_iter().zip(finals);
        let mut failures: Vec<JudgedFailure> = failures
            .map(|(cause, (final_status, name))| JudgedFailure::new(history, cause, final_status, name))
            .collect();
        failures.sort_by(|left, right| {
            listed_before(&left.cause, &right.cause).then_with(|| left.name.cmp(&right.name))
        });
        Self {
            failures,
            errors: errors.names.into_iter().collect(),
            actions,
            not_run: NotRun::default(),
        }
    }

    /// The approximate memory use in bytes.
    fn bytes(&self) -> usize {
        let failures = self.failures.iter().map(|failure| {
            let TestName { name, file_path } = &failure.name;
            let facts = &failure.cause.facts;
            let file = file_path.as_ref().map_or(0, String::len);
            let runs = size_of_val(&*facts.stable_passes) + size_of_val(&*facts.flakes);
            size_of_val(failure) + name.len() + file + runs
        });
        let errors = self
            .errors
            .values()
            .map(|error| size_of_val(error) + error.fingerprint.len() + error.title.len());
        failures.chain(errors).chain([self.not_run.bytes()]).sum()
    }
}

/// The order of failures in lists: failed before recovered, then the most probable breakages of the branch first. The
/// caller orders the rest by name.
pub(super) fn listed_before(left: &FailureCause, right: &FailureCause) -> Ordering {
    let mine = |cause: &FailureCause| cause.probabilities.mine();
    left.recovered
        .cmp(&right.recovered)
        .then_with(|| mine(right).total_cmp(&mine(left)))
}

/// The numbers of error signatures. A signature that is not stored gets an unused number.
pub(super) struct SignatureNumbers {
    numbers: HashMap<String, u32>,
    unused: u32,
}

impl SignatureNumbers {
    pub(super) fn new(stored: HashMap<String, u32>) -> Self {
        Self {
            numbers: stored,
            unused: u32::MAX,
        }
    }

    pub(super) fn number(&mut self, fingerprint: &str) -> u32 {
        if let Some(number) = self.numbers.get(fingerprint) {
            return *number;
        }
        self.unused -= 1;
        self.numbers.insert(fingerprint.to_owned(), self.unused);
        self.unused
    }
}

/// Counts the tests of a run, each with its error, among the tests that the window has with these errors. A test that
/// has its error in the window already is counted.
pub(super) fn count_tests(errors: &mut WindowErrors, of_run: impl IntoIterator<Item = (TestOrdinal, u32)>) {
    let mut pairs: HashSet<(TestOrdinal, u32)> = errors
        .failures
        .iter()
        .map(|(_, test, text)| (*test, *text))
        .collect();
    let mut tests: BTreeMap<u32, u32> = errors.tests.iter().copied().collect();
    for (test, text) in of_run {
        if pairs.insert((test, text)) {
            *tests.entry(text).or_default() += 1;
        }
    }
    errors.tests = tests.into_iter().collect();
}

/// The errors of a window as the engine reads them.
pub(super) fn texts(history: &History, errors: &WindowErrors) -> ErrorTexts {
    let index_of_run: HashMap<i32, usize> = history
        .runs
        .iter()
        .enumerate()
        .map(|(index, observed)| (observed.run.number, index))
        .collect();
    let mut texts = ErrorTexts::new();
    for (run_number, test, text) in &errors.failures {
        if let Some(index) = index_of_run.get(run_number) {
            texts.insert(*index, *test, *text);
        }
    }
    texts.set_window(errors.tests.iter().copied());
    texts
}

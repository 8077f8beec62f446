//! The port of the read API: each read with its transaction.
//!
//! Reads of several statements run in one repeatable-read transaction, so that no answer mixes two states. A single
//! statement needs no transaction, which saves two round trips.
//!
//! Keys and projects are read from the primary (`on_primary`). Data may come from a standby (`on_standby`,
//! `in_snapshot`, and `find_in_snapshot` for one thing by its id).

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use assay_domain::{
    attempt::ErrorDetail,
    branch::Branches,
    cause::{FailedRun, FinalStatus, StoredFacts, WindowErrors},
    decision::RunDecision,
    fix::TestFixes,
    history::{HistoryRest, Occurrence, TestHistory, TestSummary},
    id::{KeyId, OrganizationId, ProjectId, RunId, SessionId},
    ingest::ProjectUpload,
    joins::Joins,
    key::{KeyHash, StoredKey},
    observation::{History, RunObservations},
    owners::OwnersFile,
    period::Period,
    plan::Plan,
    project::{Caller, Project, ProjectEntry},
    recording::Recording,
    rules::RecordingRules,
    run::{RunDetail, RunPage, RunPart, RunQuery, RunRest, SomeTests, TestEntry},
    settings::Settings,
    signature::{SignatureDetail, SignatureHits, SignaturePage, SignatureQuery, TestSignature},
    store::{
        ComputeShared, Connections, FinalResult, ProjectFigures, ReadKeys, RecognisedReport, ResultKey,
        SharedKey, SharedValue, Snapshot, SnapshotWork, Store, StoreError,
    },
    test::{TestLookup, TestName, TestOrdinal, TestSelector},
    test_attempts::TestAttempts,
    test_names::TestNames,
    timestamp::Timestamp,
    timing::Timings,
    verdict::TestVerdict,
};

use diesel::PgConnection;
use uuid::Uuid;

use crate::{
    Database,
    admin::{key, migrate, organization, project, session},
    db::{
        column::storable,
        pool::{During, WorkError},
    },
    read::{
        attempt, branch, decision, failed_run, fix, history,
        history_cache::HistoryCache,
        joins, judged_figures, observation, owners, run_detail, run_list,
        shared_values::{SharedValues, ValueName, WindowState},
        signature, signature_counts, signature_detail, signature_list, stored_facts, test,
        test_name_cache::TestNameCache,
        test_summary, text_counts, timing, upload, verdict,
    },
    record,
};

impl ReadKeys for Database {
    fn key(&self, hash: &KeyHash) -> Result<Option<StoredKey>, StoreError> {
        self.on_primary("reading a key", |connection| key::find(connection, hash))
    }

    fn plan(&self, organization: OrganizationId) -> Result<Option<Plan>, StoreError> {
        self.on_primary("reading a plan", |connection| {
            organization::plan(connection, organization)
        })
    }

    fn organization_named(&self, name: &str) -> Result<Option<OrganizationId>, StoreError> {
        self.on_primary("reading an organization", |connection| {
            let id = organization::with_name(connection, &storable(name), Uuid::nil())?;
            Ok::<_, WorkError<StoreError>>(id.map(OrganizationId))
        })
    }

    fn key_used(&self, key: KeyId, now: Timestamp) -> Result<(), StoreError> {
        self.query("noting a key's use", |connection| {
            key::used(connection, key, now).map(drop)
        })
    }

    fn project(&self, caller: &Caller, id: ProjectId, now: Timestamp) -> Result<Option<Project>, StoreError> {
        self.on_primary("reading a project", |connection| {
            project::find(connection, caller, id, now)
        })
    }

    fn end_session(
        &self,
        session: SessionId,
        key: Option<KeyId>,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.query_in_transaction("ending a session", |connection| {
            session::end(connection, session, key, expires_at, now)
        })
    }

    fn is_session_ended(&self, session: SessionId) -> Result<bool, StoreError> {
        self.query("reading a session", |connection| {
            session::is_ended(connection, session)
        })
    }
}

impl Store for Database {
    fn ready(&self) -> Result<(), StoreError> {
        self.on_primary("checking the schema", migrate::is_current)
    }

    fn connections(&self) -> Connections {
        self.pool_state()
    }

    fn reads_by_node(&self) -> [(&'static str, u64); 2] {
        self.counted_reads()
    }

    fn judged_figures(&self) -> Result<Vec<ProjectFigures>, StoreError> {
        self.on_primary("reading the figures of projects", judged_figures::judged_figures)
    }

    fn projects(&self, caller: &Caller) -> Result<Vec<ProjectEntry>, StoreError> {
        self.on_primary("reading projects", |connection| {
            let mut projects = project::of_organization(connection, caller.organization)?;
            projects.retain(|project| caller.may_read(&project.id));
            Ok(projects)
        })
    }

    fn settings(&self, project: &Project) -> Result<Settings, StoreError> {
        self.on_primary("reading settings", |connection| {
            project::settings(connection, project)
        })
    }

    fn branches(&self, project: &Project) -> Result<Branches, StoreError> {
        self.on_standby("reading branches", |connection| branch::list(connection, project))
    }

    fn runs(&self, project: &Project, query: &RunQuery) -> Result<RunPage, StoreError> {
        self.on_standby("reading runs", |connection| {
            run_list::page(connection, project, query)
        })
    }

    fn project_uploads(&self, project: &Project, limit: u32) -> Result<Vec<ProjectUpload>, StoreError> {
        self.on_standby("reading uploads", |connection| {
            upload::visible(connection, project, limit)
        })
    }

    fn run(&self, project: &Project, id: RunId) -> Result<Option<RunDetail>, StoreError> {
        self.find_in_snapshot("reading a run", |connection| {
            run_detail::find(connection, &self.test_names, project, id)
        })
    }

    fn run_with(
        &self,
        project: &Project,
        id: RunId,
        tests: &SomeTests,
    ) -> Result<Option<RunDetail>, StoreError> {
        self.find_in_snapshot("reading some tests of a run", |connection| {
            run_detail::find_with(connection, &self.test_names, project, id, tests)
        })
    }

    fn run_part(
        &self,
        project: &Project,
        rest: &RunRest,
        part: &RunPart,
    ) -> Result<Option<Vec<TestEntry>>, StoreError> {
        self.find_in_snapshot("reading tests of a run", |connection| {
            run_detail::part(connection, &self.test_names, project, rest, part)
        })
    }

    fn decisions(&self, project: &Project, run: RunId) -> Result<Vec<RunDecision>, StoreError> {
        self.in_snapshot("reading the decisions on a run", |connection| {
            decision::of_run(connection, project, run)
        })
    }

    fn attempts(
        &self,
        project: &Project,
        run: RunId,
        test: &TestSelector,
    ) -> Result<Option<TestLookup<TestAttempts>>, StoreError> {
        self.find_in_snapshot("reading attempts", |connection| {
            attempt::find(connection, project, run, test)
        })
    }

    fn last_errors(
        &self,
        project: &Project,
        tests: &[(RunId, TestName)],
    ) -> Result<Vec<Vec<ErrorDetail>>, StoreError> {
        if tests.is_empty() {
            return Ok(Vec::new());
        }
        self.on_standby("reading errors", |connection| {
            attempt::last_errors(connection, project, tests)
        })
    }

    fn history(
        &self,
        project: &Project,
        test: &TestSelector,
        period: &Period,
    ) -> Result<TestLookup<TestHistory>, StoreError> {
        self.in_snapshot("reading a history", |connection| {
            history::find(connection, project, test, period)
        })
    }

    fn history_part(
        &self,
        project: &Project,
        rest: HistoryRest,
    ) -> Result<(Vec<Occurrence>, Option<HistoryRest>), StoreError> {
        self.in_snapshot("reading a history", |connection| {
            history::part(connection, project, rest.clone())
        })
    }

    fn timings(&self, project: &Project, before: Timestamp) -> Result<Timings, StoreError> {
        self.in_snapshot("reading timings", |connection| {
            timing::find(connection, &self.test_names, project, before)
        })
    }

    fn verdict(&self, project: &Project, test: &TestSelector) -> Result<TestLookup<TestVerdict>, StoreError> {
        self.on_standby("reading a verdict", |connection| {
            verdict::find(connection, project, test)
        })
    }

    fn fixes(
        &self,
        project: &Project,
        test: &TestSelector,
        period: &Period,
    ) -> Result<TestLookup<TestFixes>, StoreError> {
        self.in_snapshot("reading the fixes of a test", |connection| {
            fix::of_test(connection, project, test, period)
        })
    }

    fn signature(
        &self,
        project: &Project,
        fingerprint: &str,
        period: &Period,
    ) -> Result<Option<SignatureDetail>, StoreError> {
        self.find_in_snapshot("reading a signature", |connection| {
            signature_detail::find_shared(connection, &self.shared_values, project, fingerprint, period)
        })
    }

    fn signatures(&self, project: &Project, query: &SignatureQuery) -> Result<SignaturePage, StoreError> {
        self.in_snapshot("reading signatures", |connection| {
            signature_list::shared_page(connection, &self.shared_values, project, query)
        })
    }

    fn test_signatures(
        &self,
        project: &Project,
        test: &TestSelector,
        period: &Period,
    ) -> Result<TestLookup<Vec<TestSignature>>, StoreError> {
        self.in_snapshot("reading the signatures of a test", |connection| {
            signature_counts::of_test(connection, project, test, period)
        })
    }

    fn test_summary(
        &self,
        project: &Project,
        test: &TestSelector,
        period: &Period,
        failures: u32,
    ) -> Result<TestLookup<TestSummary>, StoreError> {
        self.in_snapshot("reading a test in short", |connection| {
            test_summary::find(connection, project, test, period, failures)
        })
    }

    fn with_snapshot(&self, project: &Project, work: &mut SnapshotWork<'_>) -> Result<(), StoreError> {
        self.in_snapshot("reading a snapshot", |connection| {
            let mut state = StateSnapshot {
                connection,
                histories: &self.histories,
                test_names: &self.test_names,
                shared_values: &self.shared_values,
                window: None,
                joins: None,
                project,
            };
            work(&mut state).map_err(WorkError::of_read)
        })
    }
}

/// The state of a project that a transaction sees.
struct StateSnapshot<'a> {
    connection: &'a mut PgConnection,
    histories: &'a HistoryCache,
    test_names: &'a TestNameCache,
    shared_values: &'a SharedValues,
    /// The window whose runs were read last.
    window: Option<((Timestamp, Timestamp), WindowState)>,
    /// The joined tests of the project, once they are read.
    joins: Option<Arc<Joins>>,
    project: &'a Project,
}

impl StateSnapshot<'_> {
    /// The runs of this window, if they were read last.
    fn runs_of(&self, window: (Timestamp, Timestamp)) -> Option<WindowState> {
        let (last_window, state) = self.window.as_ref()?;
        (*last_window == window).then(|| state.clone())
    }

    /// The joined tests of the project.
    fn joins(&mut self) -> Result<Arc<Joins>, StoreError> {
        if let Some(known) = &self.joins {
            return Ok(Arc::clone(known));
        }
        let read = joins::load(self.connection, self.project.id.0);
        let joins = Arc::new(read.during("reading joined tests")?);
        self.joins = Some(Arc::clone(&joins));
        Ok(joins)
    }
}

impl Snapshot for StateSnapshot<'_> {
    fn observations(&mut self, from: Timestamp, to: Timestamp) -> Result<Arc<History>, StoreError> {
        let (from, to) = self.project.visible_part(from, to);
        let project = self.project.id.0;
        let (observed, (history, joins)) =
            observation::cached_or_read(self.connection, self.histories, project, from, to)
                .during("reading observations")?;
        self.joins = Some(joins);
        self.window = observed.map(|observed| ((from, to), WindowState::of(project, observed, &history)));
        Ok(history)
    }

    fn each_run(
        &mut self,
        (from, to): (Timestamp, Timestamp),
        each: &mut dyn FnMut(RunObservations, Option<u64>),
    ) -> Result<(), StoreError> {
        let (from, to) = self.project.visible_part(from, to);
        let each = |observed: RunObservations, duration_ms| {
            if observed.run.started_at <= to {
                each(observed, duration_ms);
            }
        };
        let joins = observation::each_run(self.connection, self.project.id.0, from, each)
            .during("reading runs one by one")?;
        self.joins = Some(Arc::new(joins));
        Ok(())
    }

    fn shared_value(
        &mut self,
        key: SharedKey,
        from: Timestamp,
        to: Timestamp,
        compute: &mut ComputeShared<'_>,
    ) -> Result<SharedValue, StoreError> {
        if self.runs_of(self.project.visible_part(from, to)).is_none() {
            self.observations(from, to)?;
        }
        // A project that was deleted after the caller's look-up has no state.
        let Some(window) = self.runs_of(self.project.visible_part(from, to)) else {
            return compute(self);
        };
        let values = self.shared_values;
        values.cached_or_computed(window, ValueName::Computed(key), || compute(self))
    }

    fn test_names(&mut self, tests: &[TestOrdinal]) -> Result<Vec<TestName>, StoreError> {
        test::names(self.connection, self.project, tests).during("reading tests")
    }

    fn former_names(&mut self, tests: &[TestOrdinal]) -> Result<Vec<Vec<TestName>>, StoreError> {
        let joins = self.joins()?;
        let former: Vec<Vec<TestOrdinal>> = tests.iter().map(|test| joins.former_names_of(*test)).collect();
        let all: Vec<TestOrdinal> = former.iter().flatten().copied().collect();
        if all.is_empty() {
            return Ok(vec![Vec::new(); tests.len()]);
        }
        let mut names = self.test_names(&all)?.into_iter();
        Ok(former
            .iter()
            .map(|former| names.by_ref().take(former.len()).collect())
            .collect())
    }

    fn all_test_names(&mut self) -> Result<Arc<TestNames>, StoreError> {
        self.test_names
            .current(self.connection, self.project.id.0)
            .during("reading the names of all tests")
    }

    fn green_durations(
        &mut self,
        runs: &[(i32, Timestamp)],
    ) -> Result<Vec<Vec<(TestOrdinal, u64)>>, StoreError> {
        let joins = self.joins()?;
        timing::of_runs(self.connection, self.project, &joins, runs).during("reading durations")
    }

    fn run_durations(&mut self, runs: &[(i32, Timestamp)]) -> Result<Vec<Option<u64>>, StoreError> {
        timing::whole_runs(self.connection, self.project, runs).during("reading durations of runs")
    }

    fn owners_file(&mut self) -> Result<Option<OwnersFile>, StoreError> {
        owners::find(self.connection, self.project.id.0).during("reading the owners file")
    }

    fn failed_run(&mut self, id: RunId) -> Result<Option<FailedRun>, StoreError> {
        run_detail::failed_run(self.connection, self.project, id).during("reading a run with failures")
    }

    fn uncounted_run(&mut self, run: &FailedRun) -> Result<Option<RunObservations>, StoreError> {
        let joins = self.joins()?;
        let mut observed = record::uncounted_run(self.connection, self.project, run)
            .during("reading a run that does not count in verdicts")?;
        if let Some(observed) = &mut observed {
            joins.apply(observed);
        }
        Ok(observed)
    }

    fn final_statuses(
        &mut self,
        run: &FailedRun,
        tests: &[TestOrdinal],
    ) -> Result<Vec<(FinalStatus, TestName)>, StoreError> {
        let joins = self.joins()?;
        failed_run::final_statuses(self.connection, self.project, &joins, run, tests)
            .during("reading the results of failed tests")
    }

    fn window_errors(
        &mut self,
        run_number: i32,
        tests: &[TestOrdinal],
        from: Timestamp,
        to: Timestamp,
    ) -> Result<WindowErrors, StoreError> {
        let (from, to) = self.project.visible_part(from, to);
        let joins = self.joins()?;
        let mut read = || {
            let counts = match self.runs_of((from, to)) {
                Some(window) => text_counts::read_shared(
                    self.connection,
                    self.shared_values,
                    self.project,
                    &joins,
                    window,
                    (from, to),
                )?,
                None => text_counts::read(self.connection, self.project, &joins, (from, to))?,
            };
            failed_run::window_errors(
                self.connection,
                self.project,
                &joins,
                (run_number, tests),
                (from, to),
                &counts,
            )
        };
        read().during("reading the errors of a window")
    }

    fn stored_facts(
        &mut self,
        tests: &[TestOrdinal],
    ) -> Result<HashMap<TestOrdinal, StoredFacts>, StoreError> {
        let joins = self.joins()?;
        stored_facts::of_tests(self.connection, self.project, &joins, tests)
            .during("reading verdicts and first failures")
    }

    fn test_ordinals(&mut self, tests: &[TestSelector]) -> Result<Vec<TestLookup<TestOrdinal>>, StoreError> {
        test::ordinals(self.connection, self.project, tests).during("looking up tests")
    }

    fn signature_numbers(&mut self, fingerprints: &[String]) -> Result<HashMap<String, u32>, StoreError> {
        let fingerprints: Vec<&str> = fingerprints.iter().map(String::as_str).collect();
        let ordinals = signature::ordinals(self.connection, self.project.id.0, &fingerprints);
        signature::numbers(ordinals.during("looking up error signatures")?)
    }

    fn tests_with_signature(
        &mut self,
        fingerprint: &str,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Option<SignatureHits>, StoreError> {
        let (from, to) = self.project.visible_part(from, to);
        let joins = self.joins()?;
        let hits = signature::tests_with(self.connection, self.project, fingerprint, (from, to))
            .during("reading the tests of an error signature")?;
        let present = |hits: SignatureHits| {
            let tests: BTreeSet<TestOrdinal> = hits.tests.iter().map(|test| joins.current(*test)).collect();
            SignatureHits {
                tests: tests.into_iter().collect(),
                ..hits
            }
        };
        Ok(match joins.is_empty() {
            true => hits,
            false => hits.map(present),
        })
    }

    fn recognise(
        &mut self,
        recording: &Recording,
        rules: RecordingRules,
        now: Timestamp,
    ) -> Result<RecognisedReport, StoreError> {
        let joins = self.joins()?;
        record::recognise(self.connection, self.project, &joins, recording, rules, now)
            .during("recognising a report")
    }

    fn final_results(&mut self, results: &[ResultKey]) -> Result<Vec<FinalResult>, StoreError> {
        let joins = self.joins()?;
        observation::final_results(self.connection, self.project, &joins, results)
            .during("reading final results")
    }
}

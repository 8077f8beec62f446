//! A project whose runs are imported at simulated times, with a target that keeps its messages.

use std::sync::{Arc, Mutex};

use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    execution::Executions,
    plan::Plan,
    project::Project,
    recording::{RecordedAttempt, RecordedTest, Recording, RunContext, Sender},
    run::RunState,
    settings::ChatEvent,
    signature::{Category, ErrorClass},
    store::{Administration, Outbox as _, ProjectChange, ReadKeys as _, Recorder as _},
    test::TestName,
    timestamp::Timestamp,
};
use assay_flakiness::Engine;
use assay_messages::{Channel, Content, DigestTimes, Notifier, Outgoing, Receipt, Scope, SendError, Target};
use assay_repository::Database;
use assay_testkit::TestDatabase;

pub(crate) const START: Timestamp = Timestamp::from_unix_ms(1_795_000_000_000);
pub(crate) const MINUTE: i64 = 60_000;
pub(crate) const HOUR: i64 = 60 * MINUTE;

/// The messages of a target, each with its time.
pub(crate) type Inbox = Arc<Mutex<Vec<(Timestamp, Content)>>>;

struct Memory(Inbox);

impl Channel for Memory {
    fn send(&self, message: &Outgoing<'_>) -> Result<Receipt, SendError> {
        self.0
            .lock()
            .unwrap()
            .push((message.now, message.content.clone()));
        Ok(None)
    }

    fn kind(&self) -> &'static str {
        "memory"
    }
}

pub(crate) struct World {
    pub(crate) store: Database,
    pub(crate) projects: Vec<Project>,
    /// Dropped last.
    _database: TestDatabase,
}

impl World {
    /// So many projects with all events.
    pub(crate) fn new(projects: usize) -> Self {
        let database = TestDatabase::new();
        let store = database.connect();
        let organization = store.create_organization("Acme", Plan::Pro, START).unwrap();
        let caller = assay_domain::project::Caller {
            organization: organization.id,
            plan: Plan::Pro,
            only: None,
        };
        let create = |number: usize| {
            let name = format!("project {number}");
            let entry = store
                .create_project(organization.id, &name, "main", START)
                .unwrap();
            let change = ProjectChange {
                chat: Some(Some(ChatEvent::ALL.to_vec())),
                release_branches: Some(vec!["release/*".parse().unwrap()]),
                ..ProjectChange::default()
            };
            store
                .set_project(entry.id, &change, &Engine::default(), START)
                .unwrap();
            store.project(&caller, entry.id, START).unwrap().unwrap()
        };
        let projects = (0..projects).map(create).collect();
        Self {
            store,
            projects,
            _database: database,
        }
    }

    /// Imports a run that ends at this time.
    pub(crate) fn import(&self, project: &Project, run: &Run, at: Timestamp) {
        self.store
            .record(project.id, &run.recording(at), &Engine::default(), at)
            .unwrap();
    }

    /// A pass at this time, with a target that has everything.
    pub(crate) fn pass(&self, inbox: &Inbox, at: Timestamp) {
        self.pass_by(inbox, &|| at);
    }

    /// The same by a clock.
    pub(crate) fn pass_by(&self, inbox: &Inbox, clock: &dyn Fn() -> Timestamp) {
        self.pass_with(inbox, None, clock);
    }

    /// The same with a digest.
    pub(crate) fn pass_with(
        &self,
        inbox: &Inbox,
        digest: Option<DigestTimes>,
        clock: &dyn Fn() -> Timestamp,
    ) {
        let engine = Engine::default();
        let target = Target {
            name: "memory".to_owned(),
            scope: Scope::All,
            events: ChatEvent::ALL.to_vec(),
            quiet: None,
            digest,
            channel: Box::new(Memory(Arc::clone(inbox))),
        };
        let report = Notifier::new(&self.store, &engine, None, vec![target], || 0.0)
            .pass(clock)
            .unwrap();
        assert_eq!(report.failed, 0);
    }

    /// The number of edges that wait.
    pub(crate) fn unsettled(&self, project: &Project) -> usize {
        self.store.unsettled(project.id).unwrap().len()
    }
}

/// A run of tests that are named by their numbers.
pub(crate) struct Run {
    pub(crate) key: String,
    pub(crate) branch: String,
    pub(crate) commit: String,
    pub(crate) tests: usize,
    /// The failed tests, each with its error.
    pub(crate) failed: Vec<(usize, String)>,
    /// Whether it was interrupted.
    pub(crate) is_cut: bool,
}

impl Run {
    /// The run of main with this number, of which these tests failed.
    pub(crate) fn of_main(number: i64, tests: usize, failed: Vec<(usize, String)>) -> Self {
        Self {
            key: format!("run {number}"),
            branch: "main".to_owned(),
            commit: format!("{number:040x}"),
            tests,
            failed,
            is_cut: false,
        }
    }

    fn recording(&self, at: Timestamp) -> Recording {
        let mut content = [0_u8; 32];
        for (index, byte) in self.key.bytes().enumerate() {
            content[index % 32] =
                content[index % 32].wrapping_mul(31).wrapping_add(byte) ^ u8::try_from(index % 256).unwrap();
        }
        let started_at = at.plus_ms(-MINUTE);
        Recording {
            run_key: self.key.clone(),
            content,
            shard: None,
            context: RunContext {
                branch: Some(self.branch.clone()),
                commit_sha: Some(self.commit.clone()),
                author_name: Some("Ada".to_owned()),
                ..RunContext::default()
            },
            sender: Sender::default(),
            replaces: false,
            is_backfilled: false,
            started_at,
            finished_at: Some(at),
            state: match self.is_cut {
                true => RunState::Interrupted,
                false => RunState::Completed,
            },
            report_errors: Vec::new(),
            passed_groups: Vec::new(),
            checkout: Default::default(),
            tests: (0..self.tests).map(|number| self.test(number)).collect(),
        }
    }

    fn test(&self, number: usize) -> RecordedTest {
        let error = self
            .failed
            .iter()
            .find(|(failed, _)| *failed == number)
            .map(|(_, error)| error);
        let mut executions = Executions::with_capacity(1);
        executions.push([attempt(error)]);
        RecordedTest {
            shown_as: Default::default(),
            test: TestName {
                name: format!("test {number}"),
                file_path: Some("a.spec.ts".to_owned()),
            },
            attempts: executions,
        }
    }
}

fn attempt(error: Option<&String>) -> RecordedAttempt {
    let status = match error {
        Some(_) => AttemptStatus::Failed,
        None => AttemptStatus::Passed,
    };
    RecordedAttempt {
        attempt: Attempt {
            status,
            duration_ms: Some(100),
            started_at: None,
            browser: None,
            skip_reason: None,
            output: None,
            errors: error
                .map(|message| ErrorDetail {
                    message: Some(message.clone()),
                    ..ErrorDetail::default()
                })
                .into_iter()
                .collect(),
        },
        class: error.map(|message| ErrorClass {
            fingerprint: fingerprint(message),
            version: 1,
            title: message.clone(),
            category: Category::Assertion,
        }),
    }
}

fn fingerprint(message: &str) -> String {
    let hash = message.bytes().fold(7_u128, |hash, byte| {
        hash.wrapping_mul(1_000_003) ^ u128::from(byte)
    });
    format!("{hash:032x}")
}
